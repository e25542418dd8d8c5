"""What would help a pod that exclusive pods keep away, or that is exclusive itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Nodes
from mooring.framework.advice import MOST_BLOCKERS, Advice, on_nodes, pods_on
from mooring.framework.edits import EvictPods, SetCoexistPolicy
from mooring.objects.coexist import ANY, conflict, is_exclusive, unknown_policy
from mooring.objects.pod import Pod

# Nobody evicts more pods than that to place one, and each costs a look at its node.
_MOST_EVICTED = 50


def advise_on_coexistence(pod: Pod, nodes: Nodes, rows: NDArray[np.intp]) -> Iterator[Advice]:
    """Exclusive pods: those that are there, or the pod itself."""
    wrong = unknown_policy(pod)
    if wrong is not None:
        yield Advice(f"the pod {wrong}", (SetCoexistPolicy(ANY),), kind="coexist")
        return

    def clashes(other: Pod) -> bool:
        return other.uid != pod.uid and bool(conflict(pod, other))

    repelled = rows[nodes.exclusive_pods[rows] > 0]
    if len(repelled):
        told = f"an exclusive pod runs on {on_nodes(repelled, nodes)}"
        there = pods_on(repelled, nodes, clashes, _MOST_EVICTED)
        edits = (EvictPods(there),) if there else ()
        yield Advice(told, edits, there[:MOST_BLOCKERS], "coexist")
    if is_exclusive(pod):
        told = f"the pod is exclusive and others run on {on_nodes(rows, nodes)}"
        yield Advice(told, (SetCoexistPolicy(ANY),), pods_on(rows, nodes, clashes), "coexist")
