"""Calls to HL7 FHIR connections, and resources that are saved through them. It must not know the shapes of resources."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Optional, Union

from .._content import Params, body_fields, call_fields, plain
from .._exchange import json_request, segment
from ..errors import BadArgument, NotDelivered
from ..results import Result
from .connections import AsyncConnection


class AsyncFhirConnection(AsyncConnection):
    """An outgoing FHIR connection (Z33)."""

    type = "fhir"

    def resource(self, resource_type: str, **elements: Any) -> AsyncResource:
        """A resource to fill in and save. Nothing is sent."""
        segment(resource_type, "resource_type")
        return AsyncResource(self, {"resourceType": resource_type, **elements})

    async def read(self, resource_type: str, resource_id: str) -> AsyncResource:
        """The resource of this type and id.

        Raises:
            NotDelivered: it could not be read; its `result` says why.
        """
        path = f"/{segment(resource_type, 'resource_type')}/{segment(resource_id, 'resource_id')}"
        return AsyncResource(self, _resource_of(await self.execute("GET", path)))

    async def search(
        self, resource_type: str, params: Params = None, *, pages_max: int = 1
    ) -> List[AsyncResource]:
        """The resources on the first `pages_max` pages of a search. The links between them are followed only on the connection's own server.

        Raises:
            NotDelivered: the search could not be made; its `result` says why.
        """
        result = await self.execute("GET", f"/{segment(resource_type, 'resource_type')}", params=params)
        found = self._found(result)
        for _ in range(pages_max - 1):
            link = result.response.next if result.response is not None else None
            if link is None:
                break
            result = await self.interact("page", url=link)
            found.extend(self._found(result))
        return found

    def _found(self, result: Result) -> List[AsyncResource]:
        entries = _resource_of(result).get("entry") or []
        found = [one.get("resource") for one in entries if isinstance(one, dict)]
        return [AsyncResource(self, one) for one in found if isinstance(one, dict)]

    async def interact(
        self,
        operation: str,
        data: Any = None,
        *,
        params: Params = None,
        headers: Params = None,
        method: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        cid: Optional[str] = None,
        **fields: str,
    ) -> Result:
        """An interaction by its name: `create`, `vread`, `patch`, `history`, `batch`, `transaction`, `$validate` and so on.

        Fields: `resource_type`, `id`, `version_id`, `url`, `if_none_exist`, `if_match`, `if_none_match`, `if_modified_since`, `prefer`.
        """
        asked = {**call_fields(method=method, params=params, headers=headers), **body_fields(data)}
        reads = operation in ("read", "vread", "search", "history", "capabilities", "page") or method == "GET"
        return await self._take("send", {**asked, "operation": operation, **fields}, idempotency_key, cid, reads=reads)

    async def execute(
        self,
        method: str,
        path: str,
        data: Any = None,
        *,
        params: Params = None,
        headers: Params = None,
        idempotency_key: Optional[str] = None,
        cid: Optional[str] = None,
    ) -> Result:
        """Any interaction of FHIR, by its method and its path below the connection's address."""
        fields = {**call_fields(method=method, path=path, params=params, headers=headers), **body_fields(data)}
        return await self._take("send", fields, idempotency_key, cid, reads=method.upper() in ("GET", "HEAD"))

    async def publish(
        self,
        resource: Union[AsyncResource, Mapping[str, Any]],
        *,
        if_none_exist: Optional[str] = None,
        if_match: Optional[str] = None,
        headers: Params = None,
        idempotency_key: Optional[str] = None,
        cid: Optional[str] = None,
    ) -> Result:
        """Puts a resource in the queue, to be created, or with an id to be updated; it is stored when this returns (Z31).

        A create may reach the server twice when its answer is lost. `if_none_exist`, a search by an identifier such as
        `identifier=urn:mrn|7301`, makes one resource of it; it is never added by itself.
        """
        elements = resource.to_dict() if isinstance(resource, AsyncResource) else resource
        method, path = _where(elements)
        conditions = _conditions(headers, if_none_exist, if_match)
        fields = {**call_fields(method=method, path=path, headers=conditions), "body": plain(elements, "resource")}
        return await self._take("publish", fields, idempotency_key, cid)

    async def has_queue(self) -> bool:
        """Whether the connection's queue is on now."""
        request = json_request("GET", self._path, query=(("type", self.type),))
        return await self._core.ask(request, lambda json: json.get("use_queue") is True)


