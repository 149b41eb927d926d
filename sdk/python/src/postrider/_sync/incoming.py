# Made by tools/unasync.py from _async/incoming.py: change it there.
"""Incoming webhooks: sources, destinations, forwards and Failed Forwards (R12)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Iterator, Dict, Mapping, Optional, Sequence, Union

from .._content import Condition, conditions, filter_fields, plain
from .._exchange import json_request, segment
from ..errors import BadArgument
from ..models import Destination, FailedForward, Forward, Replayed, RetriedForwards, Source
from .core import Core
from .deliveries import list_of

Moment = Union[datetime, str]


class Sources:
    """Where webhooks of others come in. Settings are those of the API in its own spelling (`publicUrl`, `rateLimitPerSecond`)."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def list(self, *, per_page: Optional[int] = None) -> Iterator[Source]:
        """Every source."""
        return self._core.pages(self._core.path("/sources"), (), Source.read, per_page)

    def show(self, source_id: str) -> Source:
        """One source, with what came of what it brought in `more['figures']`."""
        return self._core.ask(json_request("GET", self._at(source_id)), Source.read)

    def create(self, name: str, provider: str, *, secret: Optional[str] = None, **settings: Any) -> Source:
        """Makes a source. `token`, `ingress_path`, `ingress_url` and a secret that was made are in this answer and in no other."""
        fields: Dict[str, Any] = {"name": name, "provider": provider, **plain(settings, "settings")}
        if secret is not None:
            fields["secret"] = secret
        request = json_request("POST", self._core.path("/sources"), fields)
        return self._core.ask(request, Source.read)

    def update(self, source_id: str, **settings: Any) -> Source:
        """Changes these settings and leaves the others; None takes one back to its default. Provider and topic stay."""
        request = json_request("PATCH", self._at(source_id), plain(settings, "settings"))
        return self._core.ask(request, Source.read)

    def delete(self, source_id: str) -> None:
        """Whoever still sends to it is answered 404. Its destinations stay, as subscriptions to its topic."""
        self._core.checked(json_request("DELETE", self._at(source_id)))

    def rotate_token(self, source_id: str, *, overlap_seconds: Optional[int] = None) -> Source:
        """A new address, which is in the answer. The former one goes on for a day unless said."""
        fields = {} if overlap_seconds is None else {"overlapSeconds": overlap_seconds}
        return self._core.ask(json_request("POST", self._at(source_id, "/rotate-token"), fields), Source.read)

    def rotate_secret(
        self, source_id: str, *, secret: Optional[str] = None, overlap_seconds: Optional[int] = None
    ) -> Source:
        """Another secret: yours, or one that is made and is in the answer. The former one verifies too for a day unless said."""
        given = {"secret": secret, "overlapSeconds": overlap_seconds}
        fields = {name: value for name, value in given.items() if value is not None}
        return self._core.ask(json_request("POST", self._at(source_id, "/rotate-secret"), fields), Source.read)

    def replay(
        self,
        source_id: str,
        *,
        ids: Optional[Sequence[str]] = None,
        since: Optional[Moment] = None,
        before: Optional[Moment] = None,
        destination: Optional[str] = None,
        dry_run: bool = False,
    ) -> Replayed:
        """Forwards again what came in, by `ids` or by time, to all destinations or to one; with `dry_run` only counts."""
        if (ids is None) == (since is None and before is None):
            raise BadArgument("ids", "give either `ids`, or `since`, `before` or both")
        order: Dict[str, Any] = {"dry_run": dry_run}
        if ids is not None:
            order["eventIds"] = list_of(ids)
        given = {"from": since, "before": before, "destinationId": destination}
        order.update({name: plain(value, name) for name, value in given.items() if value is not None})
        events = forwards = 0
        while True:
            part = self._core.ask(json_request("POST", self._at(source_id, "/replay"), order), Replayed.read)
            events, forwards = events + part.events, forwards + part.forwards
            if part.next_cursor is None:
                return Replayed(events=events, forwards=forwards, next_cursor=None)
            order["cursor"] = part.next_cursor

    def _at(self, source_id: str, rest: str = "") -> str:
        return self._core.path("/sources", f"/{segment(source_id, 'source_id')}") + rest


