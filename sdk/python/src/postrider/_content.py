"""What callers hand over, as the API takes it: bodies, parameters, ids. Pure."""

from __future__ import annotations

import base64
import dataclasses
import uuid
from collections.abc import Mapping as AnyMapping
from datetime import date, datetime
from enum import Enum
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ._exchange import Pairs
from .errors import BadArgument

Params = Union[Mapping[str, Any], Iterable[Tuple[str, Any]], None]
Condition = Union[str, int, bool, datetime, Sequence[str], None]

CID_CHARS_MAX = 64
KEY_CHARS_MAX = 255


def body_fields(data: Any) -> Dict[str, Any]:
    """The member of a request that carries `data`: bytes and text go byte for byte, everything else as JSON."""
    if data is None:
        return {}
    if isinstance(data, (bytes, bytearray, memoryview)):
        raw = bytes(data)
        try:
            return {"body": raw.decode("utf-8")}
        except UnicodeDecodeError:
            return {"body_base64": base64.b64encode(raw).decode("ascii")}
    if isinstance(data, str):
        return {"body": checked_text(data, "data")}
    return {"body": plain(data, "data")}


def plain(value: Any, where: str) -> Any:
    """The value in JSON's own types. Dataclasses are objects, times ISO 8601, UUIDs text; what else is refused with its place."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Enum):
        return plain(value.value, where)
    if isinstance(value, str):
        return checked_text(value, where)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name), f"{where}.{one.name}") for one in dataclasses.fields(value)}
    if isinstance(value, AnyMapping):
        for name in value:
            if not isinstance(name, str):
                raise BadArgument(where, f"the name {name!r} is no text")
        return {name: plain(one, f"{where}.{name}") for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one, f"{where}[{at}]") for at, one in enumerate(value)]
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    raise BadArgument(
        where, f"{type(value).__name__} has no form in JSON: give a text, a number, bytes, a list or a mapping"
    )


def checked_text(text: str, where: str) -> str:
    """The text, which must be writable in UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadArgument(where, f"it has half a character at {error.start}, which no text has") from error
    return text


def pairs(given: Params, where: str) -> List[List[str]]:
    """Names and values in order. A list is a name that comes several times; None leaves a name out."""
    if given is None:
        return []
    listed: List[List[str]] = []
    for name, value in given.items() if isinstance(given, AnyMapping) else given:
        if not isinstance(name, str):
            raise BadArgument(where, f"the name {name!r} is no text")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is not None:
                listed.append([checked_text(name, where), _scalar(one, f"{where}.{name}")])
    return listed


def _scalar(value: Any, where: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float, date, uuid.UUID)):
        return str(plain(value, where))
    raise BadArgument(where, f"{type(value).__name__} is no plain value: a text, a number, true or false, a date is")


def call_fields(
    *, method: Optional[str] = None, path: str = "", params: Params = None, headers: Params = None
) -> Dict[str, Any]:
    """The members of a `/send` or `/publish` beside the body."""
    given = {"method": method, "path": path, "params": pairs(params, "params"), "headers": pairs(headers, "headers")}
    return {name: value for name, value in given.items() if value}


def conditions(given: Mapping[str, Condition]) -> Pairs:
    """Conditions of a list as a query. The server knows the names, and refuses others by name."""
    query = []
    for name, value in given.items():
        if value is not None:
            several = isinstance(value, (list, tuple))
            text = ",".join(map(str, value)) if several else _scalar(value, name)  # type: ignore[arg-type]
            query.append((name, text))
    return query


def filter_fields(given: Mapping[str, Condition]) -> Dict[str, Any]:
    """The same as the `filter` of a bulk act."""
    return {name: plain(value, f"where.{name}") for name, value in given.items() if value is not None}


def header(name: str, value: Optional[str], chars_max: int, where: str) -> Pairs:
    """A header of ours, or none."""
    if value is None:
        return ()
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or not 0 < len(value) <= chars_max:
        raise BadArgument(where, f"1 to {chars_max} printable ASCII characters are allowed")
    return ((name, value),)


def cid_header(cid: Optional[str]) -> Pairs:
    """The correlation id that a call goes under; None lets the server make one."""
    if cid is not None and " " in str(cid):
        raise BadArgument("cid", f"1 to {CID_CHARS_MAX} visible ASCII characters are allowed")
    return header("X-Postrider-Cid", cid, CID_CHARS_MAX, "cid")


def key_header(key: Optional[str], *, is_made: bool) -> Pairs:
    """The idempotency key: the caller's, or with `is_made` a new one."""
    made = key or (str(uuid.uuid4()) if is_made else None)
    return header("Idempotency-Key", made, KEY_CHARS_MAX, "idempotency_key")


def hl7_fields(message: Any) -> Dict[str, Any]:
    """A message of HL7 version 2: text, bytes, or what an HL7 library parsed (`to_er7()`)."""
    if hasattr(message, "to_er7"):
        message = message.to_er7()
    if not isinstance(message, (str, bytes, bytearray)) or not message:
        raise BadArgument("message", "it is no message of HL7: a text, bytes, or an object with `to_er7` is")
    return body_fields(message)
