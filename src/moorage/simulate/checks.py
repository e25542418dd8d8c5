"""Finds mistakes for which the API server would refuse an object although every type is right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moorage.documents.errors import describe, path_of
from moorage.objects.container import Resources
from moorage.objects.csi import CSINode, CSIStorageCapacity, VolumeAttachment
from moorage.objects.kinds import Object
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.objects.quantity import Quantity
from moorage.objects.storage import (
    READ_WRITE_ONCE_POD,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageObject,
)
from moorage.objects.workload import PodDisruptionBudget
from moorage.world.claim_templates import ResourceClaimTemplate
from moorage.world.defaults import PriorityClass

#: A field and what is wrong with it.
Fault = tuple[str, str]

_ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", READ_WRITE_ONCE_POD)
_BINDING_MODES = ("Immediate", WAIT_FOR_FIRST_CONSUMER)
_VOLUME_MODES = ("Filesystem", "Block")


def find_faults(
    item: Object | PriorityClass | ResourceClaimTemplate, raw: Mapping[str, Any]
) -> Iterator[Fault]:
    """Yields what is wrong with an object, the most telling first; `raw` is the written form."""
    name = item.metadata.name if isinstance(item, PriorityClass) else item.name
    if not name:
        yield "metadata.name", "is required"
    if isinstance(item, Pod):
        yield from _check_pod(item)
    elif isinstance(item, Node):
        yield from _check_amounts(["status", "allocatable"], _read_amounts(raw.get("status") or {}))
    elif isinstance(item, PodDisruptionBudget):
        if item.disruptions_allowed < 0:
            yield "status.disruptionsAllowed", "must not be negative"
    elif isinstance(item, PodGroup):
        yield from _check_group(raw.get("spec") or {})
    elif isinstance(item, StorageObject):
        yield from _check_storage(item, raw)


def _check_group(spec: Mapping[str, Any]) -> Iterator[Fault]:
    # As they are written: what was read counts as 1 at least.
    policy = spec.get("schedulingPolicy") or {}
    gang = policy.get("gang") or {}
    for field, count in (
        ("spec.schedulingPolicy.gang.minCount", gang.get("minCount")),
        ("spec.minMember", spec.get("minMember")),
    ):
        if count is not None and count < 1:
            yield field, f"must be 1 or greater, got {describe(count)}"
    if policy.get("gang") is not None and policy.get("basic") is not None:
        yield "spec.schedulingPolicy", "must have either basic or gang"
    topology = (spec.get("schedulingConstraints") or {}).get("topology") or ()
    if len(topology) > 1:
        yield "spec.schedulingConstraints.topology", "must have one key at most"
    if spec.get("parentCompositePodGroupName"):
        yield (
            "spec.parentCompositePodGroupName",
            "composite groups are not supported by Moorage yet",
        )


def _check_pod(pod: Pod) -> Iterator[Fault]:
    spec = pod.spec
    if not spec.containers:
        yield "spec.containers", "is required"
    for field, containers in (
        ("containers", spec.containers),
        ("initContainers", spec.init_containers or ()),
    ):
        for index, container in enumerate(containers):
            yield from _check_resources(["spec", field, index, "resources"], container.resources)
    yield from _check_resources(["spec", "resources"], spec.resources)
    yield from _check_amounts(["spec", "overhead"], spec.overhead or {})


def _check_resources(steps: list[str | int], resources: Resources | None) -> Iterator[Fault]:
    if resources is None:
        return
    requests, limits = resources.requests or {}, resources.limits or {}
    # Limits first: a request that was not written comes from its limit.
    yield from _check_amounts([*steps, "limits"], limits)
    yield from _check_amounts([*steps, "requests"], requests)
    for name, amount in requests.items():
        if name in limits and amount > limits[name]:
            yield path_of([*steps, "requests", name]), "must not be more than the limit"


def _check_amounts(steps: list[str | int], amounts: Mapping[str, int]) -> Iterator[Fault]:
    for name, amount in amounts.items():
        if amount < 0:
            yield path_of([*steps, name]), "must not be negative"


def _read_amounts(status: Mapping[str, Any]) -> dict[str, int]:
    """Returns the amounts of a node as written, because decoding removes negative ones."""
    written = status.get("allocatable") or status.get("capacity") or {}
    return {name: Quantity.parse(amount) for name, amount in written.items() if amount is not None}


def _check_storage(item: StorageObject, raw: Mapping[str, Any]) -> Iterator[Fault]:
    match item:
        case PersistentVolume():
            # Some drivers do not know the size, and write 0.
            yield from _refuse_negative("spec.capacity.storage", item.capacity)
            yield from _check_modes(item)
        case PersistentVolumeClaim():
            yield from _require_size("spec.resources.requests.storage", item.request)
            yield from _check_modes(item)
        case StorageClass():
            yield from _require("provisioner", item.provisioner)
            yield from _require_one_of(
                "volumeBindingMode", item.volume_binding_mode, _BINDING_MODES
            )
        case VolumeAttachment():
            yield from _require("spec.attacher", item.attacher)
            yield from _require("spec.nodeName", item.node_name)
        case CSIStorageCapacity():
            yield from _require("storageClassName", item.class_name)
            yield from _refuse_negative("capacity", item.capacity_bytes)
            yield from _refuse_negative("maximumVolumeSize", item.largest_bytes)
        case CSINode():
            yield from _check_limits(raw)


def _check_modes(item: PersistentVolume | PersistentVolumeClaim) -> Iterator[Fault]:
    if not item.access_modes:
        yield "spec.accessModes", "is required"
    for mode in sorted(item.access_modes):
        yield from _require_one_of("spec.accessModes", mode, _ACCESS_MODES)
    yield from _require_one_of("spec.volumeMode", item.volume_mode, _VOLUME_MODES)


def _check_limits(raw: Mapping[str, Any]) -> Iterator[Fault]:
    # As they are written: those that were read are never negative.
    for driver in (raw.get("spec") or {}).get("drivers") or ():
        count = (driver.get("allocatable") or {}).get("count")
        if count is not None and count < 0:
            yield "spec.drivers", f"the count of {describe(driver['name'])} must not be negative"


def _require(field: str, value: str) -> Iterator[Fault]:
    if not value:
        yield field, "is required"


def _require_size(field: str, amount: int | None) -> Iterator[Fault]:
    if amount is None:
        yield field, "is required"
    elif amount <= 0:
        yield field, "must be greater than 0"


def _require_one_of(field: str, value: str | None, known: tuple[str, ...]) -> Iterator[Fault]:
    if value not in known:
        yield field, f"must be one of {', '.join(known)}, got {describe(value)}"


def _refuse_negative(field: str, amount: int | None) -> Iterator[Fault]:
    if amount is not None and amount < 0:
        yield field, "must not be negative"
