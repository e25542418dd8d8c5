"""What was worked out from the labels and taints of nodes, for as long as these stay."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from .recent import Recent

T = TypeVar("T")


class Layout:
    """Values by key, all forgotten when a node comes or goes or gets other labels or taints."""

    # A value may have a bool per node: this many at 100,000 nodes are 13 MB.
    LIMIT = 128

    def __init__(self) -> None:
        self._kept: Recent[Hashable, Any] = Recent(self.LIMIT)

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key; made when first asked for. A key has whatever the value is made of
        besides the nodes, its type included."""
        value: T | None = self._kept.find(key)
        if value is None:
            value = make()
            self._kept.put(key, value)
        return value

    def sweep(self) -> None:
        """Drops what nobody asked for lately."""
        self._kept.sweep()

    def forget(self) -> None:
        self._kept.clear()
