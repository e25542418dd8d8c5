"""Sends requests to the API server: takes bytes, returns bytes, raises errors by their meaning."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
)
from types import TracebackType
from typing import Any, NoReturn, Protocol, Self
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from moorage import __version__

from .api_errors import (
    ApiError,
    OutcomeUnknown,
    TooLarge,
    Unreachable,
    Withheld,
    read_refusal,
)
from .connection import Connection
from .pacing import Bucket, Pace

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"

_JSON = "application/json"
_USER_AGENT = f"moorage/{__version__}"

# Kubernetes' own clients retry as often.
_MOST_RETRIES = 10
_LONGEST_RETRY_AFTER = 60.0

_CONNECT_SECONDS = 10.0
# API servers send a bookmark every minute, except for kinds that have not changed since they were
# started. So a minute and a half of silence may be a dead connection: the watch starts again.
SILENCE_SECONDS = 90.0
# etcd holds objects of up to 1.5 MiB, and JSON may take several times as much.
_LONGEST_LINE = 64 * 2**20
# A page has as many objects as were asked for, of any size. The caller can ask for a smaller page.
_LARGEST_PAGE = 32 * 2**20
# API servers close idle connections after 90 s. The client closes them before that, because a
# request has an unknown outcome if the server closes the connection at the same time.
_KEEP_ALIVE_SECONDS = 30.0
#: A path that every user may read, and whose answer is short.
SMALL_PATH = "/version"
# A lost peer is noticed after 15 + 3 * 5 seconds, or when data is unacknowledged for as long.
_KEEP_ALIVE_IDLE, _KEEP_ALIVE_INTERVAL, _KEEP_ALIVE_PROBES = 15, 5, 3

Params = Mapping[str, str | int]

#: Called after every request with method, host, status (None without an answer) and seconds.
OnAnswer = Callable[[str, str, int | None, float], None]


# Every caller gets an error if a server cannot be reached, but it is logged only this often.
_QUIET_SECONDS = 30.0


class Requests(Protocol):
    """Requests with paths and bodies of the Kubernetes API. They raise failures as ClientError."""

    async def get(self, path: str, params: Params | None = None) -> bytes: ...

    async def post(self, path: str, body: bytes, params: Params | None = None) -> bytes: ...

    async def put(self, path: str, body: bytes) -> bytes: ...

    async def patch(self, path: str, body: bytes, content_type: str) -> bytes: ...

    async def delete(self, path: str, body: bytes | None = None) -> bytes: ...

    def watch(self, path: str, params: Params) -> AsyncGenerator[bytes, None]:
        """Yields the lines of a watch until the server ends it."""


class Api:
    """One client of an API server. Use it as an async context manager.

    It retries requests whose refusal says when to come back. A refusal slows down all requests of
    this client, so a request that must not wait, such as renewing a lease, needs its own client.

    `may_write` is called before every write and every repetition of one, right before a connection
    is taken for it. While it returns False, writes raise `Withheld`.
    """

    def __init__(  # noqa: PLR0913  # each is one independent setting with a default
        self,
        connection: Connection,
        *,
        qps: float = 0,
        burst: int = 0,
        user_agent: str = _USER_AGENT,
        timeout: float = 30.0,
        write_timeout: float | None = None,
        connect_timeout: float = _CONNECT_SECONDS,
        silence: float = SILENCE_SECONDS,
        watch_pause: float = 0.0,
        most_connections: int = 100,
        observe: OnAnswer | None = None,
        may_write: Callable[[], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._connection = connection
        self._observe = observe
        self._clock = clock
        self._user_agent = user_agent
        self._sleep = sleep
        self._may_write = may_write
        self._timeout = _timeout(timeout, connect_timeout)
        self._write_timeout = _timeout(write_timeout or timeout, connect_timeout)
        self._watch_pause = watch_pause
        self._watch_timeout = aiohttp.ClientTimeout(connect=_CONNECT_SECONDS, sock_read=silence)
        self._bucket = Bucket(qps, burst, clock, sleep) if qps > 0 else None
        self.pace = Pace(most_connections, _KEEP_ALIVE_SECONDS, self._open_connection)
        self._base = connection.server.rstrip("/")
        url = URL(self._base)
        self._origin, self._prefix = url.origin(), url.raw_path.rstrip("/")
        self._host = url.authority
        self._session: aiohttp.ClientSession | None = None
        self._sent: Mapping[str, str] = {}
        #: Until this time, further errors that the server cannot be reached count as repeated.
        self._unreachable_until = float("-inf")

    async def __aenter__(self) -> Self:
        endpoint = self._connection.endpoint
        self._session = aiohttp.ClientSession(
            # The connector has no limit: `Pace` limits requests, and nothing limits watches.
            connector=aiohttp.TCPConnector(
                ssl=endpoint.ssl or True,
                limit=0,
                keepalive_timeout=_KEEP_ALIVE_SECONDS,
                socket_factory=_socket,
            ),
            headers={
                "Accept": _JSON,
                # Unpacking costs more CPU than decrypting the difference, on both sides.
                "Accept-Encoding": "identity",
                "Content-Type": _JSON,
                "User-Agent": self._user_agent,
            },
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            response_class=_Answer,
            timeout=self._timeout,
            proxy=endpoint.proxy,
            middlewares=() if self._may_write is None else (_withhold_unless(self._may_write),),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.pace.close()
        if self._session is not None:
            await self._session.close()
            self._session = None
            # Aborted connections are closed in the next turn of the event loop.
            await asyncio.sleep(0)

    async def get(self, path: str, params: Params | None = None) -> bytes:
        """Returns what is at a path. Raises TooLarge for a very large page of several objects."""
        is_page = params is not None and int(params.get("limit", 0)) > 1
        largest = _LARGEST_PAGE if is_page else None
        return await self._request("GET", path, params=params, largest=largest)

    async def post(self, path: str, body: bytes, params: Params | None = None) -> bytes:
        return await self._request("POST", path, body, params=params)

    # If a PUT or DELETE on a kept connection gets no answer, aiohttp repeats it once. Both name the
    # state that they want, so that at worst the second finds a conflict or nothing.
    async def put(self, path: str, body: bytes) -> bytes:
        return await self._request("PUT", path, body)

    async def patch(self, path: str, body: bytes, content_type: str) -> bytes:
        return await self._request("PATCH", path, body, content_type=content_type)

    async def delete(
        self, path: str, body: bytes | None = None, params: Params | None = None
    ) -> bytes:
        return await self._request("DELETE", path, body, params=params)

    async def watch(self, path: str, params: Params) -> AsyncGenerator[bytes, None]:
        """Yields the lines of a watch until the server ends it or sends nothing for too long.

        Raises ClientError when the connection breaks.
        """
        session, sent = await self._authorize()
        try:
            answer = await session.request(
                "GET",
                self._url(path, params),
                timeout=self._watch_timeout,
                allow_redirects=False,
                server_hostname=self._connection.endpoint.server_hostname,
            )
            try:
                if answer.status != 200:
                    raise self._to_refusal(answer, await answer.read(), sent)
                chunks: AsyncIterable[bytes] = answer.content.iter_any()
                if self._watch_pause:
                    chunks = _read_together(answer, self._watch_pause, self._sleep)
                async for line in split_lines(chunks, _LONGEST_LINE):
                    yield line
            except aiohttp.SocketTimeoutError:
                # Nothing may have happened to a kind for hours. Asking again is cheap, and fails
                # if the server is gone.
                return
            finally:
                answer.close()
        except (aiohttp.ClientError, OSError) as error:
            self._raise_meaning(error, f"watch {path}")

    async def _request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        params: Params | None = None,
        content_type: str | None = None,
        largest: int | None = None,
    ) -> bytes:
        url = self._url(path, params)
        headers = None if content_type is None else {"Content-Type": content_type}
        renewed = False
        for _ in range(_MOST_RETRIES):
            try:
                return await self._attempt(method, url, body, headers, largest)
            except ApiError as error:
                if error.is_unauthorized and not renewed:
                    renewed = True
                elif error.retry_after is None:
                    raise
                else:
                    await self._sleep(error.retry_after)
        return await self._attempt(method, url, body, headers, largest)

    async def _attempt(
        self,
        method: str,
        url: URL,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        largest: int | None,
    ) -> bytes:
        # A request that only keeps a connection open must not delay a binding.
        if self._bucket is not None and url.raw_path != self._prefix + SMALL_PATH:
            await self._bucket.take()
        session, sent = await self._authorize()
        ticket = await self.pace.enter()
        began, status = self._clock(), None
        try:
            answer = await session.request(
                method,
                url,
                data=body,
                headers=headers,
                timeout=self._timeout if method == "GET" else self._write_timeout,
                allow_redirects=False,
                server_hostname=self._connection.endpoint.server_hostname,
            )
            status = answer.status
            text = await _read(answer, largest)
            if status < 300:
                self.pace.succeeded()
                return text
            refused = self._to_refusal(answer, text, sent)
            if refused.is_too_many_requests or refused.retry_after is not None:
                self.pace.refused(ticket)
            raise refused
        except (aiohttp.ClientError, OSError) as error:
            self._raise_meaning(error, f"{method} {url.raw_path}")
        finally:
            self.pace.leave()
            if self._observe is not None:
                self._observe(method, self._host, status, self._clock() - began)

    async def _open_connection(self) -> None:
        """Sends a small request. If all connections are in use, that opens another one."""
        session, _ = await self._authorize()
        async with session.get(
            self._url(SMALL_PATH, None),
            timeout=self._timeout,
            allow_redirects=False,
            server_hostname=self._connection.endpoint.server_hostname,
        ) as answer:
            await answer.read()

    def _raise_meaning(self, error: Exception, what: str) -> NoReturn:
        # Only these two errors come before the first byte of a request is written.
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            now = self._clock()
            is_repeated = now < self._unreachable_until
            if not is_repeated:
                self._unreachable_until = now + _QUIET_SECONDS
            text = f"{self._base} cannot be reached: {_reason(error)} ({what})"
            raise Unreachable(text, is_repeated=is_repeated) from error
        text = f"{what}: {type(error).__name__}: {error}".rstrip(": ")
        raise OutcomeUnknown(text) from error

    async def _authorize(self) -> tuple[aiohttp.ClientSession, Mapping[str, str]]:
        session = self._session
        if session is None:
            raise RuntimeError("an Api is used within `async with`")
        headers = await self._connection.headers()
        if headers is not self._sent:
            # The session gets each token once, so that requests need no headers of their own.
            session.headers.pop("Authorization", None)
            session.headers.update(headers)
            self._sent = headers
        return session, headers

    def _to_refusal(
        self, answer: aiohttp.ClientResponse, text: bytes, sent: Mapping[str, str]
    ) -> ApiError:
        if answer.status == 401:
            self._connection.rejected(sent)
        return read_refusal(answer.status, text, _retry_after(answer))

    def _url(self, path: str, params: Params | None) -> URL:
        if params:
            return URL(f"{self._base}{path}?{urlencode(params)}", encoded=True)
        return self._origin.with_path(self._prefix + path, encoded=True)


class _Answer(aiohttp.ClientResponse):
    """An answer whose connection is closed at once if it is not read to its end.

    TLS would wait for the closing message of the other side, which may be dead.
    """

    def close(self) -> None:
        if self.connection is not None and self.connection.transport is not None:
            self.connection.transport.abort()
        super().close()


async def _read(answer: aiohttp.ClientResponse, largest: int | None) -> bytes:
    if largest is None:
        return await answer.read()
    parts: list[bytes] = []
    size = 0
    async for part in answer.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > largest:
            answer.close()
            raise TooLarge(f"GET {answer.url.raw_path}: the answer is larger than {largest} bytes")
    return b"".join(parts)


def _timeout(total: float, connect: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total, connect=min(total, connect))


def _withhold_unless(may_write: Callable[[], bool]) -> aiohttp.ClientMiddlewareType:
    # This is a middleware, because aiohttp repeats some requests itself, and these are writes too.
    async def ask(
        request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        if request.method != "GET" and not may_write():
            what = f"{request.method} {request.url.raw_path}"
            raise Withheld(f"{what}: not sent, because this client may not write any more")
        return await send(request)

    return ask


def _retry_after(answer: aiohttp.ClientResponse) -> float | None:
    """Returns after how many seconds to come back; None if the server does not say so.

    API servers give the time in seconds, not as a date.
    """
    text = answer.headers.get("Retry-After", "")
    # With other statuses the server may have acted already, and a write must not be repeated.
    if not text.isdecimal() or answer.status not in (429, 503):
        return None
    return min(float(text), _LONGEST_RETRY_AFTER)


def _reason(error: aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError) -> str:
    """Returns the system's reason: connection refused, no route, or an unknown name."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "it does not answer in time"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return str(error.certificate_error)
    cause = error.os_error
    if isinstance(cause, ConnectionRefusedError):
        # The event loop replaces the system's text by its own.
        return "connection refused"
    return cause.strerror or str(cause)


