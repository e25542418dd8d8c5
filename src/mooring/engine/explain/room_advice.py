"""Advice about what is left on nodes: by how much it is too little, over groups of like nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.vocabulary import ABSENT
from mooring.framework.advice import Advice, NearMiss, near_misses, on_nodes
from mooring.framework.edits import LowerRequest
from mooring.framework.edits.amounts import shown
from mooring.objects.resources import PODS

from .case import Case, RowNumbers

# Nodes of one type are alike, though their memory may differ by some bytes.
_TYPE = "node.kubernetes.io/instance-type"


def advise_on_resources(case: Case, rows: RowNumbers) -> Iterator[Advice]:
    """Resources that are short, and nodes that take no more pods."""
    nodes = case.nodes
    pods = nodes.resources[PODS]
    full = nodes.requested[pods][rows] >= nodes.allocatable[pods][rows]
    if full.any():
        yield Advice(f"{on_nodes(rows[full], case.actual)} cannot take more pods", kind="pods")
    roomy = rows[~full]
    if len(roomy):
        yield from _Room(case, roomy).advice()


class _Room:
    """What rows have of what the pod asks for."""

    def __init__(self, case: Case, rows: RowNumbers) -> None:
        self._case = case
        self._rows = rows
        asked = case.prepared.prepared["NodeResourcesFit"].amounts
        self._names = tuple(name for name, _ in asked)
        self._asked = np.array([amount for _, amount in asked], np.int64)
        #: int64[resource, row]
        self._has = np.zeros((len(asked), len(rows)), np.int64)
        self._short = np.zeros_like(self._has)
        nodes = case.nodes
        for place, (name, amount) in enumerate(asked):
            at = nodes.resource(name)
            if at is not None:
                self._has[place] = nodes.allocatable[at][rows]
            free = 0 if at is None else self._has[place] - nodes.requested[at][rows]
            # What is overcommitted already does not matter to a pod that asks for nothing of it.
            self._short[place] = np.minimum(np.maximum(amount - free, 0), amount)

    def advice(self) -> Iterator[Advice]:
        for miss in near_misses(self._short, self._rows, self._asked, self._like()):
            lacking = [
                (name, by) for name, by in zip(self._names, miss.short.tolist(), strict=True) if by
            ]
            told = " and ".join(f"{shown(name, by)} {name}" for name, by in lacking)
            edits = tuple(LowerRequest(name, by) for name, by in lacking)
            yield Advice(self._told(miss, told), edits, kind="resources")

    def _like(self) -> NDArray[np.int64]:
        """What like nodes have in common: their type, else how much they have of what is short."""
        types = self._case.nodes.label(_TYPE).codes[self._rows].astype(np.int64)
        has = np.where((self._short > 0) & (types == ABSENT), self._has, 0)
        return np.concatenate((types[np.newaxis], has))

    def _told(self, miss: NearMiss, short: str) -> str:
        who = on_nodes(miss.rows, self._case.actual)
        verb = "was" if len(miss.rows) == 1 else "were"
        if not miss.is_nearest_of_many:
            most = "" if miss.is_exact else "up to "
            return f"{who} {verb} {most}{short} short"
        group = f"{len(miss.group)} {self._kind(miss)}"
        if miss.is_exact:
            return f"{who} {verb} {short} short, the nearest of {group}"
        return f"{len(miss.rows)} of {group} were up to {short} short"

    def _kind(self, miss: NearMiss) -> str:
        """What the nodes of a group are called."""
        nodes, row = self._case.nodes, int(miss.group[0])
        named = nodes.node(row).labels.get(_TYPE)
        if named is not None:
            return f"{named} nodes"
        place = int(np.flatnonzero(self._rows == row)[0])
        has = [
            f"{shown(name, int(self._has[at, place]))} {name}"
            for at, name in enumerate(self._names)
            if miss.short[at]
        ]
        return f"nodes with {' and '.join(has)}"
