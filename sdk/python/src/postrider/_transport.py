"""Exchanges over HTTP/1.1 with the standard library alone: a pool of connections, and one deadline for each exchange.

It must not know what any path means. `AsyncTransport` is the same transport in threads of its own, so that there is one way of speaking
HTTP and not two; a task that is cancelled closes its connection at once.
"""

from __future__ import annotations

import asyncio
import functools
import http.client
import io
import select
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, List, Optional, Tuple
from urllib.parse import urlsplit

from ._exchange import Reply, Request, Settings
from ._version import __version__
from .errors import BadArgument, TimedOut, Unreachable, UnreadableAnswer
from .headers import Headers

CONNECT_SECONDS_MAX = 10.0
IDLE_SECONDS_MAX = 15.0
CHUNK_BYTES = 256 * 1024


class Ticket:
    """Lets another thread give an exchange up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: Optional[socket.socket] = None
        self.is_cancelled = False

    def holds(self, sock: Optional[socket.socket]) -> None:
        """The socket that the exchange waits on from now on."""
        with self._lock:
            self._socket = sock
            if self.is_cancelled:
                self._shut()

    def cancel(self) -> None:
        """Wakes the exchange wherever it waits for the network; it fails then."""
        with self._lock:
            self.is_cancelled = True
            self._shut()

    def _shut(self) -> None:
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Transport:
    """Keeps connections to one server. Safe to use from many threads."""

    def __init__(self, settings: Settings, tls: Optional[ssl.SSLContext] = None) -> None:
        self.settings = settings
        parts = urlsplit(settings.server)
        self._prefix = parts.path
        self._host = parts.hostname or ""
        self._is_tls = parts.scheme == "https"
        self._port = parts.port or (443 if self._is_tls else 80)
        self._tls = (tls or ssl.create_default_context()) if self._is_tls else None
        self._idle: List[Tuple[http.client.HTTPConnection, float]] = []
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(settings.connections_max)
        self._is_closed = False

    def exchange(self, request: Request, ticket: Optional[Ticket] = None) -> Reply:
        """
        Raises:
            Unreachable, TimedOut: no answer; whether the server may have the request is in it.
            UnreadableAnswer: what answered does not speak HTTP, or too much of it.
        """
        ticket = ticket or Ticket()
        deadline = time.monotonic() + self.settings.timeout
        if not self._free.acquire(timeout=self.settings.timeout):
            raise TimedOut(self.settings.server, "all connections are in use", maybe_taken=False)
        connection = None
        try:
            connection = self._connected(deadline, ticket)
            reply, may_be_kept = self._ask(connection, request, deadline)
            ticket.holds(None)
            if may_be_kept:
                self._keep(connection)
                connection = None
            return reply
        finally:
            ticket.holds(None)
            if connection is not None:
                connection.close()
            self._free.release()

    def close(self) -> None:
        """Closes what is idle; exchanges under way come to their end."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    def _connected(self, deadline: float, ticket: Ticket) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                if self._is_closed:
                    raise BadArgument("client", "it is closed")
                connection, since = self._idle.pop() if self._idle else (None, 0.0)
            if connection is None:
                return self._connect(deadline, ticket)
            sock = connection.sock
            if time.monotonic() - since < IDLE_SECONDS_MAX and sock is not None and not _has_input(sock):
                ticket.holds(sock)
                return connection
            connection.close()

    def _connect(self, deadline: float, ticket: Ticket) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection
        if self._tls is not None:
            connection = http.client.HTTPSConnection(self._host, self._port, context=self._tls)
        else:
            connection = http.client.HTTPConnection(self._host, self._port)
        connection.timeout = max(0.001, min(CONNECT_SECONDS_MAX, deadline - time.monotonic()))
        try:
            connection.connect()
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except (socket.timeout, TimeoutError) as error:
            connection.close()
            raise TimedOut(self.settings.server, "no connection in time", maybe_taken=False) from error
        except (OSError, UnicodeError) as error:
            connection.close()
            raise Unreachable(self.settings.server, str(error), maybe_taken=False) from error
        ticket.holds(connection.sock)
        return connection

    def _ask(self, connection: http.client.HTTPConnection, request: Request, deadline: float) -> Tuple[Reply, bool]:
        server = self.settings.server
        try:
            self._send(connection, request, deadline)
            connection.response_class = functools.partial(_Response, deadline)  # type: ignore[assignment]
            response = connection.getresponse()
            body = self._read(response, deadline)
        except (socket.timeout, TimeoutError) as error:
            raise TimedOut(server, f"none within {self.settings.timeout:g} s", maybe_taken=True) from error
        except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLError) as error:
            raise Unreachable(server, str(error) or type(error).__name__, maybe_taken=True) from error
        except http.client.IncompleteRead as error:
            raise Unreachable(server, "the answer broke off", maybe_taken=True) from error
        except (http.client.HTTPException, ValueError) as error:
            raise UnreadableAnswer(server, f"{type(error).__name__} {error}".strip()) from error
        except OSError as error:
            raise Unreachable(server, str(error), maybe_taken=True) from error
        reply = Reply(response.status, Headers(response.getheaders()), body)
        return reply, not response.will_close

    def _send(self, connection: http.client.HTTPConnection, request: Request, deadline: float) -> None:
        headers = {
            "Accept": "application/json",
            "User-Agent": f"postrider-python/{__version__}",
            "Authorization": f"Bearer {self.settings.key}",
            **dict(request.headers),
        }
        body = request.body if request.body or request.method in ("POST", "PUT", "PATCH") else None
        connection.sock.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            connection.request(request.method, self._prefix + request.target, body, headers)
        except (BrokenPipeError, ConnectionResetError):
            # The server may have answered before it had read all, and closed: its answer is the better reason.
            if not _has_input(connection.sock):
                raise

    def _read(self, response: http.client.HTTPResponse, deadline: float) -> bytes:
        most = self.settings.answer_bytes_max
        parts: List[bytes] = []
        size = 0
        while True:
            if time.monotonic() > deadline:
                raise TimeoutError
            part = response.read(CHUNK_BYTES)
            if not part:
                break
            size += len(part)
            if size > most:
                raise ValueError(f"it is larger than {most} bytes (answer_bytes_max)")
            parts.append(part)
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
        return b"".join(parts)

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._is_closed:
                self._idle.append((connection, time.monotonic()))
                return
        connection.close()


