"""Where each waiting pod is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import floor
from typing import Any

from mooring.objects.pod import Pod

from .heap import PodHeap
from .parked import Parked
from .queued_pod import Place, QueuedPod

#: The order in which pods are tried: the smallest key first.
SortKey = Callable[[Pod, float], Any]


class Places:
    """The active heap, the two backoff heaps and the parked pods."""

    __slots__ = ("_heaps", "_sort_key", "_uids", "_waiting", "parked")

    def __init__(self, sort_key: SortKey, patience: float) -> None:
        self._sort_key = sort_key
        self._heaps = {
            Place.ACTIVE: PodHeap(),
            Place.BACKOFF: PodHeap(),
            Place.ERROR_BACKOFF: PodHeap(),
        }
        self.parked = Parked(patience)
        self._waiting: dict[str, QueuedPod] = {}
        self._uids: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, uid: str) -> bool:
        return uid in self._waiting

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._waiting.values())

    def get(self, uid: str) -> QueuedPod | None:
        """The waiting pod of this uid."""
        return self._waiting.get(uid)

    def named(self, key: str) -> QueuedPod | None:
        """The waiting pod of this namespace and name."""
        uid = self._uids.get(key)
        return None if uid is None else self._waiting[uid]

    def size(self, place: Place) -> int:
        """How many pods are in a place."""
        if place is Place.GATED:
            return len(self.parked.gated)
        if place is Place.UNSCHEDULABLE:
            return len(self.parked) - len(self.parked.gated)
        return len(self._heaps[place])

    def move(self, queued: QueuedPod, place: Place) -> None:
        """Puts a pod into a place, out of the one where it waits, if it does."""
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
            self.parked.add(queued)
        else:
            heap.push(queued, key)

    def replace(self, queued: QueuedPod, pod: Pod) -> None:
        """Gives a waiting pod its newer value; it stays where it is, in its new order."""
        queued.pod = pod
        self.move(queued, queued.place)

    def take(self, queued: QueuedPod) -> None:
        """Takes out a waiting pod."""
        self._leave(queued.pod.uid, queued.place)
        self._forget(queued)

    def pop(self, place: Place) -> QueuedPod | None:
        """Takes out the first pod of a heap."""
        queued = self._heaps[place].pop()
        if queued is not None:
            self._forget(queued)
        return queued

    def backed_off(self, place: Place, now: float) -> QueuedPod | None:
        """A pod whose backoff is over, which stays in."""
        heap = self._heaps[place]
        first = heap.head_key()
        return heap.head() if first is not None and first[0] < floor(now) else None

    def backoff_end(self, place: Place) -> float | None:
        """When the next backoff is over: at the end of the second of its expiry."""
        first = self._heaps[place].head_key()
        return None if first is None else float(first[0] + 1)

    def _forget(self, queued: QueuedPod) -> None:
        pod = queued.pod
        del self._waiting[pod.uid]
        del self._uids[pod.key]
        queued.place = Place.NOWHERE

    def _leave(self, uid: str, place: Place) -> None:
        heap = self._heaps.get(place)
        if heap is None:
            self.parked.remove(uid)
        else:
            heap.remove(uid)

    def _key(self, queued: QueuedPod, place: Place) -> Any:
        order = self._sort_key(queued.pod, queued.timestamp)
        if place is Place.ACTIVE:
            return order
        return queued.expiry, order

    def check(self) -> None:
        """Raises AssertionError unless each waiting pod is in its place and nowhere else."""
        for uid, queued in self._waiting.items():
            found = [place for place, heap in self._heaps.items() if uid in heap]
            if uid in self.parked:
                gated = uid in self.parked.gated
                found.append(Place.GATED if gated else Place.UNSCHEDULABLE)
            assert found == [queued.place], f"{uid} is in {found}, not in {queued.place}"
            named = self._uids.get(queued.pod.key)
            assert named == uid, f"{queued.pod.key} is {named}, not {uid}"
        held = len(self.parked) + sum(map(len, self._heaps.values()))
        assert held == len(self), f"{held} pods in places, but {len(self)} wait"
        assert len(self._uids) == len(self), f"{len(self._uids)} names for {len(self)} pods"
        self.parked.check()
