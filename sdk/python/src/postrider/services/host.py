"""The HTTP server around the services: `/services/{name}[/path]`, `GET /services`, `/health/live`, `/health/ready`.

A thread for each connection, and a named bound for everything: connections, runs at once, bodies, waiting. What is over a bound is refused
with a problem that the server retries. It must not know what a service does.
"""

from __future__ import annotations

import hmac
import http.server
import json
import logging
import select
import socket
import socketserver
import threading
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Callable, Optional, Tuple
from urllib.parse import unquote

from .._version import __version__
from ..headers import Headers
from .request import Request
from .response import Answer, problem
from .runner import Runner

TOKEN = "X-Postrider-Token"
SERVICES = "/services"

log = logging.getLogger("postrider.services")


@dataclass(frozen=True)
class Limits:
    """Times in seconds."""

    runs_max: int = 32
    hooks_max: int = 16
    connections_max: int = 512
    body_bytes_max: int = 64 * 1024 * 1024
    wait_for_run: float = 20.0
    idle: float = 120.0
    body: float = 30.0


class Host(http.server.ThreadingHTTPServer):
    """Listens as soon as it is made; `serve_forever` answers, `stop` ends that."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, address: Tuple[str, int], runner: Runner, *, token: str = "", limits: Optional[Limits] = None
    ) -> None:
        self.runner = runner
        self.token = token
        self.limits = limits or Limits()
        self.is_stopping = False
        self._runs = threading.BoundedSemaphore(self.limits.runs_max)
        self._hooks = threading.BoundedSemaphore(self.limits.hooks_max)
        self._connections = threading.BoundedSemaphore(self.limits.connections_max)
        self._under_way = 0
        self._changed = threading.Condition()
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Exchange)

    @property
    def url(self) -> str:
        """Where it listens."""
        name, port = self.server_address[0], self.server_address[1]
        shown = name.decode() if isinstance(name, (bytes, bytearray)) else str(name)
        return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"

    def answer(self, request: Request, name: str, is_still_there: Callable[[], bool]) -> Answer:
        """One run or hook, within the bounds."""
        if self.is_stopping:
            return _later(problem(503, "Service Unavailable", "the host is stopping", code="stopping"))
        bound = self._hooks if request.hook else self._runs
        if not bound.acquire(timeout=self.limits.wait_for_run):
            detail = f"no run has ended within {self.limits.wait_for_run:g} s (`runs_max`)"
            return _later(problem(503, "Service Unavailable", detail, code="busy"))
        try:
            if not is_still_there():
                # Whoever asked has given up, and asks again: running now would only do it twice.
                return problem(503, "Service Unavailable", "the caller left before its run began", code="left")
            return self.runner.run(name, request)
        finally:
            bound.release()

    def begin(self) -> None:
        """A run is under way until its answer has been written: a stop in between would have it run again."""
        with self._changed:
            self._under_way += 1

    def end(self) -> None:
        """Its answer is written, or cannot be."""
        with self._changed:
            self._under_way -= 1
            self._changed.notify_all()

    def stop(self, seconds: float) -> int:
        """Takes no more, and waits for what is under way. Returns how many had not ended by then."""
        self.is_stopping = True
        self.shutdown()
        until = time.monotonic() + seconds
        with self._changed:
            self._changed.wait_for(lambda: self._under_way == 0, max(0.0, until - time.monotonic()))
            return self._under_way

    def server_bind(self) -> None:
        """Without the look-up of names that the base class makes."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for the connection, within `connections_max`."""
        if not self._connections.acquire(blocking=False):
            log.warning("a connection was refused: %d are open (connections_max)", self.limits.connections_max)
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Until the connection ends."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is no event."""
        log.debug("a connection ended early", exc_info=True)


