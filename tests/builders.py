"""Short ways to write pods, nodes and clusters in tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mooring.cluster import Cluster
from mooring.objects.decode import from_builtins
from mooring.objects.node import HOSTNAME, Node
from mooring.objects.pod import Pod
from mooring.objects.storage import StorageObject

_NAMES = {"gpu": "example.com/gpu", "ephemeral": "ephemeral-storage"}

Manifest = dict[str, Any]

#: The clusters of the running test: the invariant is checked on each of them when it ends.
made: list[Cluster] = []


def pod_manifest(
    name: str = "pod",
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    node: str = "",
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **requests: str | int,
) -> Manifest:
    """A pod with one container; keywords that are left are its requests: cpu=1, memory="1Gi"."""
    asked = {_NAMES.get(resource, resource): str(amount) for resource, amount in requests.items()}
    container = {"name": "main", "image": "app", "resources": {"requests": asked}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{namespace}/{name}",
            "labels": dict(labels or {}),
            **(metadata or {}),
        },
        "spec": {"containers": [container], **({"nodeName": node} if node else {}), **(spec or {})},
        "status": dict(status or {}),
    }


def pod(name: str = "pod", **given: Any) -> Pod:
    """A pod, see `pod_manifest`."""
    built = from_builtins("Pod", pod_manifest(name, **given))
    assert isinstance(built, Pod)
    return built


def node_manifest(
    name: str = "node",
    *,
    labels: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    pods: int = 110,
    **allocatable: str | int,
) -> Manifest:
    """A node; keywords that are left are what it has: cpu=4, memory="8Gi", gpu=1."""
    has = {_NAMES.get(resource, resource): str(amount) for resource, amount in allocatable.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **(labels or {})}},
        "spec": dict(spec or {}),
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": str(pods), **has},
            **(status or {}),
        },
    }


def node(name: str = "node", **given: Any) -> Node:
    """A node, see `node_manifest`."""
    built = from_builtins("Node", node_manifest(name, **given))
    assert isinstance(built, Node)
    return built


def cluster(*items: Node | Pod | StorageObject) -> Cluster:
    """A cluster with these nodes and storage objects, and pods on the nodes that they name."""
    new = Cluster()
    made.append(new)
    for item in items:
        if isinstance(item, Node):
            new.put_node(item)
        elif isinstance(item, Pod):
            new.put_pod(item)
        else:
            new.put_storage(item)
    return new


#: What there is to see in a cluster without anything.
EMPTY = Cluster().nodes
