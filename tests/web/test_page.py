"""The page over real sockets: what it serves, to whom, and that nothing can be written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import msgspec
import pytest

from moorage.web import PageAccess, StatusPage, hub
from tests.builders import node, pod
from tests.engine.driver import Driver, driver
from tests.patience import PATIENCE_SECONDS, open_session
from tests.web.mirror import Mirror
from tests.web.serving import serving

DATA = (
    *("api/snapshot", "api/stream", "api/find", "api/nodes/n"),
    *("api/pods/default/big", "api/explain/default/big"),
)

FILES = ("", "static/main.js", "static/style.css", "static/icon.svg")


@pytest.fixture
def driven() -> Driver:
    made = driver(node("n", cpu=4), pod("small", cpu=1), pod("big", cpu=9))
    made.settle()
    return made


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session(connector=aiohttp.TCPConnector(force_close=True)) as made:
        yield made


@pytest.mark.parametrize("path", [*FILES, *DATA, "api/none", "static/none.js"])
async def test_everything_is_under_a_strict_policy(
    driven: Driver, session: aiohttp.ClientSession, path: str
) -> None:
    async with serving(driven.engine) as address, session.get(address + path) as answer:
        policy = answer.headers["Content-Security-Policy"].split("; ")

        assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= {*policy}
        assert not any("unsafe" in each or "http" in each for each in policy)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", [*FILES, *DATA])
async def test_nothing_can_be_written(
    driven: Driver, session: aiohttp.ClientSession, path: str, method: str
) -> None:
    async with (
        serving(driven.engine) as address,
        session.request(method, address + path) as answer,
    ):
        assert answer.status == 405


@pytest.mark.parametrize(
    "path", ["api/none", "api/nodes/other", "api/pods/default/none", "static/../page.py", "none"]
)
async def test_what_is_not_there(driven: Driver, session: aiohttp.ClientSession, path: str) -> None:
    async with serving(driven.engine) as address, session.get(address + path) as answer:
        assert answer.status == 404


async def test_files_are_not_sent_twice(driven: Driver, session: aiohttp.ClientSession) -> None:
    async with serving(driven.engine) as address:
        async with session.get(address) as first:
            tag = first.headers["ETag"]
            assert first.content_type == "text/html"
        async with session.get(address, headers={"If-None-Match": tag}) as second:
            assert second.status == 304
        async with session.get(address.rstrip("/")) as redirected:
            assert str(redirected.url) == address


async def test_a_snapshot_and_a_stream_tell_the_same(
    driven: Driver, session: aiohttp.ClientSession
) -> None:
    whole, live = Mirror(), Mirror()
    async with serving(driven.engine) as address:
        async with session.get(address + "api/stream") as stream:
            await _until(stream, live, pods=1)
            driven.apply(pod("more", cpu=1))
            driven.settle()
            await _until(stream, live, pods=2)
        async with session.get(address + "api/snapshot") as snapshot:
            for message in await snapshot.json():
                whole.apply(message)

    assert whole.seen() == live.seen()
    assert [each[0] for each in whole.queue.values()] == ["default/big"]
    assert live.arrivals == [("default/more", 0)]
    assert live.figures["sample"][4] == 1


async def _until(stream: aiohttp.ClientResponse, mirror: Mirror, pods: int) -> None:
    while mirror.figures.get("pods") != pods or not mirror.nodes:
        mirror.apply_all([await asyncio.wait_for(stream.content.readline(), PATIENCE_SECONDS)])


async def test_details(driven: Driver, session: aiohttp.ClientSession) -> None:
    async with serving(driven.engine) as address:
        async with session.get(address + "api/nodes/n") as answer:
            about_node = await answer.json()
        async with session.get(address + "api/pods/default/big") as answer:
            waiting = await answer.json()
        async with session.get(address + "api/pods/default/small") as answer:
            running = await answer.json()
        async with session.get(address + "api/find?text=mal") as answer:
            found = await answer.json()

    cpu = {"name": "cpu", "requested": 1000, "allocatable": 4000}
    assert cpu in about_node["resources"]
    assert [each["name"] for each in about_node["pods"]] == ["small"]
    assert (waiting["state"], waiting["rejectedBy"]) == ("unschedulable", ["NodeResourcesFit"])
    assert waiting["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert running["runningOn"] == "n"
    assert found == {"nodes": [], "pods": ["default/small"]}


async def test_another_explanation_may_be_given(
    driven: Driver, session: aiohttp.ClientSession
) -> None:
    def explain(namespace: str, name: str) -> bytes | None:
        return msgspec.json.encode([namespace, name]) if name == "big" else None

    async with serving(driven.engine, explain=explain) as address:
        async with session.get(address + "api/pods/default/big") as answer:
            assert await answer.json() == ["default", "big"]
        async with session.get(address + "api/pods/default/small") as answer:
            assert answer.status == 404


async def test_there_is_an_end_to_viewers(
    driven: Driver, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "MOST_VIEWERS", 1)
    async with (
        serving(driven.engine) as address,
        session.get(address + "api/stream") as first,
        session.get(address + "api/stream") as second,
    ):
        assert (first.status, second.status) == (200, 503)


async def test_a_server_that_stops_lets_its_viewers_go(
    driven: Driver, session: aiohttp.ClientSession
) -> None:
    async with serving(driven.engine) as address:
        stream = await session.get(address + "api/stream")
        await stream.content.readline()

    # The context ended although somebody looked, and so does the stream.
    assert await asyncio.wait_for(stream.content.read(), PATIENCE_SECONDS) is not None
    stream.close()


async def test_who_may_enter(driven: Driver, session: aiohttp.ClientSession) -> None:
    page, entry = StatusPage(driven.engine), PageAccess()
    async with serving(driven.engine, page=page, guards=[entry.guard(page, "/ui/")]) as address:
        for path in FILES:
            async with session.get(address + path) as answer:
                assert answer.status == 200
        for path in (*DATA, "none"):
            async with session.get(address + path) as answer:
                assert answer.status == 401
        bearer = {"Authorization": f"Bearer {entry.token}"}
        async with session.get(address + "api/nodes/n", headers=bearer) as answer:
            assert answer.status == 200


async def test_a_code_lets_browsers_in_for_a_while(driven: Driver) -> None:
    now = 0.0
    page, entry = StatusPage(driven.engine), PageAccess(clock=lambda: now)
    jars = [aiohttp.CookieJar(unsafe=True) for _ in range(2)]
    async with (
        serving(driven.engine, page=page, guards=[entry.guard(page, "/ui/")]) as address,
        open_session(cookie_jar=jars[0]) as first,
        open_session(cookie_jar=jars[1]) as second,
    ):
        async with first.get(address + entry.path) as answer:
            assert (answer.status, str(answer.url)) == (200, address)
            cookie = answer.history[0].headers["Set-Cookie"]
        now = 1_000.0
        for session, status in ((first, 200), (second, 401)):
            # Either gets to the page: one sees it, the other is asked for the token there.
            for path in (entry.path, "enter/wrong"):
                async with session.get(address + path) as answer:
                    assert (answer.status, str(answer.url)) == (200, address)
            async with session.get(address + "api/nodes/n") as answer:
                assert answer.status == status

    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie


async def test_a_pod_is_explained_again_only_if_something_changed(
    driven: Driver, session: aiohttp.ClientSession
) -> None:
    async with serving(driven.engine) as address:
        path = address + "api/pods/default/big"
        async with session.get(path) as first:
            tag = first.headers["ETag"]
        async with session.get(path, headers={"If-None-Match": tag}) as same:
            assert (same.status, await same.read()) == (304, b"")
        driven.apply(node("m", cpu=2))
        async with session.get(path, headers={"If-None-Match": tag}) as other:
            assert other.status == 200
            assert other.headers["ETag"] != tag
