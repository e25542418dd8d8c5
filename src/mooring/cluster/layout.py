"""What was worked out from the labels and taints of nodes, for as long as these stay."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class Layout:
    """Values by key, all forgotten when a node comes or goes or gets other labels or taints."""

    # A value may have a bool per node: this many at 100,000 nodes are 13 MB.
    LIMIT = 128

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] = {}

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key; made when first asked for. A key has whatever the value is made of
        besides the nodes, its type included."""
        value: T | None = self._kept.get(key)
        if value is None:
            if len(self._kept) >= self.LIMIT:
                del self._kept[next(iter(self._kept))]
            value = self._kept[key] = make()
        return value

    def forget(self) -> None:
        self._kept.clear()
