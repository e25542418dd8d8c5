"""What pods with claims of GPUs request beside them, node by node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, View
from moorage.cluster.changes import ChangeLog
from moorage.cluster.row_view import Changed, LogReader
from moorage.objects.pod import Pod
from moorage.objects.resource_claim import DeviceResult, ResourceClaim
from moorage.objects.resources import CPU, MEMORY

from .gpu_use import CPU_MILLI, GPUS, MEMORY_BYTES

#: After these changes the pods of a row are looked at again.
_OF_ROWS = int(
    Change.REQUESTED
    | Change.PODS
    | Change.POD_STATUS
    | Change.CLAIMS
    | Change.SLICES
    | Change.MEMBERSHIP
)
_DEVICES, _CLASSES = int(Change.CLAIMS | Change.SLICES), int(Change.CLASSES)

_FIGURES = (GPUS, CPU_MILLI, MEMORY_BYTES)


class ClaimedGPUs:
    """The GPUs that claims of a node's pods have, and the cpu and memory that go with them.

    Claims keep their devices when a pod is evicted. So a what-if, in which pods come and go, sees
    the pods that are there.
    """

    def __init__(self, is_counted_otherwise: Callable[[Pod], bool]) -> None:
        #: Whether the cpu and memory of a pod are known by its GPU limit.
        self._is_counted_otherwise = is_counted_otherwise
        self._reader: LogReader | None = None
        self._classes: frozenset[str] = frozenset()
        self._figures: NDArray[np.int64] = np.zeros((len(_FIGURES), 0), np.int64)
        #: The rows with pods that have claims.
        self._claiming: set[int] = set()

    def count(self, nodes: View, log: ChangeLog | None, classes: Iterable[str]) -> None:
        """Counts the rows that changed again. The classes are those that stand for GPUs."""
        size, found = nodes.count(nodes.everything), frozenset(classes)
        known = self._reader if self._reader is not None and self._reader.log is log else None
        changed = None if known is None else known.read()
        if changed is None or size != self._figures.shape[1] or found != self._classes:
            changed = Changed({}, _CLASSES, _CLASSES, 0)
            self._reader = None if log is None else LogReader(log)
            self._figures = np.zeros((len(_FIGURES), size), np.int64)
            self._claiming.clear()
        self._classes = found
        for row in self._find_due(nodes, changed):
            self._count_row(nodes, row)

    def __getitem__(self, figure: str) -> NDArray[np.int64]:
        """int64[row]"""
        return self._figures[_FIGURES.index(figure)]

    def _find_due(self, nodes: View, changed: Changed) -> Iterable[int]:
        if changed.everywhere & _CLASSES:
            return nodes.rows.tolist()
        due = {row for row, kinds in changed.rows.items() if kinds & _OF_ROWS}
        return due | self._claiming if changed.everywhere & _DEVICES else due

    def _count_row(self, nodes: View, row: int) -> None:
        pods = nodes.pods(row).values()
        claiming = [each for each in pods if each.spec.resource_claims]
        if claiming:
            self._claiming.add(row)
        else:
            self._claiming.discard(row)
        if nodes.devices.classes.map_resources:
            claiming += [each for each in pods if not each.spec.resource_claims]
        self._figures[:, row] = self._add_up(claiming, nodes.name(row), nodes) if claiming else 0

    def _add_up(self, pods: Iterable[Pod], name: str, nodes: View) -> tuple[int, int, int]:
        by_claim: dict[str, int] = {}
        gpus = cpu = memory = 0
        for pod in pods:
            own = self._count_resources(pod, nodes)
            held = {
                claim.uid: self._count_devices(claim, name, nodes) for claim in _claims(pod, nodes)
            }
            # Pods that share a claim share its devices.
            by_claim |= held
            gpus += own
            if (own or any(held.values())) and not self._is_counted_otherwise(pod):
                asked = dict(pod.spec.requests)
                cpu += asked.get(CPU, 0)
                memory += asked.get(MEMORY, 0)
        return gpus + sum(by_claim.values()), cpu, memory

    def _count_resources(self, pod: Pod, nodes: View) -> int:
        """Returns the GPUs that a pod asks for by a resource that stands for a class."""
        if self._is_counted_otherwise(pod):
            return 0
        classes = nodes.devices.classes
        behind = ((classes.for_resource(name), amount) for name, amount in pod.requests)
        return sum(
            amount for each, amount in behind if each is not None and each.name in self._classes
        )

    def _count_devices(self, claim: ResourceClaim, name: str, nodes: View) -> int:
        """Returns the GPUs of a node that a claim has or was decided to get."""
        allocation = claim.allocation
        if allocation is None:
            decided = nodes.devices.claims.pending.get(claim.uid)
            if decided is None:
                return 0
            allocation = decided.allocation
        classes = _classes_by_request(claim)
        # Who has access as an admin leaves the device to others.
        return sum(
            classes.get(each.request) in self._classes
            and not each.admin_access
            and _is_seen(each, name, nodes)
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
