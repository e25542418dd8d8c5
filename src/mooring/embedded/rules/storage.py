"""Volumes, claims, classes and what drivers say about themselves."""

from __future__ import annotations

from .plain import Json, Rules, fill


class Volumes(Rules):
    status = True

    def default(self, item: Json) -> None:
        spec = item.setdefault("spec", {})
        fill(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")

    def created(self, item: Json) -> None:
        item["status"] = {"phase": "Pending"}


class Claims(Rules):
    status = True

    def default(self, item: Json) -> None:
        fill(item.setdefault("spec", {}), volumeMode="Filesystem")

    def created(self, item: Json) -> None:
        item["status"] = {"phase": "Pending"}


class Classes(Rules):
    def default(self, item: Json) -> None:
        fill(item, reclaimPolicy="Delete", volumeBindingMode="Immediate")


class Drivers(Rules):
    def default(self, item: Json) -> None:
        spec = item.setdefault("spec", {})
        fill(
            spec,
            attachRequired=True,
            fsGroupPolicy="ReadWriteOnceWithFSType",
            podInfoOnMount=False,
            requiresRepublish=False,
            seLinuxMount=False,
            storageCapacity=False,
            volumeLifecycleModes=["Persistent"],
        )
