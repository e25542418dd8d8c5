"""Counts of the pods that a selector matches, per row and per topology domain, kept current."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from moorage.objects.pod import Pod
from moorage.objects.selector import EVERYTHING, Selector

from .arrays import grow_to
from .derived import Recent
from .label_index import PodChange, PodIndex, SelectorIndex
from .labels import ABSENT, LabelColumn
from .ledger import RowCounts

Mask = NDArray[np.bool_]

# A tally keeps counts for up to so many masks of rows: few pods of one selector differ in the
# nodes that they allow.
_PARTS = 8

# All tallies together take at most so many bytes: eighty tallies at 100,000 nodes.
_MOST_BYTES = 96 * 2**20
# A count of 4 bytes per row, and one of 8 bytes per domain, of which there may be one per row.
_BYTES_PER_ROW = 12

# The rows of up to so many are counted one by one: most terms of running pods belong to one pod.
_FEW_ROWS = 16


@dataclass(frozen=True, slots=True)
class PodMatch:
    """Matches the pods that match every (namespaces, selector) pair.

    Namespaces of None are all namespaces.
    """

    pairs: tuple[tuple[frozenset[str] | None, Selector], ...]
    skip_terminating: bool = False
    #: Kept, because tallies are looked up often.
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.pairs, self.skip_terminating)))

    def __hash__(self) -> int:
        return self._hash

    def matches(self, pod: Pod) -> bool:
        if self.skip_terminating and pod.terminating:
            return False
        for namespaces, selector in self.pairs:
            if namespaces is not None and pod.namespace not in namespaces:
                return False
            if not selector.matches(pod.labels):
                return False
        return True

    @property
    def anchor(self) -> Selector:
        """Returns the selector by which an index finds the match from a pod's labels."""
        return self.pairs[0][1] if self.pairs else EVERYTHING


class Tally:
    """The number of matching pods on each row, and in each domain of the requested keys."""

    def __init__(self, match: PodMatch, by_row: NDArray[np.int32]) -> None:
        self.match = match
        self.by_row = by_row
        #: The largest count that any row has had.
        self.highest = int(by_row.max(initial=0))
        self._domains: dict[str, DomainCounts] = {}
        #: Counts for some rows only, by topology key and the id of the mask of these rows. Each
        #: keeps its mask alive, so that no other mask gets the id.
        self._parts: dict[tuple[str, int], DomainCounts] = {}

    def add(self, row: int, amount: int) -> None:
        count = self.by_row[row] = self.by_row.item(row) + amount
        if count > self.highest:
            self.highest = count
        for domains in self._domains.values():
            domains.add(row, amount)
        for part in self._parts.values():
            part.add(row, amount)

    def in_domains(self, column: LabelColumn) -> DomainCounts:
        """Returns the counts per value of a topology key, which are kept current from now on."""
        known = self._domains.get(column.key)
        if known is None:
            known = DomainCounts.of(self.by_row, column)
            # For a key that no node has, all counts stay 0.
            if column.filled:
                self._domains[column.key] = known
        return known

    def in_domains_among(self, column: LabelColumn, rows: Mask) -> DomainCounts:
        """Returns the counts per value for some rows only.

        They are kept until a node comes, goes or changes its labels or taints. The mask should
        come from `NodeDerived`: for each new mask, pods are counted anew.
        """
        known = self._parts.get((column.key, id(rows)))
        if known is None:
            if len(self._parts) >= _PARTS:
                self._parts.clear()
            known = DomainCounts.of(self.by_row, column, rows)
            self._parts[column.key, id(rows)] = known
        return known

    def forget_parts(self) -> None:
        self._parts.clear()

    def grow(self, capacity: int) -> None:
        self.by_row = grow_to(self.by_row, capacity)

    @property
    def domains(self) -> Mapping[str, DomainCounts]:
        return self._domains

    @property
    def parts(self) -> Iterable[DomainCounts]:
        return self._parts.values()


