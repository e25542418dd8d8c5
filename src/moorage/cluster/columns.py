"""The arrays behind the nodes: written by the cluster, read by everyone through views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage.objects.coexist import GROUP, group_of, is_exclusive, is_ordinary
from moorage.objects.pod import Pod
from moorage.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

from .arrays import Sums, grow_to
from .changes import Change

#: Resources that every node has a column for, in this order.
FIRST_CLASS = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)

#: The two places of `nonzero_requested`.
NONZERO_CPU, NONZERO_MEMORY = 0, 1
NONZERO = {CPU: NONZERO_CPU, MEMORY: NONZERO_MEMORY}

_FIRST_CAPACITY = 64

V = TypeVar("V")


#: The two places of `CoexistingPods.counts`.
EXCLUSIVE_PODS, ORDINARY_PODS = 0, 1

# Plain integers: combining flags of an enum takes many times as long.
_EXCLUSIVE, _ORDINARY = int(Change.EXCLUSIVE), int(Change.ORDINARY)


def coexistence_change(pod: Pod) -> int:
    """Returns what a pod that comes or goes changes in the counts of `CoexistingPods`."""
    if pod.owner is None and not pod.annotations and not pod.spec.coexist_policy:
        # Most pods of a benchmark and many of a cluster: nothing needs to be looked up.
        return _ORDINARY
    kinds = _EXCLUSIVE if is_exclusive(pod) else 0
    return kinds | _ORDINARY if is_ordinary(pod) else kinds


class CoexistingPods:
    """The counts for the coexist policy: how many pods of a row tolerate others, and which.

    Pods are counted whether the feature gate is on or off; the gate decides who reads the counts.
    """

    def __init__(self, counts: NDArray[np.int32]) -> None:
        self.show(counts)
        #: By coexist group and row, how many of these are its members.
        self.groups: dict[str, dict[int, tuple[int, int]]] = {}
        #: By namespace and row, how many of the exclusive ones are its pods.
        self.holders: dict[str, dict[int, int]] = {}
        self._is_copy = False

    def show(self, counts: NDArray[np.int32]) -> None:
        """Counts in these arrays from now on."""
        #: int32[exclusive or ordinary, row]
        self.counts = counts
        # Single numbers are read and written faster so.
        self._exclusive: memoryview[int] = memoryview(counts[EXCLUSIVE_PODS])
        self._ordinary: memoryview[int] = memoryview(counts[ORDINARY_PODS])

    @property
    def exclusive(self) -> NDArray[np.int32]:
        """How many pods of each row tolerate no others."""
        return self.counts[EXCLUSIVE_PODS]

    @property
    def ordinary(self) -> NDArray[np.int32]:
        """How many pods of each row are neither a daemonset's nor static."""
        return self.counts[ORDINARY_PODS]

    def count(self, pod: Pod, row: int, amount: int, kinds: int) -> None:
        """Counts a pod that came to (1) or left (-1) a row; `kinds` is its `coexistence_change`."""
        if kinds & _EXCLUSIVE:
            self._exclusive[row] += amount
            rows = self.holders.get(pod.namespace)
            if not rows or self._is_copy:
                rows = self._writable(self.holders, pod.namespace)
            held = rows[row] = rows.get(row, 0) + amount
            if not held:
                self._let_go(pod.namespace, rows, row)
        if kinds & _ORDINARY:
            self._ordinary[row] += amount
        if GROUP in pod.annotations:
            self._join(pod, row, amount, kinds)

    def _let_go(self, namespace: str, rows: dict[int, int], row: int) -> None:
        """Removes a row that has no exclusive pods of a namespace any more."""
        del rows[row]
        if not rows:
            del self.holders[namespace]

    def _join(self, pod: Pod, row: int, amount: int, kinds: int) -> None:
        group = group_of(pod)
        if group is None:
            return
        rows = self._writable(self.groups, group)
        exclusive, ordinary = rows.get(row, (0, 0))
        exclusive += amount * bool(kinds & _EXCLUSIVE)
        ordinary += amount * bool(kinds & _ORDINARY)
        rows[row] = exclusive, ordinary
        if not (exclusive or ordinary):
            del rows[row]
        if not rows:
            del self.groups[group]

    def _writable(self, kept: dict[str, dict[int, V]], key: str) -> dict[int, V]:
        rows = kept.get(key, {})
        if self._is_copy or not rows:
            rows = kept[key] = dict(rows)
        return rows

    def copy(self) -> CoexistingPods:
        """Returns one that can be changed without changing this one."""
        other = CoexistingPods(self.counts.copy())
        other.groups, other.holders = dict(self.groups), dict(self.holders)
        other._is_copy = True
        return other


