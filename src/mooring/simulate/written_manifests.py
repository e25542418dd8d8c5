"""Pods and nodes of an engine written as JSON again, with what scheduling reads of them.

For extenders that are asked in a simulation, where no API server wrote the objects.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mooring.cluster import Cluster
from mooring.engine.extenders.questions import encode_manifest
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.quantity import Quantity, format_quantity
from mooring.objects.resources import format_amount


class WrittenManifests:
    """The objects as extenders get them: by what the engine knows, not by what was written."""

    def __init__(self, cluster: Cluster, waiting: dict[str, Pod]) -> None:
        """`waiting` are the pods by uid, also those that have no node."""
        self._cluster = cluster
        self._waiting = waiting

    def pod(self, uid: str) -> bytes:
        return encode_manifest("Pod", _write_pod(self._waiting[uid]))

    def node(self, name: str) -> bytes:
        row = self._cluster.nodes.row(name)
        if row is None:
            raise KeyError(name)
        return encode_manifest("Node", _write_node(self._cluster.nodes.node(row)))


def _write_pod(pod: Pod) -> dict[str, Any]:
    return {
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "labels": dict(pod.labels),
            "annotations": dict(pod.annotations),
        },
        "spec": _write(pod.spec),
        "status": _write(pod.status),
    }


def _write_node(node: Node) -> dict[str, Any]:
    amounts = {name: format_amount(name, amount) for name, amount in node.allocatable}
    return {
        "metadata": {
            "name": node.name,
            "uid": node.uid,
            "labels": dict(node.labels),
            "annotations": dict(node.annotations),
        },
        "spec": {
            "taints": [_write(each) for each in node.taints],
            **({"unschedulable": True} if node.unschedulable else {}),
        },
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [_write(each) for each in node.conditions],
            "images": [_write(each) for each in node.images],
        },
    }


def _write(value: msgspec.Struct) -> Any:
    return msgspec.to_builtins(value, enc_hook=_write_special)


def _write_special(value: Any) -> Any:
    return format_quantity(value) if isinstance(value, Quantity) else str(value)
