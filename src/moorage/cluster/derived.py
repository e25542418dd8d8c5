"""Derived values, kept while they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Values by key. A sweep drops the values that were not asked for since the last one.

    Beyond a limit, the value that was asked for least recently is dropped first.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        # Both in the order of being asked for; what is asked for moves to the end of the new ones.
        self._new: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def __iter__(self) -> Iterator[V]:
        yield from self._old.values()
        yield from self._new.values()

    def get(self, key: K) -> V | None:
        value = self._new.pop(key, None)
        if value is None:
            value = self._old.pop(key, None)
            if value is None:
                return None
        self._new[key] = value
        return value

    def find(self, key: K) -> V | None:
        """Returns the same as `get`, faster and with a less exact order."""
        value = self._new.get(key)
        return self.get(key) if value is None else value

    def put(self, key: K, value: V) -> list[V]:
        """Keeps a value; returns those that had to make room."""
        self._old.pop(key, None)
        self._new[key] = value
        dropped = []
        while len(self) > self.limit:
            oldest = self._old or self._new
            dropped.append(oldest.pop(next(iter(oldest))))
        return dropped

    def pop(self, key: K) -> V | None:
        value = self._new.pop(key, None)
        return self._old.pop(key, None) if value is None else value

    def sweep(self) -> list[V]:
        """Drops and returns values that were not asked for since the last sweep."""
        dropped = list(self._old.values())
        self._old, self._new = self._new, {}
        return dropped

    def clear(self) -> None:
        self._new.clear()
        self._old.clear()


T = TypeVar("T")


class NodeDerived:
    """Values by key, all forgotten when a node comes, goes or changes its labels or taints."""

    # A value may have a bool per node: this many at 100,000 nodes are 13 MB.
    LIMIT = 128

    def __init__(self) -> None:
        self._kept: Recent[Hashable, Any] = Recent(self.LIMIT)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Returns the value of a key, made when first asked for.

        A key contains all that the value is made of besides the nodes, its type included.
        """
        value: T | None = self._kept.find(key)
        if value is None:
            value = make()
            self._kept.put(key, value)
        return value

    def sweep(self) -> None:
        """Drops values that were not asked for lately."""
        self._kept.sweep()

    def forget(self) -> None:
        self._kept.clear()
