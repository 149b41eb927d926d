"""Deliveries, dead letters and jobs: what became of requests, and what people do about it (Z20-Z23, R10, R11, P08)."""

from __future__ import annotations

import asyncio
import time
from typing import Any, AsyncIterator, Dict, Mapping, Optional, Sequence, Union

from .._content import Condition, body_fields, conditions, filter_fields
from .._exchange import json_request, segment
from ..errors import BadArgument, TimedOut
from ..models import Attempt, Count, DeadLetter, Delivery, Job, Retried
from .core import AsyncCore

Where = Mapping[str, Condition]


class AsyncDeliveries:
    """The delivery log and everything that waits."""

    def __init__(self, core: AsyncCore) -> None:
        self._core = core

    def list(self, *, per_page: Optional[int] = None, **where: Condition) -> AsyncIterator[Delivery]:
        """Deliveries from the newest to the oldest, all pages.

        Conditions are those of the API, for example `status=['PENDING', 'DLQ']`, `connection='Billing API'`, `error='timeout'`,
        `created_from=datetime(…)`, `cid=…`. A condition that the server does not know is refused by name.
        """
        return self._core.pages(self._core.path("/deliveries"), conditions(where), Delivery.read, per_page)

    async def show(self, delivery_id: str) -> Delivery:
        """One delivery."""
        return await self._core.ask(json_request("GET", self._at(delivery_id)), Delivery.read)

    async def attempts(self, delivery_id: str) -> Sequence[Attempt]:
        """Every attempt of a delivery, from the first to the last. The audit log keeps that it was looked at."""
        items, _ = await self._core.page(self._at(delivery_id, "/attempts"), (), Attempt.read)
        return items

    async def body(self, delivery_id: str, *, original: bool = False) -> bytes:
        """The body byte for byte; with `original` as it was before an edit. The audit log keeps that it was looked at."""
        query = (("original", "true"),) if original else ()
        request = json_request("GET", self._at(delivery_id, "/body"), query=query)
        return (await self._core.checked(request)).body

    async def edit(self, delivery_id: str, data: Any) -> Delivery:
        """Puts another body in place of the one accepted, which is kept as the original. `data` as in calls."""
        fields = body_fields(data)
        if not fields:
            raise BadArgument("data", "it is missing: give b'' for a body that is empty")
        return await self._core.ask(json_request("PATCH", self._at(delivery_id), fields), Delivery.read)

    async def discard(self, delivery_id: str) -> Delivery:
        """Deletes it from the queue or the DLQ; the log keeps it."""
        return await self._core.ask(json_request("DELETE", self._at(delivery_id)), Delivery.read)

    async def retry(self, delivery_id: str) -> Delivery:
        """A dead letter or a failed delivery once more, under its schedule (D27)."""
        return await self._act(delivery_id, "/retry")

    async def resend(self, delivery_id: str) -> Delivery:
        """Any delivery once more, the schedule from its beginning (D27)."""
        return await self._act(delivery_id, "/resend")

    async def set_aside(self, delivery_id: str) -> Delivery:
        """What waits goes to the DLQ."""
        return await self._act(delivery_id, "/set-aside")

    async def attempt_now(self, delivery_id: str) -> Delivery:
        """What waits is attempted without waiting for its time."""
        return await self._act(delivery_id, "/attempt-now")

    async def forward(self, delivery_id: str, topic: str, *, keep_header: bool = True) -> Delivery:
        """A dead letter or a failed delivery is published to a topic, with its note in the headers or without."""
        return await self._act(delivery_id, "/forward", {"topic": topic, "keep_header": keep_header})

    async def bulk(
        self,
        act: str,
        *,
        ids: Optional[Sequence[str]] = None,
        where: Optional[Where] = None,
        topic: Optional[str] = None,
        keep_header: bool = True,
    ) -> Job:
        """One act on many: `retry`, `resend`, `discard`, `set-aside` or `forward` (to a `topic`).

        By `ids` (10,000 at most) or by conditions (`where={}` means all). The server works it off by itself; `jobs.wait` follows it.
        """
        fields = _bulk(act, ids, where, topic, keep_header)
        path = self._core.path("/deliveries", f"/{act}")
        return await self._core.ask(json_request("POST", path, fields, headers=self._core.once()), Job.read)

    async def count(self, act: str, *, ids: Optional[Sequence[str]] = None, where: Optional[Where] = None) -> Count:
        """How many a bulk act would be about. Nothing is changed."""
        topic = "any" if act == "forward" else None
        fields = {**_bulk(act, ids, where, topic, True), "dry_run": True}
        return await self._core.ask(json_request("POST", self._core.path("/deliveries", f"/{act}"), fields), Count.read)

    async def _act(self, delivery_id: str, act: str, fields: Optional[Dict[str, Any]] = None) -> Delivery:
        request = json_request("POST", self._at(delivery_id, act), fields, headers=self._core.once())
        return await self._core.ask(request, Delivery.read)

    def _at(self, delivery_id: str, act: str = "") -> str:
        return self._core.path("/deliveries", f"/{segment(delivery_id, 'delivery_id')}") + act


