"""What the server tells of deliveries, dead letters, jobs and topics, as frozen dataclasses.

Names are those of the API in Python's spelling (`nextAttemptAt` is `next_attempt_at`), times are aware datetimes in UTC, and what a
newer server adds is in `more` under its own name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import lru_cache
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, get_type_hints

from .headers import Headers
from .results import read_body, read_headers

M = TypeVar("M", bound="Model")


class Model:
    """Reads itself from JSON."""

    @classmethod
    def read(cls: Type[M], json: Any) -> M:
        """
        Raises:
            ValueError: it is not what it should be; the message names the member.
        """
        if not isinstance(json, dict):
            raise ValueError(f"{cls.__name__} is no object")
        left: Dict[str, Any] = dict(json)
        values: Dict[str, Any] = {}
        for name, member, may_miss, convert in _members(cls):  # type: ignore[arg-type]
            given = left.pop(member, None)
            if given is None and not may_miss:
                raise ValueError(f"{cls.__name__} has no `{member}`")
            values[name] = None if given is None else convert(given)
        cls._take_body(left, values)
        values["more"] = left
        return cls(**values)

    @classmethod
    def _take_body(cls, left: Dict[str, Any], values: Dict[str, Any]) -> None:
        """For those that have a body, which comes as text or base64."""


def read_time(text: Any) -> datetime:
    """A time as the API writes it, RFC 3339 in UTC."""
    try:
        return datetime.fromisoformat(re.sub("Z$", "+00:00", text))
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{text}` is no time") from error


def _as_is(given: Any) -> Any:
    return given


def _read_pairs(given: Any) -> List[Tuple[str, str]]:
    return [(str(name), str(value)) for name, value in given]


_CONVERT: Dict[str, Callable[[Any], Any]] = {"datetime": read_time, "Headers": read_headers, "pairs": _read_pairs}


@lru_cache(maxsize=None)
def _members(cls: type) -> Sequence[Tuple[str, str, bool, Callable[[Any], Any]]]:
    """For each field: its name, its name in JSON, whether it may be missing, and how its value is read."""
    members = []
    hints = get_type_hints(cls)
    for one in fields(cls):
        if one.name == "more" or one.metadata.get("is_body"):
            continue
        kind = str(hints[one.name])
        convert = next((read for known, read in _CONVERT.items() if known in kind), _as_is)
        convert = _CONVERT.get(one.metadata.get("convert", ""), convert)
        member = one.metadata.get("member") or re.sub("_([a-z])", lambda found: found.group(1).upper(), one.name)
        members.append((one.name, member, "Optional" in kind or "None" in kind, convert))
    return members


@dataclass(frozen=True)
class Delivery(Model):
    """One request to one connection, with where it stands."""

    id: str
    cid: str
    status: str
    """`PENDING`, `PROCESSING`, `SUCCESS`, `FAILED`, `DLQ`, `DISCARDED`, `FORWARDED` or `EXPIRED`."""
    label: str
    """`Waiting`, `Retrying`, `Delivered` or `Not delivered`."""
    attempts: int
    rounds: int
    version: int
    created_at: datetime
    body_bytes: int
    edited: bool
    method: str
    path: str
    params: Sequence[Tuple[str, str]] = field(metadata={"convert": "pairs"})
    headers: Headers
    """Secrets are shown as `***`."""
    connection_id: str
    connection: Optional[str]
    origin: Optional[str]
    failure: Optional[str]
    """The code of the last failure, such as `timeout`."""
    error: Optional[str]
    max_attempts: Optional[int]
    deferred_by: Optional[str]
    """Why it is due and not sent yet, such as `breaker`, or `ordering`."""
    last_attempt_at: Optional[datetime]
    next_attempt_at: Optional[datetime]
    delivered_at: Optional[datetime]
    dead_at: Optional[datetime]
    ended_at: Optional[datetime]
    dlq_retries: Optional[int]
    dlq_note: Optional[Mapping[str, Any]]
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Attempt(Model):
    """One time on the wire."""

    number: int
    started_at: datetime
    took_ms: int
    response_headers: Headers
    response_bytes: int
    incomplete: bool
    failure: Optional[str]
    status: Optional[int]
    error: Optional[str]
    response_body: bytes = field(repr=False, default=b"", metadata={"is_body": True})
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def _take_body(cls, left: Dict[str, Any], values: Dict[str, Any]) -> None:
        values["response_body"] = read_body(left, "responseBody", "responseBodyBase64")
        left.pop("responseBody", None)
        left.pop("responseBodyBase64", None)


@dataclass(frozen=True)
class DeadLetter(Model):
    """A delivery that was given up."""

    delivery_id: str
    attempt_count: int
    created_at: datetime
    failed_at: Optional[datetime]
    last_error: Optional[str]
    failure: Optional[str]
    connection: Optional[str]
    cid: Optional[str]
    rounds: Optional[int]
    max_attempts: Optional[int]
    event_id: Optional[str]
    event_type: Optional[str]
    endpoint_id: Optional[str]
    subscription_id: Optional[str]
    endpoint_url: Optional[str]
    dlq_retries: Optional[int]
    dlq_note: Optional[Mapping[str, Any]]
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Retried(Model):
    """How many of those asked for went back."""

    retried: int
    requested: int
    refused: Sequence[Mapping[str, Any]]
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Job(Model):
    """One act over many deliveries, which the server works off by itself."""

    id: str
    act: str
    state: str
    """`RUNNING`, `PAUSED`, `CANCELLED` or `DONE`."""
    created_at: datetime
    done: int
    skipped: Mapping[str, int]
    skipped_total: int
    outstanding: int
    matched: Optional[int]
    requested: Optional[int]
    who: Optional[str]
    filter: Optional[Mapping[str, Any]]
    topic: Optional[str]
    changed_at: Optional[datetime]
    ended_at: Optional[datetime]
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def has_ended(self) -> bool:
        """Nothing more will come of it."""
        return self.ended_at is not None


@dataclass(frozen=True)
class Count(Model):
    """What a dry run of a bulk act found. `complete` is False where the server did not count to the end."""

    act: str
    matched: int
    complete: bool
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Published(Model):
    """A message that is stored in a topic."""

    msg_id: str = field(metadata={"member": "msg_id"})
    topic: str
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class TopicMessage(Model):
    """A message of a topic."""

    id: str
    cid: str
    headers: Headers
    published_at: datetime
    times_given: Optional[int]
    """How often it was pulled, this time included; None where it was only looked at."""
    body: bytes = field(repr=False, default=b"", metadata={"is_body": True})
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def text(self) -> str:
        """The body as text; bytes that are no UTF-8 are replaced."""
        return self.body.decode("utf-8", "replace")

    @classmethod
    def _take_body(cls, left: Dict[str, Any], values: Dict[str, Any]) -> None:
        values["body"] = read_body(left)
        left.pop("body", None)
        left.pop("body_base64", None)


@dataclass(frozen=True)
class Source(Model):
    """An address at which a provider's webhooks come in."""

    id: str
    name: str
    provider: str
    topic: str
    """What comes in becomes a message of this topic."""
    enabled: bool
    version: int
    created_at: datetime
    updated_at: datetime
    token: Optional[str] = field(repr=False)
    """This and the next three only in the answer that made them."""
    ingress_path: Optional[str] = field(repr=False)
    ingress_url: Optional[str] = field(repr=False)
    secret: Optional[str] = field(repr=False)
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Destination(Model):
    """Where the webhooks of a source are forwarded."""

    id: str
    source_id: str
    name: str
    subscription_id: str
    enabled: bool
    version: int
    url: Optional[str]
    endpoint_id: Optional[str]
    connection: Optional[str]
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Forward(Model):
    """A webhook on its way to one destination."""

    id: str
    delivery_id: str
    """The forward is a delivery too: both ids have the same letters."""
    cid: str
    status: str
    label: str
    attempts: int
    created_at: datetime
    incoming_event_id: Optional[str]
    source_id: Optional[str]
    source_name: Optional[str]
    destination_id: Optional[str]
    destination_url: Optional[str]
    failure: Optional[str]
    error: Optional[str]
    max_attempts: Optional[int]
    next_attempt_at: Optional[datetime]
    dlq_note: Optional[Any]
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class FailedForward(Model):
    """A forward that was given up."""

    forward_id: str
    delivery_id: str
    attempt_count: int
    created_at: datetime
    cid: str
    incoming_event_id: Optional[str]
    source_id: Optional[str]
    source_name: Optional[str]
    destination_id: Optional[str]
    destination_url: Optional[str]
    last_error: Optional[str]
    failure: Optional[str]
    failed_at: Optional[datetime]
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class RetriedForwards(Model):
    """What became of a bulk retry; each has gone out as a new forward."""

    retried: int
    requested: int
    forwards: Sequence[Mapping[str, str]]
    refused: Sequence[Mapping[str, Any]]
    has_more: bool
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Replayed(Model):
    """How many webhooks were forwarded again, or would be."""

    events: int
    forwards: int
    next_cursor: Optional[str] = field(metadata={"member": "next_cursor"})
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Topic(Model):
    """A topic."""

    id: str
    name: str
    created_at: datetime
    retention_seconds: int = field(metadata={"member": "retention_seconds"})
    description: Optional[str]
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Subscription(Model):
    """A pull subscription of a topic."""

    id: str
    name: str
    topic: str
    redeliver_after_seconds: int = field(metadata={"member": "redeliver_after_seconds"})
    created_at: Optional[datetime]
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Acknowledged(Model):
    """How many of the messages named were still to be acknowledged."""

    acknowledged: int
    requested: int
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class EventPublished(Model):
    """An event that was taken, and how many deliveries it made."""

    event_id: str
    deliveries_created: int
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)
