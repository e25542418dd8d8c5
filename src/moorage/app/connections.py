"""Limits the connections of a server: in all, per address, and how long each may wait.

A server that everybody in the cluster can reach must stay open to its clients. Connections are
counted when they are accepted, before the TLS handshake. Each must send a whole request in time:
the first one, and the next one after each answer. If there are too many connections, the one that
has been without a request for longest is closed. So half requests, however many, lock nobody out.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from moorage.documents.errors import ListenError

from .logs import make_log

LOG = make_log("moorage.connections")

# While there are no descriptors left to accept with.
_PAUSE_SECONDS = 0.1
_BACKLOG = 1_024
# How long answers under way may take when the server stops.
_SHUTDOWN_SECONDS = 2.0
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
    body_seconds: float = 10.0


class _Connection(asyncio.Protocol):
    """Passes everything on to the protocol that answers, and closes after a timeout."""

    def __init__(self, answering: web.RequestHandler, place: str, seconds: float) -> None:
        self.answering = answering
        self.place = place
        #: Whether a request is being answered.
        self.is_busy = False
        self.on_lost: Callable[[], None] = lambda: None
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.BaseTransport | None = None
        self._opening: asyncio.Task[None] | None = None

    def open(self, opening: Coroutine[Any, Any, None]) -> None:
        """Performs the handshake."""
        self._opening = asyncio.create_task(opening)

    def expect_request(self) -> None:
        """Starts the timeout for the next request."""
        self.is_busy = False
        self.allow(self._seconds)

    def allow(self, seconds: float) -> None:
        """Closes the connection after some seconds, unless the timeout is replaced or stopped."""
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.abort)

    def begin_answer(self) -> None:
        """Stops the timeout: a whole request has come, and its answer may take any time."""
        self.is_busy = True
        self._stop_timer()

    def abort(self) -> None:
        """Closes at once, without the closing message of TLS, which may never be read."""
        if isinstance(self._transport, asyncio.Transport):
            self._transport.abort()
        elif self._opening is not None:
            self._opening.cancel()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.expect_request()
        self.answering.connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._stop_timer()
        self.on_lost()
        self.answering.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.answering.data_received(data)

    def eof_received(self) -> None:
        self.answering.eof_received()

    def pause_writing(self) -> None:
        self.answering.pause_writing()

    def resume_writing(self) -> None:
        self.answering.resume_writing()


class Connections:
    """Accepts the connections of one server, within limits."""

    def __init__(self, limits: ConnectionLimits, context: ssl.SSLContext | None) -> None:
        self._limits = limits
        self._context = context
        self._by_address: Counter[str] = Counter()
        #: By what aiohttp knows them by, the oldest first, those in their handshake among them.
        self._open: dict[object, _Connection] = {}

    @property
    def count(self) -> int:
        return len(self._open)

    def middleware(self) -> Middleware:
        """Tells connections when a request begins and ends.

        It must come before all other middleware.
        """

        @web.middleware
        async def follow(request: web.Request, handler: Handler) -> web.StreamResponse:
            if not _is_text(request):
                return web.Response(status=HTTPStatus.BAD_REQUEST, text="not UTF-8\n")
            connection = self._open.get(request.protocol)
            if connection is None:
                # It was ended before we came to it.
                return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE)
            if request.can_read_body:
                connection.allow(self._limits.body_seconds)
                await request.read()
            connection.begin_answer()
            try:
                return await handler(request)
            finally:
                if self._open.pop(connection.answering, None) is not None:
                    # To the end: it has been without a request for the shortest time now.
                    self._open[connection.answering] = connection
                    connection.expect_request()

        return follow

    async def accept(self, listener: socket.socket, server: web.Server) -> None:
        """Accepts connections until the task is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(listener)
            except OSError as error:
                LOG.warning("Cannot accept a connection", error=error)
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            self._take(accepted, _place(address[0]), server)

    def close(self) -> None:
        """Closes all connections that are left."""
        for each in list(self._open.values()):
            each.abort()

    def _take(self, accepted: socket.socket, place: str, server: web.Server) -> None:
        if not self._has_room(place):
            LOG.warning("Refused a connection: there are too many", address=place)
            accepted.close()
            return
        connection = _Connection(server(), place, self._limits.request_seconds)
        connection.on_lost = lambda: self._forget(connection)
        self._open[connection.answering] = connection
        self._by_address[place] += 1
        connection.open(self._greet(accepted, connection))

    def _has_room(self, place: str) -> bool:
        """Whether there is room for one more from there; may close another to make room."""
        if self._by_address[place] >= self._limits.most_per_address:
            return self._make_room(each for each in self._open.values() if each.place == place)
        return self.count < self._limits.most or self._make_room(self._open.values())

    def _make_room(self, among: Iterable[_Connection]) -> bool:
        """Closes the connection that has been without a request for longest, if there is one."""
        found = next((each for each in among if not each.is_busy), None)
        if found is None:
            return False
        LOG.warning("Ended a connection without a request: too many", address=found.place)
        found.abort()
        self._forget(found)
        return True

    async def _greet(self, accepted: socket.socket, connection: _Connection) -> None:
        seconds = self._limits.handshake_seconds if self._context else None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=seconds,
                ssl_shutdown_timeout=seconds,
            )
        except (OSError, asyncio.CancelledError):
            # This is not logged: port scans would fill the log.
            accepted.close()
            self._forget(connection)

    def _forget(self, connection: _Connection) -> None:
        if self._open.pop(connection.answering, None) is None:
            return
        self._by_address[connection.place] -= 1
        if not self._by_address[connection.place]:
            del self._by_address[connection.place]


@asynccontextmanager
async def accept_connections(
    app: web.Application,
    address: tuple[str, int],
    limits: ConnectionLimits,
    context: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Serves an application for as long as the context lasts; yields the port."""
    raise_descriptors()
    connections = Connections(limits, context)
    app.middlewares.insert(0, connections.middleware())
    runner = web.AppRunner(
        app,
        access_log=None,
        keepalive_timeout=limits.request_seconds,
        shutdown_timeout=_SHUTDOWN_SECONDS,
    )
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
        connections.close()


def _is_text(request: web.Request) -> bool:
    """Whether names and values are valid text, so that no reader fails on them."""
    try:
        request.path.encode()
        b"".join(part for header in request.raw_headers for part in header).decode()
    except UnicodeError:
        return False
    return True


async def _listeners(host: str, port: int) -> list[socket.socket]:
    """Returns sockets that listen on all addresses of a name, on the same port."""
    loop = asyncio.get_running_loop()
    made: list[socket.socket] = []
    try:
        found = await loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, protocol, _, place in dict.fromkeys(found):
            made.append(listener := socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            # A free port that the first was given is asked for by the others.
            listener.bind((place[0], made[0].getsockname()[1] or port, *place[2:]))
            listener.listen(_BACKLOG)
            listener.setblocking(False)
    except OSError as error:
        for each in made:
            each.close()
        raise ListenError(host, port, error) from error
    return made


def raise_descriptors() -> None:
    """Raises the limit of open files and connections to what the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:
            LOG.warning("The limit of open files stays as it is", limit=soft, error=error)


def _place(address: str) -> str:
    """Returns the address of a client.

    For IPv6 it is the network only, because a machine can choose the rest.
    """
    known = ip_address(address.partition("%")[0])
    if not isinstance(known, IPv6Address):
        return str(known)
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    shift = known.max_prefixlen - _NETWORK_BITS
    return str(IPv6Address(int(known) >> shift << shift))
