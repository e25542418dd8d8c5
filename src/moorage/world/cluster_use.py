"""Measures GPUs that no pod can use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask, Nodes
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