def _has_input(sock: socket.socket) -> bool:
    """Whether there is something to read. On an idle connection that is its end."""
    try:
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(sock, select.POLLIN | select.POLLHUP)
            return bool(poll.poll(0))
        return bool(select.select([sock], [], [], 0)[0])
    except (OSError, ValueError):
        return True


class _UntilDeadline(io.RawIOBase):
    """Reads from a socket, each time for no longer than is left: an answer that dribbles must end as well."""

    def __init__(self, sock: socket.socket, deadline: float, kept: Any) -> None:
        super().__init__()
        self._sock = sock
        self._deadline = deadline
        self._kept = kept

    def close(self) -> None:
        self._kept.close()
        super().close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise socket.timeout("timed out")
        self._sock.settimeout(left)
        return self._sock.recv_into(buffer)


class _Response(http.client.HTTPResponse):
    def __init__(self, deadline: float, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        # The file made by the base class stays open beside ours: it is what keeps the socket until the answer is read.
        self.fp = io.BufferedReader(_UntilDeadline(sock, deadline, self.fp), 65536)


class AsyncTransport:
    """The same for asyncio. At most `connections_max` exchanges are under way; further ones wait for their turn."""

    def __init__(self, settings: Settings, tls: Optional[ssl.SSLContext] = None) -> None:
        self.settings = settings
        self._blocking = Transport(settings, tls)
        self._threads = ThreadPoolExecutor(settings.connections_max, thread_name_prefix="postrider")

    async def exchange(self, request: Request) -> Reply:
        """As `Transport.exchange`; a cancelled task gives the exchange up at once."""
        ticket = Ticket()
        try:
            waiting = asyncio.get_running_loop().run_in_executor(
                self._threads, self._blocking.exchange, request, ticket
            )
        except RuntimeError as error:
            raise BadArgument("client", "it is closed") from error
        try:
            return await waiting
        except asyncio.CancelledError:
            ticket.cancel()
            raise

    async def aclose(self) -> None:
        """Closes what is idle; exchanges under way come to their end."""
        self._blocking.close()
        self._threads.shutdown(wait=False)
