"""Measures how a cluster is used: how full nodes are, fragments, and pods that share nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from mooring.cluster import Cluster, Nodes
from mooring.engine.explain.explanation import ExplanationPart
from mooring.objects.coexist import are_together, is_exclusive, is_ordinary
from mooring.objects.pod import Pod
from mooring.objects.resources import CPU, MEMORY

from .gpu_demands import GpuDemands, is_gpu, measure_free


class ClusterUse(ExplanationPart, frozen=True):
    """How much of a cluster is used, and how well."""

    name: str
    nodes: int
    #: Nodes with pods other than those of daemonsets and static ones.
    nodes_in_use: int
    pods: int
    #: Pods that find no node.
    waiting: int
    #: Percent of what nodes have that pods request, by resource.
    use: dict[str, float]
    #: Percent of what is free that is on nodes without room for a median pod, by resource.
    fragmented: dict[str, float]
    gpus: int = 0
    free_gpus: int = 0
    #: Free GPUs of nodes without the CPU and memory that any GPU pod needs beside them.
    stranded_gpus: int = 0
    #: Pods without GPUs on nodes with GPUs, other than those of daemonsets and static ones.
    pods_beside_gpus: int = 0
    exclusive_pods: int = 0
    #: Pods that are to be alone on their node, and are not.
    exclusive_pods_that_share: int = 0
    gangs: int = 0
    #: Gangs of which some members have a node, and fewer than they need.
    partial_gangs: int = 0


def measure_use(name: str, cluster: Cluster, placed: Iterable[Pod], waiting: int = 0) -> ClusterUse:
    """Measures a cluster as it is now.

    The pods on nodes are given as they were written, because a cluster counts an exclusive pod of
    another scheduler as ordinary.
    """
    nodes = cluster.nodes
    pods = [pod for pod in placed if is_ordinary(pod)]
    gpus = [resource for resource in nodes.resources if is_gpu(resource)]
    exclusive = [pod for pod in pods if is_exclusive(pod)]
    return ClusterUse(
        name,
        len(nodes),
        len({pod.node_name for pod in pods}),
        len(pods),
        waiting,
        dict(_find_use(nodes)),
        {resource: _find_fragmented(resource, nodes, pods) for resource in (CPU, MEMORY)},
        sum(int(nodes.allocatable[nodes.resources[each], nodes.rows].sum()) for each in gpus),
        sum(int(measure_free(nodes, each).sum()) for each in gpus),
        GpuDemands.of(pods).count_stranded(nodes),
        _count_beside_gpus(nodes, pods, gpus),
        len(exclusive),
        sum(_shares(pod, nodes) for pod in exclusive),
        *_count_gangs(cluster),
    )


def _find_use(nodes: Nodes) -> Iterator[tuple[str, float]]:
    for resource, at in nodes.resources.items():
        has = float(nodes.allocatable[at, nodes.rows].sum(dtype=np.float64))
        if has:
            used = float(nodes.requested[at, nodes.rows].sum(dtype=np.float64))
            yield resource, 100.0 * used / has


def _find_fragmented(resource: str, nodes: Nodes, pods: list[Pod]) -> float:
    free = np.maximum(measure_free(nodes, resource), 0)
    asked = [dict(pod.requests).get(resource, 0) for pod in pods]
    if not asked or not free.sum():
        return 0.0
    return 100.0 * float(free[free < np.median(asked)].sum()) / float(free.sum())


def _count_beside_gpus(nodes: Nodes, pods: list[Pod], gpus: list[str]) -> int:
    if not gpus:
        return 0
    counts = nodes.allocatable[[nodes.resources[each] for each in gpus]].sum(axis=0)
    asks_none = (pod for pod in pods if not any(map(is_gpu, dict(pod.requests))))
    rows = (nodes.row(pod.node_name) for pod in asks_none)
    return sum(1 for row in rows if row is not None and counts[row] > 0)


def _shares(pod: Pod, nodes: Nodes) -> bool:
    row = nodes.row(pod.node_name)
    if row is None:
        return False
    others = (each for each in nodes.pods(row).values() if each.uid != pod.uid)
    return any(is_ordinary(each) and not are_together(pod, each) for each in others)


def _count_gangs(cluster: Cluster) -> tuple[int, int]:
    gangs = [group for group in cluster.groups if group.is_gang]
    counts = ((len(cluster.groups.placed(each.group_key)), each.min_count) for each in gangs)
    return len(gangs), sum(1 for placed, needed in counts if 0 < placed < needed)


def tabulate(uses: Sequence[ClusterUse]) -> Iterator[tuple[str, list[str]]]:
    """Yields the figures of several measurements as rows of a table, without empty rows."""
    if not uses:
        return
    yield "", [each.name for each in uses]
    yield "nodes in use", [f"{each.nodes_in_use:,} of {each.nodes:,}" for each in uses]
    yield "pods on nodes", [f"{each.pods:,}" for each in uses]
    yield "pods that wait", [f"{each.waiting:,}" for each in uses]
    for resource in (CPU, MEMORY):
        yield f"{resource} requested", [f"{each.use.get(resource, 0.0):.1f}%" for each in uses]
        yield (
            f"free {resource} in small pieces",
            [f"{each.fragmented.get(resource, 0.0):.1f}%" for each in uses],
        )
    if any(each.gpus for each in uses):
        yield "GPUs free", [f"{each.free_gpus:,} of {each.gpus:,}" for each in uses]
        yield "free GPUs that no GPU pod can use", [f"{each.stranded_gpus:,}" for each in uses]
        yield "pods without GPUs on GPU nodes", [f"{each.pods_beside_gpus:,}" for each in uses]
    if any(each.exclusive_pods for each in uses):
        shared = ((each.exclusive_pods_that_share, each.exclusive_pods) for each in uses)
        yield "exclusive pods that share a node", [f"{some:,} of {all_:,}" for some, all_ in shared]
    if any(each.gangs for each in uses):
        partial = ((each.partial_gangs, each.gangs) for each in uses)
        yield "gangs that are placed in part", [f"{some:,} of {all_:,}" for some, all_ in partial]
