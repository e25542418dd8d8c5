"""Measures how a cluster is used: how full nodes are, GPUs that no pod can use, shared nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Cluster, Mask, Nodes
from moorage.engine.explain.explanation import ExplanationPart
from moorage.objects.coexist import are_together, is_exclusive, is_ordinary
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodSpec
from moorage.objects.resources import CPU, MEMORY

_GPU_SUFFIX = "/gpu"


def is_gpu(resource: str) -> bool:
    """Whether a resource is GPUs, by its name."""
    return resource.endswith(_GPU_SUFFIX)


@dataclass(frozen=True, slots=True)
class GpuDemands:
    """What GPU pods request: for each number of GPUs, the smallest amounts of CPU and memory."""

    #: Where such pods may go (one of the specs that say so), how many GPUs of which name they
    #: want, and pairs of CPU and memory of which no other is smaller in both.
    demands: tuple[tuple[PodSpec, str, int, tuple[tuple[int, int], ...]], ...]

    @classmethod
    def of(cls, pods: Iterable[Pod]) -> GpuDemands:
        found: dict[tuple[object, str, int], tuple[PodSpec, set[tuple[int, int]]]] = {}
        # Equal pods share their spec.
        for spec in {id(pod.spec): pod.spec for pod in pods}.values():
            asked = dict(spec.requests)
            for name in filter(is_gpu, asked):
                key = spec.node_terms, name, asked[name]
                pairs = found.setdefault(key, (spec, set()))[1]
                pairs.add((asked.get(CPU, 0), asked.get(MEMORY, 0)))
        return cls(
            tuple(
                (spec, name, gpus, _smallest(pairs))
                for (_, name, gpus), (spec, pairs) in found.items()
            )
        )

    def count_stranded(self, nodes: Nodes) -> int:
        """Counts free GPUs that suit a pod, on nodes that lack CPU or memory for any such pod."""
        total = 0
        for name in {name for _, name, _, _ in self.demands}:
            free = measure_free(nodes, name)
            total += int(free[self.find_starved(nodes, name)].sum())
        return total

    def find_starved(self, nodes: Nodes, resource: str) -> Mask:
        """Yields nodes with free GPUs for one of the pods, but without CPU and memory for any."""
        gpus, cpu, memory = (measure_free(nodes, name) for name in (resource, CPU, MEMORY))
        would_do, fits = nodes.nothing(nodes.rows), nodes.nothing(nodes.rows)
        for spec, name, wanted, pairs in self.demands:
            if name != resource:
                continue
            ready = gpus >= wanted
            if spec.node_terms is not None:
                ready &= nodes.satisfying_any(spec.node_terms, nodes.rows)
            would_do |= ready
            for least_cpu, least_memory in pairs:
                fits |= ready & (cpu >= least_cpu) & (memory >= least_memory)
        return would_do & ~fits


def _smallest(pairs: set[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Returns the demands that no other demand undercuts in both."""
    kept: list[tuple[int, int]] = []
    for pair in sorted(pairs):
        if not kept or pair[1] < kept[-1][1]:
            kept.append(pair)
    return tuple(kept)


def measure_free(nodes: Nodes, resource: str) -> NDArray[np.int64]:
    """Returns the free amount of a resource, by node."""
    at = nodes.resource(resource)
    if at is None:
        return np.zeros(len(nodes.rows), np.int64)
    return nodes.allocatable[at, nodes.rows] - nodes.requested[at, nodes.rows]


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
