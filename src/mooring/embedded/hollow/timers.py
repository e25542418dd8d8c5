"""What is to be done later, by key: one thing for each, the last that was said."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")


class Timers(Generic[T]):
    """A heap of times. What was said earlier about a key is forgotten when it comes up."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, str]] = []
        self._last: dict[str, tuple[int, T]] = {}
        self._turn = 0

    def set(self, key: str, due: float, what: T) -> None:
        self._turn += 1
        self._last[key] = self._turn, what
        heappush(self._heap, (due, self._turn, key))

    def cancel(self, key: str) -> None:
        self._last.pop(key, None)

    def due(self, now: float) -> tuple[str, T] | None:
        """The next thing whose time has come; each is told once."""
        next_due = self.next
        if next_due is None or next_due > now:
            return None
        _, _, key = heappop(self._heap)
        return key, self._last.pop(key)[1]

    @property
    def next(self) -> float | None:
        """When the next thing is due."""
        heap = self._heap
        while heap:
            due, turn, key = heap[0]
            known = self._last.get(key)
            if known is not None and known[0] == turn:
                return due
            heappop(heap)
        return None
