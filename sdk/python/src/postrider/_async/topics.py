"""Topics with their pull subscriptions, and events (P02, D40)."""

from __future__ import annotations

from typing import Any, AsyncIterator, Optional, Sequence, Union

from .._content import Condition, Params, body_fields, conditions, pairs, plain
from .._exchange import json_request, segment
from ..errors import BadArgument
from ..models import Acknowledged, EventPublished, Published, Subscription, Topic, TopicMessage
from .core import AsyncCore
from .deliveries import list_of


class AsyncTopics:
    """Topics and their messages."""

    def __init__(self, core: AsyncCore) -> None:
        self._core = core

    def list(self, *, per_page: Optional[int] = None) -> AsyncIterator[Topic]:
        """Every topic."""
        return self._core.pages(self._core.path("/topics"), (), Topic.read, per_page)

    async def show(self, topic: str) -> Topic:
        """One topic."""
        return await self._core.ask(json_request("GET", self._at(topic)), Topic.read)

    async def create(self, topic: str, *, description: str = "", retention_seconds: Optional[int] = None) -> Topic:
        """Makes a topic. It keeps its messages for 7 days unless it says otherwise."""
        fields = {"name": topic, "description": description}
        if retention_seconds is not None:
            fields["retention_seconds"] = retention_seconds  # type: ignore[assignment]
        return await self._core.ask(json_request("POST", self._core.path("/topics"), fields), Topic.read)

    async def delete(self, topic: str) -> None:
        """Deletes a topic."""
        await self._core.checked(json_request("DELETE", self._at(topic)))

    async def publish(
        self,
        topic: str,
        data: Any = None,
        *,
        headers: Params = None,
        idempotency_key: Optional[str] = None,
        cid: Optional[str] = None,
    ) -> Published:
        """Publishes a message; it is stored when this returns. `data` as in calls to connections."""
        fields = {**body_fields(data)}
        if headers is not None:
            fields["headers"] = pairs(headers, "headers")
        once = self._core.once(idempotency_key, cid)
        request = json_request("POST", self._at(topic, "/publish"), fields, headers=once)
        return await self._core.ask(request, Published.read)

    def messages(self, topic: str, *, per_page: Optional[int] = None) -> AsyncIterator[TopicMessage]:
        """Looks at messages without taking them, from the newest to the oldest. The audit log keeps it."""
        return self._core.pages(self._at(topic, "/messages"), (), TopicMessage.read, per_page)

    async def subscriptions(self, topic: str) -> Sequence[Subscription]:
        """The pull subscriptions of a topic."""
        items, _ = await self._core.page(self._at(topic, "/subscriptions"), (), Subscription.read)
        return items

    async def subscribe(self, topic: str, name: str, *, redeliver_after_seconds: Optional[int] = None) -> Subscription:
        """Makes a pull subscription. What is not acknowledged is given out again after `redeliver_after_seconds`."""
        fields = {"name": name, "redeliver_after_seconds": redeliver_after_seconds}
        return await self._core.ask(json_request("POST", self._at(topic, "/subscriptions"), fields), Subscription.read)

    async def unsubscribe(self, topic: str, name: str) -> None:
        """Ends a pull subscription."""
        await self._core.checked(json_request("DELETE", self._at(topic, f"/subscriptions/{segment(name)}")))

    async def pull(self, topic: str, subscription: str, *, messages_max: int = 10) -> Sequence[TopicMessage]:
        """Takes at most `messages_max` messages (1 to 1000). Each is given out again later unless it is acknowledged."""
        path = self._at(topic, f"/subscriptions/{segment(subscription, 'subscription')}/pull")
        request = json_request("POST", path, {"max": messages_max})

        def read(json: Any) -> Sequence[TopicMessage]:
            return [TopicMessage.read(one) for one in json["data"]]

        return await self._core.ask(request, read)

    async def ack(
        self, topic: str, subscription: str, messages: Union[TopicMessage, Sequence[Union[TopicMessage, str]]]
    ) -> Acknowledged:
        """Acknowledges messages that were pulled, by themselves or by their ids."""
        several = [messages] if isinstance(messages, TopicMessage) else list_of(messages)  # type: ignore[arg-type]
        ids = [one.id if isinstance(one, TopicMessage) else one for one in several]
        path = self._at(topic, f"/subscriptions/{segment(subscription, 'subscription')}/ack")
        return await self._core.ask(json_request("POST", path, {"ids": ids}), Acknowledged.read)

    def _at(self, topic: str, rest: str = "") -> str:
        return self._core.path("/topics", f"/{segment(topic, 'topic')}") + rest


class AsyncEvents:
    """Events for webhook endpoints and everything else that is subscribed to their type."""

    def __init__(self, core: AsyncCore) -> None:
        self._core = core

    async def publish(
        self, type: str, data: Any, *, event_id: Optional[str] = None, idempotency_key: Optional[str] = None
    ) -> EventPublished:
        """Publishes an event; it is stored, and so are its deliveries, when this returns."""
        if not isinstance(type, str) or not type:
            raise BadArgument("type", "it is no type of an event, such as `invoice.paid`")
        fields = {"type": type, "data": plain(data, "data")}
        if event_id is not None:
            fields["id"] = event_id
        request = json_request("POST", self._core.path("/events"), fields, headers=self._core.once(idempotency_key))
        return await self._core.ask(request, EventPublished.read)

    def list(self, *, per_page: Optional[int] = None, **where: Condition) -> AsyncIterator[Any]:
        """Events from the newest to the oldest, all pages, as the API shows them."""
        return self._core.pages(self._core.path("/events"), conditions(where), lambda json: json, per_page)
