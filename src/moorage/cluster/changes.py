"""The log of row changes: what changed, on which row, and since which generation."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from enum import IntFlag, StrEnum
from functools import cache

import numpy as np

# A row number that stands for the whole cluster: namespaces, services, the number of nodes.
EVERYWHERE = -1


# The log keeps at least so many changes, and one per row of a larger cluster. A reader that is
# further behind reads all rows, which costs no more.
_LEAST_KEPT = 4_096


class Change(IntFlag):
    """The kinds of change that a row can see."""

    ALLOCATABLE = 1 << 0
    REQUESTED = 1 << 1
    LABELS = 1 << 2
    TAINTS = 1 << 3
    UNSCHEDULABLE = 1 << 4
    IMAGES = 1 << 5
    PORTS = 1 << 6
    PODS = 1 << 7
    #: Volumes that pods use on a row or that are attached there, or what `STORAGE` is about.
    VOLUMES = 1 << 8
    ATTACH_LIMITS = 1 << 9
    FEATURES = 1 << 10
    NOMINATED = 1 << 11
    NAMESPACES = 1 << 12
    #: A service or controller.
    SERVICES = 1 << 13
    MEMBERSHIP = 1 << 14
    #: A pod with affinity terms of its own came or went.
    TERMS = 1 << 15
    ANNOTATIONS = 1 << 16
    #: Devices were published, changed or withdrawn.
    SLICES = 1 << 17
    #: Devices were given to a claim or given back.
    CLAIMS = 1 << 18
    #: A class of devices changed.
    CLASSES = 1 << 19
    #: The conditions of a node.
    CONDITIONS = 1 << 20
    #: The annotations of a pod that runs.
    POD_ANNOTATIONS = 1 << 21
    #: The status of a pod that runs: phase, conditions, start, granted resources.
    POD_STATUS = 1 << 22
    BUDGETS = 1 << 23
    #: Claims, volumes, classes and drivers themselves, whether pods use them or not.
    STORAGE = 1 << 24

    NONE = 0
    #: The kinds of the ledgers that plugins bring along, one each.
    LEDGERS = (1 << 34) - (1 << 25)
    #: The kinds that extended resources add, one per type.
    EXTENDED = (1 << 62) - (1 << 34)
    ALL = (1 << 62) - 1


# Kinds that are frequent and that few plugins read: they are noted only if a plugin reads them.
_ON_DEMAND = int(
    Change.ANNOTATIONS | Change.CONDITIONS | Change.POD_ANNOTATIONS | Change.POD_STATUS
)


@cache
def leave_out(kinds: Change, others: Change) -> Change:
    """Returns the kinds without others. Cached, because combining flags of an enum is slow."""
    return kinds & ~others


def unite(kinds: Iterable[int]) -> int:
    """Returns all kinds of change in one number."""
    union = 0
    for each in kinds:
        union |= each
    return union


class Scope(StrEnum):
    """Where a change on one row can alter a plugin's answers: there, in a domain, or anywhere."""

    ROW = "row"
    DOMAIN = "domain"
    CLUSTER = "cluster"


class ChangeLog:
    """The row changes in order. A generation is a position in the log."""

    def __init__(self, keep: int = _LEAST_KEPT) -> None:
        #: The number of changes so far, which is the position of the next one.
        self.generation = 0
        self._dropped = 0
        #: At least so many entries are kept.
        self.keep = keep
        # The row and the kinds of each entry.
        self._rows, self._kinds = array("q"), array("q")
        #: The row and the kinds of the last change; None if it is not known.
        self.newest: tuple[int, int] | None = None
        #: The kinds of change that are noted.
        self.noted_kinds = -1

    def limit_to(self, kinds: int) -> None:
        """Sets the kinds of change that plugins read; of frequent kinds, no others are noted."""
        self.noted_kinds = ~(_ON_DEMAND & ~int(kinds))

    def note(self, row: int, kinds: int) -> None:
        if not kinds & self.noted_kinds:
            return
        self._rows.append(row)
        self._kinds.append(kinds)
        self.newest = row, kinds
        self.generation += 1
        if len(self._rows) > 2 * self.keep:
            self._trim()

    def since(self, generation: int) -> dict[int, int] | None:
        """Returns the rows that changed after a generation, with their kinds of change.

        None if the log has dropped some of these changes.
        """
        if generation < self._dropped:
            return None
        if generation == self.generation - 1 and self.newest is not None:
            return {self.newest[0]: self.newest[1]}
        start = generation - self._dropped
        rows: dict[int, int] = {}
        for row, kinds in zip(self._rows[start:], self._kinds[start:], strict=True):
            rows[row] = rows.get(row, 0) | kinds
        return rows

    def unite_since(self, generation: int) -> int | None:
        """Returns all kinds of change after a generation in one number.

        None if the log has dropped some of these changes.
        """
        if generation < self._dropped:
            return None
        kinds = np.frombuffer(self._kinds[generation - self._dropped :], np.int64)
        return int(np.bitwise_or.reduce(kinds))

    def grow(self, rows: int) -> None:
        """Keeps more entries, because the cluster has so many rows now."""
        self.keep = max(self.keep, rows)

    def restart(self) -> None:
        """Drops all entries, because everything may have changed.

        `since` returns None for every generation before this one.
        """
        del self._rows[:], self._kinds[:]
        self.newest = None
        self.generation += 1
        self._dropped = self.generation

    def _trim(self) -> None:
        excess = len(self._rows) - self.keep
        del self._rows[:excess], self._kinds[:excess]
        self._dropped += excess
