# Made by tools/unasync.py from _async/topics.py: change it there.
"""Topics with their pull subscriptions, and events (P02, D40)."""

from __future__ import annotations

from typing import Any, Iterator, Optional, Sequence, Union

from .._content import Condition, Params, body_fields, conditions, pairs, plain
from .._exchange import json_request, segment
from ..errors import BadArgument
from ..models import Acknowledged, EventPublished, Published, Subscription, Topic, TopicMessage
from .core import Core
from .deliveries import list_of


class Topics:
    """Topics and their messages."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def list(self, *, per_page: Optional[int] = None) -> Iterator[Topic]:
        """Every topic."""
        return self._core.pages(self._core.path("/topics"), (), Topic.read, per_page)

    def show(self, topic: str) -> Topic:
        """One topic."""
        return self._core.ask(json_request("GET", self._at(topic)), Topic.read)

    def create(self, topic: str, *, description: str = "", retention_seconds: Optional[int] = None) -> Topic:
        """Makes a topic. It keeps its messages for 7 days unless it says otherwise."""
        fields = {"name": topic, "description": description}
        if retention_seconds is not None:
            fields["retention_seconds"] = retention_seconds  # type: ignore[assignment]
        return self._core.ask(json_request("POST", self._core.path("/topics"), fields), Topic.read)

    def delete(self, topic: str) -> None:
        """Deletes a topic."""
        self._core.checked(json_request("DELETE", self._at(topic)))

    def publish(
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
        return self._core.ask(request, Published.read)

    def messages(self, topic: str, *, per_page: Optional[int] = None) -> Iterator[TopicMessage]:
        """Looks at messages without taking them, from the newest to the oldest. The audit log keeps it."""
        return self._core.pages(self._at(topic, "/messages"), (), TopicMessage.read, per_page)

    def subscriptions(self, topic: str) -> Sequence[Subscription]:
        """The pull subscriptions of a topic."""
        items, _ = self._core.page(self._at(topic, "/subscriptions"), (), Subscription.read)
        return items

    def subscribe(self, topic: str, name: str, *, redeliver_after_seconds: Optional[int] = None) -> Subscription:
        """Makes a pull subscription. What is not acknowledged is given out again after `redeliver_after_seconds`."""
        fields = {"name": name, "redeliver_after_seconds": redeliver_after_seconds}
        return self._core.ask(json_request("POST", self._at(topic, "/subscriptions"), fields), Subscription.read)

    def unsubscribe(self, topic: str, name: str) -> None:
        """Ends a pull subscription."""
        self._core.checked(json_request("DELETE", self._at(topic, f"/subscriptions/{segment(name)}")))

    def pull(self, topic: str, subscription: str, *, messages_max: int = 10) -> Sequence[TopicMessage]:
        """Takes at most `messages_max` messages (1 to 1000). Each is given out again later unless it is acknowledged."""
        path = self._at(topic, f"/subscriptions/{segment(subscription, 'subscription')}/pull")
        request = json_request("POST", path, {"max": messages_max})

        def read(json: Any) -> Sequence[TopicMessage]:
            return [TopicMessage.read(one) for one in json["data"]]

        return self._core.ask(request, read)

    def ack(
        self, topic: str, subscription: str, messages: Union[TopicMessage, Sequence[Union[TopicMessage, str]]]
    ) -> Acknowledged:
        """Acknowledges messages that were pulled, by themselves or by their ids."""
        several = [messages] if isinstance(messages, TopicMessage) else list_of(messages)  # type: ignore[arg-type]
        ids = [one.id if isinstance(one, TopicMessage) else one for one in several]
        path = self._at(topic, f"/subscriptions/{segment(subscription, 'subscription')}/ack")
        return self._core.ask(json_request("POST", path, {"ids": ids}), Acknowledged.read)

    def _at(self, topic: str, rest: str = "") -> str:
        return self._core.path("/topics", f"/{segment(topic, 'topic')}") + rest


class Events:
    """Events for webhook endpoints and everything else that is subscribed to their type."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def publish(
        self, type: str, data: Any, *, event_id: Optional[str] = None, idempotency_key: Optional[str] = None
    ) -> EventPublished:
        """Publishes an event; it is stored, and so are its deliveries, when this returns."""
        if not isinstance(type, str) or not type:
            raise BadArgument("type", "it is no type of an event, such as `invoice.paid`")
        fields = {"type": type, "data": plain(data, "data")}
        if event_id is not None:
            fields["id"] = event_id
        request = json_request("POST", self._core.path("/events"), fields, headers=self._core.once(idempotency_key))
        return self._core.ask(request, EventPublished.read)

    def list(self, *, per_page: Optional[int] = None, **where: Condition) -> Iterator[Any]:
        """Events from the newest to the oldest, all pages, as the API shows them."""
        return self._core.pages(self._core.path("/events"), conditions(where), lambda json: json, per_page)
