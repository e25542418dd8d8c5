"""A thread with a loop, whatever runs on it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager

import pytest

from moorage.app import loop_thread
from moorage.app.loop_thread import LoopThread, wait_at_most
from tests.patience import PATIENCE_SECONDS, until_true


@pytest.fixture(autouse=True)
def _patient_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a thread may stand still for seconds before it answers."""
    monkeypatch.setattr(loop_thread, "_PATIENCE_SECONDS", PATIENCE_SECONDS)


class Stage:
    """A thread that can be told to stand still, and to end."""

    def __init__(self) -> None:
        self._end = asyncio.Event()
        self.go_on = threading.Event()
        self.stands_still = threading.Event()
        self.thread: LoopThread[str] = LoopThread("test", self._main)

    async def _main(self) -> str:
        await self._end.wait()
        return "done"

    def hang(self) -> None:
        self.thread.call(self._stand_still)

    def _stand_still(self) -> None:
        self.stands_still.set()
        # As a decision would: until it ends, the loop does nothing else.
        assert self.go_on.wait(PATIENCE_SECONDS)

    async def end(self) -> None:
        self.go_on.set()
        self.thread.call(self._end.set)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await self.thread.wait() == "done"


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    made = Stage()
    made.thread.start()
    try:
        yield made
    finally:
        await made.end()


def steps() -> Generator[None, None, str]:
    yield
    return threading.current_thread().name


async def test_steps_are_run_on_its_thread() -> None:
    async with stage() as it:
        assert await it.thread.read(steps()) == "test"


async def test_what_steps_raise_is_raised() -> None:
    def fail() -> Generator[None, None, None]:
        yield
        raise KeyError("it")

    async with stage() as it:
        with pytest.raises(KeyError, match="it"):
            await it.thread.read(fail())


async def test_nobody_reads_while_it_stands_still_and_this_thread_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_thread, "_PATIENCE_SECONDS", 0.2)
    async with stage() as it:
        it.hang()
        await until_true(it.stands_still.is_set)
        with pytest.raises(TimeoutError):
            await it.thread.read(steps())
        await until_true(lambda: it.thread.stall_seconds() >= 0.2)
        assert not await wait_at_most(it.thread, 0.01)


async def test_it_turns_again_after_it_stood_still() -> None:
    async with stage() as it:
        it.hang()
        await until_true(lambda: it.thread.stall_seconds() >= 1.0)
        it.go_on.set()
        await until_true(lambda: it.thread.stall_seconds() < 1.0)
        assert await it.thread.read(steps()) == "test"


async def test_after_its_end_nothing_can_be_asked_of_it() -> None:
    async with stage() as it:
        pass

    assert await wait_at_most(it.thread, PATIENCE_SECONDS)
    assert it.thread.stall_seconds() == 0.0
    it.thread.call(print)
    with pytest.raises(TimeoutError):
        await it.thread.read(steps())


async def test_what_breaks_it_is_told() -> None:
    async def fail() -> None:
        raise ValueError("broken")

    thread = LoopThread("test", fail)
    thread.start()
    with pytest.raises(ValueError, match="broken"):
        await thread.wait()
