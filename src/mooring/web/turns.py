"""Reading an engine while it decides: in steps, and what takes long one piece at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from time import perf_counter
from typing import Protocol, TypeVar, cast

T = TypeVar("T")

# Of the time, at most this share goes into such work: the rest is for decisions.
_SHARE = 0.1
# However long a piece took, the next one comes after this.
_LONGEST_PAUSE_SECONDS = 5.0
#: Pieces that wait for their turn; more are refused, to be asked for again.
MOST_WAITING = 8


class Read(Protocol):
    """Runs steps where the engine may be read, other work between them; gives what they return.

    Raises TimeoutError if decisions leave no time for them. The steps may have been begun then.
    """

    async def __call__(self, steps: Generator[None, None, T]) -> T: ...


async def in_slices(steps: Generator[None, None, T]) -> T:
    """Runs steps on this loop: the way to read an engine that decides on the same one."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(T, end.value)
        await asyncio.sleep(0)


def at_once(work: Callable[[], T]) -> Generator[None, None, T]:
    """One step."""
    return work()
    yield


class Busy(Exception):
    """Too many wait for their turn already."""


class PacedRunner:
    """Runs pieces of work one after the other, with pauses as long as they deserve."""

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

    async def run(self, work: Callable[[], T]) -> T:
        """What the work gives, when its turn has come; Busy if too many wait."""
        if self._waiting >= MOST_WAITING:
            raise Busy
        self._waiting += 1
        try:
            async with self._turn:
                await self._sleep(max(self._free_at - self._clock(), 0.0))
                return await self._read(at_once(lambda: self._timed(work)))
        finally:
            self._waiting -= 1

    def _timed(self, work: Callable[[], T]) -> T:
        began = self._clock()
        try:
            return work()
        finally:
            ended = self._clock()
            pause = (ended - began) * (1 / _SHARE - 1)
            self._free_at = ended + min(pause, _LONGEST_PAUSE_SECONDS)
