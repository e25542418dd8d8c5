"""Connections that a server accepts: so many, so many per address, and none that only waits.

A server that anybody in the cluster can reach has to stay open for those it is for. Connections are
counted from the moment they are accepted, before their TLS handshake, and each has to begin a
request in time: the first one, and the next one after each answer.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from .logs import named

LOG = named("mooring.connections")

# While there are no descriptors left to accept with.
_PAUSE_SECONDS = 0.1
_BACKLOG = 128
# Of the bits of an IPv6 address: one machine commonly has all addresses below these.
_NETWORK_BITS = 64


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections a server has at once, and how long they may take."""

    most: int = 256
    most_per_address: int = 64
    handshake_seconds: float = 10.0
    #: For the whole head of a request, after the connection or the answer before.
    request_seconds: float = 30.0


class _Connection(asyncio.Protocol):
    """Passes everything on to the protocol that answers, and ends what takes too long."""

    def __init__(self, answering: web.RequestHandler, seconds: float, lost: Callable[[], None]):
        self._answering = answering
        self._seconds = seconds
        self._lost = lost
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.BaseTransport | None = None

    def expect_request(self) -> None:
        """A request has to begin in time from now on."""
        self.busy()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._seconds, self.abort)

    def busy(self) -> None:
        """A request has begun, and takes as long as its answer does."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def abort(self) -> None:
        if isinstance(self._transport, asyncio.Transport):
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.expect_request()
        self._answering.connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.busy()
        self._answering.connection_lost(exc)
        self._lost()

    def data_received(self, data: bytes) -> None:
        self._answering.data_received(data)

    def eof_received(self) -> None:
        self._answering.eof_received()

    def pause_writing(self) -> None:
        self._answering.pause_writing()

    def resume_writing(self) -> None:
        self._answering.resume_writing()


class Connections:
    """Accepts the connections of one server, within limits."""

    def __init__(self, limits: ConnectionLimits, context: ssl.SSLContext | None) -> None:
        self._limits = limits
        self._context = context
        self._by_address: Counter[str] = Counter()
        self._open: dict[object, _Connection] = {}
        self._handshakes: set[asyncio.Task[None]] = set()

    @property
    def count(self) -> int:
        """How many there are, those in their handshake among them."""
        return self._by_address.total()

    def middleware(self) -> Middleware:
        """Tells connections when a request begins and ends; goes before all others."""

        @web.middleware
        async def follow(request: web.Request, handler: Handler) -> web.StreamResponse:
            connection = self._open.get(request.protocol)
            if connection is None:
                return await handler(request)
            connection.busy()
            try:
                return await handler(request)
            finally:
                if request.protocol in self._open:
                    connection.expect_request()

        return follow

    async def accept(self, listener: socket.socket, server: web.Server) -> None:
        """Accepts for as long as the task lives."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    accepted, address = await loop.sock_accept(listener)
                except OSError as error:
                    LOG.warning("Cannot accept a connection", error=error)
                    await asyncio.sleep(_PAUSE_SECONDS)
                    continue
                self._take(accepted, _place(address[0]), server)
        finally:
            for handshake in self._handshakes:
                handshake.cancel()

    def _take(self, accepted: socket.socket, place: str, server: web.Server) -> None:
        limits = self._limits
        if self.count >= limits.most or self._by_address[place] >= limits.most_per_address:
            LOG.warning("Refused a connection: there are too many", address=place)
            accepted.close()
            return
        self._by_address[place] += 1
        handshake = asyncio.create_task(self._greet(accepted, place, server))
        self._handshakes.add(handshake)
        handshake.add_done_callback(self._handshakes.discard)

    async def _greet(self, accepted: socket.socket, place: str, server: web.Server) -> None:
        answering = server()

        def lost() -> None:
            if self._open.pop(answering, None) is not None:
                self._release(place)

        connection = _Connection(answering, self._limits.request_seconds, lost)
        self._open[answering] = connection
        seconds = self._limits.handshake_seconds
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=seconds if self._context else None,
                ssl_shutdown_timeout=seconds if self._context else None,
            )
        except (OSError, asyncio.CancelledError):
            # Nobody is told: those who scan ports would fill the log.
            accepted.close()
            lost()

    def _release(self, place: str) -> None:
        self._by_address[place] -= 1
        if not self._by_address[place]:
            del self._by_address[place]


@asynccontextmanager
async def accepting(
    app: web.Application,
    address: tuple[str, int],
    limits: ConnectionLimits,
    context: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Serves an application for as long as the context lasts; gives the port."""
    raise_descriptors()
    connections = Connections(limits, context)
    app.middlewares.insert(0, connections.middleware())
    runner = web.AppRunner(app, access_log=None, keepalive_timeout=limits.request_seconds)
    await runner.setup()
    listeners = await _listeners(*address)
    server = runner.server
    assert server is not None, "the runner was set up"
    tasks = [asyncio.create_task(connections.accept(each, server)) for each in listeners]
    try:
        yield int(listeners[0].getsockname()[1])
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for each in listeners:
            each.close()
        await runner.cleanup()


async def _listeners(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen on all addresses that a name stands for, on the same port."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    made: list[socket.socket] = []
    try:
        for family, kind, protocol, _, place in dict.fromkeys(found):
            made.append(listener := socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            # A free port that the first was given is asked for by the others.
            listener.bind((place[0], made[0].getsockname()[1] or port, *place[2:]))
            listener.listen(_BACKLOG)
            listener.setblocking(False)
    except OSError:
        for each in made:
            each.close()
        raise
    return made


def raise_descriptors() -> None:
    """Lets the process have as many files and connections as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:
            LOG.warning("The limit of open files stays as it is", limit=soft, error=error)


def _place(address: str) -> str:
    """The address, or the part of it that one machine cannot choose."""
    known = ip_address(address.partition("%")[0])
    if not isinstance(known, IPv6Address):
        return str(known)
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    shift = known.max_prefixlen - _NETWORK_BITS
    return str(IPv6Address(int(known) >> shift << shift))
