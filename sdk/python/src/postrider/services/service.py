"""The classes that services derive from. They must not know how requests come in."""

from __future__ import annotations

import logging
import re
from typing import Any, Callable, List, Mapping, Optional

from .._async.client import AsyncClient
from .._async.connections import AsyncMllpConnection, AsyncNamed, AsyncRestConnection, AsyncSoapConnection
from .._async.fhir import AsyncFhirConnection
from .._content import Params as CallParams
from .._sync.client import Client
from .._sync.connections import MllpConnection, Named, RestConnection, SoapConnection
from .._sync.fhir import FhirConnection
from ..models import Published
from .request import Request
from .response import Response

VERB = "handle_"
HOOK = "queue-response"


class _Run:
    """What a run has, whether its calls are awaited or not."""

    name: str = ""
    """What channels call the service by. Derived from file and class unless set: `OrderIntake` in `orders.py` is `orders.order-intake`."""

    request: Request
    response: Response
    logger: logging.LoggerAdapter  # type: ignore[type-arg]
    """Logs under the correlation id."""
    cid: str
    """The correlation id: that of the acknowledgment, of the channel's log, and of every call made from here."""

    @classmethod
    def service_name(cls) -> str:
        """The name that it goes by."""
        return cls.__dict__.get("name") or f"{_dashed(cls.__module__)}.{_dashed(cls.__name__)}"

    @classmethod
    def methods(cls) -> Optional[List[str]]:
        """The HTTP methods that it has handlers for; None: `handle` takes all of them. With any verb handler only those count."""
        verbs = sorted(name[len(VERB) :] for name in dir(cls) if re.fullmatch(VERB + "[A-Z]+", name))
        return verbs or None

    @classmethod
    def hooks(cls) -> List[str]:
        """What the server may ask beside runs."""
        return [HOOK] if callable(getattr(cls, "get_queue_response", None)) else []

    @classmethod
    def is_runnable(cls) -> bool:
        """Whether it has a handler at all."""
        return cls.methods() is not None or callable(getattr(cls, "handle", None))


class Service(_Run):
    """Derive from it and write `handle`, or `handle_GET`, `handle_POST` and so on; other methods are then answered 405.

    A run that returns has succeeded. A run that raises has failed: from a queue it is tried again under the channel's settings. Handlers
    may be `async def` too; calls from here block all the same, so in those prefer `AsyncService`.

    With `get_queue_response` the service writes the channel's acknowledgment itself. It runs once the request is stored, beside `handle`,
    on an instance of its own, and what it puts into `self.response` is what the caller gets.
    """

    _open: Callable[[], Client]

    @property
    def client(self) -> Client:
        """Everything that the server offers, under this run's correlation id."""
        return self._open()

    @property
    def rest(self) -> Named[RestConnection]:
        """REST connections by name."""
        return self.client.rest

    @property
    def soap(self) -> Named[SoapConnection]:
        """SOAP connections by name."""
        return self.client.soap

    @property
    def mllp(self) -> Named[MllpConnection]:
        """HL7 MLLP connections by name."""
        return self.client.mllp

    @property
    def fhir(self) -> Named[FhirConnection]:
        """HL7 FHIR connections by name."""
        return self.client.fhir

    def publish(
        self, topic: str, data: Any = None, *, headers: CallParams = None, idempotency_key: Optional[str] = None
    ) -> Published:
        """Publishes a message to a topic. Under a key of your own, a run that is repeated publishes it once."""
        return self.client.publish(topic, data, headers=headers, idempotency_key=idempotency_key)


class AsyncService(_Run):
    """As `Service`, for `async def` handlers: calls are awaited (`await self.rest['Billing API'].post(…)`)."""

    _open: Callable[[], AsyncClient]

    @property
    def client(self) -> AsyncClient:
        """Everything that the server offers, under this run's correlation id."""
        return self._open()

    @property
    def rest(self) -> AsyncNamed[AsyncRestConnection]:
        """REST connections by name."""
        return self.client.rest

    @property
    def soap(self) -> AsyncNamed[AsyncSoapConnection]:
        """SOAP connections by name."""
        return self.client.soap

    @property
    def mllp(self) -> AsyncNamed[AsyncMllpConnection]:
        """HL7 MLLP connections by name."""
        return self.client.mllp

    @property
    def fhir(self) -> AsyncNamed[AsyncFhirConnection]:
        """HL7 FHIR connections by name."""
        return self.client.fhir

    async def publish(
        self, topic: str, data: Any = None, *, headers: CallParams = None, idempotency_key: Optional[str] = None
    ) -> Published:
        """Publishes a message to a topic. Under a key of your own, a run that is repeated publishes it once."""
        return await self.client.publish(topic, data, headers=headers, idempotency_key=idempotency_key)


def announcement(service: "type[_Run]") -> Mapping[str, Any]:
    """What `GET /services` says of it."""
    return {"name": service.service_name(), "hooks": service.hooks(), "methods": service.methods()}


def _dashed(name: str) -> str:
    """`OrderIntake` and `order_intake` are `order-intake`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).replace("_", "-").lower()