def _socket(address: Any) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Not all systems have all of these options.
    for option, value in (
        ("TCP_KEEPIDLE", _KEEP_ALIVE_IDLE),
        ("TCP_KEEPINTVL", _KEEP_ALIVE_INTERVAL),
        ("TCP_KEEPCNT", _KEEP_ALIVE_PROBES),
        ("TCP_USER_TIMEOUT", 1000 * (_KEEP_ALIVE_IDLE + _KEEP_ALIVE_INTERVAL * _KEEP_ALIVE_PROBES)),
    ):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made


async def _read_together(
    answer: aiohttp.ClientResponse, seconds: float, sleep: Callable[[float], Awaitable[None]]
) -> AsyncIterator[bytes]:
    """Yields the chunks of an answer. After each, it reads nothing for a while.

    Then it reads all that has arrived together. Waking up for each event costs more than reading.
    """
    async for chunk in answer.content.iter_any():
        yield chunk
        connection = answer.connection
        if connection is None or connection.protocol is None:
            continue
        connection.protocol.pause_reading()
        await sleep(seconds)
        if answer.connection is connection and connection.protocol is not None:
            connection.protocol.resume_reading()


async def split_lines(chunks: AsyncIterable[bytes], longest: int) -> AsyncIterator[bytes]:
    """Yields whole lines without their end. It leaves out a last line that was cut off.

    Raises TooLarge if a line is longer than `longest` bytes.
    """
    # Parts are joined once, so that a line of many chunks does not cost its length squared.
    begun: list[bytes] = []
    length = 0
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        begun.append(first)
        length += len(first)
        for other in others:
            line = b"".join(begun)
            begun, length = [other], len(other)
            if line:
                yield line
        if length > longest:
            raise TooLarge(f"a line is longer than {longest} bytes")