class _Exchange(http.server.BaseHTTPRequestHandler):
    """Reads requests from one connection and writes their answers."""

    protocol_version = "HTTP/1.1"
    server_version = f"postrider-services/{__version__}"
    sys_version = ""
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Host
    _has_begun = False

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(self.server.limits.idle)

    def __getattr__(self, name: str) -> Any:
        # The base class looks for a method of this name for each request.
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def version_string(self) -> str:
        """What `Server` says."""
        return self.server_version

    def _serve(self) -> None:
        self._has_begun = False
        try:
            self._exchange()
            self.wfile.flush()
        finally:
            if self._has_begun:
                self.server.end()

    def _exchange(self) -> None:
        answer = self._answer()
        self.send_response(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        # Without content by their own meaning (RFC 9110, section 6.4.1).
        is_bare = answer.status in (204, 304) or self.command == "HEAD"
        if answer.status not in (204, 304):
            self.send_header("Content-Length", str(len(answer.body)))
        if self.server.is_stopping or self.close_connection:
            self.close_connection = True
            self.send_header("Connection", "close")
        self.end_headers()
        if not is_bare:
            self.wfile.write(answer.body)

    def _answer(self) -> Answer:
        path, _, query = self.path.partition("?")
        if path in ("/health/live", "/health/ready"):
            is_ready = path == "/health/live" or not self.server.is_stopping
            self.close_connection = self.close_connection or self._has_body()
            return _json(200 if is_ready else 503, {"status": "ok" if is_ready else "stopping"})
        if not hmac.compare_digest(self.headers.get(TOKEN, "").encode(), self.server.token.encode()):
            # The body is not read for somebody unknown, so the connection cannot go on.
            self.close_connection = True
            return problem(401, "Unauthorized", f"`{TOKEN}` is missing or wrong")
        if path == SERVICES or path == SERVICES + "/":
            self.close_connection = self.close_connection or self._has_body()
            if self.command in ("GET", "HEAD"):
                return _json(200, self.server.runner.list())
            return problem(405, "Method Not Allowed", "only GET lists services")
        if not path.startswith(SERVICES + "/"):
            self.close_connection = self.close_connection or self._has_body()
            return problem(404, "Not Found", "there is nothing at this path; services are at /services/{name}")
        body = self._body()
        if isinstance(body, Answer):
            self.close_connection = True
            return body
        name, slash, rest = path[len(SERVICES) + 1 :].partition("/")
        headers = Headers((key, _text(value)) for key, value in self.headers.items() if key.lower() != TOKEN.lower())
        request = Request(self.command, slash + rest, query, headers, body)
        self._has_begun = True
        self.server.begin()
        return self.server.answer(request, unquote(name), self._is_still_there)

    def _has_body(self) -> bool:
        return self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers

    def _body(self) -> "bytes | Answer":
        if "Transfer-Encoding" in self.headers:
            return problem(411, "Length Required", "a body must come with `Content-Length`")
        lengths = self.headers.get_all("Content-Length") or ["0"]
        length = lengths[0].strip()
        if len(set(lengths)) > 1 or not (length.isascii() and length.isdigit()) or len(length) > 18:
            return problem(400, "Bad Request", "`Content-Length` is no number")
        most = self.server.limits.body_bytes_max
        if int(length) > most:
            return problem(413, "Content Too Large", f"at most {most} bytes are allowed (`body_bytes_max`)")
        self.connection.settimeout(self.server.limits.body)
        try:
            body = self.rfile.read(int(length))
        except (socket.timeout, TimeoutError):
            return problem(408, "Request Timeout", "the body came too slowly")
        finally:
            self.connection.settimeout(self.server.limits.idle)
        if len(body) < int(length):
            return problem(400, "Bad Request", "the body broke off")
        return body

    def _is_still_there(self) -> bool:
        """Whether the caller has kept its end of the connection open."""
        try:
            if not select.select([self.connection], [], [], 0)[0]:
                return True
            return bool(self.connection.recv(1, socket.MSG_PEEK))
        except (OSError, ValueError):
            return False

    def send_error(self, code: int, message: Optional[str] = None, explain: Optional[str] = None) -> None:
        """What the base class refuses: no page for a browser, but a problem as everywhere."""
        self.close_connection = True
        # Else what has no version that can be read would be answered without a status line.
        self.request_version = self.protocol_version
        try:
            title = HTTPStatus(code).phrase
        except ValueError:
            title = "Error"
        answer = problem(int(code), title, "the request is no HTTP that is understood here")
        self.send_response(code)
        for name, value in (*answer.headers, ("Content-Length", str(len(answer.body))), ("Connection", "close")):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Paths and queries of requests are not logged: they may hold what nobody should read."""


def _text(value: str) -> str:
    """The value as UTF-8 where it is that; the base class reads everything as Latin-1."""
    try:
        return value if value.isascii() else value.encode("latin-1").decode("utf-8")
    except (UnicodeEncodeError, UnicodeDecodeError):
        return value


def _json(status: int, value: Any) -> Answer:
    return Answer(status, (("Content-Type", "application/json"),), json.dumps(value).encode("utf-8"))


def _later(answer: Answer) -> Answer:
    return Answer(answer.status, (*answer.headers, ("Retry-After", "1")), answer.body)
