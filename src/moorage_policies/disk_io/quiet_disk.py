"""QuietDisk: pods that a busy disk would slow down go where disks are quiet.

It reads the resource that DiskIO registers, and registers nothing itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from moorage.plugin import (
    MAX_SCORE,
    Change,
    HandleRegistry,
    Pod,
    PreScore,
    Reduction,
    Rescore,
    RowFacts,
    Rows,
    Scope,
    Score,
    Scores,
    Sign,
    View,
    rescore_row,
)

from .disk_io_resource import (
    DISK_IO,
    GROUP,
    READ_CAPACITY,
    READ_USED,
    WRITE_CAPACITY,
    WRITE_USED,
)

#: The annotation of pods that care, with the value "true".
QUIET = f"{GROUP}/quiet"


class QuietDisk(PreScore[Pod], Score[Pod], Sign):
    """Scores nodes by how much of their disk bandwidth is free, in the busier direction."""

    name = "QuietDisk"
    reads = Change.EXTENDED
    scope = Scope.ROW
    reduces = Reduction.NOTHING

    @classmethod
    def create_sharing(cls, args: Any, gates: Mapping[str, bool], handles: HandleRegistry) -> Self:
        handles.expect(DISK_IO, cls.name)
        return cls()

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return _cares(pod)

    def watch(self, pod: Pod, nodes: View) -> Change:
        return nodes.extended.change(DISK_IO) if _cares(pod) else Change.NONE

    def pre_score(self, pod: Pod, nodes: View, rows: NDArray[np.intp]) -> Pod | None:
        return pod if _cares(pod) and DISK_IO in nodes.extended else None

    def score(self, prepared: Pod, nodes: View, rows: Rows) -> Scores:
        columns = nodes.extended.columns(DISK_IO)
        free = np.full(nodes.count(rows), MAX_SCORE, np.int64)
        if columns is None:
            return free
        # A node of which nobody knows how busy it is has no capacity, and so nothing free.
        for has, uses in ((READ_CAPACITY, READ_USED), (WRITE_CAPACITY, WRITE_USED)):
            can = columns[has][rows]
            left = np.clip(can - columns[uses][rows], 0, None)
            np.minimum(free, left * MAX_SCORE // np.maximum(can, 1), out=free)
        return free

    def rescore(self, prepared: Pod, nodes: View, row: RowFacts, scores: Scores) -> Rescore:
        return rescore_row(self, prepared, nodes, row, scores)


def _cares(pod: Pod) -> bool:
    return pod.annotations.get(QUIET) == "true"
