"""Requests: what is sent, what comes back, and what each way of failing means."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from aiohttp.client_proto import ResponseHandler

from moorage.client import (
    JSON_PATCH,
    MERGE_PATCH,
    Api,
    ApiError,
    Connection,
    OutcomeUnknown,
    Unreachable,
)
from moorage.client.api import SMALL_PATH
from moorage.client.api_errors import TooLarge, Withheld
from moorage.client.connection import Endpoint
from moorage.client.pacing import FIRST_CONNECTIONS
from tests.client.serving import Naps, answers, asking, hang_up, serving, status, stream

OK = b'{"kind":"Pod"}'


def ok() -> web.Response:
    return web.Response(body=OK, status=201)


async def test_what_is_sent() -> None:
    handler, seen = answers(ok(), ok(), ok(), ok(), ok())

    async with asking(handler, user_agent="moorage/test") as api:
        await api.get("/api/v1/pods", {"limit": 500, "fieldSelector": "spec.nodeName="})
        await api.post("/api/v1/namespaces/x/pods/a/binding", b"{}", {"dryRun": "All"})
        await api.put("/api/v1/x", b"{}")
        await api.patch("/api/v1/x", b"[]", JSON_PATCH)
        await api.delete("/api/v1/x", b'{"gracePeriodSeconds":0}')

    assert [(each.method, each.rel_url.raw_path_qs) for each in seen] == [
        ("GET", "/api/v1/pods?limit=500&fieldSelector=spec.nodeName%3D"),
        ("POST", "/api/v1/namespaces/x/pods/a/binding?dryRun=All"),
        ("PUT", "/api/v1/x"),
        ("PATCH", "/api/v1/x"),
        ("DELETE", "/api/v1/x"),
    ]
    assert [each.headers["Content-Type"] for each in seen[1:]] == [
        "application/json",
        "application/json",
        JSON_PATCH,
        "application/json",
    ]
    assert {each.headers["User-Agent"] for each in seen} == {"moorage/test"}
    assert {each.headers["Accept-Encoding"] for each in seen} == {"identity"}
    assert await seen[4].read() == b'{"gracePeriodSeconds":0}'


async def test_one_connection_serves_one_request_after_the_other() -> None:
    handler, seen = answers(ok(), ok(), ok())

    async with asking(handler) as api:
        for _ in range(3):
            assert await api.post("/x", b"{}") == OK

    assert len({each.transport for each in seen}) == 1


async def test_a_server_may_live_below_a_path() -> None:
    handler, seen = answers(ok(), ok())

    async with (
        serving(handler) as server,
        Api(Connection(Endpoint(f"{server}/k8s/clusters/c-1/"))) as api,
    ):
        await api.get("/api/v1/pods")
        await api.get("/api/v1/pods", {"limit": 1})

    assert [each.path for each in seen] == ["/k8s/clusters/c-1/api/v1/pods"] * 2


@pytest.mark.parametrize(
    ("answer", "told", "is_what"),
    [
        pytest.param(
            status(409, "Conflict", "changed"), "changed (409 Conflict)", "is_conflict", id="409"
        ),
        pytest.param(
            status(409, "AlreadyExists", "there"),
            "there (409 AlreadyExists)",
            "is_already_exists",
            id="409 on create",
        ),
        pytest.param(
            status(404, "NotFound", "none"), "none (404 NotFound)", "is_not_found", id="404"
        ),
        pytest.param(status(410, "Expired", "old"), "old (410 Expired)", "is_gone", id="410"),
        pytest.param(
            status(403, "Forbidden", "no"), "no (403 Forbidden)", "is_forbidden", id="403"
        ),
        pytest.param(status(422, "Invalid", "bad"), "bad (422 Invalid)", "is_invalid", id="422"),
        pytest.param(
            web.Response(status=502, text="<html>" + "x" * 1000),
            "<html>" + "x" * 294 + " (502 BadGateway)",
            "is_server_error",
            id="a proxy's page is told in part",
        ),
        pytest.param(
            web.Response(status=429, text=""),
            "no message (429 TooManyRequests)",
            "is_too_many_requests",
            id="429 that does not say when to come back",
        ),
    ],
)
async def test_refusals(answer: web.Response, told: str, is_what: str) -> None:
    handler, seen = answers(answer)

    async with asking(handler) as api:
        with pytest.raises(ApiError) as caught:
            await api.post("/x", b"{}")

    assert str(caught.value) == told
    assert getattr(caught.value, is_what)
    kinds = [name for name in vars(ApiError) if name.startswith("is_")]
    assert [name for name in kinds if getattr(caught.value, name)] == [is_what]
    assert len(seen) == 1


@pytest.mark.parametrize("code", [429, 503])
async def test_who_says_when_to_come_back_is_asked_again(code: int) -> None:
    handler, seen = answers(status(code, Retry_After="7"), status(code, Retry_After="3600"), ok())
    naps = Naps()

    async with asking(handler, sleep=naps) as api:
        assert await api.post("/x", b"body") == OK

    assert naps.taken == [7.0, 60.0]
    assert [await each.read() for each in seen] == [b"body"] * 3


async def test_it_gives_up_in_the_end() -> None:
    handler, seen = answers(*(status(429, Retry_After="1") for _ in range(20)))

    async with asking(handler, sleep=Naps()) as api:
        with pytest.raises(ApiError) as caught:
            await api.get("/x")

    assert caught.value.retry_after == 1.0
    assert len(seen) == 11


async def test_a_write_that_may_have_happened_is_not_repeated() -> None:
    """504 with Retry-After is what a server says when its storage did not answer in time."""
    handler, seen = answers(status(504, "Timeout", Retry_After="1"))

    async with asking(handler, sleep=Naps()) as api:
        with pytest.raises(ApiError):
            await api.post("/x", b"{}")

    assert len(seen) == 1


async def test_an_answer_lost_after_the_server_acted() -> None:
    done: list[bytes] = []

    async def act_and_hang_up(request: web.BaseRequest) -> web.StreamResponse:
        done.append(await request.read())
        hang_up(request)
        return web.Response()

    async with asking(act_and_hang_up) as api:
        with pytest.raises(OutcomeUnknown, match=r"^POST /x: "):
            await api.post("/x", b"bind")

    assert done == [b"bind"]


async def test_an_answer_that_never_comes() -> None:
    release = asyncio.Event()

    async def wait(request: web.BaseRequest) -> web.StreamResponse:
        await release.wait()
        return web.Response()

    async with asking(wait, timeout=0.05) as api:
        with pytest.raises(OutcomeUnknown):
            await api.post("/x", b"{}")
        release.set()


async def test_nobody_there() -> None:
    handler, _ = answers()
    async with serving(handler) as server:
        pass

    async with Api(Connection(Endpoint(server))) as api:
        reached = rf"^{server} cannot be reached: connection refused \({{}}\)$"
        with pytest.raises(Unreachable, match=reached.format("POST /x")) as first:
            await api.post("/x", b"{}")
        with pytest.raises(Unreachable, match=reached.format("watch /x")) as second:
            await anext(api.watch("/x", {}))

    # A log says so once.
    assert (first.value.is_repeated, second.value.is_repeated) == (False, True)


async def test_a_token_is_renewed_when_it_is_rejected() -> None:
    tokens = iter(["Bearer old", "Bearer new"])

    async def authorize(rejected: bool) -> str:
        return next(tokens)

    async def guard(request: web.BaseRequest) -> web.StreamResponse:
        return ok() if request.headers["Authorization"] == "Bearer new" else status(401)

    async with (
        serving(guard) as server,
        Api(Connection(Endpoint(server), authorize)) as api,
    ):
        assert await api.get("/x") == OK


async def test_a_token_that_stays_rejected_is_told() -> None:
    asked: list[bool] = []

    async def authorize(rejected: bool) -> str:
        asked.append(rejected)
        return "Bearer bad"

    handler, seen = answers(*(status(401, "Unauthorized", "who?") for _ in range(3)))
    async with (
        serving(handler) as server,
        Api(Connection(Endpoint(server), authorize)) as api,
    ):
        with pytest.raises(ApiError, match=r"^who\?"):
            await api.get("/x")

    assert asked == [False, True]
    assert len(seen) == 2


async def test_refusals_slow_all_requests_down_and_successes_speed_up_again() -> None:
    under_way = most = 0
    refusing = True

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return status(429, Retry_After="1") if refusing else ok()

    async def nap(seconds: float) -> None:
        nonlocal refusing
        refusing = False
        await asyncio.sleep(0)

    async with asking(handler, sleep=nap, most_connections=8) as api:
        await asyncio.gather(*(api.get("/x") for _ in range(8)))
        assert api.pace.allowed < 8
        for _ in range(60):
            await api.get("/x")
        assert api.pace.allowed == 8


async def test_connections_are_opened_while_requests_wait_for_others() -> None:
    """The first take long; those that wait for them get connections that are open already."""
    count = FIRST_CONNECTIONS + 2
    paths: list[str] = []
    all_came = asyncio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        paths.append(request.path)
        if request.path == "/x":
            if paths.count("/x") == count:
                all_came.set()
            await all_came.wait()
        return ok()

    async with asking(handler) as api:
        await asyncio.gather(*(api.get("/x") for _ in range(count)))

    assert paths[:FIRST_CONNECTIONS] == ["/x"] * FIRST_CONNECTIONS
    assert paths[FIRST_CONNECTIONS] == "/version"
    assert paths.count("/x") == count


async def test_a_rate_for_those_who_want_one() -> None:
    handler, _ = answers(*(ok() for _ in range(5)))
    naps = Naps()

    async with asking(handler, qps=2, burst=3, clock=lambda: 0.0, sleep=naps) as api:
        for _ in range(5):
            await api.get("/x")

    assert naps.taken == [0.5, 1.0]


async def test_what_keeps_connections_open_does_not_count_for_the_rate() -> None:
    handler, _ = answers(*(ok() for _ in range(5)))
    naps = Naps()

    async with asking(handler, qps=2, burst=1, clock=lambda: 0.0, sleep=naps) as api:
        for _ in range(4):
            await api.get(SMALL_PATH)
        await api.get("/x")

    assert naps.taken == []


@pytest.mark.parametrize("pause", [0.0, 0.001])
async def test_a_watch_gives_whole_lines(pause: float) -> None:
    big = b"x" * 1_000_000

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        assert request.query["resourceVersion"] == "7"
        return await stream(request, [b"one\ntw", b"o\n\n", big, b"\nthr", b"ee"])

    async with asking(handler, watch_pause=pause) as api:
        assert [line async for line in api.watch("/x", {"resourceVersion": "7"})] == [
            b"one",
            b"two",
            big,
        ]


async def test_what_comes_in_a_pause_is_read_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """So nobody is woken for each event."""
    pausing, sent, received = asyncio.Event(), asyncio.Event(), []
    take = ResponseHandler.data_received

    def note(self: ResponseHandler, data: bytes) -> None:
        received.append(pausing.is_set() and not sent.is_set())
        take(self, data)

    monkeypatch.setattr(ResponseHandler, "data_received", note)

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = await stream(request, [b"0\n"])
        await pausing.wait()
        for at in range(1, 5):
            await response.write(b"%d\n" % at)
            await asyncio.sleep(0.01)
        sent.set()
        return response

    async def sleep(seconds: float) -> None:
        pausing.set()
        await sent.wait()

    async with asking(handler, watch_pause=9.0, sleep=sleep) as api:
        lines = [line async for line in api.watch("/x", {})]

    assert lines == [b"0", b"1", b"2", b"3", b"4"]
    assert not any(received)


async def test_a_watch_that_is_cut_off() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = await stream(request, [b"one\ntw"])
        hang_up(request)
        return response

    async with asking(handler) as api:
        lines = api.watch("/x", {})
        assert await anext(lines) == b"one"
        with pytest.raises(OutcomeUnknown, match=r"^watch /x: "):
            await anext(lines)


async def test_a_watch_that_falls_silent_ends() -> None:
    release = asyncio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = await stream(request, [b"one\n"])
        await release.wait()
        return response

    async with asking(handler, silence=0.05) as api:
        lines = api.watch("/x", {})
        assert await anext(lines) == b"one"
        assert [each async for each in lines] == []
        release.set()


async def test_a_watch_that_is_not_answered_at_all_has_failed() -> None:
    release = asyncio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        await release.wait()
        return await stream(request, [])

    async with asking(handler, silence=0.05) as api:
        with pytest.raises(OutcomeUnknown):
            await anext(api.watch("/x", {}))
        release.set()


async def test_a_line_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moorage.client.api._LONGEST_LINE", 1000)

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return await stream(request, [b"x" * 999 + b"\n", b"y" * 1001])

    async with asking(handler) as api:
        lines = api.watch("/x", {})
        assert await anext(lines) == b"x" * 999
        with pytest.raises(TooLarge, match="longer than 1000 bytes"):
            await anext(lines)


async def test_a_page_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moorage.client.api._LARGEST_PAGE", 1000)

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return await stream(request, [b"x" * 1001])

    async with asking(handler) as api:
        with pytest.raises(TooLarge, match="larger than 1000 bytes"):
            await api.get("/x", {"limit": 2})
        assert len(await api.get("/x", {"limit": 1})) == 1001
        assert len(await api.get("/x")) == 1001


async def test_a_watch_that_is_refused() -> None:
    handler, _ = answers(status(410, "Expired", "too old"))

    async with asking(handler) as api:
        with pytest.raises(ApiError) as caught:
            await anext(api.watch("/x", {}))

    assert caught.value.is_gone


async def test_watches_do_not_take_the_room_of_requests() -> None:
    release = asyncio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/watch":
            response = await stream(request, [b"one\n"])
            await release.wait()
            return response
        return ok()

    async with asking(handler, most_connections=1) as api:
        watches = [api.watch("/watch", {}) for _ in range(3)]
        for watch in watches:
            assert await anext(watch) == b"one"
        assert await api.get("/x") == OK
        release.set()
        for watch in watches:
            await watch.aclose()


async def test_it_must_be_opened() -> None:
    api = Api(Connection(Endpoint("http://127.0.0.1:1")))
    with pytest.raises(RuntimeError, match="async with"):
        await api.get("/x")


@pytest.mark.parametrize("verb", ["post", "put", "patch", "delete"])
async def test_who_may_not_write_any_more_only_reads(verb: str) -> None:
    handler, seen = answers(ok())
    given = {"patch": (b"{}", MERGE_PATCH), "delete": ()}.get(verb, (b"{}",))

    async with asking(handler, may_write=lambda: False) as api:
        with pytest.raises(Withheld):
            await getattr(api, verb)("/x", *given)
        await api.get("/x")

    assert [each.method for each in seen] == ["GET"]


async def test_a_write_is_not_repeated_by_who_may_not_write_any_more() -> None:
    """It was refused for the time being, and the lead was lost before it was sent again."""
    leads = True
    handler, seen = answers(status(429, Retry_After="7"), ok())

    async def lose(seconds: float) -> None:
        nonlocal leads
        leads = False

    async with asking(handler, sleep=lose, may_write=lambda: leads) as api:
        with pytest.raises(Withheld):
            await api.post("/x", b"{}")

    assert len(seen) == 1


async def test_what_aiohttp_repeats_by_itself_is_asked_about_too() -> None:
    asked = 0
    handler, seen = answers(ok(), OSError("gone"), ok())

    def may_write() -> bool:
        nonlocal asked
        asked += 1
        return asked < 3

    async with asking(handler, may_write=may_write) as api:
        await api.delete("/x")
        with pytest.raises(Withheld):
            await api.delete("/x")

    assert len(seen) == 2


async def test_writes_have_a_time_of_their_own() -> None:
    late = asyncio.Event()

    async def wait(request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "POST":
            await late.wait()
        return ok()

    async with asking(wait, write_timeout=0.05) as api:
        # Now there is a connection: what is left to wait for is the answer.
        assert await api.get("/x") == OK
        with pytest.raises(OutcomeUnknown):
            await api.post("/x", b"{}")
        late.set()
        assert await api.get("/x") == OK
