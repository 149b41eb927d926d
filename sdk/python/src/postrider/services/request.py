"""The request that a service runs for: as it arrived at the channel, with what the server knows about it.

Pure. It must not know how it was received.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple
from urllib.parse import parse_qsl, unquote

from ..errors import PostriderError
from ..headers import Headers

PREFIX = "x-postrider-"


class BadPayload(PostriderError, ValueError):
    """The body is not what the channel's data format says; a run that ends in it is answered 400."""


class Params(Mapping[str, str]):
    """Names and values in order. A name that came several times has its first value here; `get_all` has them all."""

    def __init__(self, pairs: Iterable[Tuple[str, str]] = ()) -> None:
        self.pairs: Tuple[Tuple[str, str], ...] = tuple(pairs)
        self._first: Dict[str, str] = {}
        for name, value in self.pairs:
            self._first.setdefault(name, value)

    def __getitem__(self, name: str) -> str:
        return self._first[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._first)

    def __len__(self) -> int:
        return len(self._first)

    def get_all(self, name: str) -> List[str]:
        """Every value of a name, in order."""
        return [value for known, value in self.pairs if known == name]

    def __repr__(self) -> str:
        return f"Params({list(self.pairs)!r})"


class Queue:
    """Where the request is stored."""

    def __init__(self, msg_id: str) -> None:
        self.msg_id = msg_id
        """The id of the stored message; empty where the channel's queue is off."""


class Request:
    """One request.

    Attributes:
        method, path, query, headers, raw: as it arrived; `path` is percent-encoded, `raw` is the body byte for byte.
        path_params: what the placeholders of the channel's path stood for.
        channel: the channel's name.
        attempt: which run of this request it is, from 1.
        authenticated: the name of the security definition that let the request in; empty where the channel has none.
        data_format: the channel's `data_format`, where it has one.
    """

    def __init__(self, method: str, path: str, query: str, headers: Headers, raw: bytes) -> None:
        ours = {name.lower()[len(PREFIX) :]: value for name, value in headers.pairs if name.lower().startswith(PREFIX)}
        self.method = ours.get("method", method)
        self.path = path or "/"
        self.query = Params(parse_qsl(query, keep_blank_values=True))
        self.path_params = Params(parse_qsl(ours.get("path-params", ""), keep_blank_values=True))
        self.headers = Headers(pair for pair in headers.pairs if not pair[0].lower().startswith(PREFIX))
        self.raw = raw
        self.queue = Queue(ours.get("msg-id", ""))
        self.cid = ours.get("cid", "")
        self.channel = unquote(ours.get("channel", ""))
        attempt = ours.get("attempt", "")
        self.attempt = int(attempt) if attempt.isascii() and attempt.isdigit() else 1
        self.authenticated = ours.get("authenticated", "")
        self.data_format = ours.get("data-format", "")
        self.hook = ours.get("hook", "")
        self.project: Optional[str] = ours.get("project")
        self._payload: Optional[Tuple[Any]] = None

    @property
    def text(self) -> str:
        """The body as text, by the charset that the request names, else UTF-8.

        Raises:
            BadPayload: it is no such text.
        """
        charset = next((part.strip()[8:] for part in self._type_parts()[1:] if part.strip().startswith("charset=")), "")
        try:
            return self.raw.decode(charset.strip("\"'") or "utf-8")
        except (LookupError, UnicodeDecodeError) as error:
            raise BadPayload(f"the body is no text: {error}") from error

    @property
    def payload(self) -> Any:
        """The body, parsed: JSON as Python values, a form as a dict, everything else as text, or as bytes where it is none.

        By the channel's data format, and where it has none by the request's content type. Nothing at all is None.

        Raises:
            BadPayload: it should be JSON and is not.
        """
        if self._payload is None:
            self._payload = (self._parsed(),)
        return self._payload[0]

    def _parsed(self) -> Any:
        if not self.raw:
            return None
        kind = self.data_format or self._format_of_type()
        if kind == "json":
            try:
                return json.loads(self.raw)
            except (ValueError, RecursionError) as error:
                raise BadPayload(f"the body is no JSON: {error}") from error
        if kind == "form":
            pairs = Params(parse_qsl(self.text, keep_blank_values=True))
            several = {name: pairs.get_all(name) for name in pairs}
            return {name: values[0] if len(values) == 1 else values for name, values in several.items()}
        try:
            return self.text
        except BadPayload:
            return self.raw

    def _type_parts(self) -> List[str]:
        return self.headers.get("content-type", "").lower().split(";")

    def _format_of_type(self) -> str:
        kind = self._type_parts()[0].strip()
        if kind == "application/json" or kind.endswith("+json"):
            return "json"
        return "form" if kind == "application/x-www-form-urlencoded" else "text"
