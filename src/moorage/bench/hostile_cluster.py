"""The cluster of the hostile benchmark: what is there before a hostile pod comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Manifest = dict[str, Any]

NAMESPACES = 100

#: How many claims of each kind there are.
CLAIMS = 100

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def ordinary(at: int, node_name: str) -> Manifest:
    """Makes one of the existing pods: 3,000 templates, a third with labels of their own."""
    app = f"app-{at % 3_000}"
    labels = {"app": app, "tier": f"tier-{at % 5}", "pod-template-hash": f"{at % 3_000:x}"}
    if at % 3 == 0:
        labels["statefulset.kubernetes.io/pod-name"] = f"{app}-{at}"
    requests = {"cpu": f"{10 + at % 7}m", "memory": f"{1 + at % 5}Mi"}
    return {
        "metadata": {
            "name": f"pod-{at}",
            "namespace": f"ns-{at % NAMESPACES}",
            "uid": f"pod-{at}",
            "labels": labels,
        },
        "spec": {
            "nodeName": node_name,
            "containers": [{"name": "c", "resources": {"requests": requests}}],
        },
    }


def spread_pod(at: int) -> Manifest:
    """Returns an ordinary pod that is spread over zones, of a template that was not seen before."""
    made = ordinary(20_000_000, "")
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": f"app-{at}"}},
    }
    made["spec"]["topologySpreadConstraints"] = [constraint]
    return made


def greedy_pod() -> Manifest:
    """Returns an important pod that no node has room for, even without any other pod."""
    made = ordinary(20_000_001, "")
    made["spec"]["priority"] = 1_000
    made["spec"]["containers"][0]["resources"] = {"requests": {"example.com/gpu": "9"}}
    return made


def evicting_pod() -> Manifest:
    """Returns an important pod that needs all of one node, and wants to be alone there."""
    made = ordinary(20_000_002, "")
    made["spec"]["priority"] = 1_000
    made["spec"]["nodeSelector"] = {HOSTNAME: "node-0"}
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "63999m"}}
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "other"}}}
    made["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: [term]}}
    return made


def node(at: int) -> Manifest:
    """Returns a node with as many labels as a cloud gives it."""
    labels = {f"node.example.com/property-{i}": f"value-{at % (i + 2)}" for i in range(16)}
    labels |= {
        HOSTNAME: f"node-{at}",
        ZONE: f"zone-{at % 3}",
        "rack": f"rack-{at % 200}",
        "size": str(at % 64),
    }
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "250", "example.com/gpu": "8"}
    images = [{"names": [f"image-{each}:1"], "sizeBytes": 50_000_000} for each in range(20)]
    return {
        "metadata": {"name": f"node-{at}", "labels": labels},
        "status": {"allocatable": allocatable, "images": images},
    }


def storage(nodes: int, disks: int) -> Iterator[tuple[str, Manifest]]:
    """Classes, claims and volumes, by kind: claims of the tenant, bound and not, free disks."""
    for name, provisioner in (("late", "csi.example.com"), ("local", _NOT_PROVISIONED)):
        mode = {"volumeBindingMode": "WaitForFirstConsumer", "provisioner": provisioner}
        yield "StorageClass", {"metadata": {"name": name}, **mode}
    for at in range(CLAIMS):
        yield "PersistentVolumeClaim", _claim(f"late-{at}", "late")
        yield "PersistentVolumeClaim", _claim(f"local-{at}", "local")
        yield "PersistentVolumeClaim", _claim(f"bound-{at}", "late", f"zonal-{at}")
        ref = {"namespace": "ns-1", "name": f"bound-{at}", "uid": f"bound-{at}"}
        place = {ZONE: f"zone-{at % 3}"}
        yield "PersistentVolume", _volume(f"zonal-{at}", "late", place, claimRef=ref)
    for at in range(disks):
        place = {HOSTNAME: f"node-{at % nodes}"}
        yield "PersistentVolume", _volume(f"disk-{at}", "local", place)


_NOT_PROVISIONED = "kubernetes.io/no-provisioner"
_GIBIBYTE = {"storage": "1Gi"}


def _claim(name: str, by_class: str, volume: str = "") -> Manifest:
    spec: Manifest = {
        "storageClassName": by_class,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": _GIBIBYTE},
    }
    metadata: Manifest = {"name": name, "namespace": "ns-1", "uid": name}
    if volume:
        spec["volumeName"] = volume
        metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    phase = "Bound" if volume else "Pending"
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def _volume(name: str, by_class: str, place: dict[str, str], **more: Any) -> Manifest:
    where = [{"key": key, "operator": "In", "values": [value]} for key, value in place.items()]
    return {
        "metadata": {"name": name},
        "spec": {
            "storageClassName": by_class,
            "capacity": _GIBIBYTE,
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "csi.example.com", "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": where}]}},
            **more,
        },
        "status": {"phase": "Bound" if "claimRef" in more else "Available"},
    }
