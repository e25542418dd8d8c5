"""The arrays behind the nodes: written by the cluster, read by everyone through views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from moorage.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

from .arrays import Sums, grow_to
from .ledger import FindPods, Ledgers

#: Resources that every node has a column for, in this order.
FIRST_CLASS = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)

#: The two places of `nonzero_requested`.
NONZERO_CPU, NONZERO_MEMORY = 0, 1
NONZERO = {CPU: NONZERO_CPU, MEMORY: NONZERO_MEMORY}

_FIRST_CAPACITY = 64


class Columns:
    """One place per row in every array; rows of nodes that are gone hold zeros."""

    def __init__(self, placed: FindPods, nominated: FindPods, widened: Callable[[], None]) -> None:
        """`placed` and `nominated` return pods. `widened` is called when ledgers add columns."""
        self.capacity = _FIRST_CAPACITY
        #: What the pods that run on a row count for, and those that are nominated to it.
        self.ledgers = Ledgers(placed, self.capacity, widened)
        self.nominated = Ledgers(nominated, self.capacity)
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
        self.ledgers.grow(self.capacity)
        self.nominated.grow(self.capacity)
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
