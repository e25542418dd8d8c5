"""How full each node is, as it was told last, and what is different now."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Change, Cluster
from mooring.cluster.changes import EVERYWHERE

from .wire import NodesPart, packed

#: Use is told in thousandths of what a node has; a node without the resource says so.
THOUSAND = 1_000
ABSENT = 0xFFFF
# Requests of pods that were placed by others may go beyond what a node has.
_MOST = 60_000

GONE, OPEN, CORDONED = 0, 1, 2

# A generation before everything.
_NEVER = -1


class NodeColumns:
    """The rows as they were told last."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._generation = _NEVER
        self._names: dict[int, str] = {}
        self._states = np.zeros(0, np.uint8)
        #: uint16[resource, row]
        self._uses = np.zeros((0, 0), np.uint16)
        #: The resources that some node has, first of all those that every node has.
        self.resources: list[str] = []

    def differences(self) -> tuple[bool, NodesPart | None]:
        """Whether the nodes begin anew, and the rows that are different from what was told."""
        nodes, changes = self._cluster.nodes, self._cluster.changes
        changed = changes.since(self._generation)
        self._generation = changes.generation
        resources = self._resources()
        if changed is None or resources != self.resources:
            self._begin(resources)
            self._take(nodes.rows)
            return True, self.everything()
        found = np.array([row for row in changed if row != EVERYWHERE], np.intp)
        rows = self._take(np.sort(found))
        renamed = [row for row in rows.tolist() if changed[row] & Change.MEMBERSHIP]
        return False, self._part(rows, renamed) if len(rows) else None

    def everything(self) -> NodesPart:
        """All rows that have a node, as they were told last."""
        return self._part(np.flatnonzero(self._states), list(self._names))

    def _resources(self) -> list[str]:
        nodes = self._cluster.nodes
        there = np.atleast_1d((nodes.allocatable[:, nodes.everything] > 0).any(axis=1))
        return [name for name, at in nodes.resources.items() if there[at]]

    def _begin(self, resources: list[str]) -> None:
        self.resources = resources
        self._names.clear()
        self._states = np.zeros(0, np.uint8)
        self._uses = np.zeros((len(resources), 0), np.uint16)

    def _take(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Notes what these rows show now; returns those where that is new."""
        self._grow()
        uses, states = self._read(rows)
        names = self._read_names(rows)
        renamed = [self._names.get(row) != name for row, name in names.items()]
        new = (
            (self._uses[:, rows] != uses).any(axis=0)
            | (self._states[rows] != states)
            | np.array(renamed, np.bool_)
        )
        self._uses[:, rows], self._states[rows] = uses, states
        for row, name in names.items():
            if name:
                self._names[row] = name
            else:
                self._names.pop(row, None)
        return rows[new]

    def _read(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
        nodes = self._cluster.nodes
        columns = np.array([nodes.resources[name] for name in self.resources], np.intp)
        at = np.ix_(columns, rows)
        has, asked = nodes.allocatable[at], nodes.requested[at]
        shares = np.minimum(asked / np.maximum(has, 1) * THOUSAND, _MOST)
        uses = np.where(has > 0, shares, ABSENT).astype(np.uint16)
        states = np.where(nodes.unschedulable[rows], CORDONED, OPEN) * nodes.alive[rows]
        return uses, states.astype(np.uint8)

    def _read_names(self, rows: NDArray[np.intp]) -> dict[int, str | None]:
        nodes = self._cluster.nodes
        alive = nodes.alive[rows].tolist()
        return {
            row: nodes.name(row) if there else None
            for row, there in zip(rows.tolist(), alive, strict=True)
        }

    def _grow(self) -> None:
        count = len(self._cluster.nodes.alive)
        more = count - len(self._states)
        if more > 0:
            self._states = np.pad(self._states, (0, more))
            self._uses = np.pad(self._uses, ((0, 0), (0, more)), constant_values=ABSENT)

    def _part(self, rows: NDArray[np.intp], named: list[int]) -> NodesPart:
        return NodesPart(
            packed(rows, "<u4"),
            packed(self._states[rows], "<u1"),
            [packed(column[rows], "<u2") for column in self._uses],
            {row: self._names[row] for row in named if row in self._names},
        )
