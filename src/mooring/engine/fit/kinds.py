"""Nodes by their kind, since nobody reads a list of thousands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from mooring.cluster import Nodes
from mooring.framework.edits.amounts import shown
from mooring.objects.node import Node
from mooring.objects.resources import CPU, MEMORY

from .data import KindShare

_TYPE = "node.kubernetes.io/instance-type"


def by_kind(nodes: Nodes, counts: Mapping[str, int]) -> tuple[KindShare, ...]:
    """The kinds of nodes that take pods, those that take most first."""
    there: Counter[str] = Counter()
    used: Counter[str] = Counter()
    placed: Counter[str] = Counter()
    for row in nodes.rows.tolist():
        kind = _kind(nodes.node(row))
        there[kind] += 1
        count = counts.get(nodes.name(row), 0)
        if count:
            used[kind] += 1
            placed[kind] += count
    return tuple(
        KindShare(kind, there[kind], used[kind], count) for kind, count in placed.most_common()
    )


def _kind(node: Node) -> str:
    named = node.labels.get(_TYPE)
    if named is not None:
        return named
    has = dict(node.allocatable)
    return f"{shown(CPU, has.get(CPU, 0))} cpu, {shown(MEMORY, has.get(MEMORY, 0))} memory"
