"""One exchange with the server as values: what is asked, what came back, what a refusal says, and whether to ask again.

Pure. It must not know how anything is sent.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Callable, Mapping, Optional, Sequence, Tuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from .errors import BadArgument, FieldError, Refused, Unreachable, UnreadableAnswer, kind_of
from .headers import Headers

T = TypeVar("T")

Pairs = Sequence[Tuple[str, str]]

REPEATED_STATUSES = (429, 503)


@dataclass(frozen=True)
class Request:
    """What is asked of the server."""

    method: str
    path: str
    query: Pairs = ()
    headers: Pairs = ()
    body: bytes = field(default=b"", repr=False)

    @property
    def target(self) -> str:
        """The path with the query."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    @property
    def is_repeatable(self) -> bool:
        """Whether asking twice does what asking once does: reading, or under an idempotency key (D15)."""
        return self.method in ("GET", "HEAD") or any(name == "Idempotency-Key" for name, _ in self.headers)


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: Headers
    body: bytes = field(repr=False)


@dataclass(frozen=True)
class Settings:
    """How to reach a server."""

    server: str
    key: str = field(repr=False)
    timeout: float = 90.0
    retries: int = 2
    connections_max: int = 64
    answer_bytes_max: int = 256 * 1024 * 1024
    retry_after_max: float = 10.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "server", check_server(self.server))
        if not self.key or not self.key.isascii() or not self.key.isprintable() or " " in self.key:
            raise BadArgument("key", "it is empty or has characters that a header cannot carry")
        for name, least in (("timeout", 0.001), ("retries", 0), ("connections_max", 1)):
            if not getattr(self, name) >= least:
                raise BadArgument(name, f"at least {least} is allowed")

    def wait_before_repeat(self, request: Request, number: int, outcome: object) -> Optional[float]:
        """Seconds to wait before the request is made again, after its `number`-th time; None: not again.

        A request that is not repeatable is made again only where the server cannot have it.
        """
        if number > self.retries:
            return None
        schedule: float = 0.25 * 2 ** (number - 1) * random.uniform(0.5, 1.5)
        if isinstance(outcome, Unreachable):
            return schedule if request.is_repeatable or not outcome.maybe_taken else None
        if not isinstance(outcome, Reply) or outcome.status not in REPEATED_STATUSES or not request.is_repeatable:
            return None
        asked = retry_after(outcome.headers)
        if asked is None:
            return schedule
        return max(asked, schedule) if asked <= self.retry_after_max else None


def check_server(server: str) -> str:
    """The address without a slash at its end."""
    try:
        parts = urlsplit(server)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or parts.username is not None:
        raise BadArgument("url", f"`{server}` is no address of a server: http://HOST:PORT or https://HOST, and no more")
    return server.rstrip("/")


def segment(name: str, field_name: str = "name") -> str:
    """A name as one segment of a path (D16)."""
    if not isinstance(name, str) or not name or "/" in name:
        raise BadArgument(field_name, f"{name!r} is no name: a text that is not empty and without `/` is")
    return quote(name, safe="")


def json_request(
    method: str, path: str, content: Optional[Mapping[str, Any]] = None, *, query: Pairs = (), headers: Pairs = ()
) -> Request:
    """A request with JSON in it, or with nothing."""
    if content is None:
        return Request(method, path, query, headers)
    try:
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        body = text.encode("utf-8")
    except (ValueError, TypeError, RecursionError) as error:
        raise BadArgument("data", f"it cannot be written as JSON: {error}") from error
    return Request(method, path, query, (*headers, ("Content-Type", "application/json")), body)


def retry_after(headers: Headers) -> Optional[float]:
    """Seconds that `Retry-After` asks for, in either of its forms; None where it is not there or says nothing."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        until = parsedate_to_datetime(value).timestamp()
        sent = parsedate_to_datetime(headers.get("date", "")).timestamp()
    except (TypeError, ValueError, IndexError):
        return None
    return max(0.0, until - sent)


def read_json(server: str, reply: Reply, read: Callable[[Any], T]) -> T:
    """What `read` makes of an answer in JSON."""
    try:
        return read(json.loads(reply.body))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise UnreadableAnswer(server, str(error) or type(error).__name__, reply.status) from error


def problem_members(reply: Reply) -> Optional[Mapping[str, Any]]:
    """The members of a refusal; None where the answer is no problem document."""
    kind = reply.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/problem+json":
        return None
    try:
        members = json.loads(reply.body)
    except (ValueError, RecursionError):
        return None
    return members if isinstance(members, dict) else None


def refusal(server: str, reply: Reply) -> Exception:
    """The error that an answer outside 2xx is."""
    members = problem_members(reply)
    if members is None:
        return UnreadableAnswer(server, "it is no problem document of Postrider", reply.status)
    known = ("type", "title", "status", "detail", "errors")
    kind: type[Refused] = kind_of(reply.status)
    return kind(
        reply.status,
        str(members.get("title") or "refused"),
        str(members.get("detail") or ""),
        _field_errors(members.get("errors")),
        retry_after(reply.headers),
        {name: value for name, value in members.items() if name not in known},
    )


def _field_errors(given: Any) -> Sequence[FieldError]:
    if not isinstance(given, list):
        return ()
    found = [one for one in given if isinstance(one, dict)]
    allowed = [None if one.get("allowed") is None else str(one["allowed"]) for one in found]
    return [FieldError(str(one.get("field", "")), str(one.get("message", "")), may) for one, may in zip(found, allowed)]
