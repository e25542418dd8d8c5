"""Short ways to write volumes, claims and what surrounds them in tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.objects.csi import CSIDriver, CSINode, CSIStorageCapacity, VolumeAttachment
from moorage.objects.decode import from_builtins
from moorage.objects.node import HOSTNAME
from moorage.objects.pod import Pod
from moorage.objects.storage import (
    BIND_COMPLETED,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from tests.builders import pod

DRIVER = "csi.example.com"


def pv(
    name: str = "pv",
    *,
    size: str = "1Gi",
    class_name: str = "late",
    labels: Mapping[str, str] | None = None,
    claim: str = "",
    hosts: tuple[str, ...] = (),
    phase: str = "",
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> PersistentVolume:
    """A volume of the example driver; `claim` ("name" or "name@uid") has it, `hosts` can use it."""
    claim_name, _, uid = claim.partition("@")
    terms = [{"matchExpressions": [_in(HOSTNAME, hosts)]}]
    manifest = {
        "metadata": {"name": name, "labels": dict(labels or {}), **(metadata or {})},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "csi": {"driver": DRIVER, "volumeHandle": f"handle-{name}"},
            **({"claimRef": _ref(claim_name, uid)} if claim else {}),
            **({"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if hosts else {}),
            **spec,
        },
        "status": {"phase": phase or ("Bound" if claim else "Available")},
    }
    built = from_builtins("PersistentVolume", manifest)
    assert isinstance(built, PersistentVolume)
    return built


def pvc(
    name: str = "claim",
    *,
    namespace: str = "default",
    size: str = "1Gi",
    class_name: str = "late",
    volume: str = "",
    selected_node: str = "",
    owner: str = "",
    phase: str = "",
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> PersistentVolumeClaim:
    """A claim; with a volume it is bound to it. `owner` is the uid of the pod it was made for."""
    notes = {BIND_COMPLETED: "yes"} if volume else {}
    if selected_node:
        notes[SELECTED_NODE] = selected_node
    owners = [{"kind": "Pod", "name": owner, "uid": owner, "controller": True}] if owner else []
    manifest = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "annotations": notes,
            "ownerReferences": owners,
            **(metadata or {}),
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            "storageClassName": class_name,
            "volumeName": volume,
            **spec,
        },
        "status": {"phase": phase or ("Bound" if volume else "Pending")},
    }
    built = from_builtins("PersistentVolumeClaim", manifest)
    assert isinstance(built, PersistentVolumeClaim)
    return built


def storage_class(
    name: str = "late",
    *,
    provisioner: str = DRIVER,
    mode: str | None = "WaitForFirstConsumer",
    **given: Any,
) -> StorageClass:
    manifest = {"metadata": {"name": name}, "provisioner": provisioner, **given}
    if mode is not None:
        manifest["volumeBindingMode"] = mode
    built = from_builtins("StorageClass", manifest)
    assert isinstance(built, StorageClass)
    return built


def csi_node(name: str = "node", *, migrated: str = "", **limits: int) -> CSINode:
    """A CSINode; keywords are limits of drivers: `csi` is the example, `ebs` AWS's, `pd` GCE's."""
    drivers = {"csi": DRIVER, "ebs": "ebs.csi.aws.com", "pd": "pd.csi.storage.gke.io"}
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    manifest = {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "drivers": [
                {"name": drivers[driver], "nodeID": name, "allocatable": {"count": limit}}
                for driver, limit in limits.items()
            ]
        },
    }
    built = from_builtins("CSINode", manifest)
    assert isinstance(built, CSINode)
    return built


def csi_driver(
    name: str = DRIVER, *, tells_capacity: bool = True, is_required: bool = False
) -> CSIDriver:
    spec = {"storageCapacity": tells_capacity, "preventPodSchedulingIfMissing": is_required}
    manifest = {"metadata": {"name": name}, "spec": spec}
    built = from_builtins("CSIDriver", manifest)
    assert isinstance(built, CSIDriver)
    return built


def storage_capacity(
    name: str = "capacity",
    *,
    class_name: str = "late",
    hosts: tuple[str, ...] | None = None,
    **given: Any,
) -> CSIStorageCapacity:
    """Storage that is left; hosts of None stand for a topology that is not given."""
    topology = (
        {} if hosts is None else {"nodeTopology": {"matchExpressions": [_in(HOSTNAME, hosts)]}}
    )
    manifest = {"metadata": {"name": name}, "storageClassName": class_name, **topology, **given}
    built = from_builtins("CSIStorageCapacity", manifest)
    assert isinstance(built, CSIStorageCapacity)
    return built


def attachment(
    name: str = "attachment", *, node: str, volume: str, attacher: str = DRIVER
) -> VolumeAttachment:
    source = {"persistentVolumeName": volume}
    manifest = {
        "metadata": {"name": name},
        "spec": {"attacher": attacher, "nodeName": node, "source": source},
    }
    built = from_builtins("VolumeAttachment", manifest)
    assert isinstance(built, VolumeAttachment)
    return built


def claiming(*claims: str, name: str = "pod", spec: Any = None, **given: Any) -> Pod:
    """A pod with these claims."""
    volumes = [
        {"name": f"v{at}", "persistentVolumeClaim": {"claimName": claim}}
        for at, claim in enumerate(claims)
    ]
    return pod(name, spec={"volumes": volumes, **(spec or {})}, **given)


def mounting(*volumes: Mapping[str, Any], name: str = "pod", **given: Any) -> Pod:
    """A pod with these volumes, each written as its source."""
    named = [{"name": f"v{at}", **volume} for at, volume in enumerate(volumes)]
    return pod(name, spec={"volumes": named}, **given)


def _in(key: str, values: tuple[str, ...]) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def _ref(name: str, uid: str) -> dict[str, str]:
    return {"namespace": "default", "name": name, "uid": uid}
