"""Going slower and faster, without losing anybody who waits."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, strategies as st

from moorage.client.pacing import FIRST_CONNECTIONS, Bucket, Pace
from tests.client.serving import Naps
from tests.virtual_time import run_virtually


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def entered(pace: Pace, count: int) -> list[int]:
    return [await pace.enter() for _ in range(count)]


async def test_those_under_way_together_slow_it_down_once() -> None:
    pace = Pace(100)
    tickets = await entered(pace, 10)

    for ticket in tickets:
        pace.refused(ticket)
        pace.leave()

    assert pace.allowed == 5


async def test_the_next_round_slows_it_down_again() -> None:
    pace = Pace(100)
    for _ in range(3):
        tickets = await entered(pace, pace.allowed)
        for ticket in tickets:
            pace.refused(ticket)
            pace.leave()

    assert pace.allowed == 12


async def test_one_may_always_go() -> None:
    pace = Pace(4)
    for _ in range(10):
        ticket = await pace.enter()
        pace.refused(ticket)
        pace.leave()

    assert pace.allowed == 1


async def test_a_round_of_successes_allows_one_more() -> None:
    pace = Pace(100)
    for ticket in await entered(pace, 20):
        pace.refused(ticket)
        pace.leave()
    assert pace.allowed == 10

    for _ in range(11):
        await pace.enter()
        pace.leave()
        pace.succeeded()

    assert pace.allowed == 11


async def test_who_came_first_goes_first() -> None:
    pace = Pace(1)
    await pace.enter()
    order: list[str] = []

    async def wait(name: str) -> None:
        await pace.enter()
        order.append(name)
        pace.leave()

    tasks = [asyncio.create_task(wait(name)) for name in "abc"]
    await settle()
    assert order == []
    pace.leave()
    await asyncio.gather(*tasks)

    assert order == ["a", "b", "c"]


async def test_newcomers_do_not_push_in() -> None:
    """Room that was made by a success is for those who wait."""
    pace = Pace(2)
    for _ in range(2):
        await pace.enter()
    first = asyncio.create_task(pace.enter())
    await settle()
    pace.leave()
    newcomer = asyncio.create_task(pace.enter())
    await settle()

    assert first.done()
    assert not newcomer.done()
    newcomer.cancel()


@pytest.mark.parametrize("admitted", [False, True], ids=["still waiting", "just admitted"])
async def test_who_is_cancelled_takes_no_place(admitted: bool) -> None:
    pace = Pace(1)
    await pace.enter()
    cancelled = asyncio.create_task(pace.enter())
    other = asyncio.create_task(pace.enter())
    await settle()

    if admitted:
        pace.leave()
        cancelled.cancel()
    else:
        cancelled.cancel()
        pace.leave()
    await settle()

    assert cancelled.cancelled()
    assert other.done()


@given(st.lists(st.sampled_from(["enter", "succeed", "refuse", "cancel"]), max_size=60))
def test_never_more_than_allowed_and_nobody_waits_for_nothing(steps: list[str]) -> None:
    async def play() -> None:
        pace = Pace(3)
        inside: list[int] = []
        waiting: list[asyncio.Task[int]] = []
        for step in steps:
            if step == "enter":
                waiting.append(asyncio.create_task(pace.enter()))
            elif step == "cancel" and waiting:
                waiting.pop(0).cancel()
            elif inside:
                ticket = inside.pop(0)
                if step == "succeed":
                    pace.succeeded()
                else:
                    pace.refused(ticket)
                pace.leave()
            before = len(inside)
            # Long enough for connections to be opened.
            await asyncio.sleep(1)
            inside += [task.result() for task in waiting if task.done() and not task.cancelled()]
            waiting = [task for task in waiting if not task.done()]
            assert len(inside) <= max(before, pace.allowed)
            assert not waiting or len(inside) >= pace.allowed
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    run_virtually(play())


async def ask_at_once(pace: Pace, count: int, seconds: float) -> int:
    """Makes so many requests of so many seconds each; returns how many were under way at most."""
    most = under_way = 0

    async def ask() -> None:
        nonlocal most, under_way
        await pace.enter()
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(seconds)
        under_way -= 1
        pace.leave()

    await asyncio.gather(*(ask() for _ in range(count)))
    return most


def test_small_requests_take_turns_on_few_connections() -> None:
    assert run_virtually(ask_at_once(Pace(100), 90, 0.001)) <= FIRST_CONNECTIONS


def test_where_requests_take_long_each_soon_has_a_connection() -> None:
    async def play() -> float:
        assert await ask_at_once(Pace(100), 50, 1.0) == 50
        return asyncio.get_running_loop().time()

    assert run_virtually(play()) < 1.6


def test_as_many_as_are_allowed_get_a_connection_after_a_refusal() -> None:
    async def play() -> None:
        pace = Pace(3)
        await pace.enter()
        pace.refused(await pace.enter())
        others = [asyncio.create_task(pace.enter()) for _ in range(2)]
        await asyncio.sleep(1)
        assert not any(each.done() for each in others)
        for _ in range(20):
            pace.succeeded()
        await asyncio.sleep(1)
        assert sum(each.done() for each in others) == 1
        pace.leave()
        await asyncio.gather(*others)

    run_virtually(play())


@pytest.mark.parametrize(
    ("idle", "connections"),
    [
        pytest.param(1.0, range(50, 51), id="open connections are used"),
        pytest.param(61.0, range(2, FIRST_CONNECTIONS + 1), id="they were closed meanwhile"),
    ],
)
def test_connections_that_nobody_needs_are_forgotten(idle: float, connections: range) -> None:
    async def play() -> int:
        pace = Pace(100, 30.0)
        await ask_at_once(pace, 50, 1.0)
        await asyncio.sleep(idle)
        return await ask_at_once(pace, 50, 0.0001)

    assert run_virtually(play()) in connections


def test_few_requests_do_not_keep_many_connections() -> None:
    async def play() -> int:
        pace = Pace(100, 30.0)
        await ask_at_once(pace, 50, 1.0)
        for _ in range(90):
            await ask_at_once(pace, 1, 1.0)
        return await ask_at_once(pace, 90, 0.001)

    assert run_virtually(play()) <= FIRST_CONNECTIONS


async def test_a_bucket_lets_a_burst_go_and_then_one_by_one() -> None:
    now = 0.0
    naps = Naps()
    bucket = Bucket(10, 2, lambda: now, naps)

    for _ in range(4):
        await bucket.take()
    assert naps.taken == pytest.approx([0.1, 0.2])
    now = 0.3
    await bucket.take()
    assert len(naps.taken) == 2
    now = 100.0
    for _ in range(3):
        await bucket.take()

    assert naps.taken == pytest.approx([0.1, 0.2, 0.1])


async def test_a_bucket_without_a_burst_holds_a_second() -> None:
    naps = Naps()
    bucket = Bucket(5, 0, lambda: 0.0, naps)

    for _ in range(6):
        await bucket.take()

    assert naps.taken == [0.2]
