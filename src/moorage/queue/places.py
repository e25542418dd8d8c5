"""The place of each waiting entity: one of the heaps, unschedulable, or set aside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from math import floor, inf
from typing import Any

from moorage.documents.errors import STOPPED
from moorage.objects.pod import Pod

from .entity import BACKING_OFF, Entity, EntityKey, Place
from .entity_heap import EntityHeap
from .queue_events import Listeners
from .unschedulable import UnschedulableEntities

#: The order in which pods are tried: the smallest key first.
SortKey = Callable[[Pod, float], Any]


def by_priority(pod: Pod, timestamp: float) -> tuple[int, float]:
    """Returns the sort key that needs no plugin: higher priority first, then older pods."""
    return -pod.priority, timestamp


class Places:
    """The active heap, the two backoff heaps, the unschedulable entities, and those set aside.

    An entity is set aside if only the state of its group can help it.
    """

    def __init__(
        self,
        sort_key: SortKey,
        patience: float,
        listeners: Listeners,
        on_broken_order: Callable[[BaseException], None],
        divides: Callable[[Pod], bool] | None,
    ) -> None:
        """`on_broken_order` is called once if the sort key has to be given up.

        `divides` returns whether `holds_back` concerns a pod.
        """
        self._sort_key = sort_key
        self._on_broken_order = on_broken_order
        self._divides = divides
        #: Whether the pods that can be held back are not popped.
        self.holds_back = False
        #: By place. Where pods can be held back, a second heap has these.
        self._heaps: dict[Place, list[EntityHeap]] = {
            place: [EntityHeap(self._order_by_priority) for _ in range(1 if divides is None else 2)]
            for place in ("active", "backoff", "error backoff")
        }
        self.unschedulable = UnschedulableEntities(patience, listeners)
        self._aside: dict[EntityKey, Entity] = {}
        self._waiting: dict[EntityKey, Entity] = {}
        #: The uids of pods that are no members of gangs, by namespace and name.
        self._names: dict[str, EntityKey] = {}
        #: Before this moment no backoff ends, and nothing has waited too long.
        self.due = inf

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, key: EntityKey) -> bool:
        return key in self._waiting

    def __iter__(self) -> Iterator[Entity]:
        return iter(self._waiting.values())

    def get(self, key: EntityKey) -> Entity | None:
        """Returns a waiting entity."""
        return self._waiting.get(key)

    def find_by_name(self, name: str) -> Entity | None:
        """Returns the waiting pod of this namespace and name."""
        key = self._names.get(name)
        return None if key is None else self._waiting[key]

    def sizes(self) -> dict[str, int]:
        """Counts entities by the queues of kube-scheduler's metrics."""
        count = {place: sum(map(len, heaps)) for place, heaps in self._heaps.items()}
        gated = len(self.unschedulable.gated)
        return {
            "active": count["active"],
            "backoff": count["backoff"] + count["error backoff"],
            "unschedulable": len(self.unschedulable) - gated,
            "gated": gated + sum(each.place == "gated" for each in self._aside.values()),
        }

    def move(self, queued: Entity, place: Place) -> None:
        """Moves an entity to a place, from the one where it waits if there is one."""
        key = queued.key
        is_heap = place in self._heaps
        # A plugin makes the sort key: if it raises, the entity stays where it is.
        order = self._order(queued, place) if is_heap else None
        if key in self._waiting:
            self._leave(key, queued.place)
        else:
            self._waiting[key] = queued
            if key == queued.pod.uid:
                self._names[queued.pod.key] = key
        queued.place = place
        due = inf
        if is_heap:
            heaps = self._heaps[place]
            is_divided = self._divides is not None and self._divides(queued.pod)
            heaps[is_divided].push(queued, order)
            if place != "active":
                due = queued.expiry + 1
        elif queued.is_held or place == "incomplete":
            self._aside[key] = queued
        else:
            self.unschedulable.add(queued)
            due = queued.swept_at
        if due < self.due:
            self.due = due

    def refresh(self, queued: Entity) -> None:
        """Puts an entity that has changed in order; it stays in its place."""
        if queued.key in self.unschedulable and self.unschedulable.is_filed_as(queued):
            return
        self.move(queued, queued.place)

    def take(self, queued: Entity) -> None:
        """Takes out a waiting entity."""
        self._leave(queued.key, queued.place)
        self._forget(queued)

    def is_ready(self, place: Place) -> bool:
        """Whether an entity of a heap can be popped."""
        return bool(self._first(place))

    def pop(self, place: Place) -> Entity | None:
        """Takes out the first entity of a heap."""
        queued = self._first(place).pop()
        if queued is not None:
            self._forget(queued)
        return queued

    def _first(self, place: Place) -> EntityHeap:
        """Returns the heap whose first entity is popped next; it may be empty."""
        heaps = self._heaps[place]
        if self._divides is None or self.holds_back or not heaps[1]:
            return heaps[0]
        return heaps[0] if heaps[0] and heaps[0].is_before(heaps[1]) else heaps[1]

    def next_backed_off(self, now: float) -> Entity | None:
        """Returns an entity whose backoff is over, without removing it."""
        for heap in self._backing_off():
            first = heap.head_key()
            if first is not None and first[0] < floor(now):
                return heap.head()
        return None

    def find_due(self) -> float:
        """Returns when the next backoff ends or one has waited too long; infinity if never."""
        due = self.unschedulable.next_sweep()
        for heap in self._backing_off():
            first = heap.head_key()
            if first is not None:
                # A backoff is over at the end of the second of its expiry.
                due = min(due, float(first[0] + 1))
        return due

    def _backing_off(self) -> Iterator[EntityHeap]:
        return chain.from_iterable(self._heaps[place] for place in BACKING_OFF)

    def _forget(self, queued: Entity) -> None:
        del self._waiting[queued.key]
        if queued.key == queued.pod.uid:
            del self._names[queued.pod.key]
        queued.place = "nowhere"

    def _leave(self, key: EntityKey, place: Place) -> None:
        if place in self._heaps:
            next(heap for heap in self._heaps[place] if key in heap).remove(key)
        elif key in self.unschedulable:
            self.unschedulable.remove(key)
        else:
            del self._aside[key]

    def _order_by_priority(self, error: BaseException) -> None:
        """Orders by priority and age from now on, because sort keys cannot be compared."""
        if self._sort_key is not by_priority:
            self._sort_key = by_priority
            self._on_broken_order(error)
        for place, heaps in self._heaps.items():
            for heap in heaps:
                heap.reorder(partial(self._order, place=place))

    def _order(self, queued: Entity, place: Place) -> Any:
        try:
            order = self._sort_key(queued.pod, queued.timestamp)
        except STOPPED as error:  # whatever a plugin raises
            self._order_by_priority(error)
            order = by_priority(queued.pod, queued.timestamp)
        if place == "active":
            return order
        return queued.expiry, order

    def check(self) -> None:
        """Raises AssertionError unless each waiting entity is in its place and nowhere else."""
        for key, queued in self._waiting.items():
            found = [at for at, heaps in self._heaps.items() for heap in heaps if key in heap]
            if key in self.unschedulable:
                found.append("gated" if key in self.unschedulable.gated else "unschedulable")
            if key in self._aside:
                found.append("gated" if queued.is_held else "incomplete")
            assert found == [queued.place], f"{key} is in {found}, not in {queued.place}"
        heaps = chain.from_iterable(self._heaps.values())
        held = len(self.unschedulable) + len(self._aside) + sum(map(len, heaps))
        assert held == len(self), f"{held} entities in places, but {len(self)} wait"
        names = {each.pod.key: key for key, each in self._waiting.items() if key == each.pod.uid}
        assert self._names == names, "pods are not known by their names"
        assert self.due <= self.find_due(), f"nothing is looked for before {self.due}"
        self.unschedulable.check()
