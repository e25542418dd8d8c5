"""The best domain for gangs of like members, kept while it stays the best."""

from __future__ import annotations

from collections.abc import Iterable
from operator import le
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Nodes, RowFacts
from moorage.cluster.changes import Change, ChangeLog
from moorage.objects.pod import Pod

from .domain_use import NEVER_ZERO, find_places
from .key_domains import find_changed, split_by
from .member_fits import count_on, find_asked

_ALLOCATABLE = int(Change.ALLOCATABLE)


class BestDomain(NamedTuple):
    """The best domain for a gang, by its position among all domains of its label."""

    place: int
    #: How many members it takes.
    members: int
    #: How many domains take enough members.
    feasible: int


class KeptDomain:
    """The best domain for gangs of like members, and why it is the best.

    The fuller a domain the better, as long as it takes as many members as before. So it stays the
    best while only its own rows change, and these only become fuller. While nothing happens but
    that such gangs are placed there, no row is looked at.
    """

    __slots__ = (
        "_asked",
        "_best",
        "_bits",
        "_fits",
        "_followed",
        "_generation",
        "_left",
        "_pod",
        "_room",
        "_scored",
        "_size",
        "_used",
    )

    def __init__(
        self,
        pod: Pod,
        bits: NDArray[np.int64],
        size: int,
        resources: Iterable[str],
        nodes: Nodes,
    ) -> None:
        """Serves that many pods like one; rows with a bit do not take them.

        The resources are those by which it is measured how full a domain is.
        """
        # Nothing else gets the id of the bits, or of the pod's template, while they are kept.
        self._pod, self._bits, self._size = pod, bits, size
        self._asked = find_asked(pod.requests, nodes)
        #: The places of the resources besides cpu and memory.
        self._scored = [
            place for name, place in find_places(resources, nodes) if name not in NEVER_ZERO
        ]
        self._best: BestDomain | None = None
        #: When its rows were looked at.
        self._generation = 0
        #: Until when only such gangs were placed there, and for how many pods they left room.
        self._followed = self._left = 0
        #: How many such pods its rows take, and all of them together.
        self._fits: dict[int, int] = {}
        self._room = 0
        #: What is requested on its rows of what makes them full.
        self._used: dict[int, list[int]] = {}

    def keep(self, best: BestDomain, key: str, nodes: Nodes) -> None:
        """Notes that a domain of a label was found to be the best."""
        assert nodes.changes is not None, "only rows that are there are kept"
        self._best = best
        rows = split_by(key, nodes).domains[best.place].rows
        facts = [nodes.facts(row) for row in rows.tolist()] if rows is not None else []
        self._fits = {each.number: count_on(each, self._bits, self._asked) for each in facts}
        self._room = sum(self._fits.values())
        self._used = {each.number: self._list_used(each) for each in facts}
        self._note_looked(nodes.changes)

    def fill(self, nodes: Nodes) -> None:
        """Notes that such a gang was placed there since the domain was found or kept."""
        log = nodes.changes
        # Each member changes one row, and takes the room of one there.
        if log is not None and log.generation - self._followed == self._size:
            self._followed = log.generation
            self._left -= self._size

    def find(self, nodes: Nodes) -> BestDomain | None:
        """Returns the domain if it is still the best, updated with its rows."""
        best, log = self._best, nodes.changes
        if best is None or log is None:
            return None
        if log.generation == self._followed and self._left >= self._size == best.members:
            return best
        changed = find_changed(self._generation, nodes)
        if changed is None:
            return None
        known, fits = self._used, self._fits
        for row, kinds in changed.items():
            before = known.get(row)
            if before is None or kinds & _ALLOCATABLE:
                # It is another's, or offers something else.
                return None
            facts = nodes.known_facts.get(row) or nodes.facts(row)
            used = self._list_used(facts)
            if not all(map(le, before, used)):
                return None
            known[row] = used
            count = count_on(facts, self._bits, self._asked)
            self._room += count - fits[row]
            fits[row] = count
        self._note_looked(log)
        return best if min(self._room, self._size) == best.members else None

    def _note_looked(self, log: ChangeLog) -> None:
        self._generation = self._followed = log.generation
        self._left = self._room

    def _list_used(self, facts: RowFacts) -> list[int]:
        used = facts.nonzero_requested.copy()
        for place in self._scored:
            used.append(facts.requested[place])
        return used
