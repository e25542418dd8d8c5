"""The namespaces that hold nodes by exclusive pods, as a table on the page."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from moorage.cluster import View
from moorage.framework.coexist_ledgers import HOLDERS
from moorage.framework.sections import Cell, Section
from moorage.objects.coexist import LIMIT_LABEL
from moorage.objects.resources import PODS

HOLDERS_SECTION = Section(
    "exclusive",
    "Exclusive nodes",
    ("namespace", "nodes", "exclusive pods", "requested by nobody"),
    "No pod has a node to itself. Namespaces whose exclusive pods hold nodes appear here.",
)


def describe_holders(nodes: View, most: int | None = None) -> Iterator[tuple[Cell, ...]]:
    """Yields the namespaces, those with most nodes first.

    `most` is how many nodes a namespace without a label may hold; None is any number.
    """
    holders = nodes.ledger(HOLDERS)
    for name in sorted(holders, key=lambda name: (-len(holders.of(name)), name)):
        held = holders.of(name)
        rows = list(held)
        limit = nodes.workloads.namespace_labels(name).get(LIMIT_LABEL, most)
        count: Cell = len(rows) if limit is None else f"{len(rows)} of {limit}"
        free: dict[str, int] = {}
        for resource, at in nodes.resources.items():
            if resource != PODS and nodes.allocatable[at, rows].any():
                left = nodes.allocatable[at, rows] - nodes.requested[at, rows]
                free[resource] = int(np.maximum(left, 0).sum())
        yield name, count, sum(held.values()), free