class AsyncResource:
    """A FHIR resource. Its elements are attributes (`patient.birthDate = …`) and items (`patient['birthDate']`) alike."""

    _connection: AsyncFhirConnection
    _elements: Dict[str, Any]

    def __init__(self, connection: AsyncFhirConnection, elements: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_connection", connection)
        object.__setattr__(self, "_elements", dict(elements))

    def __getattr__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self, "_elements")[name]
        except KeyError:
            raise AttributeError(f"the resource has no `{name}`") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(type(self), name):
            raise AttributeError(f"`{name}` is a method: set the element as resource[{name!r}]")
        self._elements[name] = value

    def __delattr__(self, name: str) -> None:
        self._elements.pop(name, None)

    def __getitem__(self, name: str) -> Any:
        return self._elements[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._elements[name] = value

    def __contains__(self, name: object) -> bool:
        return name in self._elements

    def __iter__(self) -> Iterator[str]:
        return iter(self._elements)

    def __repr__(self) -> str:
        return f"<FHIR {self._elements.get('resourceType')} {self._elements.get('id') or 'not saved'}>"

    def to_dict(self) -> Dict[str, Any]:
        """The elements as they are now."""
        return dict(self._elements)

    async def save(
        self,
        *,
        if_none_exist: Optional[str] = None,
        if_match: Optional[str] = None,
        headers: Params = None,
        idempotency_key: Optional[str] = None,
        cid: Optional[str] = None,
    ) -> Any:
        """Creates the resource, or updates it where it has an id (Z33).

        Args:
            if_none_exist: a search such as `identifier=urn:mrn|7301`; nothing is created where it finds one.
            if_match: the version that is to be changed; another by now is refused.

        Returns:
            With the connection's queue on the `Result`. With it off the saved resource, which is this one with the elements that came back.

        Raises:
            NotDelivered: the queue is off, and it could not be saved.
        """
        method, path = _where(self._elements)
        # Asked for first, so that a key that may not look at connections is refused before anything is sent.
        has_queue = await self._connection.has_queue()
        conditions = _conditions(headers, if_none_exist, if_match)
        result = await self._connection.execute(
            method, path, self._elements, headers=conditions, idempotency_key=idempotency_key, cid=cid
        )
        if has_queue:
            return result
        if not result.is_ok:
            raise NotDelivered(result)
        answer = result.response
        if answer is not None and _is_resource(answer.data):
            object.__setattr__(self, "_elements", dict(answer.data))
        elif answer is not None and answer.id is not None:
            # A server that was asked for little, or answers with an outcome, still says which resource it is.
            self._elements["id"] = answer.id
            if answer.version_id is not None:
                self._elements["meta"] = {**(self._elements.get("meta") or {}), "versionId": answer.version_id}
        return self

    async def delete(self, *, headers: Params = None, cid: Optional[str] = None) -> Result:
        """Deletes the resource; it must have an id."""
        method, path = _where(self._elements)
        if method != "PUT":
            raise BadArgument("id", "a resource without an id cannot be deleted")
        return await self._connection.execute("DELETE", path, headers=headers, cid=cid)


def _where(elements: Mapping[str, Any]) -> "tuple[str, str]":
    kind, own_id = elements.get("resourceType"), elements.get("id")
    if not isinstance(kind, str) or not kind:
        raise BadArgument("resourceType", "it is missing: every FHIR resource says what it is")
    place = f"/{segment(kind, 'resourceType')}"
    return ("POST", place) if own_id is None else ("PUT", f"{place}/{segment(own_id, 'id')}")


def _conditions(headers: Params, if_none_exist: Optional[str], if_match: Optional[str]) -> Params:
    """The headers with the conditions behind them."""
    conditions = []
    if if_none_exist is not None:
        conditions.append(("If-None-Exist", if_none_exist.rsplit("?", 1)[-1]))
    if if_match is not None:
        conditions.append(("If-Match", if_match if '"' in if_match or if_match == "*" else f'W/"{if_match}"'))
    if not conditions:
        return headers
    given = headers.items() if isinstance(headers, Mapping) else headers or ()
    return [*given, *conditions]


def _is_resource(data: Any) -> bool:
    return isinstance(data, dict) and data.get("resourceType") not in (None, "OperationOutcome")


def _resource_of(result: Result) -> Dict[str, Any]:
    if not result.is_ok or result.response is None or not isinstance(result.response.data, dict):
        raise NotDelivered(result)
    return result.response.data
