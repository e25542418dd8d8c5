"""How many nodes, and which pods: what pieces of advice have in common."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Nodes
from mooring.framework.edits import PodAt, pod_at
from mooring.objects.pod import Pod

# Enough blockers to see what they are.
MOST_BLOCKERS = 10


def on_nodes(rows: NDArray[np.intp], nodes: Nodes) -> str:
    """How many nodes, or which one."""
    if len(rows) == 1:
        return f"node {nodes.name(int(rows[0]))}"
    return f"{len(rows)} nodes"


def pods_on(
    rows: NDArray[np.intp],
    nodes: Nodes,
    wanted: Callable[[Pod], bool],
    most: int = MOST_BLOCKERS,
) -> tuple[PodAt, ...]:
    """The pods on some rows that are wanted, up to a number."""
    found: list[PodAt] = []
    for row in rows.tolist():
        name = nodes.name(row)
        for pod in nodes.pods(row).values():
            if wanted(pod):
                found.append(pod_at(pod, name))
                if len(found) == most:
                    return tuple(found)
    return tuple(found)
