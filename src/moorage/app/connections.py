"""Limits the connections of a server: in all, per address, and how long each may wait.

A server that everybody in the cluster can reach must stay open to its clients. A connection must
send a whole request in time: the first one, and the next one after each answer. If there are too
many connections, the one that has been without a request for longest is closed. So half requests,
however many, lock nobody out.
"""

from __future__ import annotations

import asyncio
import resource
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from moorage.documents.errors import ListenError

from .logs import make_log

LOG = make_log("moorage.connections")

_BACKLOG = 1_024
# How long answers under way may take when the server stops.
_SHUTDOWN_SECONDS = 2.0


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

    def __init__(self, kept: Connections, answering: web.RequestHandler) -> None:
        self._kept = kept
        self.answering = answering
        self.address = ""
        #: Whether a request is being answered.
        self.is_busy = False
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None

    def allow(self, seconds: float) -> None:
        """Closes the connection after some seconds, unless the timeout is replaced or stopped."""
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.abort)

    def expect_request(self) -> None:
        """Starts the timeout for the next request."""
        self.is_busy = False
        self.allow(self._kept.limits.request_seconds)

    def begin_answer(self) -> None:
        """Stops the timeout: a whole request has come, and its answer may take any time."""
        self.is_busy = True
        self._stop_timer()

    def abort(self) -> None:
        """Closes at once, without the closing message of TLS, which may never be read."""
        if self._transport is not None:
            self._transport.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self.address = (transport.get_extra_info("peername") or ("",))[0]
        self.answering.connection_made(transport)
        if self._kept.add(self):
            self.expect_request()
        else:
            LOG.warning("Refused a connection: there are too many", address=self.address)
            self.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._stop_timer()
        self._kept.forget(self)
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
    """The connections of one server, within limits."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        #: By what aiohttp knows them by; the one without a request for longest comes first.
        self._open: dict[object, _Connection] = {}

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
                connection.allow(self.limits.body_seconds)
                await request.read()
            connection.begin_answer()
            try:
                return await handler(request)
            finally:
                if self._open.pop(connection.answering, None) is not None:
                    self._open[connection.answering] = connection
                    connection.expect_request()

        return follow

    def add(self, connection: _Connection) -> bool:
        """Whether there is room for one more; may close another to make room."""
        near = [each for each in self._open.values() if each.address == connection.address]
        if len(near) >= self.limits.most_per_address:
            has_room = self._make_room(near)
        else:
            has_room = len(self._open) < self.limits.most or self._make_room(
                list(self._open.values())
            )
        if has_room:
            self._open[connection.answering] = connection
        return has_room

    def _make_room(self, among: list[_Connection]) -> bool:
        """Closes the connection that has been without a request for longest, if there is one."""
        found = next((each for each in among if not each.is_busy), None)
        if found is None:
            return False
        LOG.warning("Ended a connection without a request: too many", address=found.address)
        self.forget(found)
        found.abort()
        return True

    def forget(self, connection: _Connection) -> None:
        self._open.pop(connection.answering, None)

    def close(self) -> None:
        """Closes all connections that are left."""
        for each in list(self._open.values()):
            each.abort()


@asynccontextmanager
async def accept_connections(
    app: web.Application,
    address: tuple[str, int],
    limits: ConnectionLimits,
    context: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Serves an application for as long as the context lasts; yields the port."""
    raise_descriptors()
    connections = Connections(limits)
    app.middlewares.insert(0, connections.middleware())
    runner = web.AppRunner(
        app,
        access_log=None,
        keepalive_timeout=limits.request_seconds,
        shutdown_timeout=_SHUTDOWN_SECONDS,
    )
    await runner.setup()
    answer = runner.server
    assert answer is not None, "the runner was set up"
    host, port = address
    seconds = limits.handshake_seconds if context else None
    try:
        server = await asyncio.get_running_loop().create_server(
            lambda: _Connection(connections, answer()),
            host or None,
            port,
            ssl=context,
            backlog=_BACKLOG,
            reuse_address=True,
            ssl_handshake_timeout=seconds,
            ssl_shutdown_timeout=seconds,
        )
    except OSError as error:
        await runner.cleanup()
        raise ListenError(host, port, error) from error
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
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


def raise_descriptors() -> None:
    """Raises the limit of open files and connections to what the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:
            LOG.warning("The limit of open files stays as it is", limit=soft, error=error)
