"""Volumes, claims, storage classes and drivers: rules and columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from moorage.embedded.api.column import (
    NAME,
    Column,
    age_column,
    at,
    field_column,
    text_column,
)
from moorage.embedded.api.decoding import fill, part
from moorage.embedded.api.kind import STATUS, KindRules, ServedKind, make_built_in, make_known_kind
from moorage.embedded.api.names import label_selector_faults, node_selector_faults
from moorage.embedded.request_refusals import (
    Fault,
    forbidden_field,
    invalid_value,
    required,
    unsupported,
)
from moorage.embedded.store.object_store import Json, ObjectStore

from .limit_ranges import limit_claim
from .pod_spec_rules import amount_faults

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
# What a volume's spec says beside where the volume is.
_NOT_A_SOURCE = frozenset(
    (
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    )
)
_IS_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_UNSET = "<unset>"
_SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


class VolumeRules(KindRules):
    status = True
    shows_deleted = True

    def default(self, item: Json) -> None:
        spec = item.setdefault("spec", {})
        fill(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
        if "hostPath" in spec:
            fill(spec["hostPath"], type="")

    def complete_new(self, item: Json) -> None:
        item["status"] = {"phase": "Pending"}

    def faults(self, item: Json) -> Iterator[Fault]:
        spec = item["spec"]
        yield from _mode_faults(spec)
        if not part(spec, "capacity"):
            yield required("spec.capacity")
        yield from amount_faults("spec.capacity", part(spec, "capacity"), named=False)
        sources = sorted(set(spec) - _NOT_A_SOURCE)
        if not sources:
            yield required("spec", "must specify a volume type")
        for name in sources[1:]:
            yield forbidden_field(f"spec.{name}", "may not specify more than 1 volume type")
        yield from _choice_faults(
            "spec.persistentVolumeReclaimPolicy",
            spec["persistentVolumeReclaimPolicy"],
            _RECLAIM_POLICIES,
        )
        wanted = part(spec, "nodeAffinity").get("required")
        if wanted is not None:
            yield from node_selector_faults("spec.nodeAffinity.required", wanted)

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        if _sources(item) != _sources(old):
            detail = "spec.persistentvolumesource is immutable after creation"
            yield forbidden_field("spec.persistentvolumesource", detail)


class ClaimRules(KindRules):
    """The rules of claims; a new one without a class gets the default class."""

    status = True

    def default(self, item: Json) -> None:
        fill(item.setdefault("spec", {}), volumeMode="Filesystem")

    def complete_new(self, item: Json) -> None:
        item["status"] = {"phase": "Pending"}

    def admit(self, kind: ServedKind, store: ObjectStore, item: Json, old: Json | None) -> None:
        if old is None:
            _choose_class(store, item["spec"])
        limit_claim(store, item)

    def faults(self, item: Json) -> Iterator[Fault]:
        spec = item["spec"]
        yield from _mode_faults(spec)
        requests = part(part(spec, "resources"), "requests")
        if "storage" not in requests:
            yield required("spec.resources[storage]")
        yield from amount_faults("spec.resources.requests", requests, named=False)
        yield from label_selector_faults("spec.selector", spec.get("selector"))

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        now, before = dict(item["spec"]), dict(old["spec"])
        free = ["resources", "volumeAttributesClassName"]
        if not before.get("volumeName"):
            free.append("volumeName")
        if before.get("storageClassName") is None:
            free.append("storageClassName")
        for name in free:
            now.pop(name, None)
            before.pop(name, None)
        if now != before:
            detail = (
                "spec is immutable after creation except resources.requests and "
                "volumeAttributesClassName for bound claims"
            )
            yield forbidden_field("spec", detail)


def _choose_class(store: ObjectStore, spec: Json) -> None:
    if spec.get("storageClassName") is not None or spec.get("volumeName"):
        return
    classes = store.table("storageclasses.storage.k8s.io").entries.values()
    items = [entry.object for entry in classes]
    marked = [each["metadata"] for each in items if _is_default(each)]
    newest = sorted(marked, key=lambda each: each["name"])
    newest.sort(key=lambda each: each["creationTimestamp"], reverse=True)
    if newest:
        spec["storageClassName"] = newest[0]["name"]


def _is_default(item: Json) -> bool:
    notes = item["metadata"].get("annotations") or {}
    return any(notes.get(key) == "true" for key in _IS_DEFAULT_CLASS)


class ShowDeletedRules(KindRules):
    """The rules of kinds whose deletion is answered with the object."""

    shows_deleted = True


class StorageClassRules(ShowDeletedRules):
    def default(self, item: Json) -> None:
        fill(item, reclaimPolicy="Delete", volumeBindingMode="Immediate")

    def faults(self, item: Json) -> Iterator[Fault]:
        if not item.get("provisioner"):
            yield required("provisioner")
        yield from _choice_faults("reclaimPolicy", item["reclaimPolicy"], _RECLAIM_POLICIES)
        yield from _choice_faults("volumeBindingMode", item["volumeBindingMode"], _BINDING_MODES)

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
            if item.get(name) != old.get(name):
                yield invalid_value(name, item.get(name), "field is immutable")


class DriverRules(ShowDeletedRules):
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


class AttachmentRules(ShowDeletedRules):
    """The rules of attachments; they may be created with their status."""

    status = True
    status_keeps_metadata = True

    def default(self, item: Json) -> None:
        fill(item, status={})
        fill(item["status"], attached=False)


def _sources(item: Json) -> Json:
    return {key: value for key, value in item["spec"].items() if key not in _NOT_A_SOURCE}


def _mode_faults(spec: Json) -> Iterator[Fault]:
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    for mode in spec.get("accessModes") or ():
        yield from _choice_faults("spec.accessModes", mode, _ACCESS_MODES)
    yield from _choice_faults("spec.volumeMode", spec["volumeMode"], _VOLUME_MODES)


def _choice_faults(at: str, value: str, known: tuple[str, ...]) -> Iterator[Fault]:
    if value not in known:
        yield unsupported(at, value, known)


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


def _capacity_column(path: str) -> Column:
    def read(item: Json) -> str:
        return str(at(item, path, "")) if at(item, "spec.volumeName", "") else ""

    return text_column("Capacity", read)


def _class_name(item: Json) -> str:
    return f"{item['metadata']['name']}{' (default)' if _is_default(item) else ''}"


def _flag(name: str, path: str) -> Column:
    return text_column(name, lambda item: at(item, path, False), type="boolean")


_VOLUME_COLUMNS = (
    NAME,
    field_column("Capacity", "spec.capacity.storage", ""),
    text_column("Access Modes", lambda item: _modes(at(item, "spec.accessModes", []))),
    field_column("Reclaim Policy", "spec.persistentVolumeReclaimPolicy", ""),
    text_column("Status", _volume_status),
    text_column("Claim", _volume_claim),
    field_column("StorageClass", "spec.storageClassName", ""),
    field_column("VolumeAttributesClass", "spec.volumeAttributesClassName", _UNSET),
    field_column("Reason", "status.reason", ""),
    age_column(),
    field_column("VolumeMode", "spec.volumeMode", _UNSET, wide=True),
)
_CLAIM_COLUMNS = (
    NAME,
    text_column("Status", _volume_status),
    field_column("Volume", "spec.volumeName", ""),
    _capacity_column("status.capacity.storage"),
    text_column("Access Modes", lambda item: _modes(at(item, "status.accessModes", []))),
    field_column("StorageClass", "spec.storageClassName", ""),
    field_column("VolumeAttributesClass", "spec.volumeAttributesClassName", _UNSET),
    age_column(),
    field_column("VolumeMode", "spec.volumeMode", _UNSET, wide=True),
)
_CLASS_COLUMNS = (
    Column("Name", lambda item, _: _class_name(item), format="name"),
    field_column("Provisioner", "provisioner", ""),
    field_column("ReclaimPolicy", "reclaimPolicy", ""),
    field_column("VolumeBindingMode", "volumeBindingMode", ""),
    _flag("AllowVolumeExpansion", "allowVolumeExpansion"),
    age_column(),
)
_CSI_NODE_COLUMNS = (
    NAME,
    text_column("Drivers", lambda item: len(at(item, "spec.drivers", [])), type="integer"),
    age_column(),
)


def storage_kinds() -> Iterator[ServedKind]:
    """Yields volumes, claims, classes and what belongs to drivers."""
    yield make_known_kind(
        "PersistentVolume",
        VolumeRules(),
        parts=(STATUS,),
        short_names=("pv",),
        columns=_VOLUME_COLUMNS,
    )
    yield make_known_kind(
        "PersistentVolumeClaim",
        ClaimRules(),
        parts=(STATUS,),
        short_names=("pvc",),
        columns=_CLAIM_COLUMNS,
    )
    storage = partial(make_built_in, "storage.k8s.io", "storage.v1", namespaced=False)
    yield make_known_kind(
        "StorageClass", StorageClassRules(), short_names=("sc",), columns=_CLASS_COLUMNS
    )
    yield make_known_kind("CSINode", ShowDeletedRules(), columns=_CSI_NODE_COLUMNS)
    yield make_known_kind("CSIDriver", DriverRules())
    yield make_known_kind("CSIStorageCapacity")
    yield make_known_kind("VolumeAttachment", AttachmentRules(), parts=(STATUS,))
    yield storage("VolumeAttributesClass", "volumeattributesclasses", short_names=("vac",))
