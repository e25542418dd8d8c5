"""Asking extenders over real connections: slow, dead, dying, redirecting, endless, over TLS."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from pathlib import Path
from typing import Any

import pytest

from moorage.app.extender_client import (
    CallFailed,
    ExtenderClient,
    ExtenderUnusable,
    find_proxy,
    make_context,
)
from moorage.config import Extender
from moorage.config.duration import Duration
from moorage.config.extenders import EncodedBytes, ExtenderTLS
from tests.client_certificates import ClientAuthority
from tests.extender_server import Behaviour, Request, extender_server, http, saying
from tests.patience import PATIENCE_SECONDS

HOST = "extender.example"
ANSWER = b'{"NodeNames":["a"]}'


# By itself an extender has five seconds.
PATIENT = Duration.of_seconds(int(PATIENCE_SECONDS))


async def post(url: str, body: bytes = b"{}", **settings: Any) -> bytes:
    extender = Extender(url_prefix=url + "/", **{"http_timeout": PATIENT, **settings})
    async with ExtenderClient(extender, 4) as client:
        return await client.post("filter", body)


async def fail(url: str, **settings: Any) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        await post(url, **settings)
    return caught.value


def writing(*parts: bytes, close: bool = False) -> Behaviour:
    async def behave(request: Request, out: asyncio.StreamWriter) -> None:
        for part in parts:
            out.write(part)
            await out.drain()
        if close:
            out.close()

    return behave


async def never(request: Request, out: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def test_a_question_and_its_answer() -> None:
    async with extender_server(saying(ANSWER)) as server:
        assert await post(server.url, b'{"Pod":{}}') == ANSWER

    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("POST", "/filter", b'{"Pod":{}}')
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept-encoding"] == "gzip"


async def test_connections_are_kept() -> None:
    async with (
        extender_server(saying(ANSWER)) as server,
        ExtenderClient(Extender(url_prefix=server.url, http_timeout=PATIENT), 4) as client,
    ):
        for _ in range(3):
            await client.post("filter", b"{}")

    assert (len(server.requests), server.connections) == (3, 1)


@pytest.mark.parametrize("status", [201, 204, 400, 404, 500])
async def test_only_200_is_an_answer(status: int) -> None:
    async with extender_server(writing(http(status))) as server:
        error = await fail(server.url)

    assert str(error) == f"failed filter with extender at URL {server.url}/filter, code {status}"
    assert not error.is_unknown


async def test_dead() -> None:
    async with extender_server(saying(ANSWER)) as server:
        pass

    error = await fail(server.url)

    where = server.url.removeprefix("http://")
    told = f'Post "{server.url}/filter": dial tcp {where}: connect: connection refused'
    assert str(error) == told
    assert not error.is_unknown


async def fail_late(url: str, told: str) -> CallFailed:
    """Fails as a slow extender does; a busy machine may need a longer time limit to get there."""
    for milliseconds in (50, 500, 5_000, 50_000):
        error = await fail(url, http_timeout=Duration(milliseconds * 1_000_000))
        if told in str(error):
            break
    return error


async def test_slow() -> None:
    async with extender_server(never) as server:
        error = await fail_late(server.url, "awaiting headers")

    late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    assert str(error) == f'Post "{server.url}/filter": {late}'
    assert error.is_unknown


async def test_slow_in_the_middle_of_an_answer() -> None:
    half = http(200, ANSWER)[:-5]

    async def stop_half_way(request: Request, out: asyncio.StreamWriter) -> None:
        out.write(half)
        await out.drain()
        await asyncio.Event().wait()

    async with extender_server(stop_half_way) as server:
        error = await fail_late(server.url, "reading body")

    while_reading = "Client.Timeout or context cancellation while reading body"
    assert str(error) == f"context deadline exceeded ({while_reading})"


async def test_dying_in_the_middle_of_an_answer() -> None:
    async with extender_server(writing(http(200, ANSWER)[:-5], close=True)) as server:
        error = await fail(server.url)

    assert str(error) == "unexpected EOF"
    assert error.is_unknown


async def test_dying_before_an_answer() -> None:
    async with extender_server(writing(close=True)) as server:
        error = await fail(server.url)

    assert str(error) == f'Post "{server.url}/filter": EOF'
    assert error.is_unknown


async def test_no_http_at_all() -> None:
    async with extender_server(writing(b"garbage\r\n\r\n", close=True)) as server:
        error = await fail(server.url)

    assert str(error).startswith(f'Post "{server.url}/filter": ')


async def test_gzip() -> None:
    body = http(200, gzip.compress(ANSWER), "Content-Encoding: gzip")
    async with extender_server(writing(body)) as server:
        assert await post(server.url) == ANSWER


def redirecting(status: int, times: int) -> Behaviour:
    async def behave(request: Request, out: asyncio.StreamWriter) -> None:
        number = int(request.path.rpartition("/")[2]) if "next" in request.path else 0
        there = http(status, b"", f"Location: /next/{number + 1}")
        out.write(there if number < times else http(200, ANSWER))

    return behave


@pytest.mark.parametrize(("status", "method"), [(301, "GET"), (302, "GET"), (307, "POST")])
async def test_redirects_are_followed(status: int, method: str) -> None:
    async with extender_server(redirecting(status, 3)) as server:
        assert await post(server.url, b'{"a":1}') == ANSWER

    last = server.requests[-1]
    assert (len(server.requests), last.method) == (4, method)
    assert last.body == (b'{"a":1}' if method == "POST" else b"")


async def test_redirects_without_end() -> None:
    async with extender_server(redirecting(307, 100)) as server:
        error = await fail(server.url)

    assert str(error) == f'Post "{server.url}/filter": stopped after 10 redirects'


def pouring(megabytes: int, *, compressed: bool) -> tuple[Behaviour, list[int]]:
    """Pours out an answer, and notes how much of it was taken."""
    megabyte = b" " * 2**20
    poured: list[int] = []

    async def behave(request: Request, out: asyncio.StreamWriter) -> None:
        if compressed:
            out.write(http(200, gzip.compress(megabyte * megabytes), "Content-Encoding: gzip"))
            return
        out.write(f"HTTP/1.1 200 x\r\nContent-Length: {megabytes * 2**20}\r\n\r\n".encode())
        for _ in range(megabytes):
            out.write(megabyte)
            await out.drain()
            poured.append(1)

    return behave, poured


@pytest.mark.parametrize("compressed", [False, True])
async def test_an_answer_of_50_megabytes_is_not_read_to_its_end(compressed: bool) -> None:
    behave, poured = pouring(50, compressed=compressed)
    async with extender_server(behave) as server:
        error = await fail(server.url)

    assert str(error) == f"the answer is longer than {2 + 16 * 2**20} bytes"
    assert len(poured) < 40


async def test_an_answer_may_repeat_a_long_question() -> None:
    question = b'"' + b"x" * 20 * 2**20 + b'"'
    async with extender_server(saying(lambda request: request.body)) as server:
        assert await post(server.url, question) == question


# TLS


@pytest.fixture
def authority(tmp_path: Path) -> ClientAuthority:
    return ClientAuthority(tmp_path / "authority")


def server_context(authority: ClientAuthority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.sign("server", host=HOST))
    return context


@pytest.mark.parametrize(
    "settings",
    [
        {"enable_https": True},
        {"tls_config": ExtenderTLS(insecure=True)},
    ],
    ids=["enableHTTPS", "insecure"],
)
async def test_without_a_ca_nothing_is_checked_if_told_so(
    authority: ClientAuthority, settings: dict[str, Any]
) -> None:
    async with extender_server(saying(ANSWER), server_context(authority)) as server:
        assert await post(server.url, **settings) == ANSWER


async def test_a_certificate_that_nobody_vouches_for(authority: ClientAuthority) -> None:
    async with extender_server(saying(ANSWER), server_context(authority)) as server:
        error = await fail(server.url)

    why = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    assert str(error) == f'Post "{server.url}/filter": {why}'


@pytest.mark.parametrize("as_data", [False, True])
async def test_with_a_ca_the_name_must_be_right_too(
    authority: ClientAuthority, as_data: bool
) -> None:
    ca = (
        {"ca_data": EncodedBytes(authority.file.read_bytes()), "ca_file": "/nowhere"}
        if as_data
        else {"ca_file": str(authority.file)}
    )
    async with extender_server(saying(ANSWER), server_context(authority)) as server:
        named = ExtenderTLS(**ca, server_name=HOST)
        assert await post(server.url, tls_config=named, enable_https=True) == ANSWER
        error = await fail(server.url, tls_config=ExtenderTLS(**ca), enable_https=True)

    assert "tls: failed to verify certificate: x509: IP address mismatch" in str(error)


async def test_plain_http_where_tls_is_expected() -> None:
    async def speak_first(read: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        out.write(http(400))
        await read.read()
        out.close()

    async with await asyncio.start_server(speak_first, "127.0.0.1", 0) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        error = await fail(url)

    assert str(error) == f'Post "{url}/filter": http: server gave HTTP response to HTTPS client'


async def test_our_own_certificate_is_shown(authority: ClientAuthority) -> None:
    context = server_context(authority)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.file)
    cert, key = authority.sign("scheduler")
    shown = ExtenderTLS(insecure=True, cert_file=str(cert), key_file=str(key))
    async with extender_server(saying(ANSWER), context) as server:
        assert await post(server.url, tls_config=shown) == ANSWER
        await fail(server.url, tls_config=ExtenderTLS(insecure=True))


@pytest.mark.parametrize(
    ("tls", "problem"),
    [
        (
            ExtenderTLS(ca_file="/nowhere"),
            "extender x: tlsConfig.caFile: /nowhere: no such file or directory",
        ),
        (ExtenderTLS(ca_data=EncodedBytes(b"nothing")), "extender x: tlsConfig.caData: no cert"),
        (
            ExtenderTLS(cert_data=EncodedBytes(b"x"), key_data=EncodedBytes(b"y")),
            "extender x: tlsConfig: no certificate with its key",
        ),
    ],
    ids=["no file", "no certificate", "no pair"],
)
def test_certificates_that_cannot_be_used_are_told_at_the_start(
    tls: ExtenderTLS, problem: str
) -> None:
    with pytest.raises(ExtenderUnusable) as caught:
        make_context(Extender(url_prefix="x", tls_config=tls))

    assert str(caught.value).startswith(problem)


def test_there_is_no_proxy_to_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "inside.example")

    assert find_proxy("http://outside.example/filter") == "http://proxy:3128"
    assert find_proxy("http://inside.example/filter") is None
    assert find_proxy("http://127.0.0.1:1/filter") is None
    assert find_proxy("http://localhost/filter") is None