class DomainCounts:
    """The count for each value of a topology key, by the code of the value."""

    def __init__(self, column: LabelColumn, among: Mask | None = None) -> None:
        self.column = column
        #: The rows that are counted; None for all.
        self.among = among
        self.total = 0
        #: By code instead of row.
        self._by_code = RowCounts()

    @classmethod
    def of(
        cls, by_row: NDArray[np.int32], column: LabelColumn, among: Mask | None = None
    ) -> DomainCounts:
        """Returns the sums of the counts per row."""
        made = cls(column, among)
        rows = by_row.nonzero()[0]
        if len(rows) <= _FEW_ROWS:
            for row in rows.tolist():
                made.add(row, by_row.item(row))
            return made
        codes = column.codes[: len(by_row)]
        counted = codes != ABSENT
        if among is not None:
            counted[: len(among)] &= among
            counted[len(among) :] = False
        weights = by_row[: len(codes)][counted]
        sums = np.bincount(codes[counted], weights, minlength=len(column.vocabulary) + 1)
        made._by_code = RowCounts.of(sums.astype(np.int64))
        made.total = int(weights.sum())
        return made

    def add(self, row: int, amount: int) -> None:
        code = int(self.column.codes[row])
        if code == ABSENT or (self.among is not None and not self.among[row]):
            return
        self.total += amount
        # After the codes there is a place for ABSENT.
        self._by_code.grow(code + 2)
        self._by_code.add(code, amount, len(self.column.vocabulary) + 1)

    def counts(self) -> NDArray[np.int64]:
        """Returns the count of each code, and a 0 at the end, which ABSENT (-1) reads."""
        need = len(self.column.vocabulary) + 1
        self._by_code.grow(need)
        return self._by_code.column(need)[:need]

    def add_to(self, sums: NDArray[np.int64], weight: int) -> None:
        """Adds the counts, times a weight, to sums per code."""
        self._by_code.grow(len(sums))
        self._by_code.add_to(sums, weight)


class Tallies:
    """The tallies in use, found by their match and by the labels of pods that they may count."""

    def __init__(self, placed: Callable[[], Iterable[tuple[int, Pod]]], capacity: int) -> None:
        self._placed = placed
        #: Made for a new tally, and dropped when it is many changes behind.
        self._pods: PodIndex | None = None
        #: Whether there are tallies. It is a plain value, because every pod that comes or goes
        #: reads it.
        self.are_there = False
        self._tallies: Recent[PodMatch, Tally] = Recent(0)
        self._index: SelectorIndex[Tally] = SelectorIndex()
        self.grow(capacity)

    def tally(self, match: PodMatch) -> Tally:
        """Returns the tally of a match; a new one counts all placed pods once."""
        known = self._tallies.get(match)
        if known is None:
            self.are_there = True
            if self._pods is None:
                self._pods = PodIndex(self._placed())
            by_row = self._pods.count(
                match.pairs, self._capacity, skip_terminating=match.skip_terminating
            )
            known = Tally(match, by_row)
            self._index.add(match.anchor, known)
            self._discard(self._tallies.put(match, known))
        return known

    def count(self, pod: Pod, row: int, amount: int) -> None:
        """Counts a pod that came to (1) or left (-1) a row."""
        if self._pods is not None and not self._pods.note(PodChange.of(pod, row, amount)):
            self._pods = None
        for tally in self._index.candidates(pod.labels):
            if tally.match.matches(pod):
                tally.add(row, amount)

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        self._tallies.limit = _MOST_BYTES // (_BYTES_PER_ROW * capacity)
        for tally in self._tallies:
            tally.grow(capacity)

    def forget_parts(self) -> None:
        """Forgets the counts for some rows only, because nodes, labels or taints have changed."""
        for tally in self._tallies:
            tally.forget_parts()

    def sweep(self) -> None:
        """Drops the tallies that were not asked for since the last sweep."""
        self._discard(self._tallies.sweep())
        if not self._tallies:
            self._pods, self.are_there = None, False

    def __iter__(self) -> Iterator[Tally]:
        return iter(self._tallies)

    def _discard(self, dropped: Iterable[Tally]) -> None:
        for tally in dropped:
            self._index.discard(tally.match.anchor, tally)
