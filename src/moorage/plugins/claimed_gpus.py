"""What pods with claims of GPUs request beside them, node by node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, Rows, View
from moorage.cluster.row_view import RowView
from moorage.objects.pod import Pod
from moorage.objects.resource_claim import DeviceResult, ResourceClaim
from moorage.objects.resources import CPU, MEMORY

from .gpu_use import CPU_MILLI, GPUS, MEMORY_BYTES

_PODS = Change.REQUESTED | Change.PODS
_DEVICES = Change.POD_STATUS | Change.CLAIMS | Change.SLICES | Change.CLASSES

#: What is counted on each row, by its name.
Figures = NDArray[Any]
_FIGURES = np.dtype([(name, np.int64) for name in (GPUS, CPU_MILLI, MEMORY_BYTES)])


class ClaimedGPUs:
    """The GPUs that claims of a node's pods have, and the cpu and memory that go with them.

    Claims keep their devices when a pod is evicted. So a what-if, in which pods come and go, sees
    the pods that are there.
    """

    def __init__(self, is_counted_otherwise: Callable[[Pod], bool]) -> None:
        #: Whether the cpu and memory of a pod are known by its GPU limit.
        self._is_counted_otherwise = is_counted_otherwise
        self._kept: _CountedRows | None = None

    def count(self, nodes: View, classes: Iterable[str]) -> Figures:
        """Returns the figures of all rows. The classes are those that stand for GPUs."""
        found = frozenset(classes)
        kept = self._kept
        if kept is None or kept.nodes.changes is not nodes.changes or kept.classes != found:
            kept = self._kept = _CountedRows(nodes, found, self._is_counted_otherwise)
        return kept.figures.current()


class _CountedRows:
    """What is counted for some classes."""

    def __init__(
        self, nodes: View, classes: frozenset[str], is_counted_otherwise: Callable[[Pod], bool]
    ) -> None:
        self.nodes = nodes
        self.classes = classes
        self._is_counted_otherwise = is_counted_otherwise
        # Devices of wide pools may change all rows, but those of most rows have no pods with GPUs.
        self._may_have = RowView(nodes, _PODS | Change.CLASSES, self._find_claiming)
        self.figures: RowView[np.void] = RowView(nodes, _PODS | _DEVICES, self._count)

    def _find_claiming(self, rows: Rows) -> NDArray[np.bool_]:
        """Returns which rows have pods that may have GPUs by a claim, or by a resource."""
        by_resource = self.nodes.devices.classes.map_resources
        found = (
            any(by_resource or each.spec.resource_claims for each in self.nodes.pods(row).values())
            for row in self.nodes.numbers(rows)
        )
        return np.fromiter(found, np.bool_)

    def _count(self, rows: Rows) -> Figures:
        numbers = self.nodes.numbers(rows)
        figures = np.zeros(len(numbers), _FIGURES)
        for at in np.flatnonzero(self._may_have.current()[rows]).tolist():
            figures[at] = self._add_up(numbers[at])
        return figures

    def _add_up(self, row: int) -> tuple[int, int, int]:
        nodes, name = self.nodes, self.nodes.name(row)
        by_claim: dict[str, int] = {}
        gpus = cpu = memory = 0
        for pod in nodes.pods(row).values():
            own = self._count_resources(pod)
            held = {claim.uid: self._count_devices(claim, name) for claim in _claims(pod, nodes)}
            # Pods that share a claim share its devices.
            by_claim |= held
            gpus += own
            if (own or any(held.values())) and not self._is_counted_otherwise(pod):
                asked = dict(pod.spec.requests)
                cpu += asked.get(CPU, 0)
                memory += asked.get(MEMORY, 0)
        return gpus + sum(by_claim.values()), cpu, memory

    def _count_resources(self, pod: Pod) -> int:
        """Returns the GPUs that a pod asks for by a resource that stands for a class."""
        if self._is_counted_otherwise(pod):
            return 0
        classes = self.nodes.devices.classes
        behind = ((classes.for_resource(name), amount) for name, amount in pod.requests)
        return sum(
            amount for each, amount in behind if each is not None and each.name in self.classes
        )

    def _count_devices(self, claim: ResourceClaim, name: str) -> int:
        """Returns the GPUs of a node that a claim has or was decided to get."""
        allocation = claim.allocation
        if allocation is None:
            decided = self.nodes.devices.claims.pending.get(claim.uid)
            if decided is None:
                return 0
            allocation = decided.allocation
        classes = _classes_by_request(claim)
        # Who has access as an admin leaves the device to others.
        return sum(
            classes.get(each.request) in self.classes
            and not each.admin_access
            and _is_seen(each, name, self.nodes)
            for each in allocation.results
        )


def _classes_by_request(claim: ResourceClaim) -> dict[str, str]:
    found = {}
    for request in claim.spec.requests:
        if request.exactly is not None:
            found[request.name] = request.exactly.device_class_name
        for each in request.first_available or ():
            found[f"{request.name}/{each.name}"] = each.device_class_name
    return found


def _is_seen(given: DeviceResult, name: str, nodes: View) -> bool:
    """Whether a node gets a change when a device is taken or freed."""
    pool = nodes.devices.pools.get((given.driver, given.pool))
    if pool is None or pool.is_wide:
        return pool is not None
    by_device = pool.nodes_of_device
    return name in (pool.nodes if by_device is None else by_device.get(given.device, ()))


def _claims(pod: Pod, nodes: View) -> Iterator[ResourceClaim]:
    """Yields the claims that a pod names. Requests for resources are counted elsewhere."""
    if pod.spec.resource_claims:
        for claim in nodes.devices.claims.used_by(pod):
            if not claim.is_extended:
                yield claim
