"""Limits of a server's connections, tried by sockets that behave badly."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
import uvloop
from aiohttp import web

from moorage.app.connections import ConnectionLimits, accept_connections
from moorage.app.https_site import Certificates, CertificateSettings
from moorage.documents.errors import ListenError
from tests.patience import PATIENCE_SECONDS

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Open = Callable[..., Awaitable[Stream]]

ASK = b"GET / HTTP/1.1\r\nHost: it\r\n\r\n"
# So short that whoever sends nothing is gone at once.
HASTY = ConnectionLimits(request_seconds=0.05, handshake_seconds=0.05)


async def answer(_: web.Request) -> web.Response:
    return web.Response(text="here")


@asynccontextmanager
async def serving(
    limits: ConnectionLimits, context: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    app = web.Application()
    app.router.add_get("/", answer)
    async with accept_connections(app, ("127.0.0.1", 0), limits, context) as port:
        yield port


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    """Opens connections to a port of this machine, which are closed in the end."""
    made: list[asyncio.StreamWriter] = []

    async def connect(port: int, context: ssl.SSLContext | None = None) -> Stream:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        made.append(writer)
        return reader, writer

    yield connect
    for writer in made:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def asked(stream: Stream) -> bytes:
    """The answer to a request; empty if there is none."""
    reader, writer = stream
    try:
        writer.write(ASK)
        async with asyncio.timeout(PATIENCE_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
            return head + await reader.readexactly(len("here"))
    except (OSError, asyncio.IncompleteReadError):
        return b""


async def until_closed(stream: Stream) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                if not await stream[0].read(1024):
                    return
            except OSError:
                return


@pytest.mark.parametrize(
    "limits",
    [ConnectionLimits(most=3), ConnectionLimits(most_per_address=3)],
    ids=["in all", "per address"],
)
async def test_the_one_without_a_request_for_longest_makes_way(
    limits: ConnectionLimits, opened: Open
) -> None:
    async with serving(limits) as port:
        first, second, third = [await opened(port) for _ in range(3)]
        assert await asked(first)
        assert await asked(third)

        assert await asked(await opened(port))
        await until_closed(second)
        assert await asked(first)
        assert await asked(await opened(port))
        await until_closed(third)
        assert await asked(first)


@pytest.mark.parametrize(
    "limits",
    [ConnectionLimits(most=3), ConnectionLimits(most_per_address=3)],
    ids=["in all", "per address"],
)
async def test_no_answer_makes_way(limits: ConnectionLimits, opened: Open) -> None:
    may_answer, coming = asyncio.Event(), asyncio.Semaphore(0)

    async def answer_late(_: web.Request) -> web.Response:
        coming.release()
        await may_answer.wait()
        return web.Response(text="here")

    app = web.Application()
    app.router.add_get("/", answer_late)
    async with accept_connections(app, ("127.0.0.1", 0), limits) as port:
        asking = [asyncio.create_task(asked(await opened(port))) for _ in range(3)]
        for _ in asking:
            await coming.acquire()
        await until_closed(await opened(port))
        may_answer.set()

        assert all(await asyncio.gather(*asking))
        assert await asked(await opened(port))


async def test_bodies_have_their_time_and_are_no_answers_yet(opened: Open) -> None:
    limits = ConnectionLimits(most=1, body_seconds=0.05)
    async with serving(limits) as port:
        stream = await opened(port)
        stream[1].write(b"GET / HTTP/1.1\r\nHost: it\r\nContent-Length: 9\r\n\r\nhalf")
        await until_closed(stream)
        assert await asked(await opened(port))


@pytest.mark.parametrize(
    "request_head",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: it\r\nX: \xff\r\n\r\n", id="header"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: it\r\nX\xe9: 1\r\n\r\n", id="name"),
        pytest.param(b"GET /\xff HTTP/1.1\r\nHost: it\r\n\r\n", id="path"),
        pytest.param(b"GET /?a=\xff HTTP/1.1\r\nHost: it\r\n\r\n", id="query"),
        pytest.param(b"GET /%ff HTTP/1.1\r\nHost: it\r\n\r\n", id="escaped path"),
        pytest.param(b"ODD / HTTP/1.1\r\nHost: it\r\n\r\n", id="method"),
        pytest.param(b"HEAD /none HTTP/1.1\r\nHost: it\r\n\r\n", id="head of nothing"),
        pytest.param(b"GET / HTTP/9.9\r\nHost: it\r\n\r\n", id="version"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: it\r\nCookie: \xff=\xff\r\n\r\n", id="cookie"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: it\r\nContent-Length: x\r\n\r\n", id="length"),
    ],
)
async def test_odd_requests_are_the_fault_of_who_sends_them(
    request_head: bytes, opened: Open
) -> None:
    async with serving(ConnectionLimits()) as port:
        reader, writer = await opened(port)
        writer.write(request_head)
        async with asyncio.timeout(PATIENCE_SECONDS):
            status = (await reader.readline()).split()[1]

    assert status.startswith(b"4")


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: it\r\n"])
async def test_who_sends_no_whole_request_is_let_go(sent: bytes, opened: Open) -> None:
    async with serving(HASTY) as port:
        stream = await opened(port)
        stream[1].write(sent)
        await until_closed(stream)


@pytest.mark.parametrize("is_secret", [False, True], ids=["plain", "TLS"])
def test_it_does_so_on_the_loop_of_a_running_scheduler(is_secret: bool) -> None:
    """Whose transports are others than those of asyncio."""
    context = Certificates(CertificateSettings()).context if is_secret else None

    async def main() -> None:
        async with serving(HASTY, context) as port:
            stream = await asyncio.open_connection("127.0.0.1", port)
            await until_closed(stream)
            stream[1].close()

    uvloop.run(main())


async def test_who_sends_nothing_after_an_answer_is_let_go(opened: Open) -> None:
    async with serving(HASTY) as port:
        stream = await opened(port)
        await asked(stream)
        await until_closed(stream)


async def test_dripping_a_header_does_not_help(opened: Open) -> None:
    async with serving(HASTY) as port:
        reader, writer = await opened(port)
        writer.write(b"GET / HTTP/1.1\r\nX: ")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not reader.at_eof():
                writer.write(b"x")
                try:
                    await asyncio.wait_for(reader.read(1), 0.01)
                except TimeoutError:
                    continue
                except OSError:
                    return


async def test_handshakes_are_ended(opened: Open) -> None:
    context = Certificates(CertificateSettings()).context
    async with serving(ConnectionLimits(handshake_seconds=0.05), context) as port:
        await until_closed(await opened(port))


async def test_a_slow_answer_is_waited_for(opened: Open) -> None:
    async def slow(_: web.Request) -> web.Response:
        await asyncio.sleep(4 * HASTY.request_seconds)
        return web.Response(text="here")

    app = web.Application()
    app.router.add_get("/", slow)
    async with (
        accept_connections(app, ("127.0.0.1", 0), HASTY) as port,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        # On a busy machine a request may come too late; one that comes in time is answered.
        while not await asked(await opened(port)):
            pass


@pytest.mark.parametrize(
    ("host", "reason"),
    [("127.0.0.1", "address already in use"), ("192.0.2.1", "cannot assign requested address")],
)
async def test_an_address_that_cannot_be_had_is_named(host: str, reason: str) -> None:
    async with serving(ConnectionLimits()) as port:
        place = host, port
        with pytest.raises(ListenError, match=rf"cannot listen on {host}:{port}: {reason}"):
            async with accept_connections(web.Application(), place, ConnectionLimits()):
                pass
