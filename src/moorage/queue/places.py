"""The place of each waiting pod: one of the heaps, or the unschedulable pods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import floor, inf
from typing import Any

from moorage.framework.plugin_fence import STOPPED
from moorage.objects.pod import Pod

from .pod_heap import PodHeap
from .queue_events import Listeners
from .queued_pod import (
    ACTIVE,
    BACKING_OFF,
    BACKOFF,
    ERROR_BACKOFF,
    GATED,
    NOWHERE,
    UNSCHEDULABLE,
    UNSCHEDULABLE_PLACES,
    Place,
    QueuedPod,
)
from .waiting_pods import UnschedulablePods

#: The order in which pods are tried: the smallest key first.
SortKey = Callable[[Pod, float], Any]


def by_priority(pod: Pod, timestamp: float) -> tuple[int, float]:
    """Returns the sort key that needs no plugin: higher priority first, then older pods."""
    return -pod.priority, timestamp


class Places:
    """The active heap, the two backoff heaps and the unschedulable pods."""

    __slots__ = (
        "_divided",
        "_heaps",
        "_sort_key",
        "_tell_of_order",
        "_uids",
        "_waiting",
        "due",
        "unschedulable",
    )

    def __init__(
        self,
        sort_key: SortKey,
        patience: float,
        listeners: Listeners,
        tell_of_order: Callable[[BaseException], None],
    ) -> None:
        """`tell_of_order` is called once if the sort key has to be given up."""
        self._sort_key = sort_key
        self._tell_of_order = tell_of_order
        self._heaps: dict[Place, PodHeap | DividedHeap] = {
            ACTIVE: PodHeap(self._order_by_priority),
            BACKOFF: PodHeap(self._order_by_priority),
            ERROR_BACKOFF: PodHeap(self._order_by_priority),
        }
        self._divided: list[DividedHeap] = []
        self.unschedulable = UnschedulablePods(patience, listeners)
        self._waiting: dict[str, QueuedPod] = {}
        self._uids: dict[str, str] = {}
        #: Before this moment no backoff ends, and nobody has waited too long.
        self.due = inf

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, uid: str) -> bool:
        return uid in self._waiting

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._waiting.values())

    def get(self, uid: str) -> QueuedPod | None:
        """Returns the waiting pod of this uid."""
        return self._waiting.get(uid)

    def find_by_key(self, key: str) -> QueuedPod | None:
        """Returns the waiting pod of this namespace and name."""
        uid = self._uids.get(key)
        return None if uid is None else self._waiting[uid]

    def size(self, place: Place) -> int:
        """Returns how many pods are in a place."""
        if place is GATED:
            return len(self.unschedulable.gated)
        if place is UNSCHEDULABLE:
            return len(self.unschedulable) - len(self.unschedulable.gated)
        return len(self._heaps[place])

    def move(self, queued: QueuedPod, place: Place) -> None:
        """Moves a pod to a place, from the one where it waits if there is one."""
        uid = queued.pod.uid
        heap = self._heaps.get(place)
        # A plugin makes the key: if it raises, the pod stays where it is.
        key = None if heap is None else self._key(queued, place)
        if uid in self._waiting:
            self._leave(uid, queued.place)
        else:
            self._waiting[uid] = queued
            self._uids[queued.pod.key] = uid
        queued.place = place
        if heap is None:
            self.unschedulable.add(queued)
            due = queued.swept_at
        else:
            heap.push(queued, key)
            due = inf if place is ACTIVE else queued.expiry + 1
        if due < self.due:
            self.due = due

    def refresh(self, queued: QueuedPod) -> None:
        """Puts a pod that has changed in order; it stays in its place."""
        if queued.place not in UNSCHEDULABLE_PLACES or not self.unschedulable.is_filed_as(queued):
            self.move(queued, queued.place)

    def take(self, queued: QueuedPod) -> None:
        """Takes out a waiting pod."""
        self._leave(queued.pod.uid, queued.place)
        self._forget(queued)

    def divide(self, divides: Callable[[Pod], bool]) -> None:
        """Sets which pods can be held back. Call it before there are any."""
        assert not self._waiting, "pods wait already"
        for place in (ACTIVE, BACKOFF):
            heap = self._heaps[place] = DividedHeap(self._order_by_priority, divides)
            self._divided.append(heap)

    def hold_back(self, yes: bool) -> None:
        """Holds back the pods that can be held back, or stops doing so."""
        for heap in self._divided:
            heap.holds_back = yes

    def is_ready(self, place: Place) -> bool:
        """Whether a pod of a heap can be popped."""
        return self._heaps[place].is_ready()

    def pop(self, place: Place) -> QueuedPod | None:
        """Takes out the first pod of a heap."""
        queued = self._heaps[place].pop()
        if queued is not None:
            self._forget(queued)
        return queued

    def next_backed_off(self, place: Place, now: float) -> QueuedPod | None:
        """Returns a pod whose backoff is over, without removing it."""
        heap = self._heaps[place]
        first = heap.head_key()
        return heap.head() if first is not None and first[0] < floor(now) else None

    def find_due(self) -> float:
        """Returns when the next backoff ends or a pod has waited too long; infinity if never."""
        due = self.unschedulable.next_sweep()
        for place in BACKING_OFF:
            first = self._heaps[place].head_key()
            if first is not None:
                # A backoff is over at the end of the second of its expiry.
                due = min(due, float(first[0] + 1))
        return due

    def _forget(self, queued: QueuedPod) -> None:
        pod = queued.pod
        del self._waiting[pod.uid]
        del self._uids[pod.key]
        queued.place = NOWHERE

    def _leave(self, uid: str, place: Place) -> None:
        heap = self._heaps.get(place)
        if heap is None:
            self.unschedulable.remove(uid)
        else:
            heap.remove(uid)

    def _order_by_priority(self, error: BaseException) -> None:
        """Orders all pods by priority and age from now on, because sort keys cannot be compared."""
        if self._sort_key is not by_priority:
            self._sort_key = by_priority
            self._tell_of_order(error)
        for heap in self._heaps.values():
            heap.reorder(lambda queued: self._key(queued, queued.place))

    def _key(self, queued: QueuedPod, place: Place) -> Any:
        try:
            order = self._sort_key(queued.pod, queued.timestamp)
        except STOPPED as error:  # whatever a plugin raises
            self._order_by_priority(error)
            order = by_priority(queued.pod, queued.timestamp)
        if place is ACTIVE:
            return order
        return queued.expiry, order

    def check(self) -> None:
        """Raises AssertionError unless each waiting pod is in its place and nowhere else."""
        for uid, queued in self._waiting.items():
            found = [place for place, heap in self._heaps.items() if uid in heap]
            if uid in self.unschedulable:
                gated = uid in self.unschedulable.gated
                found.append(GATED if gated else UNSCHEDULABLE)
            assert found == [queued.place], f"{uid} is in {found}, not in {queued.place}"
            named = self._uids.get(queued.pod.key)
            assert named == uid, f"{queued.pod.key} is {named}, not {uid}"
        held = len(self.unschedulable) + sum(map(len, self._heaps.values()))
        assert held == len(self), f"{held} pods in places, but {len(self)} wait"
        assert len(self._uids) == len(self), f"{len(self._uids)} names for {len(self)} pods"
        assert self.due <= self.find_due(), f"nothing is looked for before {self.due}"
        self.unschedulable.check()


class DividedHeap:
    """Two heaps in one: pods that can be held back, and all others.

    Both have one order. Only `pop` and `is_ready` leave out pods that are held back.
    """

    __slots__ = ("_divides", "_free", "_some", "holds_back")

    def __init__(
        self, repair: Callable[[BaseException], None], divides: Callable[[Pod], bool]
    ) -> None:
        """`divides` returns whether a pod can be held back."""
        self._divides = divides
        self._free = PodHeap(repair)
        self._some = PodHeap(repair)
        self.holds_back = False

    def __len__(self) -> int:
        return len(self._free) + len(self._some)

    def __contains__(self, uid: str) -> bool:
        return uid in self._free or uid in self._some

    def push(self, queued: QueuedPod, key: Any) -> None:
        """Adds a pod that is not in the heap."""
        (self._some if self._divides(queued.pod) else self._free).push(queued, key)

    def remove(self, uid: str) -> None:
        """Removes a pod that is in the heap."""
        (self._some if uid in self._some else self._free).remove(uid)

    def reorder(self, key: Callable[[QueuedPod], Any]) -> None:
        """Orders all pods by another key."""
        self._free.reorder(key)
        self._some.reorder(key)

    def is_ready(self) -> bool:
        """Whether there is a pod that is not held back."""
        return bool(self._free or (self._some and not self.holds_back))

    def pop(self) -> QueuedPod | None:
        """Removes and returns the first pod that is not held back."""
        return (self._free if self.holds_back else self._first()).pop()

    def head(self) -> QueuedPod | None:
        """Returns the first pod without removing it."""
        return self._first().head()

    def head_key(self) -> Any:
        """Returns the smallest key, or None."""
        return self._first().head_key()

    def _first(self) -> PodHeap:
        """Returns the heap that has the first of all pods."""
        if not self._some:
            return self._free
        if not self._free:
            return self._some
        return self._some if self._some.is_before(self._free) else self._free
