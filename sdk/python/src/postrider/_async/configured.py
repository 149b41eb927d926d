"""Connections as they are configured: their settings, and what waits in their queues. Calls are in `connections`."""

from __future__ import annotations

from typing import Any, AsyncIterator, Dict, Mapping, Optional

from .._content import plain
from .._exchange import Pairs, json_request, segment
from ..models import Delivery
from .core import AsyncCore

Settings = Mapping[str, Any]


class AsyncConfigured:
    """The project's connections. Where a name is that of several types, `type` says which one is meant (D16)."""

    def __init__(self, core: AsyncCore) -> None:
        self._core = core

    def list(self, *, per_page: Optional[int] = None) -> AsyncIterator[Settings]:
        """Every connection with its settings, as the API shows them."""
        return self._core.pages(self._core.path("/connections"), (), dict, per_page)

    async def show(self, name: str, *, type: Optional[str] = None) -> Settings:
        """One connection: its settings, and in `state` whether it is paused and how many wait."""
        return await self._core.ask(json_request("GET", self._at(name), query=_of(type)), dict)

    async def create(self, type: str, name: str, **settings: Any) -> Settings:
        """Makes a connection; settings are the keys of `docs/settings.md`."""
        fields: Dict[str, Any] = {"name": name, "type": type, **plain(settings, "settings")}
        return await self._core.ask(json_request("POST", self._core.path("/connections"), fields), dict)

    async def update(self, name: str, *, type: Optional[str] = None, **settings: Any) -> Settings:
        """Changes these settings and leaves the others; None takes one back to its default."""
        fields = plain(settings, "settings")
        return await self._core.ask(json_request("PATCH", self._at(name), fields, query=_of(type)), dict)

    async def delete(self, name: str, *, type: Optional[str] = None, force: bool = False) -> None:
        """Deletes a connection; one with requests in its queue or DLQ only by `force` (Z18)."""
        query = (*_of(type), *((("force", "true"),) if force else ()))
        await self._core.checked(json_request("DELETE", self._at(name), query=query))

    async def pause(self, name: str, *, type: Optional[str] = None) -> Settings:
        """Holds its queue."""
        return await self._core.ask(json_request("POST", self._at(name, "/pause"), query=_of(type)), dict)

    async def resume(self, name: str, *, type: Optional[str] = None) -> Settings:
        """Lets its queue go on."""
        return await self._core.ask(json_request("POST", self._at(name, "/resume"), query=_of(type)), dict)

    async def ping(self, name: str, *, type: Optional[str] = None, method: Optional[str] = None) -> Settings:
        """Tries whether its remote system can be reached; nothing of it is stored.

        Returns:
            `is_reachable`, `stages` with the milliseconds of each, `failedAt`, `status`, `certificateEndsAt`, `error`, `advice`.
        """
        asked = {} if method is None else {"method": method}
        return await self._core.ask(json_request("POST", self._at(name, "/ping"), asked, query=_of(type)), dict)

    def queue(
        self, name: str, *, type: Optional[str] = None, per_page: Optional[int] = None
    ) -> AsyncIterator[Delivery]:
        """What waits, from head to tail."""
        return self._core.pages(self._at(name, "/queue"), _of(type), Delivery.read, per_page)

    async def attempt_now(self, name: str, *, type: Optional[str] = None) -> Delivery:
        """Attempts the head of its queue without waiting for its time."""
        return await self._core.ask(
            json_request("POST", self._at(name, "/queue/attempt-now"), query=_of(type)), Delivery.read
        )

    def _at(self, name: str, rest: str = "") -> str:
        return self._core.path("/connections", f"/{segment(name)}") + rest


def _of(type: Optional[str]) -> Pairs:
    return () if type is None else (("type", type),)
