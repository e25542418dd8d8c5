"""Volumes, claims and what belongs to them in a table."""

from __future__ import annotations

from collections.abc import Iterable

from .column import NAME, Column, Json, age, at, field, told

_UNSET = "<unset>"
_SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def _modes(modes: Iterable[str]) -> str:
    given = set(modes)
    return ",".join(short for mode, short in _SHORT_MODES.items() if mode in given)


def _volume_claim(item: Json) -> str:
    claim = at(item, "spec.claimRef", {})
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _volume_status(item: Json) -> str:
    if "deletionTimestamp" in item["metadata"]:
        return "Terminating"
    return str(at(item, "status.phase", ""))


def _if_bound(path: str) -> Column:
    def tell(item: Json) -> str:
        return str(at(item, path, "")) if at(item, "spec.volumeName", "") else ""

    return told("Capacity", tell)


def _class_name(item: Json) -> str:
    notes = at(item, "metadata.annotations", {})
    marked = notes.get(_DEFAULT_CLASS) == "true"
    return f"{item['metadata']['name']}{' (default)' if marked else ''}"


def _flag(name: str, path: str) -> Column:
    return told(name, lambda item: at(item, path, False), type="boolean")


VOLUMES = (
    NAME,
    field("Capacity", "spec.capacity.storage", ""),
    told("Access Modes", lambda item: _modes(at(item, "spec.accessModes", []))),
    field("Reclaim Policy", "spec.persistentVolumeReclaimPolicy", ""),
    told("Status", _volume_status),
    told("Claim", _volume_claim),
    field("StorageClass", "spec.storageClassName", ""),
    field("VolumeAttributesClass", "spec.volumeAttributesClassName", _UNSET),
    field("Reason", "status.reason", ""),
    age(),
    field("VolumeMode", "spec.volumeMode", _UNSET, wide=True),
)
CLAIMS = (
    NAME,
    told("Status", _volume_status),
    field("Volume", "spec.volumeName", ""),
    _if_bound("status.capacity.storage"),
    told("Access Modes", lambda item: _modes(at(item, "status.accessModes", []))),
    field("StorageClass", "spec.storageClassName", ""),
    field("VolumeAttributesClass", "spec.volumeAttributesClassName", _UNSET),
    age(),
    field("VolumeMode", "spec.volumeMode", _UNSET, wide=True),
)
CLASSES = (
    Column("Name", lambda item, _: _class_name(item), format="name"),
    field("Provisioner", "provisioner", ""),
    field("ReclaimPolicy", "reclaimPolicy", ""),
    field("VolumeBindingMode", "volumeBindingMode", ""),
    _flag("AllowVolumeExpansion", "allowVolumeExpansion"),
    age(),
)
CSI_NODES = (
    NAME,
    told("Drivers", lambda item: len(at(item, "spec.drivers", [])), type="integer"),
    age(),
)
CSI_DRIVERS = (
    NAME,
    _flag("AttachRequired", "spec.attachRequired"),
    _flag("PodInfoOnMount", "spec.podInfoOnMount"),
    _flag("StorageCapacity", "spec.storageCapacity"),
    told("Modes", lambda item: ",".join(at(item, "spec.volumeLifecycleModes", []))),
    age(),
)
CAPACITIES = (
    NAME,
    field("StorageClassName", "storageClassName", ""),
    field("Capacity", "capacity", ""),
    age(),
)
ATTACHMENTS = (
    NAME,
    field("Attacher", "spec.attacher", ""),
    field("PV", "spec.source.persistentVolumeName", ""),
    field("Node", "spec.nodeName", ""),
    _flag("Attached", "status.attached"),
    age(),
)
