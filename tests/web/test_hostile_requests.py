"""Requests that no browser sends, by raw sockets: none is answered by an error of ours."""

from __future__ import annotations

import asyncio

import pytest

from moorage.web import PageAccess, StatusPage
from tests.builders import node, pod
from tests.engine.driver import Driver, driver
from tests.patience import PATIENCE_SECONDS
from tests.web.serving import serving

# Only a hang takes that long.


@pytest.fixture
def driven() -> Driver:
    made = driver(node("n", cpu=4), pod("big", cpu=9))
    made.settle()
    return made


def request(target: bytes, *headers: bytes, method: bytes = b"GET") -> bytes:
    lines = [b"%b %b HTTP/1.1" % (method, target), b"Host: it", b"Connection: close", *headers]
    return b"\r\n".join([*lines, b"", b""])


async def send(address: str, text: bytes) -> bytes:
    """The first line of the answer; empty if there is none."""
    port = int(address.split(":")[2].split("/")[0])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(text)
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await reader.readline()
    except ConnectionError:
        return b""
    finally:
        writer.close()


BEARERS = (b"\xff\xfe", b"Bearer \xff\xfe", b"Bearer ", b"Bearer " + b"x" * 7000, b"\xc3\xa9")
TARGETS = (
    *(
        b"/ui/api/nodes/\xff",
        b"/ui/api/nodes/%ff",
        b"/ui/api/nodes/%00",
        b"/ui/api/nodes/%ed%a0%80",
    ),
    *(b"/ui/api/pods/\xff/\xfe", b"/ui/api/pods/%ff/%fe", b"/ui/api/explain/%ff/%00"),
    *(b"/ui/api/explain/\xff/\xff", b"/ui/api/explain/default/big?node=\xff"),
    *(
        b"/ui/api/explain/default/big?node=%ed%a0%80",
        b"/ui/api/find?text=%ff",
        b"/ui/api/find?text=\xff",
    ),
    *(
        b"/ui/api/find?text=%00&text=%00",
        b"/ui/api/find?" + b"a=1&" * 1500,
        b"/ui/api/find?text=[(",
    ),
    *(
        b"/ui/static/../../page.py",
        b"/ui/static/%2e%2e/page.py",
        b"/ui//api/find",
        b"/ui/enter/\xff",
    ),
    *(b"http://[::1/ui/", b"//ui/", b"*", b"/ui/%", b"/ui/enter/", b"http://it:99999999/ui/"),
)
HEADERS = (
    *(b"If-None-Match: \xff", b'If-None-Match: "', b"If-None-Match: " + b'"a",' * 1500),
    *(b"Cookie: moorage-page=\xff\xfe", b"Cookie: =;;=\xff", b"Cookie: " + b"a=b; " * 1500),
    *(b"Host: \xff", b"Accept-Encoding: \xff", b"If-Modified-Since: never", b"Range: bytes=9-1"),
    *(b"Content-Length: -1", b"Content-Length: 99999999999999999999", b"Transfer-Encoding: \xff"),
    *(b"Content-Encoding: gzip\r\nContent-Length: 3", b"Upgrade: websocket\r\nConnection: Upgrade"),
    b"Expect: nonsense",
)


def is_ours(line: bytes) -> bool:
    """Whether a request was answered by an error of the server."""
    return line.split()[1:2] == [b"500"]


async def test_odd_targets_at_the_page(driven: Driver) -> None:
    async with serving(driven.engine) as address:
        for target in TARGETS:
            assert not is_ours(await send(address, request(target))), target
        assert b"200" in await send(address, request(b"/ui/"))


@pytest.mark.parametrize("target", [b"/ui/", b"/ui/static/main.js", b"/ui/api/find?text=n"])
async def test_odd_headers_at_the_page(driven: Driver, target: bytes) -> None:
    async with serving(driven.engine) as address:
        for header in HEADERS:
            assert not is_ours(await send(address, request(target, header))), header


@pytest.mark.parametrize(
    "header",
    [*(b"Authorization: " + each for each in BEARERS), b"Cookie: moorage-page=\xff\xfe"],
)
async def test_odd_requests_at_the_entry(driven: Driver, header: bytes) -> None:
    page, entry = StatusPage(driven.engine), PageAccess()
    async with serving(driven.engine, page=page, guards=[entry.guard(page, "/ui/")]) as address:
        for target in (b"/ui/api/find", *TARGETS):
            line = await send(address, request(target, header))

            assert line.split()[1:2] not in ([b"200"], [b"500"]), target


@pytest.mark.parametrize("method", [b"HEAD", b"POST", b"OPTIONS", b"NONSENSE"])
async def test_only_a_get_opens_the_page(driven: Driver, method: bytes) -> None:
    page, entry = StatusPage(driven.engine), PageAccess()
    async with serving(driven.engine, page=page, guards=[entry.guard(page, "/ui/")]) as address:
        target = b"/ui/" + entry.path.encode()

        assert b"303" not in await send(address, request(target, method=method))
        assert b"303" in await send(address, request(target))
