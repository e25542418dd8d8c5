"""A dump as a user has it: forty nodes of a cloud, three hundred pods, and some trouble."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.builders import node_manifest, pod_manifest

Json = dict[str, Any]

DOMAIN = ".eu-central-1.compute.internal"
ZONES = ("eu-central-1a", "eu-central-1b", "eu-central-1c")
#: A name of 63 characters.
LONG = "recommendation-engine-feature-store-materialization-worker-v2"


def node_name(number: int) -> str:
    return f"ip-10-120-{number // 8}-{100 + number}{DOMAIN}"


def cloud_dump() -> list[Json]:
    """Every object of the cluster."""
    return [*_nodes(), *_running_pods(), *_waiting_pods(), *_others()]


def _nodes() -> Iterator[Json]:
    for number in range(40):
        labels = {
            "topology.kubernetes.io/zone": ZONES[number % 3],
            "node.kubernetes.io/instance-type": "m6i.2xlarge" if number < 36 else "p4d.24xlarge",
        }
        spec: Json = {"unschedulable": True} if number == 5 else {}
        if number >= 36:
            spec["taints"] = [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
        more: Json = {"nvidia.com/gpu": 8} if number >= 36 else {}
        yield node_manifest(
            node_name(number), labels=labels, spec=spec, cpu=8, memory="32Gi", pods=58, **more
        )


def _running_pods() -> Iterator[Json]:
    for number in range(280):
        # One node is gone, and its pods are still there.
        home = node_name(number % 36) if number else f"ip-10-120-9-200{DOMAIN}"
        owner = {"ownerReferences": [_replica_set("checkout-7f9c6d5b8")]}
        yield pod_manifest(
            f"checkout-7f9c6d5b8-{number:05}",
            namespace="shop",
            labels={"app": "checkout", "pod-template-hash": "7f9c6d5b8"},
            node=home,
            cpu="900m",
            memory="3Gi",
            metadata=owner,
        )


def _waiting_pods() -> Iterator[Json]:
    for number in range(12):
        yield pod_manifest(
            f"{LONG}-6b8d9-{number:03}",
            namespace="ml",
            labels={"app": LONG, "pod-template-hash": "6b8d9"},
            cpu=4,
            memory="8Gi",
            metadata={"ownerReferences": [_replica_set(f"{LONG}-6b8d9")]},
        )
    gpus: Json = {"nvidia.com/gpu": 8}
    zone = {"nodeSelector": {"topology.kubernetes.io/zone": "eu-central-1b"}}
    yield pod_manifest("train", namespace="ml", spec=zone, **gpus)
    claim = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "nope"}}]}
    yield pod_manifest("ledger", namespace="pay", spec=claim, cpu="100m")
    yield pod_manifest("other", namespace="pay", spec={"schedulerName": "volcano"}, cpu="100m")
    yield pod_manifest("gateway-2", namespace="edge", cpu="100m")


def _replica_set(name: str) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": name,
        "uid": name,
        "controller": True,
    }


def _others() -> Iterator[Json]:
    yield {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "checkout", "namespace": "shop"},
        "spec": {"minAvailable": 270, "selector": {"matchLabels": {"app": "checkout"}}},
    }
    yield {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": "checkout", "namespace": "shop"},
        "spec": {},
    }
