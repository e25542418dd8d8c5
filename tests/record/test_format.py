"""What reaches a recording of an object: all that scheduling reads, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moorage.objects.decode import from_json
from moorage.objects.kinds import READ_KINDS
from moorage.objects.pod import Pod
from moorage.objects.quantity import MAX_NANOS, Quantity
from moorage.record.format import LAST_APPLIED, strip_object
from tests.builders import node_manifest, pod_manifest
from tests.strategies import metadata, node_labels, pod_labels, pod_specs, taints

SECRET = "hunter2"

# Where a pod holds what is nobody's business.
PRIVATE_CONTAINER = {
    "env": [{"name": "PASSWORD", "value": SECRET}],
    "envFrom": [{"secretRef": {"name": SECRET}}],
    "command": ["sh", "-c", SECRET],
    "args": [f"--token={SECRET}"],
    "workingDir": f"/{SECRET}",
    "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": SECRET}]}},
    "lifecycle": {"postStart": {"exec": {"command": [SECRET]}}},
    "volumeMounts": [{"name": "v", "mountPath": f"/{SECRET}", "subPath": SECRET}],
    "securityContext": {"seLinuxOptions": {"user": SECRET}},
}
PRIVATE_SPEC = {
    "imagePullSecrets": [{"name": SECRET}],
    "hostAliases": [{"ip": "10.0.0.1", "hostnames": [SECRET]}],
    "serviceAccountName": SECRET,
    "hostname": SECRET,
    "dnsConfig": {"searches": [SECRET]},
}
PRIVATE_META = {
    "managedFields": [{"manager": SECRET, "fieldsV1": {f"f:{SECRET}": {}}}],
    "annotations": {LAST_APPLIED: json.dumps({"env": SECRET}), "kept": "yes"},
    "finalizers": [SECRET],
}
PRIVATE_VOLUMES = [
    {"name": "one", "secret": {"secretName": SECRET}},
    {"name": "two", "configMap": {"name": SECRET}},
    {"name": "three", "csi": {"driver": "d", "volumeAttributes": {"key": SECRET}}},
    {"name": "four", "rbd": {"monitors": ["m"], "image": "i", "keyring": SECRET}},
]


def private(manifest: dict[str, Any]) -> dict[str, Any]:
    """The same pod with a secret everywhere that scheduling does not look."""
    spec = dict(manifest["spec"])
    for containers in ("containers", "initContainers"):
        if containers in spec:
            spec[containers] = [{**each, **PRIVATE_CONTAINER} for each in spec[containers]]
    spec["volumes"] = [*spec.get("volumes", ()), *PRIVATE_VOLUMES]
    meta = {**manifest["metadata"], **PRIVATE_META}
    return {**manifest, "metadata": meta, "spec": {**spec, **PRIVATE_SPEC}}


@st.composite
def pod_manifests(draw: st.DrawFn) -> dict[str, Any]:
    meta = {**draw(metadata), "creationTimestamp": "2026-11-15T08:00:00.123456Z"}
    status = {
        "startTime": "2026-11-15T08:00:01Z",
        "conditions": [{"type": "PodScheduled", "status": "False", "message": "é\n"}],
        "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "1.5"}}],
    }
    return pod_manifest(
        "p", labels=draw(pod_labels), spec=draw(pod_specs()), metadata=meta, status=status
    )


@given(pod_manifests())
def test_no_secret_of_a_pod_is_kept_and_all_that_decisions_read_is(pod: dict[str, Any]) -> None:
    raw = json.dumps(private(pod)).encode()

    kept = strip_object("Pod", raw)

    assert SECRET.encode() not in kept
    before, after = from_json("Pod", raw), from_json("Pod", kept)
    assert isinstance(before, Pod)
    assert isinstance(after, Pod)
    assert after.annotations == {"kept": "yes"}
    assert {**_fields(before), "annotations": {}} == {**_fields(after), "annotations": {}}
    assert strip_object("Pod", kept) == kept


def _fields(pod: Pod) -> dict[str, Any]:
    return {name: getattr(pod, name) for name in pod.__struct_fields__}


@given(node_labels, taints)
def test_a_node_is_decoded_to_the_same_value(labels: dict[str, str], listed: list[Any]) -> None:
    manifest = node_manifest("n", labels=labels, spec={"taints": listed, "podCIDR": SECRET})
    raw = json.dumps(manifest).encode()

    kept = strip_object("Node", raw)

    assert SECRET.encode() not in kept
    assert from_json("Node", kept) == from_json("Node", raw)


META = {
    "name": "x",
    "namespace": "default",
    "uid": "u",
    "labels": {"a": "b"},
    "resourceVersion": "7",
}
SELECTOR = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}
OTHERS: dict[str, dict[str, Any]] = {
    "Namespace": {},
    "Service": {"spec": {"selector": {"a": "b"}}},
    "ReplicationController": {"spec": {"selector": {"a": "b"}}},
    "ReplicaSet": {"spec": {"selector": SELECTOR}},
    "StatefulSet": {"spec": {"selector": SELECTOR}},
    "PodDisruptionBudget": {
        "spec": {"selector": SELECTOR},
        "status": {"disruptionsAllowed": 2, "disruptedPods": {"p": "2026-01-01T00:00:00Z"}},
    },
    "PersistentVolume": {
        "spec": {
            "capacity": {"storage": "1.5Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": "default", "name": "c", "uid": "cu"},
            "csi": {"driver": "d", "volumeHandle": "h"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "z", "operator": "In", "values": ["a"]}]}
                    ]
                }
            },
        },
        "status": {"phase": "Bound"},
    },
    "PersistentVolumeClaim": {
        "spec": {
            "resources": {"requests": {"storage": "100m"}},
            "storageClassName": "s",
            "volumeName": "x",
            "selector": SELECTOR,
        },
        "status": {"phase": "Bound"},
    },
    "StorageClass": {
        "provisioner": "p",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "z", "values": ["a"]}]}],
    },
    "CSINode": {"spec": {"drivers": [{"name": "d", "allocatable": {"count": 3}}]}},
    "CSIDriver": {"spec": {"storageCapacity": True}},
    "CSIStorageCapacity": {
        "storageClassName": "s",
        "nodeTopology": SELECTOR,
        "capacity": "1Ti",
        "maximumVolumeSize": "1n",
    },
    "ResourceClaim": {
        "spec": {
            "devices": {
                "requests": [{"name": "r", "exactly": {"deviceClassName": "c", "count": 2}}],
                "constraints": [{"matchAttribute": "d/a"}],
            }
        },
        "status": {
            "allocation": {
                "devices": {
                    "results": [{"device": "d", "shareID": "s", "consumedCapacity": {"m": "1.5Gi"}}]
                },
                "allocationTimestamp": "2026-01-01T00:00:00Z",
            },
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "pu"}],
        },
    },
    "DeviceClass": {
        "spec": {
            "selectors": [{"cel": {"expression": "true"}}],
            "config": [{"opaque": {"driver": "d", "parameters": {"a": [1]}}}],
            "extendedResourceName": "r/x",
        }
    },
    "ResourceSlice": {
        "spec": {
            "driver": "d",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "n",
            "devices": [
                {
                    "name": "d0",
                    "attributes": {"a": {"int": 1}, "b": {"version": "1.2.3"}},
                    "capacity": {"m": {"value": "1.5Gi", "requestPolicy": {"default": "1n"}}},
                }
            ],
        }
    },
    "PodGroup": {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 4}},
            "schedulingConstraints": {"topology": [{"key": "rack"}]},
            "disruptionMode": "PodGroup",
            "priority": 7,
        },
        "status": {"conditions": [{"type": "PodGroupScheduled", "status": "True"}]},
    },
    "DeviceTaintRule": {
        "spec": {
            "deviceSelector": {"driver": "d", "pool": "p", "device": "x"},
            "taint": {"key": "k", "effect": "NoSchedule"},
        }
    },
    "VolumeAttachment": {
        "spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    },
}


@pytest.mark.parametrize("kind", sorted(READ_KINDS - {"Pod", "Node"}))
def test_other_kinds_are_decoded_to_the_same_value(kind: str) -> None:
    notes = {LAST_APPLIED: SECRET, "pv.kubernetes.io/bind-completed": "yes"}
    manifest = {"kind": kind, "metadata": {**META, "annotations": notes}, **OTHERS[kind]}
    raw = json.dumps({**manifest, "data": SECRET}).encode()

    kept = strip_object(kind, raw)

    assert SECRET.encode() not in kept
    assert from_json(kind, kept) == from_json(kind, raw)


def test_a_custom_object_keeps_what_only_its_plugin_knows() -> None:
    manifest = {
        "apiVersion": "example.com/v1",
        "kind": "Quota",
        "metadata": {"name": "q", **PRIVATE_META},
        "spec": {"share": 3},
    }

    kept = json.loads(strip_object("Quota", json.dumps(manifest).encode()))

    assert kept["spec"] == {"share": 3}
    assert kept["metadata"]["annotations"] == {"kept": "yes"}
    assert "managedFields" not in kept["metadata"]


@given(st.integers(-MAX_NANOS, MAX_NANOS))
def test_a_quantity_is_written_exactly(nanos: int) -> None:
    manifest = node_manifest("n", cpu=f"{nanos}n")

    kept = json.loads(strip_object("Node", json.dumps(manifest).encode()))

    assert Quantity.parse(kept["status"]["allocatable"]["cpu"]) == nanos
