"""The namespaces that hold nodes by exclusive pods, as people read them: a table, and figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from moorage.cluster import View
from moorage.framework.coexist_ledgers import ALL, EXCLUSIVE_PODS, HOLDERS
from moorage.framework.sections import Cell, Section
from moorage.framework.series import Series, gauge
from moorage.objects.coexist import LIMIT_LABEL, is_exclusive
from moorage.objects.pod import Pod
from moorage.objects.resources import CPU, MEMORY, PODS

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


# Pods that are looked at before decisions get their turn again.
_SLICE = 2_000


def measure_holders(nodes: View, waiting: Iterable[Pod]) -> Iterator[Series | None]:
    """Yields how many exclusive pods there are, and what they hold, by namespace."""
    there = gauge(
        "moorage_exclusive_pods",
        "Pods on nodes that by their coexist policy share the node with no ordinary pod.",
    )
    there.set((), int(nodes.ledger(EXCLUSIVE_PODS).column(ALL).sum()))
    yield there
    held = gauge(
        "moorage_exclusive_nodes", "Nodes that exclusive pods of a namespace hold.", "namespace"
    )
    unrequested = gauge(
        "moorage_exclusive_nodes_unrequested",
        "What no pod requests of nodes that exclusive pods of a namespace hold: cores, or bytes.",
        "namespace",
        "resource",
    )
    holders = nodes.ledger(HOLDERS)
    for namespace in sorted(holders):
        rows = list(holders.of(namespace))
        held.set((namespace,), len(rows))
        for resource, per_unit in ((CPU, 1000), (MEMORY, 1)):
            at = nodes.resources[resource]
            left = np.clip(nodes.allocatable[at][rows] - nodes.requested[at][rows], 0, None)
            unrequested.set((namespace, resource), float(left.sum()) / per_unit)
    yield from (held, unrequested)
    waits = gauge(
        "moorage_waiting_exclusive_pods", "Exclusive pods in the queue, as yet without a node."
    )
    waits.set((), 0)
    for at, pod in enumerate(waiting, 1):
        if is_exclusive(pod):
            waits.add()
        if at % _SLICE == 0:
            yield None
    yield waits
