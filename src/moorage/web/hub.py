"""Sends changes to all viewers, a few times a second."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager, suppress
from itertools import islice, takewhile
from time import perf_counter, time
from typing import TypeVar, cast

from moorage.engine import Engine
from moorage.objects.pod import Pod

from .engine_reads import Read, in_slices
from .messages import Figures, Sample, count_figures, encode_line
from .picture import Picture

# Between two messages. A quarter of a second is live to the eye and cheap.
_PAUSE_SECONDS = 0.25
# Between two samples for the charts; also how often figures are taken without viewers.
_SAMPLE_SECONDS = 1.0
_SAMPLES_KEPT = 300
# Of the time, at most this share goes into telling: with many pods waiting, pauses grow longer.
_SHARE = 0.05
# Messages a viewer may be behind before it is cut off, to begin anew.
_MOST_BEHIND = 128
#: Viewers at once: everybody costs memory and bandwidth.
MOST_VIEWERS = 32

# The newest pods that are remembered: where one of them is met, those before it are known too.
# Many, because the very last ones may be gone by the next look.
_REMEMBERED = 1_024

T = TypeVar("T")

#: What a viewer gets: lines, then None when there will be no more.
Lines = asyncio.Queue[bytes | None]


class TooManyViewers(Exception):
    """There are too many viewers."""


class Hub:
    """One picture of an engine for all viewers. Without viewers it only takes figures.

    The engine and the picture are touched only in steps that are given to `read`; everything else
    runs on the loop of the viewers.
    """

    def __init__(self, engine: Engine, read: Read = in_slices) -> None:
        self._engine = engine
        self._read = read
        self._arrivals = Arrivals(engine)
        self._placed = 0
        self._picture: Picture | None = None
        self._viewers: set[Lines] = set()
        #: Those of them that have the whole picture, and get what changes.
        self._following: set[Lines] = set()
        self._history: deque[Sample] = deque(maxlen=_SAMPLES_KEPT)
        # The picture changes step by step: nobody may join in the middle of one.
        self._changing = asyncio.Lock()
        self._looked_at = asyncio.Event()
        #: Seconds that the last step took, those apart in which others had their turn.
        self._spent = 0.0

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            self._spent = 0.0
            try:
                await self._step()
            except TimeoutError:
                # The picture may have been changed by half a step: all begin anew.
                self.close()
            if self._viewers:
                await asyncio.sleep(max(_PAUSE_SECONDS, self._spent / _SHARE))
            else:
                await self._rest()

    @asynccontextmanager
    async def viewer(self) -> AsyncIterator[Lines]:
        """Yields a stream of lines that begins with the whole picture, while the context lasts."""
        if len(self._viewers) >= MOST_VIEWERS:
            raise TooManyViewers
        lines: Lines = asyncio.Queue()
        self._viewers.add(lines)
        try:
            async with self._changing:
                for part in await self._read(self._share()):
                    lines.put_nowait(part)
                self._following.add(lines)
                self._looked_at.set()
            yield lines
        finally:
            self._leave(lines)

    async def snapshot(self) -> list[bytes]:
        """Returns the whole picture as it is now, in lines."""
        return await self._read(self._whole())

    def close(self) -> None:
        """Ends the connections of all viewers."""
        for lines in list(self._viewers):
            self._leave(lines)
            lines.put_nowait(None)

    def _whole(self) -> Generator[None, None, list[bytes]]:
        picture = Picture(self._engine, limited=False)
        yield from picture.advance(self._figures(), [])
        return (yield from self._everything(picture))

    def _share(self) -> Generator[None, None, list[bytes]]:
        if self._picture is None:
            # It begins empty, and the next step fills it.
            self._picture = Picture(self._engine)
        return (yield from self._everything(self._picture))

    def _everything(self, picture: Picture) -> Generator[None, None, list[bytes]]:
        lines = []
        for part in picture.everything(self._figures(), list(self._history)):
            lines.append(encode_line(part))
            yield
        return lines

    async def _rest(self) -> None:
        """Waits until the next sample is due, or a viewer comes."""
        self._looked_at.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(_SAMPLE_SECONDS):
                await self._looked_at.wait()

    async def _step(self) -> None:
        async with self._changing:
            text = await self._read(self._time(self._advance(self._picture)))
            if text is not None:
                self._tell(text)

    def _advance(self, picture: Picture | None) -> Generator[None, None, bytes | None]:
        """Takes figures and updates the picture; returns what has changed."""
        arrived = self._arrivals.take()
        self._placed += len(arrived)
        now = self._figures()
        if not self._history or now.sample[0] - self._history[-1][0] >= _SAMPLE_SECONDS:
            self._history.append(now.sample)
        if picture is None:
            return None
        return encode_line((yield from picture.advance(now, arrived)))

    def _time(self, steps: Generator[None, None, T]) -> Generator[None, None, T]:
        while True:
            began = perf_counter()
            try:
                next(steps)
            except StopIteration as end:
                return cast(T, end.value)
            finally:
                self._spent += perf_counter() - began
            yield

    def _figures(self) -> Figures:
        return count_figures(self._engine, time(), self._placed)

    def _tell(self, text: bytes) -> None:
        for lines in list(self._following):
            if lines.qsize() < _MOST_BEHIND:
                lines.put_nowait(text)
            else:
                self._leave(lines)
                lines.put_nowait(None)

    def _leave(self, lines: Lines) -> None:
        self._viewers.discard(lines)
        self._following.discard(lines)
        if not self._viewers:
            self._picture = None


class Arrivals:
    """Finds the pods that came to nodes since the last look."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: set[str] = set()
        self._remember()

    def take(self) -> list[Pod]:
        """Returns pods that were placed since, the newest first.

        Pods that have left again are missed.
        """
        pods, profiles = self._engine.cluster.newest_pods(), self._engine.profiles
        found = list(takewhile(lambda pod: pod.uid not in self._known, pods))
        if self._known and len(found) == len(self._engine.cluster.pods):
            # All that are remembered have left: who came after them cannot be told.
            found = []
        self._remember()
        return [pod for pod in found if pod.spec.scheduler_name in profiles]

    def _remember(self) -> None:
        newest = islice(self._engine.cluster.newest_pods(), _REMEMBERED)
        self._known = {pod.uid for pod in newest}
