"""What a service answers. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Tuple

from .._content import plain

# The host writes these itself.
NOT_THE_SERVICES = ("connection", "content-length", "content-type", "transfer-encoding", "date")


@dataclass(frozen=True)
class Answer:
    """What goes back over the wire."""

    status: int
    headers: Tuple[Tuple[str, str], ...]
    body: bytes = field(repr=False)


class Response:
    """The response of a run. On a channel with the queue on nobody waits for it, and only the hook's is seen.

    Attributes:
        payload: dicts, lists and dataclasses go as JSON, text and bytes as they are, None as nothing.
        status_code: 200 unless set.
        content_type: by the payload unless set.
        headers: further ones.
    """

    def __init__(self) -> None:
        self.payload: Any = None
        self.status_code = 200
        self.content_type: Optional[str] = None
        self.headers: Dict[str, str] = {}

    def answer(self) -> Answer:
        """
        Raises:
            ValueError: something of it cannot go over the wire; the message says what.
        """
        if not isinstance(self.status_code, int) or not 200 <= self.status_code <= 599:
            raise ValueError(f"response.status_code is {self.status_code!r}: 200 to 599 is allowed")
        body, kind = self._body()
        pairs = [("Content-Type", str(self.content_type or kind))] if body or self.content_type else []
        pairs.extend((str(name), str(value)) for name, value in self.headers.items())
        for at, (name, value) in enumerate(pairs):
            if at > 0 and name.lower() in NOT_THE_SERVICES:
                raise ValueError(f"the header `{name}` is written by the host; content_type sets the type")
            if not _is_token(name) or not value.isprintable() or not _is_latin(value):
                raise ValueError(f"the header `{name}` cannot be sent: a printable value without line ends is allowed")
        return Answer(self.status_code, tuple(pairs), body)

    def _body(self) -> Tuple[bytes, str]:
        if self.payload is None:
            return b"", ""
        if isinstance(self.payload, (bytes, bytearray)):
            return bytes(self.payload), "application/octet-stream"
        if isinstance(self.payload, str):
            is_xml = self.payload.lstrip().startswith("<")
            kind = "application/xml; charset=utf-8" if is_xml else "text/plain; charset=utf-8"
            return self.payload.encode("utf-8"), kind
        value = plain(self.payload, "response.payload")
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8"), "application/json"


def problem(status: int, title: str, detail: str, **more: Any) -> Answer:
    """A refusal of the host's own (RFC 9457)."""
    members = {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}
    body = json.dumps(members, ensure_ascii=False).encode("utf-8", "replace")
    return Answer(status, (("Content-Type", "application/problem+json"),), body)


def _is_token(name: str) -> bool:
    return bool(name) and name.isascii() and all(c.isalnum() or c in "!#$%&'*+-.^_`|~" for c in name)


def _is_latin(value: str) -> bool:
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True
