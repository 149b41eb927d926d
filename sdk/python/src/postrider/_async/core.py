"""Asks the server, again where that is safe, and reads what it says. It must not know what any path means."""

from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator, Callable, Optional, Sequence, Tuple, TypeVar

from .._content import cid_header, key_header
from .._exchange import Pairs, Reply, Request, json_request, read_json, refusal, segment
from .._transport import AsyncTransport
from ..errors import Unreachable

T = TypeVar("T")


class AsyncCore:
    """A transport with the project that paths are in and the correlation id that calls go under."""

    def __init__(
        self, transport: AsyncTransport, project: str, *, cid: Optional[str] = None, makes_keys: bool = True
    ) -> None:
        self.transport = transport
        self.project = project
        self.cid = cid
        self.makes_keys = makes_keys
        self._base = f"/api/v1/projects/{segment(project, 'project')}"

    def within(self, project: Optional[str] = None, cid: Optional[str] = None) -> AsyncCore:
        """The same connections to the server, another project or correlation id."""
        return AsyncCore(self.transport, project or self.project, cid=cid or self.cid, makes_keys=self.makes_keys)

    def path(self, *segments: str) -> str:
        """A path below the project. What begins with `/` is there as it is; everything else is a name."""
        parts = [one if one.startswith("/") else f"/{segment(one)}" for one in segments]
        return self._base + "".join(parts)

    def once(self, key: Optional[str] = None, cid: Optional[str] = None) -> Pairs:
        """The headers of an act that a repeat must not do twice: its idempotency key or a new one (D15), and the correlation id."""
        return (*cid_header(cid or self.cid), *key_header(key, is_made=self.makes_keys))

    async def reply(self, request: Request) -> Reply:
        """The answer, whatever it says. Asks again where that is safe."""
        number = 0
        while True:
            number += 1
            settings = self.transport.settings
            try:
                reply = await self.transport.exchange(request)
            except Unreachable as error:
                wait = settings.wait_before_repeat(request, number, error)
                if wait is None:
                    raise
            else:
                wait = settings.wait_before_repeat(request, number, reply)
                if wait is None:
                    return reply
            await asyncio.sleep(wait)

    async def ask(self, request: Request, read: Callable[[Any], T]) -> T:
        """What `read` makes of the JSON of an answer.

        Raises:
            Refused: the server said no.
            Unreachable, UnreadableAnswer: there was no answer, or none of this API.
        """
        return read_json(self.transport.settings.server, await self.checked(request), read)

    async def checked(self, request: Request) -> Reply:
        """An answer that is no refusal."""
        reply = await self.reply(request)
        if not 200 <= reply.status < 300:
            raise refusal(self.transport.settings.server, reply)
        return reply

    async def page(self, path: str, query: Pairs, read: Callable[[Any], T]) -> Tuple[Sequence[T], Optional[str]]:
        """One page of a list, and where the next one begins."""

        def of(json: Any) -> Tuple[Sequence[T], Optional[str]]:
            if not isinstance(json, dict) or not isinstance(json.get("data"), list):
                raise ValueError("it is no list")
            return [read(item) for item in json["data"]], json.get("next_cursor")

        return await self.ask(json_request("GET", path, query=query), of)

    async def pages(
        self, path: str, query: Pairs, read: Callable[[Any], T], per_page: Optional[int] = None
    ) -> AsyncIterator[T]:
        """Every item of a list, page by page, asked for as they are needed."""
        size: Pairs = () if per_page is None else (("limit", str(per_page)),)
        cursor: Optional[str] = None
        while True:
            at: Pairs = () if cursor is None else (("cursor", cursor),)
            items, cursor = await self.page(path, (*query, *size, *at), read)
            for item in items:
                yield item
            if cursor is None:
                return
