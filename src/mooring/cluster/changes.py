"""What changed, where and since when: the generation of the cluster and a log of row changes."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntFlag, StrEnum

# A row number that stands for the cluster as a whole: namespaces, services, the number of nodes.
EVERYWHERE = -1


# The log keeps at least so many changes, and so many per row of a large cluster: a reader
# that lags behind further starts anew.
_LEAST_KEPT = 65_536
_KEPT_PER_ROW = 4


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
    #: A pod that tolerates no others came or went, or is kept a place.
    EXCLUSIVE = 1 << 17
    #: A pod came or went that is neither a daemonset's nor a static one.
    ORDINARY = 1 << 18
    #: Devices were published, changed or withdrawn.
    SLICES = 1 << 19
    #: Devices were given to a claim, or given back.
    CLAIMS = 1 << 20
    #: A class of devices changed.
    CLASSES = 1 << 21
    #: The conditions of a node.
    CONDITIONS = 1 << 22
    #: The annotations of a pod that runs.
    POD_ANNOTATIONS = 1 << 23
    #: What is reported of a pod that runs: phase, conditions, start, granted resources.
    POD_STATUS = 1 << 24
    BUDGETS = 1 << 25
    #: Room is kept for a gang, or no longer.
    KEPT_ROOM = 1 << 26

    NONE = 0
    #: The kinds that extended resources add, one per type.
    EXTENDED = (1 << 62) - (1 << 32)
    ALL = (1 << 62) - 1


# Kinds that happen all the time and that few plugins read: noted only where one does.
_ON_DEMAND = int(
    Change.ANNOTATIONS | Change.CONDITIONS | Change.POD_ANNOTATIONS | Change.POD_STATUS
)


def unite(kinds: Iterable[int]) -> int:
    """All kinds of change in one."""
    union = 0
    for each in kinds:
        union |= each
    return union


class Scope(StrEnum):
    """How far a change on one row reaches in a plugin's answers."""

    ROW = "row"
    DOMAIN = "domain"
    CLUSTER = "cluster"


class ChangeLog:
    """Row changes in order. A generation is a position in the log."""

    def __init__(self, keep: int = _LEAST_KEPT) -> None:
        #: How many changes there were: where in the log the next one goes.
        self.generation = 0
        self._dropped = 0
        #: How many entries are worth keeping.
        self.keep = keep
        self._entries: list[tuple[int, int]] = []
        #: The kinds of change that are noted.
        self.heeded = -1

    def heed(self, kinds: int) -> None:
        """Somebody reads these kinds of change, and nobody reads any others."""
        self.heeded = ~(_ON_DEMAND & ~int(kinds))

    def note(self, row: int, kinds: int) -> None:
        if not kinds & self.heeded:
            return
        self._entries.append((row, kinds))
        self.generation += 1
        if len(self._entries) > 2 * self.keep:
            self._trim()

    def since(self, generation: int) -> dict[int, int] | None:
        """The rows that changed after a generation and how; None when that is no longer known."""
        if generation < self._dropped:
            return None
        rows: dict[int, int] = {}
        for row, kinds in self._entries[generation - self._dropped :]:
            rows[row] = rows.get(row, 0) | kinds
        return rows

    def grow(self, rows: int) -> None:
        """The cluster has so many rows now."""
        self.keep = max(self.keep, _KEPT_PER_ROW * rows)

    def restart(self) -> None:
        """Everything may have changed: nothing is known of any generation before this one."""
        self._entries.clear()
        self.generation += 1
        self._dropped = self.generation

    def _trim(self) -> None:
        excess = len(self._entries) - self.keep
        del self._entries[:excess]
        self._dropped += excess
