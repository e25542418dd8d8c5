"""Reads an engine while it decides: in steps, and long computations one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from time import monotonic, perf_counter
from typing import Protocol, TypeVar, cast

T = TypeVar("T")

# Of the time, at most this share goes into such work: the rest is for decisions.
_SHARE = 0.1
# However long a piece took, the next one comes after this.
_LONGEST_PAUSE_SECONDS = 5.0
#: Pieces that wait for their turn; more are refused, to be asked for again.
MOST_WAITING = 8

# For so long an answer that is not about one pod serves further requests.
_KEEP_SECONDS = 2.0
_MOST_KEPT = 64


class Read(Protocol):
    """Runs steps where the engine may be read, with other work between them; returns their result.

    Raises TimeoutError if decisions leave no time for them. The steps may have begun by then.
    """

    async def __call__(self, steps: Generator[None, None, T]) -> T: ...


async def in_slices(steps: Generator[None, None, T]) -> T:
    """Runs steps on this loop. Use it for an engine that decides on the same loop."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(T, end.value)
        except SystemExit as error:
            # A plugin that exits ends what is read, and not the loop.
            raise RuntimeError(f"a plugin exits: {error}") from error
        await asyncio.sleep(0)


def at_once(work: Callable[[], T]) -> Generator[None, None, T]:
    """Makes a computation of one step."""
    return work()
    yield


class Busy(Exception):
    """Too many computations wait already."""


class PacedRunner:
    """Runs computations one after the other, with pauses in proportion to their length."""

    def __init__(
        self,
        clock: Callable[[], float] = perf_counter,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        read: Read = in_slices,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._read = read
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._free_at = float("-inf")

    async def run(self, steps: Generator[None, None, T]) -> T:
        """Returns the result of the steps when their turn has come.

        Raises Busy if too many wait.
        """
        if self._waiting >= MOST_WAITING:
            raise Busy
        self._waiting += 1
        try:
            async with self._turn:
                await self._sleep(max(self._free_at - self._clock(), 0.0))
                return await self._read(self._time(steps))
        finally:
            self._waiting -= 1

    def _time(self, steps: Generator[None, None, T]) -> Generator[None, None, T]:
        """Yields the same steps, and measures them to set when the next computation may begin."""
        spent = 0.0
        while True:
            began = self._clock()
            try:
                next(steps)
            except StopIteration as end:
                return cast(T, end.value)
            finally:
                ended = self._clock()
                spent += ended - began
                pause = spent * (1 / _SHARE - 1)
                self._free_at = ended + min(pause, _LONGEST_PAUSE_SECONDS)
            yield


class KeptAnswers:
    """Keeps answers for a few seconds, so that many viewers share each."""

    def __init__(self, runner: PacedRunner, clock: Callable[[], float] = monotonic) -> None:
        self._runner = runner
        self._clock = clock
        self._kept: dict[str, tuple[float, bytes]] = {}

    async def answer(
        self, question: str, steps: Callable[[], Generator[None, None, bytes]]
    ) -> bytes:
        """Returns a recent answer, or the result of the steps; raises Busy if too many wait."""
        known = self._find(question)
        if known is not None:
            return known

        def work() -> Generator[None, None, bytes]:
            # Somebody else may have asked while this one waited.
            return self._find(question) or (yield from steps())

        found = await self._runner.run(work())
        self._kept.pop(question, None)
        self._kept[question] = self._clock() + _KEEP_SECONDS, found
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return found

    def _find(self, question: str) -> bytes | None:
        until, found = self._kept.get(question, (0.0, b""))
        return found if self._clock() < until else None
