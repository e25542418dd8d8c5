"""Listing and watching for ever, through everything that an API server may do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from typing import Any, cast

import pytest

from moorage.client import Api, ApiError, CredentialsError, OutcomeUnknown, Reflector, Unreachable
from moorage.client.api_errors import TooLarge
from moorage.objects.kinds import KINDS
from tests.client.serving import Naps
from tests.client.sinks import Told, line, page, pod

GONE = ApiError(410, "Expired", "too old")
CUT = OutcomeUnknown("cut off")
ALL_IS_WELL = page(pod("a", 1), version=10)


class Watch(list[bytes | Exception]):
    """The lines of a watch, and maybe how it fails; it ends `seconds` after it began."""

    def __init__(self, *lines: bytes | Exception, seconds: float = 0) -> None:
        super().__init__(lines)
        self.seconds = seconds


class Script:
    """An API that gives these answers in turn, then none."""

    def __init__(self, *answers: bytes | Exception | Watch) -> None:
        self._answers: Iterator[bytes | Exception | Watch] = iter(answers)
        self.asked: list[dict[str, Any]] = []
        self.over = asyncio.Event()
        self.now = 0.0

    async def get(self, path: str, params: dict[str, Any]) -> bytes:
        answer = await self._next(params)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, bytes), f"a list was asked for: {params}"
        return answer

    async def watch(self, path: str, params: dict[str, Any]) -> AsyncGenerator[bytes, None]:
        answer = await self._next(params)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Watch), f"a watch was asked for: {params}"
        for each in answer:
            if isinstance(each, Exception):
                raise each
            yield each
        self.now += answer.seconds

    async def _next(self, params: dict[str, Any]) -> bytes | Exception | Watch:
        self.asked.append(dict(params))
        answer = next(self._answers, None)
        if answer is None:
            self.over.set()
            return await asyncio.get_running_loop().create_future()
        return answer

    @property
    def watched_from(self) -> list[str]:
        return [each["resourceVersion"] for each in self.asked if "watch" in each]


class Played:
    """What came of a script."""

    def __init__(self, *answers: bytes | Exception | Watch, essential: bool = True) -> None:
        self.script = Script(*answers)
        self.sink = Told()
        self.naps = Naps()
        self.reflector = Reflector(
            cast(Api, self.script),
            KINDS["Pod"],
            self.sink,
            params={"fieldSelector": "status.phase!=Failed"},
            essential=essential,
            clock=lambda: self.script.now,
            sleep=self.naps,
            chance=lambda: 0.5,
        )

    async def play(self) -> Played:
        running = asyncio.create_task(self.reflector.run())
        over = asyncio.create_task(self.script.over.wait())
        await asyncio.wait([running, over], return_when=asyncio.FIRST_COMPLETED)
        over.cancel()
        if running.done():
            await running
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        return self


async def played(*answers: bytes | Exception | Watch) -> Played:
    return await Played(*answers).play()


async def test_it_lists_page_by_page_and_then_watches() -> None:
    got = await played(
        page(pod("a", 1), version=10, go_on="token"),
        page(pod("b", 2), version=10),
        Watch(line("ADDED", pod("c", 11))),
    )

    assert got.sink.take() == ["+x/a@1", "+x/b@2", "+x/c@11"]
    selector = {"fieldSelector": "status.phase!=Failed"}
    assert got.script.asked[:3] == [
        {**selector, "limit": 500},
        {**selector, "limit": 500, "continue": "token"},
        {
            **selector,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": "10",
            "timeoutSeconds": 450,
        },
    ]
    assert got.naps.taken == []


async def test_it_is_in_step_after_the_last_page() -> None:
    half = await played(page(pod("a", 1), go_on="token"))
    assert not half.reflector.synced.is_set()

    whole = await played(page(pod("a", 1), go_on="token"), page(pod("b", 2)))
    assert whole.reflector.synced.is_set()


async def test_a_watch_that_ends_is_resumed_at_once_where_it_was() -> None:
    got = await played(
        ALL_IS_WELL,
        Watch(line("MODIFIED", pod("a", 11)), seconds=400),
        Watch(line("BOOKMARK", {"metadata": {"resourceVersion": "20"}})),
        Watch(seconds=400),
    )

    assert got.script.watched_from == ["10", "11", "20", "20"]
    assert got.sink.take() == ["+x/a@1", "+x/a@11"]
    assert got.naps.taken == []


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(GONE, id="as an answer"),
        pytest.param(
            Watch(line("MODIFIED", pod("a", 11)), line("ERROR", {"code": 410, "metadata": {}})),
            id="as a line",
        ),
    ],
)
async def test_when_the_version_is_gone_the_differences_are_told(gone: Exception | Watch) -> None:
    got = await played(
        page(pod("a", 1), pod("b", 2), version=10),
        gone,
        page(pod("a", 11), pod("c", 12), version=30),
    )

    assert got.sink.take() == ["+x/a@1", "+x/b@2", "+x/a@11", "+x/c@12", "-x/b@2"]
    assert got.script.watched_from == ["10", "30"]
    assert got.naps.taken == []


async def test_a_version_that_is_gone_again_and_again_is_not_asked_for_in_haste() -> None:
    got = await played(ALL_IS_WELL, GONE, ALL_IS_WELL, GONE, ALL_IS_WELL, GONE, ALL_IS_WELL)

    assert len(got.naps.taken) == 2


async def test_a_list_that_took_too_long_comes_in_one_piece() -> None:
    got = await played(
        page(pod("a", 1), pod("b", 2), version=10, go_on="token"),
        GONE,
        page(pod("a", 1), pod("c", 3), version=20),
    )

    assert got.sink.take() == ["+x/a@1", "+x/b@2", "+x/c@3", "-x/b@2"]
    assert [each.get("limit") for each in got.script.asked] == [500, 500, None, None]
    assert "continue" not in got.script.asked[2]
    assert got.script.watched_from == ["20"]


async def test_a_list_that_is_gone_even_so_is_asked_for_later() -> None:
    got = await played(page(go_on="t"), GONE, page(go_on="t"), GONE, GONE, ALL_IS_WELL)

    assert got.naps.taken == [pytest.approx(1.5)]
    assert got.sink.take() == ["+x/a@1"]


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(CUT, id="before the first line"),
        pytest.param(Watch(CUT), id="while waiting"),
        pytest.param(Unreachable("nobody there"), id="nobody there"),
        pytest.param(ApiError(500, "InternalError", "oops"), id="server error"),
        pytest.param(CredentialsError("no token"), id="no credentials"),
        pytest.param(Watch(line("ERROR", {"code": 500, "message": "etcd"})), id="error as a line"),
        pytest.param(Watch(), id="ended at once"),
    ],
)
async def test_after_a_failure_the_watch_is_resumed_after_a_while(
    failure: Exception | Watch,
) -> None:
    got = await played(ALL_IS_WELL, failure, failure, Watch(line("ADDED", pod("b", 12)), CUT))

    assert got.script.watched_from == ["10", "10", "10", "12"]
    assert got.naps.taken == pytest.approx([0.75, 1.5, 0.75])
    assert got.sink.take() == ["+x/a@1", "+x/b@12"]
    assert got.reflector.problem == "cut off"


async def test_what_was_wrong_is_forgotten_when_all_is_well() -> None:
    got = await played(CUT, ALL_IS_WELL)

    assert got.reflector.problem == ""


async def test_pauses_grow_up_to_a_bound() -> None:
    got = await played(*[CUT] * 12)

    assert got.naps.taken[:4] == pytest.approx([0.75, 1.5, 3, 6])
    assert got.naps.taken[-1] == pytest.approx(45)


async def test_a_watch_that_lasted_makes_up_for_failures() -> None:
    got = await played(ALL_IS_WELL, CUT, CUT, Watch(seconds=60), CUT)

    assert got.naps.taken == pytest.approx([0.75, 1.5, 0.75])


async def test_a_server_that_says_when_to_come_back_is_obeyed() -> None:
    got = await played(ALL_IS_WELL, ApiError(429, "TooManyRequests", "busy", retry_after=20))

    assert got.naps.taken == [20]


async def test_a_version_that_the_server_does_not_understand() -> None:
    got = await played(ALL_IS_WELL, ApiError(400, "BadRequest", "rv?"), page(version=5))

    assert got.sink.take() == ["+x/a@1", "-x/a@1"]
    assert got.script.watched_from == ["10", "5"]


async def test_garbage_has_the_kind_listed_at_once_so_that_nothing_stays_hidden() -> None:
    got = await played(
        ALL_IS_WELL,
        Watch(b"garbage", line("MODIFIED", pod("a", 12)), seconds=400),
        page(pod("a", 12), pod("b", 11), version=20),
        Watch(seconds=400),
    )

    assert got.sink.take() == ["+x/a@1", "?Pod ", "+x/a@12", "+x/b@11"]
    assert got.script.watched_from == ["10", "20", "20"]
    assert got.naps.taken == []


async def test_garbage_again_and_again_does_not_keep_us_listing() -> None:
    got = await played(ALL_IS_WELL, Watch(b"garbage"), ALL_IS_WELL, Watch(b"garbage"), ALL_IS_WELL)

    assert got.naps.taken == [10.0]


async def test_a_line_nested_without_end_is_read() -> None:
    bottomless = b'{"f:a":' * 5000 + b"{}" + b"}" * 5000
    deep = line("ADDED", pod("b", 11)).replace(
        b'"namespace"', b'"managedFields":[%b],"namespace"' % bottomless
    )

    got = await played(ALL_IS_WELL, Watch(deep, line("ADDED", pod("c", 12)), seconds=400))

    assert got.sink.take() == ["+x/a@1", "+x/b@11", "+x/c@12"]


async def test_a_line_that_is_too_long_has_the_kind_listed() -> None:
    got = await played(ALL_IS_WELL, Watch(TooLarge("a line")), page(version=20), Watch(seconds=400))

    assert got.script.watched_from == ["10", "20", "20"]


NO_SUCH_KIND = ApiError(404, "NotFound", "the server could not find the requested resource")
FORBIDDEN = ApiError(403, "Forbidden", "pods is forbidden")
FAILED = ApiError(500, "InternalError", "conversion webhook failed")


@pytest.mark.parametrize(
    ("refusal", "advice"),
    [
        pytest.param(NO_SUCH_KIND, "create the CustomResourceDefinition pods", id="missing"),
        pytest.param(FORBIDDEN, "grant the verbs list and watch for pods", id="forbidden"),
    ],
)
async def test_a_kind_that_is_not_essential_counts_as_empty_while_it_is_refused(
    refusal: ApiError, advice: str, caplog: pytest.LogCaptureFixture
) -> None:
    playing = Played(refusal, refusal, refusal, essential=False)
    with caplog.at_level("INFO"):
        got = await playing.play()

    assert got.reflector.synced.is_set()
    assert refusal.message in got.reflector.absence
    assert got.naps.taken == [45.0, 45.0, 45.0]
    (told,) = caplog.messages
    assert advice in told
    assert told.endswith("asks again after 30 to 60 s")


async def test_a_kind_that_is_there_after_all() -> None:
    got = await Played(NO_SUCH_KIND, ALL_IS_WELL, essential=False).play()

    assert got.sink.take() == ["+x/a@1"]
    assert got.reflector.absence == got.reflector.problem == ""


async def test_what_went_with_its_kind_is_removed_and_what_is_refused_stays() -> None:
    gone = await Played(ALL_IS_WELL, GONE, NO_SUCH_KIND, essential=False).play()
    refused = await Played(ALL_IS_WELL, GONE, FORBIDDEN, essential=False).play()

    assert gone.sink.take() == ["+x/a@1", "-x/a@1"]
    assert refused.sink.take() == ["+x/a@1"]


async def test_a_kind_that_may_be_listed_but_not_watched_is_listed_slowly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level("INFO"):
        got = await Played(
            ALL_IS_WELL, FORBIDDEN, page(pod("a", 2)), FORBIDDEN, essential=False
        ).play()

    assert got.sink.take() == ["+x/a@1", "+x/a@2"]
    assert len(caplog.messages) == 1
    assert got.naps.taken == [45.0, 45.0]


async def test_a_server_that_fails_is_given_some_time_before_it_is_done_without() -> None:
    twice = await Played(FAILED, FAILED, essential=False).play()
    thrice = await Played(FAILED, FAILED, FAILED, essential=False).play()

    assert not twice.reflector.synced.is_set()
    assert thrice.reflector.synced.is_set()


@pytest.mark.parametrize("refusal", [NO_SUCH_KIND, FORBIDDEN, FAILED], ids=str)
async def test_an_essential_kind_is_waited_for(refusal: ApiError) -> None:
    got = await played(*[refusal] * 5)

    assert not got.reflector.synced.is_set()
    assert got.reflector.absence == ""


async def test_a_malformed_object_does_not_end_a_watch() -> None:
    got = await played(
        ALL_IS_WELL,
        Watch(line("MODIFIED", pod("a", 11, spec="?")), line("ADDED", pod("b", 12)), seconds=400),
    )

    assert got.sink.take() == ["+x/a@1", "?Pod x/a", "+x/b@12"]
    assert got.script.watched_from == ["10", "12"]


async def test_what_is_no_list_is_asked_for_later() -> None:
    got = await played(b"<html>", ALL_IS_WELL)

    assert len(got.naps.taken) == 1
    assert got.sink.take() == ["+x/a@1"]


async def test_what_a_sink_raises_is_raised() -> None:
    playing = Played(ALL_IS_WELL)

    def broken(item: Any, raw: Any) -> None:
        raise AssertionError("a bug")

    playing.sink.applied = broken  # type: ignore[method-assign]
    with pytest.raises(AssertionError, match="a bug"):
        await playing.play()
