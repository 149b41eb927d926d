# Made by tools/unasync.py from _async/connections.py: change it there.
"""Calls to connections: REST, SOAP and HL7 MLLP. FHIR is in `fhir`. It must not know what becomes of a request."""

from __future__ import annotations

from typing import Any, Callable, Dict, Generic, Mapping, Optional, TypeVar

from .._content import Params, body_fields, call_fields, cid_header, hl7_fields, plain
from .._exchange import Request, json_request, problem_members, read_json, refusal
from ..errors import BadArgument
from ..results import Result, read_result
from .core import Core

C = TypeVar("C")


class Named(Generic[C]):
    """Connections of one type by name: `rest['Billing API']`. Nothing is asked of the server until a call is made."""

    def __init__(self, make: Callable[[str], C]) -> None:
        self._make = make

    def __getitem__(self, name: str) -> C:
        return self._make(name)


class Connection:
    """A connection of any type: what its calls have in common.

    A call returns a result whatever the remote system did. It raises `Refused` where the server itself says no (no such connection, not
    active, too large), `Unreachable` where there is no answer from it, and `BadArgument` for what cannot be sent.
    """

    type: str = "rest"

    def __init__(self, core: Core, name: str) -> None:
        self._core = core
        self.name = name
        self._path = core.path("/connections", name)

    def __repr__(self) -> str:
        return f"<{self.type} connection {self.name!r}>"

    def _take(
        self,
        how: str,
        fields: Mapping[str, Any],
        idempotency_key: Optional[str] = None,
        cid: Optional[str] = None,
        *,
        reads: bool = False,
    ) -> Result:
        """One call. One that only reads is made anew each time, so a key would be of no use to it (Z12)."""
        headers = (
            cid_header(cid or self._core.cid)
            if reads and not idempotency_key
            else self._core.once(idempotency_key, cid)
        )
        query = (("type", self.type),)
        return self._result(json_request("POST", f"{self._path}/{how}", fields, query=query, headers=headers))

    def _result(self, request: Request) -> Result:
        reply = self._core.reply(request)
        server = self._core.transport.settings.server
        if 200 <= reply.status < 300:
            return read_json(server, reply, read_result)
        members = problem_members(reply)
        if members is not None and members.get("is_ok") is False:
            # Z30: it could not be stored, which is a result too.
            return read_json(server, reply, read_result)
        raise refusal(server, reply)


class RestConnection(Connection):
    """An outgoing REST connection.

    `data`: text and bytes are sent byte for byte, dicts, lists and dataclasses as JSON (or as a form, where the connection speaks forms).
    `params` fill the `{placeholders}` of the connection's path, and what is left over becomes the query string. `path` is appended to the
    connection's own. `headers` are added to the connection's own.
    """

    type = "rest"

    def get(self, params: Params = None, *, path: str = "", headers: Params = None) -> Result:
        """Reads; never queued (Z12)."""
        return self.call("GET", None, params, path=path, headers=headers)

    def head(self, params: Params = None, *, path: str = "", headers: Params = None) -> Result:
        """Reads the headers alone; never queued."""
        return self.call("HEAD", None, params, path=path, headers=headers)

    def options(self, params: Params = None, *, path: str = "", headers: Params = None) -> Result:
        """Asks what may be asked; never queued."""
        return self.call("OPTIONS", None, params, path=path, headers=headers)

    def post(self, data: Any = None, params: Params = None, **options: Any) -> Result:
        """Sends. Options: `path`, `headers`, `idempotency_key`, `cid`, as `call` has them."""
        return self.call("POST", data, params, **options)

    def put(self, data: Any = None, params: Params = None, **options: Any) -> Result:
        """As `post`, with PUT."""
        return self.call("PUT", data, params, **options)

    def patch(self, data: Any = None, params: Params = None, **options: Any) -> Result:
        """As `post`, with PATCH."""
        return self.call("PATCH", data, params, **options)

    def delete(self, data: Any = None, params: Params = None, **options: Any) -> Result:
        """As `post`, with DELETE."""
        return self.call("DELETE", data, params, **options)

    def send(self, data: Any = None, params: Params = None, **options: Any) -> Result:
        """The same as `post`."""
        return self.call("POST", data, params, **options)

    def call(
        self,
        method: str,
        data: Any = None,
        params: Params = None,
        *,
        path: str = "",
        headers: Params = None,
        idempotency_key: Optional[str] = None,
        cid: Optional[str] = None,
    ) -> Result:
        """Calls the remote system and waits for the outcome, or with the queue on for as long as that lets it (D10).

        Args:
            idempotency_key: repeats under the same key within 24 hours make one request. Made anew for each call unless given.
            cid: the correlation id; the server makes one unless given.
        """
        fields = {**call_fields(method=method, path=path, params=params, headers=headers), **body_fields(data)}
        reads = method.upper() in ("GET", "HEAD", "OPTIONS")
        return self._take("send", fields, idempotency_key, cid, reads=reads)

    def publish(
        self,
        data: Any = None,
        params: Params = None,
        *,
        method: str = "POST",
        path: str = "",
        headers: Params = None,
        idempotency_key: Optional[str] = None,
        cid: Optional[str] = None,
    ) -> Result:
        """Puts the request in the queue without a call first (Z31); it is stored when this returns."""
        fields = {**call_fields(method=method, path=path, params=params, headers=headers), **body_fields(data)}
        return self._take("publish", fields, idempotency_key, cid)


class SoapConnection(Connection):
    """An outgoing SOAP connection (Z34). `message` is a dict of the operation's elements, or its XML as text."""

    type = "soap"

    def invoke(
        self,
        operation: str,
        message: Any = None,
        *,
        headers: Params = None,
        idempotency_key: Optional[str] = None,
        cid: Optional[str] = None,
    ) -> Result:
        """Invokes an operation. A fault is a result that is not ok."""
        return self._take("send", _operation(operation, message, headers), idempotency_key, cid)

    def publish(
        self,
        operation: str,
        message: Any = None,
        *,
        headers: Params = None,
        idempotency_key: Optional[str] = None,
        cid: Optional[str] = None,
    ) -> Result:
        """Puts the request in the queue without a call first; it is stored when this returns."""
        return self._take("publish", _operation(operation, message, headers), idempotency_key, cid)


def _operation(operation: str, message: Any, headers: Params) -> Dict[str, Any]:
    if not isinstance(operation, str) or not operation:
        raise BadArgument("operation", "it is no name of an operation")
    fields = {**call_fields(headers=headers), "operation": operation}
    return fields if message is None else {**fields, "message": plain(message, "message")}


class MllpConnection(Connection):
    """An outgoing HL7 MLLP connection (Z32). A message is text, bytes, or what an HL7 library parsed (`to_er7()`)."""

    type = "mllp"

    def send(self, message: Any, *, idempotency_key: Optional[str] = None, cid: Optional[str] = None) -> Result:
        """Sends a message and waits for its acknowledgment, whose code is `response.ack_code`."""
        return self._take("send", hl7_fields(message), idempotency_key, cid)

    def publish(
        self, message: Any, *, idempotency_key: Optional[str] = None, cid: Optional[str] = None
    ) -> Result:
        """Puts the message in the queue without sending it first; it is stored when this returns."""
        return self._take("publish", hl7_fields(message), idempotency_key, cid)
