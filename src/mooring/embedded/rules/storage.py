"""Volumes, claims, classes and what drivers say about themselves."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.embedded.errors import Fault, forbidden_field, invalid_value, required, unsupported

from .container_faults import amount_faults
from .plain import Json, Rules, fill, part
from .selector_faults import label_selector_faults, node_selector_faults

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


class Volumes(Rules):
    status = True
    shows_deleted = True

    def default(self, item: Json) -> None:
        spec = item.setdefault("spec", {})
        fill(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
        if "hostPath" in spec:
            fill(spec["hostPath"], type="")

    def created(self, item: Json) -> None:
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


class Claims(Rules):
    status = True

    def default(self, item: Json) -> None:
        fill(item.setdefault("spec", {}), volumeMode="Filesystem")

    def created(self, item: Json) -> None:
        item["status"] = {"phase": "Pending"}

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


class Shown(Rules):
    """Who deletes an object is shown it."""

    shows_deleted = True


class Classes(Shown):
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


class Drivers(Shown):
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


class Attachments(Shown):
    """Who attaches volumes may create an attachment with its status."""

    status = True

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
