"""Running counts of the pods that a selector matches: per row, and per topology domain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.objects.pod import Pod
from mooring.objects.selector import EVERYTHING, Selector

from .arrays import grown
from .labels import LabelColumn
from .selector_index import SelectorIndex
from .vocabulary import ABSENT

Mask = NDArray[np.bool_]

# Pods that are counted by one selector and differ in the nodes that they allow are few.
_PARTS = 8


@dataclass(frozen=True, slots=True)
class PodMatch:
    """Which pods are counted: those that match every (namespaces, selector) pair.

    Namespaces of None are all namespaces.
    """

    pairs: tuple[tuple[frozenset[str] | None, Selector], ...]
    skip_terminating: bool = False

    def matches(self, pod: Pod) -> bool:
        if self.skip_terminating and pod.terminating:
            return False
        return all(
            (namespaces is None or pod.namespace in namespaces) and selector.matches(pod.labels)
            for namespaces, selector in self.pairs
        )

    @property
    def anchor(self) -> Selector:
        """The selector by which the match is found from a pod's labels."""
        return self.pairs[0][1] if self.pairs else EVERYTHING


class Tally:
    """How many matching pods there are on each row, and in each domain of the keys asked for."""

    def __init__(self, match: PodMatch, capacity: int) -> None:
        self.match = match
        self.by_row: NDArray[np.int32] = np.zeros(capacity, np.int32)
        self._domains: dict[str, DomainCounts] = {}
        #: By key and the identity of the rows that count, which each keeps alive.
        self._parts: dict[tuple[str, int], DomainCounts] = {}

    def add(self, row: int, amount: int) -> None:
        self.by_row[row] += amount
        for domains in self._domains.values():
            domains.add(row, amount)
        for part in self._parts.values():
            part.add(row, amount)

    def in_domains(self, column: LabelColumn) -> DomainCounts:
        """Counts per value of a topology key, kept from now on."""
        known = self._domains.get(column.key)
        if known is None:
            known = self._domains[column.key] = self._counted(DomainCounts(column))
        return known

    def in_domains_among(self, column: LabelColumn, rows: Mask) -> DomainCounts:
        """The same for some rows only, kept for as long as nodes are as they are.

        The rows are those of `Layout`: a mask that is made anew for each pod is counted anew.
        """
        known = self._parts.get((column.key, id(rows)))
        if known is None:
            if len(self._parts) >= _PARTS:
                self._parts.clear()
            known = self._counted(DomainCounts(column, rows))
            self._parts[column.key, id(rows)] = known
        return known

    def forget_parts(self) -> None:
        self._parts.clear()

    def _counted(self, domains: DomainCounts) -> DomainCounts:
        for row in np.flatnonzero(self.by_row).tolist():
            domains.add(row, int(self.by_row[row]))
        return domains

    def grow(self, capacity: int) -> None:
        self.by_row = grown(self.by_row, capacity)

    @property
    def domains(self) -> Mapping[str, DomainCounts]:
        return self._domains

    @property
    def parts(self) -> Iterable[DomainCounts]:
        return self._parts.values()


class DomainCounts:
    """A count per value of a topology key, by the code of the value."""

    def __init__(self, column: LabelColumn, among: Mask | None = None) -> None:
        self.column = column
        #: The rows that count; None is every row.
        self.among = among
        self.total = 0
        self._counts: NDArray[np.int64] = np.zeros(8, np.int64)

    def add(self, row: int, amount: int) -> None:
        code = int(self.column.codes[row])
        if code == ABSENT or (self.among is not None and not self.among[row]):
            return
        if code >= len(self._counts) - 1:
            self._counts = grown(self._counts, code + 2)
        self._counts[code] += amount
        self.total += amount

    def counts(self) -> NDArray[np.int64]:
        """int64 per code and one place more, which is 0, so that ABSENT finds nothing."""
        need = len(self.column.vocabulary) + 1
        if len(self._counts) < need:
            self._counts = grown(self._counts, need)
        return self._counts[:need]


class Tallies:
    """The tallies in use, each found by what it matches and by the pods it counts."""

    # Dense counts per row: this many at 5,000 nodes are 80 MB. The least recently asked goes first.
    LIMIT = 4_096

    def __init__(self) -> None:
        self._tallies: dict[PodMatch, Tally] = {}
        self._index: SelectorIndex[Tally] = SelectorIndex()

    @property
    def are_there(self) -> bool:
        return bool(self._tallies)

    def tally(self, match: PodMatch, capacity: int, placed: Iterable[tuple[int, Pod]]) -> Tally:
        """The tally of a match; a new one counts all placed pods once."""
        known = self._tallies.pop(match, None)
        if known is None:
            known = Tally(match, capacity)
            for row, pod in placed:
                if match.matches(pod):
                    known.by_row[row] += 1
            self._index.add(match.anchor, known)
            self._make_room()
        self._tallies[match] = known
        return known

    def count(self, pod: Pod, row: int, amount: int) -> None:
        """A pod came to (1) or left (-1) a row."""
        for tally in self._index.candidates(pod.labels):
            if tally.match.matches(pod):
                tally.add(row, amount)

    def grow(self, capacity: int) -> None:
        for tally in self._tallies.values():
            tally.grow(capacity)

    def forget_parts(self) -> None:
        """Labels or taints of nodes have changed: which rows count may have, too."""
        for tally in self._tallies.values():
            tally.forget_parts()

    def __iter__(self) -> Iterator[Tally]:
        return iter(self._tallies.values())

    def _make_room(self) -> None:
        if len(self._tallies) >= self.LIMIT:
            oldest = self._tallies.pop(next(iter(self._tallies)))
            self._index.discard(oldest.match.anchor, oldest)
