"""GPUFragmentation: pods go where they leave the fewest GPUs that typical pods cannot use.

That is Fragmentation Gradient Descent (Weng et al., "Beware of Fragmentation", USENIX ATC 2023) for
whole GPUs. To a typical pod that a node cannot take, all free GPUs of the node are fragments. The
fragmentation of a node is the mean over typical pods, and a pod goes where it adds least.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.plugin import (
    CPU,
    MAX_SCORE,
    MEMORY,
    Change,
    Pod,
    PreScore,
    Quantity,
    Reduction,
    Rows,
    Scope,
    Score,
    Scores,
    Sign,
    View,
    Wire,
    child,
    item,
    native,
)

# Products of the three fit 64 bits: GPUs of a node, weights of a kind of pod, and kinds.
_MOST_GPUS, _MOST_WEIGHT, _MOST_KINDS = 2**16, 10**6, 1000


class TypicalPod(Wire, frozen=True):
    """A kind of GPU pod that the cluster should have room for, and how frequent it is."""

    gpus: int = 1
    cpu: Quantity = Quantity(0)
    memory: Quantity = Quantity(0)
    weight: int = 1

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.gpus < 1:
            yield "gpus", "must be 1 or greater"
        if not 1 <= self.weight <= _MOST_WEIGHT:
            yield "weight", f"must be between 1 and {_MOST_WEIGHT}"
        for name in ("cpu", "memory"):
            if getattr(self, name) < 0:
                yield name, "must not be negative"


def _typical(gpus: int, cpu: str, memory: str, weight: int) -> TypicalPod:
    return TypicalPod(
        gpus=gpus, cpu=Quantity.parse(cpu), memory=Quantity.parse(memory), weight=weight
    )


class GPUFragmentationArgs(Wire, frozen=True):
    """What counts as a GPU, and which pods are typical."""

    resources: tuple[str, ...] = ("nvidia.com/gpu", "amd.com/gpu")
    #: About those of the OpenB trace, of a thousand.
    typical_pods: tuple[TypicalPod, ...] = (
        _typical(1, "4", "8Gi", 300),
        _typical(1, "12", "48Gi", 600),
        _typical(1, "19", "64Gi", 90),
        _typical(2, "16", "64Gi", 2),
        _typical(4, "32", "128Gi", 2),
        _typical(8, "88", "320Gi", 6),
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        for field in ("resources", "typical_pods"):
            if not getattr(self, field):
                yield {"typical_pods": "typicalPods"}.get(field, field), "at least one is required"
        if len(self.typical_pods) > _MOST_KINDS:
            yield "typicalPods", f"at most {_MOST_KINDS} kinds can be weighed"
        for at, each in enumerate(self.typical_pods):
            for where, message in each.problems():
                yield child(item("typicalPods", at), where), message


@dataclass(frozen=True, slots=True)
class GPUDemand:
    """What a pod asks for."""

    gpus: int
    cpu_milli: int
    memory_bytes: int


class GPUFragmentation(PreScore[GPUDemand], Score[GPUDemand], Sign):
    """Scores nodes by how few GPUs the pod would put out of reach of typical pods."""

    name = "GPUFragmentation"
    Args = GPUFragmentationArgs
    reads = Change.ALLOCATABLE | Change.REQUESTED
    # It skips itself where no node offers a GPU.
    scope = Scope.CLUSTER
    # The least and the greatest gradient of all feasible nodes are the ends of the scale.
    reduces = Reduction.EVERYTHING

    def __init__(self, args: GPUFragmentationArgs | None = None) -> None:
        args = args or GPUFragmentationArgs()
        self._names = frozenset(args.resources)
        self._resources = args.resources
        kinds = args.typical_pods
        # int64[kind, 1] each, to be compared with rows.
        self._gpus = _column(each.gpus for each in kinds)
        self._cpu = _column(native(CPU, each.cpu) for each in kinds)
        self._memory = _column(native(MEMORY, each.memory) for each in kinds)
        self._weights = np.array([each.weight for each in kinds], np.int64)

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return self._demand(pod)

    def pre_score(self, pod: Pod, nodes: View, rows: NDArray[np.intp]) -> GPUDemand | None:
        offered = any(name in nodes.resources for name in self._resources)
        return self._demand(pod) if offered else None

    def score(self, prepared: GPUDemand, nodes: View, rows: Rows) -> Scores:
        free = np.zeros(nodes.count(rows), np.int64)
        for name in self._resources:
            free += _free(nodes, name, rows)
        np.clip(free, 0, _MOST_GPUS, out=free)
        cpu, memory = _free(nodes, CPU, rows), _free(nodes, MEMORY, rows)
        before = self._fragments(free, cpu, memory)
        left = np.clip(free - prepared.gpus, 0, None)
        after = self._fragments(left, cpu - prepared.cpu_milli, memory - prepared.memory_bytes)
        return before - after

    def normalize(self, prepared: GPUDemand, scores: Scores) -> Scores:
        if not len(scores):
            return scores
        least = int(scores.min())
        spread = max(int(scores.max()) - least, 1)
        return (scores - least) * MAX_SCORE // spread

    def _fragments(
        self, gpus: NDArray[np.int64], cpu: NDArray[np.int64], memory: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """int64[row]: the free GPUs that typical pods cannot use, weighed and added up."""
        useless = (gpus < self._gpus) | (cpu < self._cpu) | (memory < self._memory)
        return (self._weights @ useless.astype(np.int64)) * gpus

    def _demand(self, pod: Pod) -> GPUDemand:
        asked = dict(pod.spec.requests)
        gpus = sum(amount for name, amount in asked.items() if name in self._names)
        return GPUDemand(min(gpus, _MOST_GPUS), asked.get(CPU, 0), asked.get(MEMORY, 0))


def _column(values: Iterator[int]) -> NDArray[np.int64]:
    return np.array(list(values), np.int64)[:, np.newaxis]


def _free(nodes: View, name: str, rows: Rows) -> NDArray[np.int64]:
    """int64[row]: what nobody requests of a resource."""
    at = nodes.resources.get(name)
    if at is None:
        return np.zeros(nodes.count(rows), np.int64)
    return nodes.allocatable[at][rows] - nodes.requested[at][rows]
