"""Builders of pods, nodes and clusters: short to write, complete where it matters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.cluster import Cluster
from moorage.objects.decode import from_builtins
from moorage.objects.node import HOSTNAME, Node
from moorage.objects.pod import Pod
from moorage.objects.storage import StorageObject

from .installed import find_plugins

# Names of resources that are no Python keywords.
_NAMES = {"gpu": "example.com/gpu", "ephemeral": "ephemeral-storage"}

Manifest = dict[str, Any]


def pod_manifest(  # noqa: PLR0913 - one for each part of a pod
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
    """Builds a pod with one container; other keywords are its requests: cpu=1, memory="1Gi"."""
    amounts = {_NAMES.get(resource, resource): str(amount) for resource, amount in requests.items()}
    container = {"name": "main", "image": "app", "resources": {"requests": amounts}}
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


def pod(name: str = "pod", **fields: Any) -> Pod:
    """Builds a pod; takes the keywords of `pod_manifest`."""
    built = from_builtins("Pod", pod_manifest(name, **fields))
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
    """Builds a node of 4 cores and 8 GiB; other keywords are allocatable: cpu=8, gpu=1."""
    amounts = {
        _NAMES.get(resource, resource): str(amount) for resource, amount in allocatable.items()
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **(labels or {})}},
        "spec": dict(spec or {}),
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": str(pods), **amounts},
            **(status or {}),
        },
    }


def node(name: str = "node", **fields: Any) -> Node:
    """Builds a node; takes the keywords of `node_manifest`."""
    built = from_builtins("Node", node_manifest(name, **fields))
    assert isinstance(built, Node)
    return built


def cluster(*objects: Node | Pod | StorageObject) -> Cluster:
    """Builds a cluster of nodes, storage objects, and pods on the nodes that they name."""
    built = Cluster()
    follow_ledgers(built)
    fill(built, *objects)
    return built


def follow_ledgers(cluster: Cluster) -> None:
    """Counts pods in the ledgers of all plugins, as an engine does for enabled ones."""
    for plugin in find_plugins().values():
        for ledger in plugin.ledgers:
            cluster.nodes.ledger(ledger)


def fill(cluster: Cluster, *objects: Node | Pod | StorageObject) -> None:
    """Puts objects into a cluster."""
    for item in objects:
        if isinstance(item, Node):
            cluster.put_node(item)
        elif isinstance(item, Pod):
            cluster.put_pod(item)
        else:
            cluster.put_storage(item)
