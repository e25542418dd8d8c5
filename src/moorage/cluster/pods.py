"""Pods as columns: those that are placed, and those that are nominated to a node."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray

from moorage.objects.pod import Pod

from .arrays import grow_to
from .columns import Columns
from .usage import Usage

# The pods of more rows than these are found by a look at all pods.
_ROW_BY_ROW = 16


@dataclass(frozen=True, slots=True)
class LesserPods:
    """Pods of some rows that are less important than another, the most important first per row.

    Rows without any are left out. Flat arrays hold the pods of all rows, one row after the other.
    """

    rows: NDArray[np.intp]
    #: Where each row's pods begin in the flat arrays, and how many they are.
    begins: NDArray[np.intp]
    counts: NDArray[np.intp]
    slots: NDArray[np.intp]
    priorities: NDArray[np.int64]
    starts: NDArray[np.float64]
    usage: Usage
    table: PodTable

    def pods(self, at: int) -> tuple[Pod, ...]:
        """Returns the pods of the row at a position."""
        begin = int(self.begins[at])
        return self.named(self.slots[begin : begin + int(self.counts[at])])

    def take(self, chosen: NDArray[np.intp]) -> LesserPods:
        """Returns some of the pods, by their positions in the flat arrays, still row by row."""
        places = np.repeat(np.arange(len(self.rows)), self.counts)[chosen]
        begins = np.flatnonzero(np.diff(places, prepend=-1))
        return LesserPods(
            self.rows[places[begins]],
            begins,
            np.diff(begins, append=len(chosen)),
            self.slots[chosen],
            self.priorities[chosen],
            self.starts[chosen],
            self.usage.at(chosen),
            self.table,
        )

    def named(self, slots: NDArray[np.intp]) -> tuple[Pod, ...]:
        return tuple(self.table.pod(slot) for slot in slots.tolist())


class PodTable:
    """One slot per placed pod; slots of pods that are gone are reused.

    A pod gets its slot when the slots are next asked for: where no priority is lower than another,
    they never are.
    """

    def __init__(self, columns: Columns, on_row: Sequence[Mapping[str, Pod]]) -> None:
        """`on_row` has the pods of each row, by uid."""
        self._columns = columns
        #: The pods without a slot and their rows, by uid, in the order in which they came.
        self._new: dict[str, tuple[Pod, int]] = {}
        self._free: list[int] = []
        #: Whether anybody asked since the last sweep.
        self.is_asked = True
        # How many pods of each row were reported to have started at another time.
        self._restarts: NDArray[np.int64] = np.zeros(len(on_row), np.int64)
        pods = [pod for each in on_row for pod in each.values()]
        self._slots: dict[str, int] = dict(zip(chain.from_iterable(on_row), count()))
        self._pods: list[Pod | None] = [*pods]
        self._rows: NDArray[np.intp] = np.arange(len(on_row)).repeat([len(each) for each in on_row])
        priorities = [pod.spec.priority or 0 for pod in pods]
        self._priorities: NDArray[np.int64] = np.array(priorities, np.int64)
        #: How many pods there are of each priority.
        self._at_priority = Counter(priorities)
        self._starts: NDArray[np.float64] = np.array([start_of(pod) for pod in pods], np.float64)
        #: Tells equally important pods apart: who came first stays first.
        self._order: NDArray[np.int64] = np.arange(len(pods))
        self._arrivals = len(pods)
        self._usage = _add_up(pods, columns)

    def pod(self, slot: int) -> Pod:
        pod = self._pods[slot]
        assert pod is not None, f"slot {slot} has no pod"
        return pod

    def add(self, pod: Pod, row: int) -> None:
        self._new[pod.uid] = pod, row
        self._at_priority[pod.priority] += 1

    def remove(self, pod: Pod) -> None:
        known = self._new.pop(pod.uid, None)
        if known is not None:
            self._leave_priority(known[0].priority)
            return
        slot = self._slots.pop(pod.uid)
        self._leave_priority(self._priorities.item(slot))
        self._pods[slot] = None
        self._rows[slot] = -1
        self._free.append(slot)

    def replace(self, pod: Pod) -> None:
        """Takes in a newer form of a pod that counts for the same."""
        known = self._new.get(pod.uid)
        if known is not None:
            before, row = known
            self._new[pod.uid] = pod, row
        else:
            slot = self._slots[pod.uid]
            before, row = self.pod(slot), int(self._rows[slot])
            self._describe(pod, slot)
        if before.status is not pod.status and start_of(before) != start_of(pod):
            self.count_restarts(row + 1)[row] += 1
        if before.priority != pod.priority:
            self._leave_priority(before.priority)
            self._at_priority[pod.priority] += 1

    def _leave_priority(self, priority: int) -> None:
        left = self._at_priority[priority] - 1
        if left:
            self._at_priority[priority] = left
        else:
            del self._at_priority[priority]

    def has_below(self, priority: int) -> bool:
        """Whether there is any pod of a lower priority."""
        self.is_asked = True
        return min(self._at_priority, default=priority) < priority

    def arrivals_of(self, slots: NDArray[np.intp]) -> NDArray[np.int64]:
        """Returns numbers that say in which order the pods of slots came."""
        return self._order[slots]

    def count_restarts(self, rows: int) -> NDArray[np.int64]:
        """Returns for at least that many rows how often a pod there got another start time."""
        self._restarts = grow_to(self._restarts, rows)
        return self._restarts

    def below(
        self, priority: int, rows: NDArray[np.intp], on_row: Sequence[Mapping[str, Pod]]
    ) -> LesserPods:
        """Returns the pods of a lower priority on some rows, in the order of the rows.

        `on_row` has the pods of each row, by uid.
        """
        self._give_slots()
        self._widen()
        self.is_asked = True
        if len(rows) <= _ROW_BY_ROW:
            slots, places = self._read_rows(rows.tolist(), on_row)
        else:
            slots, places = self._search_rows(rows, len(on_row))
        lesser = self._priorities[slots] < priority
        slots, places = slots[lesser], places[lesser]
        if len(slots) > 1:
            keys = self._order[slots], self._starts[slots], -self._priorities[slots], places
            in_order = np.lexsort(keys)
            slots, places = slots[in_order], places[in_order]
        # The places are in order by now: a row begins wherever the next one differs.
        begins = np.flatnonzero(np.diff(places, prepend=-1))
        return LesserPods(
            rows[places[begins]],
            begins,
            np.diff(begins, append=len(slots)),
            slots,
            self._priorities[slots],
            self._starts[slots],
            self._usage.at(slots),
            self,
        )

    def _read_rows(
        self, rows: list[int], on_row: Sequence[Mapping[str, Pod]]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Returns the slots of the pods on a few rows, and the position of each one's row."""
        found = [(self._slots[uid], at) for at, row in enumerate(rows) for uid in on_row[row]]
        slots, places = np.array(found, np.intp).reshape(-1, 2).T
        return slots, places

    def _search_rows(
        self, rows: NDArray[np.intp], capacity: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Returns the same for many rows, by a look at all pods."""
        place = np.full(capacity + 1, -1, np.intp)
        place[rows] = np.arange(len(rows))
        # A slot without a pod has row -1 and so finds the last place, which is no row's.
        places = place[self._rows[: len(self._pods)]]
        slots = np.flatnonzero(places >= 0)
        return slots, places[slots]

    def sweep(self) -> bool:
        """Returns whether the table was asked for since the last sweep."""
        was_asked, self.is_asked = self.is_asked, False
        return was_asked

    def _describe(self, pod: Pod, slot: int) -> None:
        self._pods[slot] = pod
        self._priorities[slot] = pod.priority
        self._starts[slot] = start_of(pod)

    def _give_slots(self) -> None:
        """Gives slots to the pods that came since the slots were last asked for."""
        for pod, row in self._new.values():
            slot = self._new_slot(pod)
            self._rows[slot] = row
            self._order[slot] = self._arrivals
            self._arrivals += 1
            self._usage.clear(slot)
            self._usage.count(pod, slot, 1, self._columns)
            self._describe(pod, slot)
        self._new.clear()

    def _new_slot(self, pod: Pod) -> int:
        if self._free:
            slot = self._free.pop()
        else:
            slot = len(self._pods)
            self._pods.append(None)
            self._grow(slot + 1)
        self._widen()
        self._slots[pod.uid] = slot
        return slot

    def _widen(self) -> None:
        """Makes room for resources and slots that came after the table."""
        self._usage = self._usage.fit(self._columns, len(self._rows))

    def _grow(self, length: int) -> None:
        if length > len(self._rows):
            self._rows = grow_to(self._rows, length, -1)
            self._priorities = grow_to(self._priorities, length)
            self._starts = grow_to(self._starts, length)
            self._order = grow_to(self._order, length)

    def __iter__(self) -> Iterable[tuple[int, Pod]]:
        """Returns every pod with its row."""
        self._give_slots()
        return ((int(self._rows[slot]), self.pod(slot)) for slot in self._slots.values())


def _add_up(pods: Sequence[Pod], columns: Columns) -> Usage:
    """Returns what many pods take, computed once for all pods of a template."""
    kinds: dict[tuple[object, ...], int] = {}
    first: list[Pod] = []
    of_pod: list[int] = []
    for pod in pods:
        granted = id(pod.status) if pod.status.sizes else 0
        key = id(pod.spec), granted, columns.ledgers.weigh(pod)
        kind = kinds.get(key)
        if kind is None:
            kind = kinds[key] = len(first)
            first.append(pod)
        of_pod.append(kind)
    usage = Usage.nothing(columns, len(first))
    for kind, pod in enumerate(first):
        usage.count(pod, kind, 1, columns)
    return usage.at(np.array(of_pod, np.intp))


def start_of(pod: Pod) -> float:
    """Returns when a pod started; one that has not counts as younger than all others."""
    moment = pod.status.start_time
    return math.inf if moment is None else pod.started or 0.0


class NominatedPods:
    """Which pod is nominated to which node. A node need not exist."""

    def __init__(self) -> None:
        self._node_of: dict[str, str] = {}
        self._pods_on: dict[str, dict[str, Pod]] = {}
        #: What nominated pods will take, per row, by their priority; and how many of them count.
        self._levels: dict[int, Usage] = {}
        self._counted: dict[int, int] = {}
        #: Whether there is any: every decision looks at it.
        self.are_there = False

    def node_of(self, pod: Pod) -> str:
        """Returns the node a pod is nominated to, or an empty name."""
        return self._node_of.get(pod.uid, "")

    def on(self, node_name: str) -> Mapping[str, Pod]:
        """Returns the pods nominated to a node, by uid."""
        return self._pods_on.get(node_name, {})

    def __bool__(self) -> bool:
        return self.are_there

    def __iter__(self) -> Iterator[tuple[str, Mapping[str, Pod]]]:
        """Nodes with their nominated pods."""
        return iter(self._pods_on.items())

    def weight(self, priority: int, columns: Columns) -> Usage | None:
        """Returns what pods of at least a priority will take, per row; None if there are none."""
        total: Usage | None = None
        for level_priority, level in self._levels.items():
            if level_priority >= priority:
                level = level.fit(columns, columns.capacity)
                total = level if total is None else total + level
        return total


class Nominations(NominatedPods):
    """The writer of the nominations, for the cluster."""

    def put(self, pod: Pod, node_name: str) -> None:
        self._node_of[pod.uid] = node_name
        self._pods_on.setdefault(node_name, {})[pod.uid] = pod
        self.are_there = True

    def drop(self, uid: str) -> Pod | None:
        """Ends a pod's nomination; returns the pod as it was nominated."""
        node_name = self._node_of.pop(uid, "")
        if not node_name:
            return None
        pods = self._pods_on[node_name]
        pod = pods.pop(uid)
        if not pods:
            del self._pods_on[node_name]
        self.are_there = bool(self._node_of)
        return pod

    def count(self, pod: Pod, row: int, amount: int, columns: Columns) -> None:
        """Counts a nomination to a row that began (1) or ended (-1)."""
        priority, places = pod.priority, columns.capacity
        level = self._levels.get(priority) or Usage.nothing(columns, places)
        level = level.fit(columns, places)
        level.count(pod, row, amount, columns)
        counted = self._counted.get(priority, 0) + amount
        if counted:
            self._levels[priority], self._counted[priority] = level, counted
        else:
            del self._levels[priority], self._counted[priority]

    def recount(self, nominated: Iterable[tuple[int, Pod]], columns: Columns) -> None:
        """Counts all again, because a resource or a ledger got or lost its columns."""
        self._levels.clear()
        self._counted.clear()
        for row, pod in nominated:
            self.count(pod, row, 1, columns)
