"""The result object: what became of one request to a connection."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .errors import NotDelivered
from .headers import Headers


@dataclass(frozen=True)
class Response:
    """What the remote system answered, a refusal included."""

    status: Optional[int]
    """The HTTP status. None where the remote system does not speak HTTP (MLLP)."""
    headers: Headers
    body: bytes = field(repr=False)
    """Byte for byte, up to the server's `response_bytes_max`."""
    data: Any = field(repr=False)
    """The body read as JSON, where the answer says that it is JSON and it is; else None."""
    ack_code: Optional[str] = None
    """The code of an HL7 acknowledgment (`AA`, `AE`, `AR`, `CA`, `CE`, `CR`); None elsewhere."""
    resource_type: Optional[str] = None
    """Over FHIR: the resource that the answer is about, from its body or from `Location`."""
    id: Optional[str] = None
    """Over FHIR: that resource's id."""
    version_id: Optional[str] = None
    """Over FHIR: that resource's version."""
    issues: List[Any] = field(default_factory=list)
    """Over FHIR: the issues of an OperationOutcome, each with severity, code, diagnostics, details and expression."""
    entries: List[Any] = field(default_factory=list)
    """Over FHIR: what became of each entry of a batch or transaction, in its order."""
    next: Optional[str] = None
    """Over FHIR: the link to the next page of a search."""
    incomplete: bool = False
    """The body was cut: it was too long or too slow."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """What else the server says of the answer."""

    @property
    def text(self) -> str:
        """The body as text; bytes that are no UTF-8 are replaced."""
        return self.body.decode("utf-8", "replace")


@dataclass(frozen=True)
class Result:
    """What became of a request: at most one of the three flags is set.

    With none set it was not delivered and will not be; `error` says why.
    """

    is_ok: bool
    """Delivered, and the answer is in `response`."""
    is_in_queue: bool
    """In the connection's queue under `msg_id`."""
    is_in_dlq: bool
    """In its dead-letter queue under `msg_id`."""
    msg_id: Optional[str] = None
    """The delivery's id. None where the request could not be stored."""
    cid: Optional[str] = None
    """The correlation id, the same over all attempts."""
    error: Optional[str] = None
    """Why it was not delivered, or not yet."""
    response: Optional[Response] = None
    """What the remote system answered; None where it did not, or was not asked yet."""
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_accepted(self) -> bool:
        """Delivered, or safely in the queue: there is nothing left to do for the caller."""
        return self.is_ok or self.is_in_queue

    def check(self) -> Result:
        """Returns itself when it is accepted, and raises `NotDelivered` else."""
        if not self.is_accepted:
            raise NotDelivered(self)
        return self

    def __bool__(self) -> bool:
        raise TypeError("a result has three flags: ask for is_ok, is_in_queue, is_in_dlq, or is_accepted")


RESULT_FIELDS = ("is_ok", "is_in_queue", "is_in_dlq", "msg_id", "cid", "error", "response")
RESPONSE_FIELDS = ("status", "headers", "body", "body_base64", "data", "ack_code", "incomplete") + (
    "resource_type",
    "id",
    "version_id",
    "issues",
    "entries",
    "next",
)


def read_result(json: Mapping[str, Any]) -> Result:
    """The result in an answer of the server.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(json, dict):
        raise ValueError("it is no object")
    flags = [json.get(name) for name in RESULT_FIELDS[:3]]
    if not all(isinstance(flag, bool) for flag in flags):
        raise ValueError("it has no result object")
    response = json.get("response")
    return Result(
        is_ok=bool(flags[0]),
        is_in_queue=bool(flags[1]),
        is_in_dlq=bool(flags[2]),
        msg_id=_text(json, "msg_id"),
        cid=_text(json, "cid"),
        error=_text(json, "error"),
        response=None if response is None else _read_response(response),
        more=without(json, RESULT_FIELDS),
    )


def _read_response(json: Any) -> Response:
    if not isinstance(json, dict):
        raise ValueError("`response` is no object")
    status = json.get("status")
    if status is not None and not isinstance(status, int):
        raise ValueError("`response.status` is no number")
    return Response(
        status=status,
        headers=read_headers(json.get("headers") or {}),
        body=read_body(json),
        data=json.get("data"),
        ack_code=_text(json, "ack_code"),
        resource_type=_text(json, "resource_type"),
        id=_text(json, "id"),
        version_id=_text(json, "version_id"),
        issues=list(json.get("issues") or []),
        entries=list(json.get("entries") or []),
        next=_text(json, "next"),
        incomplete=json.get("incomplete") is True,
        more=without(json, RESPONSE_FIELDS),
    )


def read_body(json: Mapping[str, Any], plain: str = "body", coded: str = "body_base64") -> bytes:
    """A body that is text or base64."""
    text = json.get(plain)
    if isinstance(text, str):
        return text.encode("utf-8")
    base = json.get(coded)
    if base is None and text is None:
        return b""
    try:
        return base64.b64decode(base, validate=True)  # type: ignore[arg-type]
    except (TypeError, ValueError, binascii.Error) as error:
        raise ValueError(f"`{coded}` is no base64") from error


def read_headers(json: Any) -> Headers:
    """Headers as an object of strings or lists of them."""
    if not isinstance(json, dict):
        raise ValueError("headers are no object")
    pairs: List[Tuple[str, str]] = []
    for name, value in json.items():
        pairs.extend((name, str(one)) for one in (value if isinstance(value, list) else [value]))
    return Headers(pairs)


def without(json: Mapping[str, Any], known: Tuple[str, ...]) -> Dict[str, Any]:
    """What a newer server adds."""
    return {name: value for name, value in json.items() if name not in known}


def _text(json: Mapping[str, Any], name: str) -> Optional[str]:
    value = json.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"`{name}` is no text")
    return value or None
