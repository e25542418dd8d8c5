"""Time that counts: the watch stands still while the harness prepares what comes next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter, process_time

#: Tells the time in seconds, from wherever.
Clock = Callable[[], float]


class Stopwatch:
    """Seconds of the wall and of the processor since it was made, without its pauses."""

    def __init__(self, wall: Clock = perf_counter, processor: Clock = process_time) -> None:
        self.wall = wall
        self._processor = processor
        self._started, self._started_processor = wall(), processor()
        self._depth = 0

    @property
    def seconds(self) -> float:
        return self.wall() - self._started

    @property
    def processor_seconds(self) -> float:
        return self._processor() - self._started_processor

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What happens in here takes no time."""
        wall, processor = self.wall(), self._processor()
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                # The outermost pause contains the others.
                self._started += self.wall() - wall
                self._started_processor += self._processor() - processor
