"""Headers that stay good: when they are made anew, and when not."""

from __future__ import annotations

import asyncio

import pytest

from moorage.client import Connection, CredentialsError
from moorage.client.connection import REFRESH_SECONDS, Endpoint


class Source:
    """Tells one token after the other; an exception is raised instead."""

    def __init__(self, *tokens: str | Exception) -> None:
        self._tokens = list(tokens)
        self.asked: list[bool] = []
        self.now = 0.0
        self.connection = Connection(Endpoint("https://x"), self, lambda: self.now)

    async def __call__(self, rejected: bool) -> str:
        self.asked.append(rejected)
        await asyncio.sleep(0)
        token = self._tokens.pop(0)
        if isinstance(token, Exception):
            raise token
        return token


async def test_they_are_the_same_until_they_change() -> None:
    source = Source("a", "a", "b")
    first = await source.connection.headers()
    assert await source.connection.headers() is first
    source.now += REFRESH_SECONDS
    assert await source.connection.headers() is first
    assert source.asked == [False, False]
    source.now += REFRESH_SECONDS

    assert await source.connection.headers() == {"Authorization": "b"}
    assert first == {"Authorization": "a"}


async def test_rejected_ones_are_made_anew_at_once_and_only_once() -> None:
    source = Source("a", "b")
    first = await source.connection.headers()
    source.connection.rejected(first)

    got = await asyncio.gather(*(source.connection.headers() for _ in range(3)))
    source.connection.rejected(first)

    assert got == [{"Authorization": "b"}] * 3
    assert await source.connection.headers() == {"Authorization": "b"}
    assert source.asked == [False, True]


async def test_nobody_waits_for_new_ones_while_the_old_are_good() -> None:
    source = Source("a", "b")
    old = await source.connection.headers()
    source.now += REFRESH_SECONDS
    renewing = asyncio.create_task(source.connection.headers())
    await asyncio.sleep(0)

    assert await source.connection.headers() is old
    assert await renewing == {"Authorization": "b"}


async def test_the_old_ones_are_kept_if_there_are_no_new_ones() -> None:
    source = Source("a", CredentialsError("gone"), "b")
    await source.connection.headers()
    source.now += REFRESH_SECONDS
    assert await source.connection.headers() == {"Authorization": "a"}
    source.now += REFRESH_SECONDS

    assert await source.connection.headers() == {"Authorization": "b"}


async def test_none_at_all_is_an_error() -> None:
    source = Source(CredentialsError("none"), "a")
    with pytest.raises(CredentialsError, match="none"):
        await source.connection.headers()

    assert await source.connection.headers() == {"Authorization": "a"}


PLAIN = [
    "http://10.0.0.1:8080",
    "http://example.com",
    "http://localhost.example.com",
    "http://[2001:db8::1]",
    "http://127.0.0.1.example.com",
]


@pytest.mark.parametrize("server", PLAIN)
async def test_credentials_are_not_sent_over_plain_http(server: str) -> None:
    source = Source("Bearer a")
    source.connection.endpoint = Endpoint(server)

    with pytest.raises(CredentialsError, match="credentials are not sent over plain HTTP"):
        await source.connection.headers()


@pytest.mark.parametrize(
    "server",
    ["https://example.com", "http://127.0.0.1:8001", "http://localhost:8001", "http://[::1]:8001"],
)
async def test_credentials_are_sent_over_tls_and_within_the_machine(server: str) -> None:
    source = Source("Bearer a")
    source.connection.endpoint = Endpoint(server)

    assert await source.connection.headers() == {"Authorization": "Bearer a"}


async def test_a_proxy_would_read_what_is_sent_over_plain_http() -> None:
    source = Source("Bearer a")
    source.connection.endpoint = Endpoint("http://localhost:8001", proxy="http://10.0.0.1:3128")

    with pytest.raises(CredentialsError, match="an address of this machine without a proxy"):
        await source.connection.headers()


@pytest.mark.parametrize("server", PLAIN)
async def test_without_credentials_plain_http_will_do(server: str) -> None:
    source = Source("")
    source.connection.endpoint = Endpoint(server)

    assert await source.connection.headers() == {}
