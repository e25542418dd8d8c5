"""What pods use of the rows they are on: counted in columns, added up, and noted as changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.objects.held import Held
from moorage.objects.per_template import once_per_template
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodSpec
from moorage.objects.resources import PODS

from .arrays import Sums, grow_to
from .changes import Change
from .columns import FIRST_CLASS, NONZERO_CPU, NONZERO_MEMORY, Columns, RowFacts

#: The column that counts pods, which is there from the beginning.
PODS_PLACE = FIRST_CLASS.index(PODS)

# Plain integers: combining flags of an enum takes many times as long.
_POD_ANNOTATIONS, _POD_STATUS = int(Change.POD_ANNOTATIONS), int(Change.POD_STATUS)
_ANY_POD = int(Change.REQUESTED | Change.PODS)
_VOLUMES, _TERMS = int(Change.VOLUMES), int(Change.TERMS)

#: What `find_retold` can say.
RETOLD = _POD_ANNOTATIONS | _POD_STATUS


# Requests


def count_requests(columns: Columns, facts: RowFacts, held: Held, amount: int) -> None:
    """A pod came to (1) or left (-1) a row. What no node offers has no column.

    Facts are kept up to date: plain numbers are added up faster than those of an array, and the
    next decision that looks at the row needs them.
    """
    places, known, sums = columns.resources, facts.requested, columns.requested
    array, most, row = sums.array, sums.most_simple, facts.number
    for name, request in held.requests:
        at = places.get(name)
        if at is None:
            columns.request_unoffered(row, name, amount * request)
            continue
        total = known[at] + amount * request
        if total > most:
            total = sums.add(at, row, amount * request)
        else:
            array[at, row] = total
        known[at] = total
    known[PODS_PLACE] = array[PODS_PLACE, row] = known[PODS_PLACE] + amount
    known, sums = facts.nonzero_requested, columns.nonzero_requested
    cpu = known[NONZERO_CPU] + amount * held.nonzero_cpu_milli
    memory = known[NONZERO_MEMORY] + amount * held.nonzero_memory_bytes
    most = sums.most_simple
    if cpu > most or memory > most:
        known[:] = add_nonzero(sums, held, row, amount)
    else:
        known[:] = cpu, memory
        sums.array[NONZERO_CPU, row] = cpu
        sums.array[NONZERO_MEMORY, row] = memory
    facts.reset()


def add_requests(
    sums: Sums, resources: Mapping[str, int], held: Held, row: int, amount: int
) -> None:
    """Adds (1) or takes away (-1) what a pod asks for where it has a column, and the pod itself."""
    for name, request in held.requests:
        at = resources.get(name)
        if at is not None:
            sums.add(at, row, amount * request)
    sums.add(PODS_PLACE, row, amount)


def add_nonzero(sums: Sums, held: Held, row: int, amount: int) -> tuple[int, int]:
    """Adds what scoring counts; returns what the columns then hold."""
    return (
        sums.add(NONZERO_CPU, row, amount * held.nonzero_cpu_milli),
        sums.add(NONZERO_MEMORY, row, amount * held.nonzero_memory_bytes),
    )


# Changes


def counts_alike(known: Pod, seen: Pod, columns: Columns) -> bool:
    """Whether a pod counts for the same as before, so that only the object is newer."""
    return (
        known.node_name == seen.node_name
        and known.spec is seen.spec
        and known.labels == seen.labels
        and known.owner == seen.owner
        and known.terminating == seen.terminating
        and (known.status is seen.status or known.held == seen.held)
        and (known.annotations == seen.annotations or columns.ledgers.agree(known, seen))
    )


def find_retold(known: Pod, seen: Pod) -> int:
    """Returns what changed of a pod that counts for the same as before."""
    kinds = 0
    if known.annotations != seen.annotations:
        kinds |= _POD_ANNOTATIONS
    if known.status is not seen.status and known.status != seen.status:
        kinds |= _POD_STATUS
    return kinds


@once_per_template
def template_change(spec: PodSpec) -> int:
    """Returns what the coming or going of a pod of this template changes, besides ledgers."""
    kinds = _ANY_POD
    if spec.volumes:
        kinds |= _VOLUMES
    if spec.has_terms:
        kinds |= _TERMS
    return kinds


# Many pods or rows at once


@dataclass(frozen=True, slots=True)
class Usage:
    """The room that pods use, and what they count for. A place is a pod or a row."""

    #: int64[resource, place]
    requests: Sums
    #: int64[column of a ledger, place]
    counts: NDArray[np.int64]

    @classmethod
    def nothing(cls, columns: Columns, places: int) -> Usage:
        """Nothing, for so many places."""
        requests = Sums.zeros((len(columns.requested.array), places))
        return cls(requests, np.zeros((columns.ledgers.width, places), np.int64))

    def count(self, pod: Pod, place: int, amount: int, columns: Columns) -> None:
        """Adds (1) or takes away (-1) what a pod takes of resources that have a column."""
        add_requests(self.requests, columns.resources, pod.held, place, amount)
        for at, many in columns.ledgers.weigh(pod):
            self.counts[at, place] += amount * many

    def clear(self, place: int) -> None:
        self.requests.clear(place)
        self.counts[:, place] = 0

    def pods(self) -> NDArray[np.int64]:
        """Returns how many pods there are per place."""
        return self.requests.array[PODS_PLACE]

    def at(self, places: NDArray[np.intp]) -> Usage:
        """Returns what is taken at some places."""
        return Usage(self.requests.at(places), self.counts.take(places, axis=1))

    def sum_groups(self, begins: NDArray[np.intp]) -> Usage:
        """Sums of the places from each beginning to the next."""
        return Usage(self.requests.sum_groups(begins), np.add.reduceat(self.counts, begins, axis=1))

    def fit(self, columns: Columns, places: int) -> Usage:
        """Returns the same with room for resources and places that came later."""
        shape = len(columns.requested.array), places
        if self.requests.array.shape == shape:
            return self
        return Usage(self.requests.fit(shape), grow_to(self.counts, places)[:, :places])

    def copy(self) -> Usage:
        return Usage(self.requests.copy(), self.counts.copy())

    def __neg__(self) -> Usage:
        return Usage(-self.requests, -self.counts)

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.requests + other.requests, self.counts + other.counts)
