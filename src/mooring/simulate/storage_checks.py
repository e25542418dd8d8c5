"""What the API server would refuse of volumes, claims and what surrounds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mooring.documents.errors import shown
from mooring.objects.csi import CSINode, CSIStorageCapacity, VolumeAttachment
from mooring.objects.storage import (
    READ_WRITE_ONCE_POD,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageObject,
)

#: A field and what is wrong with it.
Fault = tuple[str, str]

_ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", READ_WRITE_ONCE_POD)
_BINDING_MODES = ("Immediate", WAIT_FOR_FIRST_CONSUMER)
_VOLUME_MODES = ("Filesystem", "Block")


def storage_faults(item: StorageObject, raw: Mapping[str, Any]) -> Iterator[Fault]:
    """What is wrong with an object, the most telling first; `raw` is how it is written."""
    match item:
        case PersistentVolume():
            # Some drivers do not know the size, and write 0.
            yield from _not_negative("spec.capacity.storage", item.capacity)
            yield from _modes(item)
        case PersistentVolumeClaim():
            yield from _size("spec.resources.requests.storage", item.request)
            yield from _modes(item)
        case StorageClass():
            yield from _required("provisioner", item.provisioner)
            yield from _one_of("volumeBindingMode", item.volume_binding_mode, _BINDING_MODES)
        case VolumeAttachment():
            yield from _required("spec.attacher", item.attacher)
            yield from _required("spec.nodeName", item.node_name)
        case CSIStorageCapacity():
            yield from _required("storageClassName", item.class_name)
            yield from _not_negative("capacity", item.capacity_bytes)
            yield from _not_negative("maximumVolumeSize", item.largest_bytes)
        case CSINode():
            yield from _limits(raw)


def _modes(item: PersistentVolume | PersistentVolumeClaim) -> Iterator[Fault]:
    if not item.access_modes:
        yield "spec.accessModes", "is required"
    for mode in sorted(item.access_modes):
        yield from _one_of("spec.accessModes", mode, _ACCESS_MODES)
    yield from _one_of("spec.volumeMode", item.volume_mode, _VOLUME_MODES)


def _limits(raw: Mapping[str, Any]) -> Iterator[Fault]:
    # As they are written: those that were read are never negative.
    for driver in (raw.get("spec") or {}).get("drivers") or ():
        count = (driver.get("allocatable") or {}).get("count")
        if count is not None and count < 0:
            yield "spec.drivers", f"the count of {shown(driver['name'])} must not be negative"


def _required(field: str, value: str) -> Iterator[Fault]:
    if not value:
        yield field, "is required"


def _size(field: str, amount: int | None) -> Iterator[Fault]:
    if amount is None:
        yield field, "is required"
    elif amount <= 0:
        yield field, "must be greater than 0"


def _one_of(field: str, value: str | None, known: tuple[str, ...]) -> Iterator[Fault]:
    if value not in known:
        yield field, f"must be one of {', '.join(known)}, got {shown(value)}"


def _not_negative(field: str, amount: int | None) -> Iterator[Fault]:
    if amount is not None and amount < 0:
        yield field, "must not be negative"
