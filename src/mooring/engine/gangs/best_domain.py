"""The best domain for gangs of like members, kept while it stays the best."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Nodes
from mooring.cluster.changes import Change
from mooring.objects.pod import Pod

from .domain_choice import DomainQuestion
from .domain_use import find_places, find_requested
from .key_domains import find_changed, split_by
from .member_fits import count_on, find_asked

_ALLOCATABLE = int(Change.ALLOCATABLE)


class BestDomain(NamedTuple):
    """The domain that is best for a gang, by its place among all of its label."""

    place: int
    #: How many members it takes.
    members: int
    #: How many domains take enough members.
    feasible: int


class KeptDomain:
    """The best domain for gangs of like members, and what makes it so.

    The fuller a domain is the better, as long as it takes as many members as before. So it stays
    the best while only its own rows change, and these only become fuller.
    """

    __slots__ = ("_best", "_bits", "_fits", "_generation", "_pod", "_room", "_size", "_used")

    def __init__(self, pod: Pod, bits: NDArray[np.int64], size: int) -> None:
        """For so many pods like one, which rows with a bit do not take."""
        self._size = size
        # Nothing else gets the id of the bits, or of the pod's template, while they are kept.
        self._pod, self._bits = pod, bits
        self._best: BestDomain | None = None
        self._generation = 0
        #: How many such pods its rows take, and all of them together.
        self._fits: dict[int, int] = {}
        self._room = 0
        #: What is requested on its rows, by resource that is scored.
        self._used: dict[int, list[int]] = {}

    def keep(self, best: BestDomain, question: DomainQuestion, nodes: Nodes) -> None:
        """A domain was found to be the best."""
        assert nodes.changes is not None, "only rows that are there are kept"
        self._best, self._generation = best, nodes.changes.generation
        rows = split_by(question.key, nodes).domains[best.place].rows
        numbers = [] if rows is None else rows.tolist()
        asked = find_asked(self._pod.requests, nodes)
        columns = _find_columns(question, nodes)
        self._fits = {row: count_on(row, self._bits, asked, nodes) for row in numbers}
        self._room = sum(self._fits.values())
        self._used = {row: [each.item(row) for each in columns] for row in numbers}

    def find(self, question: DomainQuestion, nodes: Nodes) -> BestDomain | None:
        """The domain if it is still the best, caught up with its rows."""
        best = self._best
        changed = None if best is None else find_changed(self._generation, nodes)
        if best is None or changed is None or nodes.changes is None:
            return None
        if changed and not self._catch_up(changed, question, nodes):
            return None
        self._generation = nodes.changes.generation
        return best if min(self._room, self._size) == best.members else None

    def _catch_up(self, changed: dict[int, int], question: DomainQuestion, nodes: Nodes) -> bool:
        """Takes in rows that changed; False if these are others, or not fuller than before."""
        fits, used = self._fits, self._used
        asked = find_asked(self._pod.requests, nodes)
        columns = _find_columns(question, nodes)
        for row, kinds in changed.items():
            before = used.get(row)
            if before is None or kinds & _ALLOCATABLE:
                return False
            now = [each.item(row) for each in columns]
            for least, amount in zip(before, now, strict=True):
                if amount < least:
                    return False
            used[row] = now
            count = count_on(row, self._bits, asked, nodes)
            self._room += count - fits[row]
            fits[row] = count
        return True


def _find_columns(question: DomainQuestion, nodes: Nodes) -> list[NDArray[np.int64]]:
    places = find_places(question.resources, nodes)
    return [find_requested(name, place, nodes) for name, place in places]
