"""The client: everything that the server offers, by subject."""

from __future__ import annotations

import os
import ssl
from typing import Any, Optional

from .._content import Params, plain
from .._exchange import Settings, json_request, read_json
from .._transport import AsyncTransport
from ..errors import BadArgument, Unreachable, UnreadableAnswer
from ..models import Published
from .configured import AsyncConfigured
from .connections import AsyncMllpConnection, AsyncNamed, AsyncRestConnection, AsyncSoapConnection
from .core import AsyncCore
from .deliveries import AsyncDeadLetters, AsyncDeliveries, AsyncJobs
from .fhir import AsyncFhirConnection
from .incoming import AsyncDestinations, AsyncForwards, AsyncSources
from .topics import AsyncEvents, AsyncTopics


class AsyncClient:
    """A connected client; `connect_async` makes one.

    Attributes:
        rest, soap, mllp, fhir: connections by name, to call: `rest['Billing API']`.
        deliveries, dlq, jobs: what became of requests, and what people do about it.
        topics, events: publishing and pulling.
        connections: connections as they are configured.
        sources, destinations, forwards: incoming webhooks.
    """

    def __init__(self, core: AsyncCore) -> None:
        self._core = core
        self.rest = AsyncNamed(lambda name: AsyncRestConnection(core, name))
        self.soap = AsyncNamed(lambda name: AsyncSoapConnection(core, name))
        self.mllp = AsyncNamed(lambda name: AsyncMllpConnection(core, name))
        self.fhir = AsyncNamed(lambda name: AsyncFhirConnection(core, name))
        self.deliveries = AsyncDeliveries(core)
        self.dlq = AsyncDeadLetters(core)
        self.jobs = AsyncJobs(core)
        self.topics = AsyncTopics(core)
        self.events = AsyncEvents(core)
        self.connections = AsyncConfigured(core)
        self.sources = AsyncSources(core)
        self.destinations = AsyncDestinations(core)
        self.forwards = AsyncForwards(core)

    @property
    def project(self) -> str:
        """The project that this client works in."""
        return self._core.project

    def in_project(self, name: str) -> AsyncClient:
        """The same client in another project; it shares the connections to the server."""
        return AsyncClient(self._core.within(project=name))

    def with_cid(self, cid: str) -> AsyncClient:
        """The same client whose calls go under this correlation id; it shares the connections to the server."""
        return AsyncClient(self._core.within(cid=cid))

    async def publish(
        self, topic: str, data: Any = None, *, headers: Params = None, idempotency_key: Optional[str] = None
    ) -> Published:
        """Publishes a message to a topic; it is stored when this returns."""
        return await self.topics.publish(topic, data, headers=headers, idempotency_key=idempotency_key)

    async def request(self, method: str, path: str, content: Any = None, *, params: Optional[Any] = None) -> Any:
        """Anything else that the API has: a path such as `/api/v1/projects`, JSON out, JSON back (None where there is none)."""
        if not isinstance(path, str) or not path.startswith("/") or not path.isascii() or not path.isprintable():
            raise BadArgument("path", "it must begin with `/` and be percent-encoded")
        query = tuple((str(name), str(value)) for name, value in (params or {}).items())
        fields = None if content is None else plain(content, "content")
        request = json_request(method.upper(), path.replace(" ", "%20"), fields, query=query)
        reply = await self._core.checked(request)
        return read_json(self._core.transport.settings.server, reply, lambda json: json) if reply.body else None

    async def is_ready(self) -> bool:
        """Whether the server is there and takes requests. It needs no valid key, and raises nothing where there is no answer."""
        try:
            return (await self._core.transport.exchange(json_request("GET", "/health/ready"))).status == 200
        except (Unreachable, UnreadableAnswer):
            return False

    async def aclose(self) -> None:
        """Closes the connections to the server, those of clients made from this one too."""
        await self._core.transport.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def connect_async(
    url: Optional[str] = None,
    key: Optional[str] = None,
    *,
    project: str = "default",
    timeout: float = 90.0,
    retries: int = 2,
    connections_max: int = 64,
    ca_file: Optional[str] = None,
    tls: Optional[ssl.SSLContext] = None,
    idempotency_keys: bool = True,
) -> AsyncClient:
    """A client of the server at `url`. Nothing is sent until something is asked.

    Args:
        url: `http://HOST:PORT` or `https://HOST`; else `POSTRIDER_SERVER`, else `http://127.0.0.1:8080`.
        key: an API key; else `POSTRIDER_KEY`, else `POSTRIDER_ADMIN_KEY`.
        project: the project to work in.
        timeout: seconds for one exchange with the server, from connecting to the last byte of its answer. A call waits for its remote
            system, so it should be longer than the connection's own timeout (60 s unless set).
        retries: how often an exchange without an answer, or answered 429 or 503, is made again where that is safe: what only reads, what
            has an idempotency key, and what cannot have reached the server.
        connections_max: exchanges under way at once; further ones wait.
        ca_file: certificates to trust in place of the system's (PEM).
        tls: a context of your own, for example with a client certificate.
        idempotency_keys: each call, publishing and act on deliveries gets a key of its own, so that it can be repeated safely. Off: only
            those given.

    Raises:
        BadArgument: one of these cannot be used.
    """
    server = url or os.environ.get("POSTRIDER_SERVER") or "http://127.0.0.1:8080"
    secret = key or os.environ.get("POSTRIDER_KEY") or os.environ.get("POSTRIDER_ADMIN_KEY")
    if not secret:
        raise BadArgument("key", "it is missing: give one, or set POSTRIDER_KEY")
    settings = Settings(server, secret, timeout, retries, connections_max)
    if ca_file is not None and tls is None:
        try:
            tls = ssl.create_default_context(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            raise BadArgument("ca_file", f"`{ca_file}` cannot be read: {error}") from error
    return AsyncClient(AsyncCore(AsyncTransport(settings, tls), project, makes_keys=idempotency_keys))
