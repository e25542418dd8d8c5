"""Device classes that stand for GPUs: which pods claim such devices, and which nodes have some."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask, Rows, View
from moorage.cluster.devices.device_classes import DeviceClasses
from moorage.objects.device import DeviceClass, ResourceSlice, SliceDevice
from moorage.objects.pod import Pod
from moorage.objects.resource_claim import ResourceClaim

from .dynamic_resources.device_counts import (
    THERE,
    USED,
    ClassCounts,
    DeviceCounts,
    Figures,
    KnownModels,
)


class GPUClasses:
    """The classes of given names, and those that are annotated as GPUs."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._counts = DeviceCounts()
        self._found: tuple[DeviceClass, ...] = ()
        #: The classes among which these were found, and their version.
        self._among: tuple[DeviceClasses, int] | None = None
        #: The devices that one of the classes selects.
        self._counted: ClassCounts | None = None

    def find(self, nodes: View) -> tuple[DeviceClass, ...]:
        """Returns all classes that stand for GPUs."""
        classes = nodes.devices.classes
        if (
            self._among is None
            or self._among[0] is not classes
            or self._among[1] != classes.version
        ):
            self._among = classes, classes.version
            self._found = tuple(
                each for each in classes if each.name in self._names or each.is_for_gpus
            )
            self._counted = None
            if self._found:
                self._counted = ClassCounts(self._found[0], self._match_any)
        return self._found

    def are_asked_for(self, pod: Pod, nodes: View) -> bool:
        """Whether a pod asks for a device of such a class, by a claim or by a resource."""
        names = {each.name for each in self.find(nodes)}
        classes = nodes.devices.classes
        for name, amount in pod.requests:
            behind = classes.for_resource(name) if amount else None
            if behind is not None and behind.name in names:
                return True
        if not pod.spec.resource_claims:
            return False
        claims = [each for each in nodes.devices.claims.used_by(pod) if not each.is_extended]
        # What is not there yet may be a claim to anything.
        return len(claims) < len(pod.spec.resource_claims) or not names.isdisjoint(
            name for claim in claims for name in _classes_of(claim)
        )

    def rows_with_some(self, nodes: View, rows: Rows) -> Mask:
        """Returns where there are such devices, in use or not."""
        figures = self._count(nodes)
        return nodes.nothing(rows) if figures is None else figures[THERE][rows] > 0

    def count_free(self, nodes: View, rows: Rows) -> NDArray[np.int64]:
        """Returns how many such devices are free on each row."""
        figures = self._count(nodes)
        if figures is None:
            return np.zeros(nodes.count(rows), np.int64)
        return np.clip(figures[THERE][rows] - figures[USED][rows], 0, None)

    def _count(self, nodes: View) -> Figures | None:
        if not self.find(nodes) or self._counted is None:
            return None
        with self._counts.limited():
            return self._counted.current(nodes)

    def _match_any(
        self, _: DeviceClass, item: ResourceSlice, models: KnownModels
    ) -> tuple[SliceDevice, ...]:
        """Returns the devices of a slice that are GPUs.

        A class whose expression breaks selects none.
        """
        found = [self._counts.find_matching(each, item, models) or () for each in self._found]
        names = {device.name for devices in found for device in devices}
        return tuple(each for each in item.devices if each.name in names)


def _classes_of(claim: ResourceClaim) -> Iterator[str]:
    for request in claim.spec.requests:
        for ask in (request.exactly, *(request.first_available or ())):
            if ask is not None:
                yield ask.device_class_name