class Destinations:
    """Where the webhooks of a source are forwarded."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def list(self, *, source: Optional[str] = None, per_page: Optional[int] = None) -> Iterator[Destination]:
        """The destinations of one source (`src_…`), or of all."""
        query = () if source is None else (("sourceId", source),)
        return self._core.pages(self._core.path("/destinations"), query, Destination.read, per_page)

    def show(self, destination_id: str) -> Destination:
        """One destination."""
        return self._core.ask(json_request("GET", self._at(destination_id)), Destination.read)

    def create(
        self,
        source: str,
        *,
        url: Optional[str] = None,
        endpoint: Optional[str] = None,
        connection: Optional[str] = None,
        **settings: Any,
    ) -> Destination:
        """Forwards what comes in at a source to an address, an endpoint that is there (`ep_…`), or any connection by its name."""
        to = {"url": url, "endpointId": endpoint, "connection": connection}
        given = {name: value for name, value in to.items() if value is not None}
        if len(given) != 1:
            raise BadArgument("url", "give one of `url`, `endpoint` and `connection`")
        fields = {"sourceId": source, **given, **plain(settings, "settings")}
        return self._core.ask(json_request("POST", self._core.path("/destinations"), fields), Destination.read)

    def update(self, destination_id: str, **settings: Any) -> Destination:
        """Changes these settings and leaves the others."""
        request = json_request("PATCH", self._at(destination_id), plain(settings, "settings"))
        return self._core.ask(request, Destination.read)

    def delete(self, destination_id: str) -> None:
        """Forwards nothing there any more. Forwards that are there already go on, and its endpoint stays."""
        self._core.checked(json_request("DELETE", self._at(destination_id)))

    def _at(self, destination_id: str) -> str:
        return self._core.path("/destinations", f"/{segment(destination_id, 'destination_id')}")


class Forwards:
    """Webhooks on their way to destinations, and those that were given up."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def list(self, *, per_page: Optional[int] = None, **where: Condition) -> Iterator[Forward]:
        """Forwards from the newest to the oldest, all pages. Conditions as in `deliveries.list`, and `source`, `destination`."""
        return self._core.pages(self._core.path("/forwards"), conditions(where), Forward.read, per_page)

    def show(self, forward_id: str) -> Forward:
        """One forward. Its attempts and its body are those of the delivery `delivery_id`."""
        path = self._core.path("/forwards", f"/{segment(forward_id, 'forward_id')}")
        return self._core.ask(json_request("GET", path), Forward.read)

    def failed(self, *, per_page: Optional[int] = None, **where: Condition) -> Iterator[FailedForward]:
        """Failed Forwards from the newest to the oldest. Conditions as in `list`, without `status`."""
        return self._core.pages(self._core.path("/incoming-dlq"), conditions(where), FailedForward.read, per_page)

    def retry(self, forward_id: str) -> Forward:
        """A new forward to the same destination, from attempt 1."""
        path = self._core.path("/incoming-dlq", f"/{segment(forward_id, 'forward_id')}", "/retry")
        return self._core.ask(json_request("POST", path, headers=self._core.once()), Forward.read)

    def retry_many(
        self, *, ids: Optional[Sequence[str]] = None, where: Optional[Mapping[str, Condition]] = None
    ) -> RetriedForwards:
        """Several failed forwards, at most 1000 at once: by ids, or by conditions (`where={}` means all), the oldest first."""
        if (ids is None) == (where is None):
            raise BadArgument("where", "give either `ids` or `where`, which may be {} for all")
        fields: Dict[str, Any] = {"filter": filter_fields(where or {})} if ids is None else {"forwardIds": list_of(ids)}
        request = json_request("POST", self._core.path("/incoming-dlq", "/retry"), fields, headers=self._core.once())
        return self._core.ask(request, RetriedForwards.read)
