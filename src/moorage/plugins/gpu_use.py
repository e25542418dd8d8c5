"""What GPU pods request beside their GPUs, node by node, as a learned extended resource."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from moorage.cluster import Admission, ExtendedCache, ExtendedResource, Handle, Informer
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.resources import CPU, MEMORY

#: How many GPUs pods use, by a pod; 0 if it uses none.
CountGPUs = Callable[[Pod], int]

GPUS, CPU_MILLI, MEMORY_BYTES = "gpus", "cpu_milli", "memory_bytes"
#: The figure of each resource that is learned.
LEARNED_FIGURES = {CPU: CPU_MILLI, MEMORY: MEMORY_BYTES}


@dataclass(slots=True)
class GPUUse(ExtendedResource):
    """The GPUs in use on a node, and the cpu and memory that go with them."""

    count: CountGPUs
    gpus: int = 0
    cpu_milli: int = 0
    memory_bytes: int = 0

    def add_pod(self, pod: Pod) -> None:
        self._move(pod, 1)

    def remove_pod(self, pod: Pod) -> None:
        self._move(pod, -1)

    def _move(self, pod: Pod, sign: int) -> None:
        asked = dict(pod.spec.requests)
        self.gpus += sign * self.count(pod)
        self.cpu_milli += sign * asked.get(CPU, 0)
        self.memory_bytes += sign * asked.get(MEMORY, 0)

    def admit_pod(self, pod: Pod) -> Admission:
        return Admission(0, 0)

    def copy(self) -> GPUUse:
        return replace(self)

    def figures(self) -> dict[str, int]:
        return {
            GPUS: self.gpus,
            CPU_MILLI: self.cpu_milli,
            MEMORY_BYTES: self.memory_bytes,
        }


class GPUUseHandle(Handle[GPUUse]):
    """Makes every node counted."""

    columns = (GPUS, CPU_MILLI, MEMORY_BYTES)

    def __init__(self, count: CountGPUs) -> None:
        self._count = count
        self._known: set[str] = set()

    def run(self, cache: ExtendedCache[GPUUse], informer: Informer) -> None:
        super().run(cache, informer)
        informer.listen_to_nodes(self._applied, self._removed)

    def counts(self, pod: Pod) -> bool:
        return self._count(pod) > 0

    def counts_alike(self, known: Pod, seen: Pod) -> bool:
        # Pods whose requests differ are counted anew in any case.
        return True

    def _applied(self, node: Node) -> None:
        if node.name not in self._known:
            self._known.add(node.name)
            self.cache.set(node.name, GPUUse(self._count))

    def _removed(self, node: Node) -> None:
        self._known.discard(node.name)
        self.cache.remove(node.name)