class AsyncDeadLetters:
    """The dead-letter queue over all connections."""

    def __init__(self, core: AsyncCore) -> None:
        self._core = core

    def list(self, *, per_page: Optional[int] = None, **where: Condition) -> AsyncIterator[DeadLetter]:
        """Dead letters from the newest to the oldest, all pages. Conditions as in `deliveries.list`, without `status`."""
        return self._core.pages(self._core.path("/dlq"), conditions(where), DeadLetter.read, per_page)

    async def show(self, delivery_id: str) -> DeadLetter:
        """One dead letter."""
        path = self._core.path("/dlq", f"/{segment(delivery_id, 'delivery_id')}")
        return await self._core.ask(json_request("GET", path), DeadLetter.read)

    async def retry(self, delivery_id: str) -> Delivery:
        """Back to the queue for another round, or for three more attempts of its ladder (D27)."""
        path = self._core.path("/dlq", f"/{segment(delivery_id, 'delivery_id')}", "/retry")
        return await self._core.ask(json_request("POST", path, headers=self._core.once()), Delivery.read)

    async def retry_many(self, ids: Sequence[str]) -> Retried:
        """Several (1000 at most), at once and in this order. Those refused are told one by one."""
        path, fields = self._core.path("/dlq", "/retry"), {"deliveryIds": list_of(ids)}
        return await self._core.ask(json_request("POST", path, fields, headers=self._core.once()), Retried.read)

    async def bulk(
        self,
        act: str,
        *,
        where: Where,
        topic: Optional[str] = None,
        keep_header: bool = True,
    ) -> Job:
        """`retry`, `resend`, `discard` or `forward` all that fit (`where={}` means all), as a job."""
        path, fields = self._core.path("/dlq", f"/{act}"), _bulk(act, None, where, topic, keep_header)
        return await self._core.ask(json_request("POST", path, fields, headers=self._core.once()), Job.read)


class AsyncJobs:
    """Bulk acts under way and done."""

    def __init__(self, core: AsyncCore) -> None:
        self._core = core

    def list(self, *, per_page: Optional[int] = None) -> AsyncIterator[Job]:
        """Jobs from the newest to the oldest, all pages."""
        return self._core.pages(self._core.path("/jobs"), (), Job.read, per_page)

    async def show(self, job_id: str) -> Job:
        """One job, with how far it is."""
        return await self._core.ask(json_request("GET", self._at(job_id)), Job.read)

    async def pause(self, job_id: str) -> Job:
        """Goes no further until it is resumed."""
        return await self._core.ask(json_request("POST", self._at(job_id, "/pause")), Job.read)

    async def resume(self, job_id: str) -> Job:
        """Goes on."""
        return await self._core.ask(json_request("POST", self._at(job_id, "/resume")), Job.read)

    async def cancel(self, job_id: str) -> Job:
        """Ends it; what has been done stays done."""
        return await self._core.ask(json_request("POST", self._at(job_id, "/cancel")), Job.read)

    async def wait(self, job_id: str, *, timeout: float = 600.0, every: float = 0.5) -> Job:
        """The job once it has ended.

        Raises:
            TimedOut: it had not within `timeout` seconds; it goes on.
        """
        until = time.monotonic() + timeout
        while True:
            job = await self.show(job_id)
            if job.has_ended:
                return job
            if time.monotonic() + every > until:
                server = self._core.transport.settings.server
                raise TimedOut(server, f"job {job_id} has not ended within {timeout:g} s", maybe_taken=True)
            await asyncio.sleep(every)

    def _at(self, job_id: str, act: str = "") -> str:
        return self._core.path("/jobs", f"/{segment(job_id, 'job_id')}") + act


def list_of(ids: Sequence[str]) -> Sequence[str]:
    """The ids as a list. A single text is a slip: it would be taken letter by letter."""
    if isinstance(ids, str):
        raise BadArgument("ids", "it is one text: give a list of ids")
    return [*ids]


def _bulk(
    act: str, ids: Optional[Sequence[str]], where: Optional[Where], topic: Optional[str], keep_header: bool
) -> Dict[str, Any]:
    if (ids is None) == (where is None):
        raise BadArgument("where", "give either `ids` or `where`, which may be {} for all")
    if (act == "forward") != (topic is not None):
        raise BadArgument("topic", "`forward` needs a topic, and no other act takes one")
    chosen: Dict[str, Union[Sequence[str], Dict[str, Any]]] = (
        {"deliveryIds": list_of(ids)} if ids is not None else {"filter": filter_fields(where or {})}
    )
    return chosen if topic is None else {**chosen, "topic": topic, "keep_header": keep_header}