class Columns:
    """One place per row in every array; rows of nodes that are gone hold zeros."""

    def __init__(self) -> None:
        self.capacity = _FIRST_CAPACITY
        #: The place of each resource that some node offers.
        self.resources: dict[str, int] = {name: at for at, name in enumerate(FIRST_CLASS)}
        #: How many places there are; those of resources that nobody offers any more are free.
        self.places = len(FIRST_CLASS)
        self._free_places: list[int] = []
        self._offers: Counter[str] = Counter()
        #: Grows whenever a resource gets or loses its place.
        self.version = 0
        #: Per row, what its pods ask for of resources that no node offers.
        self.unoffered: dict[int, dict[str, int]] = {}
        self.alive: NDArray[np.bool_] = np.zeros(self.capacity, np.bool_)
        self.unschedulable: NDArray[np.bool_] = np.zeros(self.capacity, np.bool_)
        self.taint_sets: NDArray[np.intp] = np.zeros(self.capacity, np.intp)
        self.feature_sets: NDArray[np.intp] = np.zeros(self.capacity, np.intp)
        self.resource_sets: NDArray[np.intp] = np.zeros(self.capacity, np.intp)
        #: int64[resource, row]: each resource is one contiguous column.
        self.allocatable: NDArray[np.int64] = self._per_resource()
        self.requested = Sums(self._per_resource())
        #: int64[cpu or memory, row]
        self.nonzero_requested = Sums.zeros((2, self.capacity))
        self.coexisting = CoexistingPods(np.zeros((2, self.capacity), np.int32))

    def offer(self, names: Iterable[str]) -> None:
        """Notes that one more row offers these resources; new ones get a position."""
        for name in names:
            self._offers[name] += 1
            if name not in self.resources:
                self._add_place(name)

    def withdraw(self, names: Iterable[str]) -> None:
        """Notes that one row fewer offers these resources; those that none offers lose theirs."""
        for name in names:
            self._offers[name] -= 1
            if not self._offers[name]:
                del self._offers[name]
                if name not in FIRST_CLASS:
                    self._drop_place(name)

    def request_unoffered(self, row: int, name: str, amount: int) -> None:
        """Counts a request for a resource that no node offers, for when one does."""
        asked = self.unoffered.setdefault(row, {})
        asked[name] = asked.get(name, 0) + amount
        if not asked[name]:
            del asked[name]
            if not asked:
                del self.unoffered[row]

    def _add_place(self, name: str) -> None:
        at = self._free_places.pop() if self._free_places else self.places
        self.resources[name] = at
        self.places = max(self.places, at + 1)
        self.version += 1
        if at >= len(self.allocatable):
            self.allocatable = _with_more_resources(self.allocatable)
            self.requested.array = _with_more_resources(self.requested.array)
        for row in [row for row, asked in self.unoffered.items() if name in asked]:
            amount = self.unoffered[row][name]
            self.requested.add(at, row, amount)
            self.request_unoffered(row, name, -amount)

    def _drop_place(self, name: str) -> None:
        at = self.resources.pop(name)
        self.version += 1
        self._free_places.append(at)
        for row in np.flatnonzero(self.requested.array[at]).tolist():
            amount = self.requested.exact(at, row)
            self.request_unoffered(row, name, amount)
            self.requested.add(at, row, -amount)
        self.allocatable[at] = 0

    def reserve(self, capacity: int) -> bool:
        """Makes room for that many rows; returns whether the arrays were replaced."""
        if capacity <= self.capacity:
            return False
        self.alive = grow_to(self.alive, capacity, False)
        self.capacity = len(self.alive)
        self.unschedulable = grow_to(self.unschedulable, self.capacity, False)
        self.taint_sets = grow_to(self.taint_sets, self.capacity)
        self.feature_sets = grow_to(self.feature_sets, self.capacity)
        self.resource_sets = grow_to(self.resource_sets, self.capacity)
        self.allocatable = grow_to(self.allocatable, self.capacity)
        self.requested.grow(self.capacity)
        self.nonzero_requested.grow(self.capacity)
        self.coexisting.show(grow_to(self.coexisting.counts, self.capacity))
        return True

    def clear(self, row: int) -> None:
        self.alive[row] = False
        self.unschedulable[row] = False
        self.taint_sets[row] = 0
        self.feature_sets[row] = 0
        self.resource_sets[row] = 0
        self.allocatable[:, row] = 0

    def _per_resource(self) -> NDArray[np.int64]:
        return np.zeros((2 * len(FIRST_CLASS), self.capacity), np.int64)


def _with_more_resources(array: NDArray[np.int64]) -> NDArray[np.int64]:
    more = np.zeros((2 * len(array), array.shape[1]), np.int64)
    more[: len(array)] = array
    return more


#: All numbers of a row, in one value that can be compared and looked up.
Figures = tuple[int, ...]


@dataclass(slots=True)
class RowFacts:
    """What a row has and what is taken, by the position of each resource."""

    number: int
    allocatable: list[int]
    requested: list[int]
    #: Cpu and memory as scoring counts them.
    nonzero_requested: list[int]
    #: What plugins found out about the row alone, whichever pod: good while these facts are.
    derived: dict[Hashable, int] = field(default_factory=dict)
    #: The figures, once they were asked for.
    known_figures: Figures | None = None

    @property
    def figures(self) -> Figures:
        """Returns all numbers: a plugin that reads nothing else answers alike for equal figures."""
        known = self.known_figures
        if known is None:
            known = (*self.allocatable, *self.requested, *self.nonzero_requested)
            self.known_figures = known
        return known

    def reset(self) -> None:
        """Forgets derived values, because some numbers have changed."""
        self.known_figures = None
        self.derived.clear()
