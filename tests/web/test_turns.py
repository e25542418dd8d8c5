"""Work that decisions wait for: one piece at a time, and with pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Generator

import pytest

from moorage.web.engine_reads import (
    MOST_WAITING,
    Busy,
    KeptAnswers,
    PacedRunner,
    at_once,
    in_slices,
)


class Time:
    """A clock that only work and sleep move."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now += seconds
        await asyncio.sleep(0)

    def work(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(
    ("worked", "pause"),
    [
        pytest.param(0.05, 0.45, id="a tenth of the time goes into work"),
        pytest.param(2.0, 5.0, id="no pause is longer than this"),
    ],
)
async def test_after_a_piece_comes_a_pause(worked: float, pause: float) -> None:
    time = Time()
    turns = PacedRunner(time.clock, time.sleep)
    await turns.run(at_once(lambda: time.work(worked)))
    await turns.run(at_once(lambda: None))

    assert time.slept == [0.0, pause]


async def test_whoever_comes_later_than_that_does_not_wait() -> None:
    time = Time()
    turns = PacedRunner(time.clock, time.sleep)
    await turns.run(at_once(lambda: time.work(0.05)))
    time.now += 1.0
    await turns.run(at_once(lambda: None))

    assert time.slept == [0.0, 0.0]


async def test_work_that_fails_counts_too_and_lets_others_go_on() -> None:
    time = Time()
    turns = PacedRunner(time.clock, time.sleep)

    def fail() -> None:
        time.work(0.1)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await turns.run(at_once(fail))
    assert await turns.run(at_once(lambda: "done")) == "done"
    assert time.slept == [0.0, 0.9]


async def test_when_too_many_wait_the_next_is_refused() -> None:
    turns = PacedRunner(Time().clock)
    done: list[int] = []
    waiting = [
        asyncio.create_task(turns.run(at_once(lambda number=number: done.append(number))))  # type: ignore[misc]
        for number in range(MOST_WAITING)
    ]
    await asyncio.sleep(0)
    with pytest.raises(Busy):
        await turns.run(at_once(lambda: None))
    await asyncio.gather(*waiting)

    assert done == list(range(MOST_WAITING))
    await turns.run(at_once(lambda: None))


async def test_an_answer_is_good_for_a_while() -> None:
    time, asked = Time(), []
    kept = KeptAnswers(PacedRunner(time.clock, time.sleep), time.clock)

    async def ask(question: str) -> bytes:
        def work() -> bytes:
            asked.append(question)
            return f"{question} {len(asked)}".encode()

        return await kept.answer(question, lambda: at_once(work))

    assert [await ask("a"), await ask("b"), await ask("a")] == [b"a 1", b"b 2", b"a 1"]
    time.now += 2.0
    # Those who ask at the same time get the same answer.
    assert [*await asyncio.gather(ask("a"), ask("a"))] == [b"a 3", b"a 3"]
    assert asked == ["a", "b", "a"]


async def test_work_in_steps_is_paid_for_as_a_whole() -> None:
    time = Time()
    turns = PacedRunner(time.clock, time.sleep)

    def steps() -> Generator[None, None, int]:
        for _ in range(3):
            time.work(0.02)
            yield
        return 7

    assert await turns.run(steps()) == 7
    await turns.run(at_once(lambda: None))
    assert time.slept == [0.0, 0.54]


async def test_a_plugin_that_exits_ends_what_is_read_and_not_the_loop() -> None:
    def exits() -> None:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="a plugin exits: 3"):
        await in_slices(at_once(exits))
