"""Runs a service for a request and makes an answer of what comes of it. It must not know how the request came in.

The answer's status tells the server whether the run succeeded, and so does `X-Postrider-Run`: `ok` where the handler returned, whatever
status it set, and `failed` where it raised.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import secrets
import threading
import time
from typing import Any, Callable, Dict, Optional, TypeVar, Union

from .._async.client import AsyncClient, connect_async
from .._sync.client import Client, connect
from .finder import AnyService
from .logs import CID
from .request import BadPayload, Request
from .response import Answer, Response, problem
from .service import HOOK, VERB, AsyncService, Service, announcement

C = TypeVar("C", Client, AsyncClient)

RUN = "X-Postrider-Run"
ERROR = "X-Postrider-Error"

# What the server takes as a correlation id.
_CID = re.compile("[!-~]{1,64}")

log = logging.getLogger("postrider.services")


class Runner:
    """The services with what their runs share: the clients, and the loop in which `async def` handlers run."""

    def __init__(
        self, services: Dict[str, AnyService], *, server: Optional[str] = None, project: str = "default"
    ) -> None:
        self.services = services
        self._server = server
        self._project = project
        self._lock = threading.Lock()
        self._blocking: Optional[Client] = None
        self._awaited: Optional[AsyncClient] = None
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="services-loop", daemon=True).start()

    def list(self) -> "list[Any]":
        """What `GET /services` says."""
        return [announcement(service) for _, service in sorted(self.services.items())]

    def run(self, name: str, request: Request) -> Answer:
        """One run, or with the hook named one hook; never raises."""
        service_class = self.services.get(name)
        if service_class is None:
            return problem(404, "Not Found", f"there is no service `{name}` here", code="no_service")
        if not _CID.fullmatch(request.cid):
            request.cid = new_cid()
        token = CID.set(request.cid)
        try:
            handler_name = _handler_name(service_class, request)
            if isinstance(handler_name, Answer):
                return handler_name
            return self._run(service_class, name, handler_name, request)
        finally:
            CID.reset(token)

    def close(self) -> None:
        """Ends the loop and the clients."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        with self._lock:
            if self._blocking is not None:
                self._blocking.close()

    def _run(self, service_class: AnyService, name: str, handler_name: str, request: Request) -> Answer:
        what = "the hook of" if request.hook else "the service"
        began = time.monotonic()
        try:
            service = service_class()
            self._bind(service, name, request)
            returned = self._call(getattr(service, handler_name))
            if returned is not None and service.response.payload is None:
                service.response.payload = returned
            answer = service.response.answer()
        except BadPayload as error:
            log.warning("%s `%s` could not read its request: %s", what, name, error)
            return _failed(problem(400, "Bad Request", str(error), cid=request.cid), error)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # A handler that calls sys.exit has failed too, and the host goes on.
            log.error("%s `%s` failed", what, name, exc_info=True)
            detail = f"{what} `{name}` failed; its log says why, under this cid"
            return _failed(problem(500, "Internal Server Error", detail, cid=request.cid), error)
        took = (time.monotonic() - began) * 1000
        log.debug("%s `%s` ran for %.0f ms and answered %d", what, name, took, answer.status)
        return Answer(answer.status, (*answer.headers, (RUN, "ok")), answer.body)

    def _call(self, handler: Callable[[], Any]) -> Any:
        """Awaited ones run in the loop, which sees the correlation id as well: it takes this thread's context over."""
        if not inspect.iscoroutinefunction(handler):
            return handler()
        return asyncio.run_coroutine_threadsafe(handler(), self._loop).result()

    def _bind(self, service: Union[Service, AsyncService], name: str, request: Request) -> None:
        service.request = request
        service.response = Response()
        service.cid = request.cid
        service.logger = logging.LoggerAdapter(logging.getLogger(name), {"cid": request.cid})
        # Made when the service first asks for it: one that makes no calls needs no key.
        if isinstance(service, AsyncService):
            service._open = lambda: _bound(self.awaited_client(), request)
        else:
            service._open = lambda: _bound(self.client(), request)

    def client(self) -> Client:
        """The one for blocking services, made once.

        Raises:
            BadArgument: the server's address or the key is missing or cannot be used.
        """
        with self._lock:
            self._blocking = self._blocking or connect(self._server, project=self._project)
            return self._blocking

    def awaited_client(self) -> AsyncClient:
        """The one for services that await, made once."""
        with self._lock:
            self._awaited = self._awaited or connect_async(self._server, project=self._project)
            return self._awaited


def _bound(client: C, request: Request) -> C:
    bound = client.with_cid(request.cid)
    return bound.in_project(request.project) if request.project else bound


def _handler_name(service: AnyService, request: Request) -> Union[str, Answer]:
    if request.hook:
        if request.hook != HOOK or HOOK not in service.hooks():
            detail = f"the service `{service.service_name()}` has no hook `{request.hook}`"
            return problem(404, "Not Found", detail, code="no_hook", cid=request.cid)
        return "get_queue_response"
    methods = service.methods()
    if methods is None:
        return "handle"
    if request.method in methods:
        return VERB + request.method
    detail = f"the service `{service.service_name()}` does not take {request.method}"
    refused = problem(405, "Method Not Allowed", detail, cid=request.cid)
    return Answer(405, (*refused.headers, ("Allow", ", ".join(methods))), refused.body)


def _failed(answer: Answer, error: BaseException) -> Answer:
    """The server learns the kind of the error for its delivery log; the text, which may hold anything, stays in the log here."""
    return Answer(answer.status, (*answer.headers, (RUN, "failed"), (ERROR, type(error).__name__)), answer.body)


def new_cid() -> str:
    """A correlation id as the server makes them, for a request that came without."""
    now = time.time()
    fraction = int(now % 1 * 10000)
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{fraction:04d}-{secrets.token_hex(5)[:9]}"
