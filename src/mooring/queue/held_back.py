"""A heap of pods, some of which can be held back while others go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mooring.objects.pod import Pod

from .pod_heap import PodHeap
from .queued_pod import QueuedPod


class DividedHeap:
    """Two heaps in one: the pods that can be held back, and all others.

    The order is one for both. Only `pop` and `is_ready` leave out those that are held back.
    """

    __slots__ = ("_divides", "_free", "_some", "holds_back")

    def __init__(
        self, repair: Callable[[BaseException], None], divides: Callable[[Pod], bool]
    ) -> None:
        """`divides` tells the pods that can be held back from the others."""
        self._divides = divides
        self._free = PodHeap(repair)
        self._some = PodHeap(repair)
        self.holds_back = False

    def __len__(self) -> int:
        return len(self._free) + len(self._some)

    def __contains__(self, uid: str) -> bool:
        return uid in self._free or uid in self._some

    def push(self, queued: QueuedPod, key: Any) -> None:
        """Puts in a pod that is not in the heap."""
        (self._some if self._divides(queued.pod) else self._free).push(queued, key)

    def remove(self, uid: str) -> None:
        """Takes out a pod that is in the heap."""
        (self._some if uid in self._some else self._free).remove(uid)

    def reorder(self, key: Callable[[QueuedPod], Any]) -> None:
        """Orders all pods by another key."""
        self._free.reorder(key)
        self._some.reorder(key)

    def is_ready(self) -> bool:
        """Whether there is a pod that is not held back."""
        return bool(self._free or (self._some and not self.holds_back))

    def pop(self) -> QueuedPod | None:
        """Takes out the first pod that is not held back."""
        return (self._free if self.holds_back else self._first()).pop()

    def head(self) -> QueuedPod | None:
        """The first pod, which stays in."""
        return self._first().head()

    def head_key(self) -> Any:
        """The smallest key, or None."""
        return self._first().head_key()

    def _first(self) -> PodHeap:
        """The heap that has the first of all pods."""
        if not self._some:
            return self._free
        if not self._free:
            return self._some
        return self._some if self._some.is_before(self._free) else self._free
