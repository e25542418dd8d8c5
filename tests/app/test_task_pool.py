"""Task pools: bounded, in order, and nothing is lost unless it may be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from moorage.app.task_pool import TaskPool


class Workshop:
    """Work that takes as long as the test wants."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.ended: list[int] = []
        self.door = asyncio.Event()

    def piece(self, number: int) -> Callable[[], Coroutine[Any, Any, None]]:
        async def work() -> None:
            self.begun.append(number)
            await self.door.wait()
            self.ended.append(number)

        return work


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.fixture
async def workshop() -> Workshop:
    return Workshop()


async def test_no_more_than_the_width_are_under_way(workshop: Workshop) -> None:
    pool = TaskPool(2)
    for number in range(5):
        pool.put(workshop.piece(number))
    await turns()

    assert (workshop.begun, len(pool)) == ([0, 1], 5)

    workshop.door.set()
    await pool.drain()
    assert workshop.begun == [0, 1, 2, 3, 4]
    assert sorted(workshop.ended) == workshop.begun
    assert len(pool) == 0


async def test_work_that_comes_the_moment_the_last_ends_is_not_left_waiting() -> None:
    ended: list[str] = []

    async def first() -> None:
        ended.append("first")

    async def second() -> None:
        ended.append("second")

    # The worker has nothing to wait for, so it is at its end before its turn is over.
    pool = TaskPool(1)
    pool.put(first)
    asyncio.get_running_loop().call_soon(pool.put, second)
    await turns()

    assert (ended, len(pool)) == (["first", "second"], 0)


async def test_what_may_be_lost_is_dropped_oldest_first(workshop: Workshop) -> None:
    drops: list[int] = []
    pool = TaskPool(1, most_waiting=2, on_drop=lambda: drops.append(pool.dropped))
    for number in range(5):
        pool.put(workshop.piece(number))
    workshop.door.set()
    await pool.drain()

    assert (workshop.ended, pool.dropped) == ([0, 3, 4], 2)
    assert drops == [1, 2]


async def test_every_piece_is_told_when_done(workshop: Workshop) -> None:
    left: list[int] = []
    pool = TaskPool(2, done=lambda: left.append(len(pool)))
    for number in range(3):
        pool.put(workshop.piece(number))
    workshop.door.set()
    await pool.drain()

    assert left == [2, 1, 0]


async def test_stopping_drops_what_waits_and_cancels_the_rest(workshop: Workshop) -> None:
    pool = TaskPool(1)
    pool.put(workshop.piece(0))
    pool.put(workshop.piece(1))
    await turns()
    await pool.stop()

    assert (workshop.begun, workshop.ended, len(pool)) == ([0], [], 0)
