"""A heap of waiting pods, from which any pod can be removed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

from moorage.framework.plugin_fence import STOPPED

from .queued_pod import QueuedPod

# A heap this small is not worth tidying.
_SLACK = 64

_Item = tuple[Any, int, int, QueuedPod]


def _give_up(error: BaseException) -> None:
    raise error


class PodHeap:
    """Pods by key, ties by arrival. A removed pod leaves an item behind, which is skipped later.

    Most pods come in the order in which they leave. So an item that is not before the last one of
    the line joins the line, which costs one comparison; only the others go to the heap. If keys
    cannot be compared, `repair` is called, which must `reorder` the heap.
    """

    __slots__ = ("_items", "_line", "_live", "_repair", "_serials")

    def __init__(self, repair: Callable[[BaseException], None] = _give_up) -> None:
        self._repair = repair
        self._items: list[_Item] = []
        #: Items in ascending order.
        self._line: deque[_Item] = deque()
        self._live: dict[str, _Item] = {}
        # Unique, so that comparing two items never reaches the pods.
        self._serials = count()

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, uid: object) -> bool:
        return uid in self._live

    def __iter__(self) -> Iterator[QueuedPod]:
        return (item[3] for item in self._live.values())

    def push(self, queued: QueuedPod, key: Any) -> None:
        """Adds a pod that is not in the heap."""
        item = (key, queued.arrival, next(self._serials), queued)
        self._live[queued.pod.uid] = item
        try:
            if not self._line or self._line[-1] < item:
                self._line.append(item)
            else:
                heappush(self._items, item)
        except STOPPED as error:  # comparing keys is a plugin's code
            self._repair(error)

    def remove(self, uid: str) -> None:
        """Removes a pod that is in the heap."""
        del self._live[uid]
        if len(self._items) + len(self._line) > 2 * len(self._live) + _SLACK:
            self._tidy()

    def reorder(self, key: Callable[[QueuedPod], Any]) -> None:
        """Orders all pods by another key."""
        for uid, (_, arrival, serial, queued) in self._live.items():
            self._live[uid] = key(queued), arrival, serial, queued
        self._tidy()

    def _tidy(self) -> None:
        self._line.clear()
        self._items = list(self._live.values())
        try:
            heapify(self._items)
        except STOPPED as error:  # comparing keys is a plugin's code
            self._repair(error)

    def pop(self) -> QueuedPod | None:
        """Removes and returns the pod with the smallest key."""
        item = self._first()
        if item is None:
            return None
        queued = item[3]
        del self._live[queued.pod.uid]
        if self._line and self._line[0] is item:
            self._line.popleft()
        return queued

    def head(self) -> QueuedPod | None:
        """Returns the pod with the smallest key without removing it."""
        item = self._first()
        return item[3] if item else None

    def head_key(self) -> Any:
        """Returns the smallest key, or None."""
        item = self._first()
        return item[0] if item else None

    def is_ready(self) -> bool:
        """Whether there is a pod to pop."""
        return bool(self._live)

    def is_before(self, other: PodHeap) -> bool:
        """Whether its first pod comes before that of another heap; neither may be empty."""
        try:
            return self._find_order() < other._find_order()
        except STOPPED as error:  # comparing keys is a plugin's code
            self._repair(error)
        return self._find_order() < other._find_order()

    def _find_order(self) -> tuple[Any, int]:
        item = self._first()
        assert item is not None, "the heap is not empty"
        return item[0], item[1]

    def _first(self) -> _Item | None:
        line, live = self._line, self._live
        while line and live.get(line[0][3].pod.uid) is not line[0]:
            line.popleft()
        if not self._items:
            return line[0] if line else None
        try:
            return self._first_of_both()
        except STOPPED as error:  # comparing keys is a plugin's code
            self._repair(error)
        return self._first_of_both()

    def _first_of_both(self) -> _Item | None:
        """Returns the first item of the heap or of the line whose pod is still in."""
        items, line, live = self._items, self._line, self._live
        while items and live.get(items[0][3].pod.uid) is not items[0]:
            heappop(items)
        if items and not (line and line[0] < items[0]):
            return items[0]
        return line[0] if line else None
