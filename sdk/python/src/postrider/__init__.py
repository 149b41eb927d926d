"""Postrider from Python: a client of the server, and in `postrider.services` the host for services.

    import postrider

    with postrider.connect("http://127.0.0.1:8080", key) as client:
        result = client.rest["Billing API"].post({"invoice": 1})
        if result.is_in_queue:
            print("queued as", result.msg_id)

`connect_async` is the same for asyncio: every call is awaited, every list is an async iterator.
"""

from __future__ import annotations

from ._async.client import AsyncClient, connect_async
from ._async.connections import AsyncConnection, AsyncMllpConnection, AsyncRestConnection, AsyncSoapConnection
from ._async.fhir import AsyncFhirConnection, AsyncResource
from ._sync.client import Client, connect
from ._sync.connections import Connection, MllpConnection, RestConnection, SoapConnection
from ._sync.fhir import FhirConnection, Resource
from ._version import __version__
from .errors import (
    BadArgument,
    Conflict,
    FieldError,
    Forbidden,
    Invalid,
    NotDelivered,
    NotFound,
    PostriderError,
    Refused,
    TimedOut,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    Unreachable,
    UnreadableAnswer,
)
from .headers import Headers
from .models import (
    Acknowledged,
    Attempt,
    Count,
    DeadLetter,
    Delivery,
    Destination,
    EventPublished,
    FailedForward,
    Forward,
    Job,
    Published,
    Replayed,
    Retried,
    RetriedForwards,
    Source,
    Subscription,
    Topic,
    TopicMessage,
)
from .results import Response, Result

__all__ = [
    "Acknowledged",
    "AsyncClient",
    "AsyncConnection",
    "AsyncFhirConnection",
    "AsyncMllpConnection",
    "AsyncResource",
    "AsyncRestConnection",
    "AsyncSoapConnection",
    "Attempt",
    "BadArgument",
    "Client",
    "Conflict",
    "Connection",
    "Count",
    "DeadLetter",
    "Delivery",
    "Destination",
    "EventPublished",
    "FailedForward",
    "FhirConnection",
    "FieldError",
    "Forbidden",
    "Forward",
    "Headers",
    "Invalid",
    "Job",
    "MllpConnection",
    "NotDelivered",
    "NotFound",
    "PostriderError",
    "Published",
    "Refused",
    "Replayed",
    "Resource",
    "Response",
    "RestConnection",
    "Result",
    "Retried",
    "RetriedForwards",
    "SoapConnection",
    "Source",
    "Subscription",
    "TimedOut",
    "TooManyRequests",
    "Topic",
    "TopicMessage",
    "Unauthorized",
    "Unavailable",
    "Unreachable",
    "UnreadableAnswer",
    "__version__",
    "connect",
    "connect_async",
]
