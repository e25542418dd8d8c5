"""The objects that an operation makes, one by one, as an API server would be sent them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from .custom_kinds import CustomKinds, is_namespaced
from .operations import CreateNamespaces, CreateNodes, CreatePods
from .templates import Manifest, Templates

HOSTNAME = "kubernetes.io/hostname"
_MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"

_NODE: Manifest = {
    "apiVersion": "v1",
    "kind": "Node",
    "status": {
        "capacity": {"pods": "110", "cpu": "4", "memory": "32Gi"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}

_RESOURCES = {"cpu": "100m", "memory": "500Mi"}
_POD: Manifest = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {
        "containers": [
            {
                "name": "pause",
                "image": "registry.k8s.io/pause:3.10.1",
                "ports": [{"containerPort": 80}],
                "resources": {"limits": _RESOURCES, "requests": _RESOURCES},
            }
        ]
    },
}


class Blueprints:
    """Makes the objects of one run: names and identities are not given twice."""

    def __init__(
        self, templates: Templates, custom: CustomKinds, declared_features: int = 0
    ) -> None:
        self._templates = templates
        self._custom = custom
        self._numbers = count()
        self._features = sorted(f"Feature{number}" for number in range(1, declared_features + 1))

    def nodes(self, operation: CreateNodes, index: int) -> Iterator[Manifest]:
        """Yields the nodes of an operation, each followed by its CSI node if it has one."""
        for number in range(operation.count):
            node = self._node(operation, index, number)
            yield node
            strategy = operation.node_allocatable_strategy
            if strategy is not None:
                yield _csi_node(
                    node["metadata"]["name"],
                    strategy.csi_node_allocatable,
                    ",".join(strategy.migrated_plugins),
                )

    def pods(
        self, operation: CreatePods, namespace: str, default: str | None
    ) -> Iterator[Manifest]:
        """Yields the pods of an operation, each after its volume and claim if it has them."""
        path = operation.pod_template_path or default
        for number in range(operation.count):
            pod = _POD
            if path is not None:
                pod = self._templates.manifest(path, operation.template_values(number))
            pod = self._name(pod, namespace)
            if operation.signature_batch_size:
                signature = f"signature-label-{number // operation.signature_batch_size}"
                pod = _with_labels(pod, {"signature": signature})
            if operation.claim_template_path is not None:
                volume, claim = self._storage(operation, namespace, number)
                yield from (claim, volume)
                pod = _with_claim(pod, claim["metadata"]["name"])
            yield pod

    def namespaces(self, operation: CreateNamespaces) -> Iterator[Manifest]:
        for number in range(operation.count):
            path = operation.namespace_template_path
            raw = namespace("") if path is None else self._templates.manifest(path)
            yield self._name(raw, name=f"{operation.prefix}-{number}")

    def object_from(
        self, path: str, namespace: str = "", given: Mapping[str, Any] | None = None
    ) -> Manifest:
        """Returns an object of any kind from a template."""
        return self._name(self._templates.manifest(path, given), namespace)

    def kind(self, path: str) -> str:
        """Returns the kind of object that a template describes."""
        return self._templates.kind(path)

    def is_namespaced(self, path: str) -> bool:
        """Whether the object that a template describes is in a namespace."""
        return is_namespaced(self.kind(path), self._custom)

    def _name(self, raw: Manifest, namespace: str = "", name: str = "") -> Manifest:
        """Returns the object with a name and an identity of its own."""
        number = next(self._numbers)
        metadata = raw.get("metadata") or {}
        name = name or metadata.get("name") or f"{metadata.get('generateName', '')}{number:05}"
        known = {"name": name, "uid": f"uid-{number}"}
        if namespace:
            known["namespace"] = namespace
        return {**raw, "metadata": {**metadata, **known}}

    def _node(self, operation: CreateNodes, index: int, number: int) -> Manifest:
        raw: Manifest = {**_NODE, "metadata": {"generateName": f"node-{index}-"}}
        if operation.node_template_path is not None:
            raw = self._templates.manifest(
                operation.node_template_path, operation.template_values(number)
            )
        node = self._name(raw)
        labels = {HOSTNAME: node["metadata"]["name"]}
        in_turn = operation.label_node_prepare_strategy
        if in_turn is not None:
            labels[in_turn.label_key] = in_turn.label_values[number % len(in_turn.label_values)]
        if operation.unique_node_label_strategy is not None:
            labels[operation.unique_node_label_strategy.label_key] = node["metadata"]["uid"]
        return self._with_status(_with_labels(node, labels), operation)

    def _with_status(self, node: Manifest, operation: CreateNodes) -> Manifest:
        status = dict(node.get("status") or {})
        if operation.node_allocatable_strategy is not None:
            has = status.get("allocatable") or status.get("capacity") or {}
            more = operation.node_allocatable_strategy.node_allocatable
            status["allocatable"] = {**has, **more}
        if self._features:
            status["declaredFeatures"] = self._features
        return {**node, "status": status}

    def _storage(
        self, operation: CreatePods, namespace: str, number: int
    ) -> tuple[Manifest, Manifest]:
        """Returns a volume and a claim that are bound to each other."""
        assert operation.persistent_volume_template_path is not None
        assert operation.claim_template_path is not None
        name = f"{namespace}-vol-{number}"
        claim = self._templates.manifest(operation.claim_template_path)
        claim = self._name(claim, namespace, f"pvc-{number}")
        claim = {
            **claim,
            "spec": {**claim.get("spec", {}), "volumeName": name},
            "status": {"phase": "Bound"},
        }
        volume = self._templates.manifest(operation.persistent_volume_template_path)
        volume = self._name(volume, name=name)
        reference = {"kind": "PersistentVolumeClaim", "namespace": namespace, "apiVersion": "v1"}
        spec = _with_source(volume.get("spec", {}), name)
        spec = {**spec, "claimRef": {**reference, "name": f"pvc-{number}"}}
        return {**volume, "spec": spec, "status": {"phase": "Bound"}}, claim


def namespace(name: str) -> Manifest:
    """Returns a namespace without labels."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _with_labels(raw: Manifest, labels: Mapping[str, str]) -> Manifest:
    metadata = raw["metadata"]
    return {**raw, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels}}}


def _with_claim(pod: Manifest, name: str) -> Manifest:
    volume = {"name": "vol", "persistentVolumeClaim": {"claimName": name}}
    return {**pod, "spec": {**pod["spec"], "volumes": [volume]}}


def _with_source(spec: Manifest, name: str) -> Manifest:
    """Returns the volume's spec with a disk of its own."""
    if "csi" in spec:
        return {**spec, "csi": {**spec["csi"], "volumeHandle": name}}
    if "awsElasticBlockStore" in spec:
        return {**spec, "awsElasticBlockStore": {**spec["awsElasticBlockStore"], "volumeID": name}}
    return spec


def _csi_node(name: str, limits: Mapping[str, Mapping[str, int]], migrated: str) -> Manifest:
    drivers = [
        {"name": driver, "nodeID": name, "allocatable": limit} for driver, limit in limits.items()
    ]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name, "annotations": {_MIGRATED_PLUGINS: migrated}},
        "spec": {"drivers": drivers},
    }
