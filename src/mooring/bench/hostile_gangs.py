"""Gangs that are made to be costly: what they ask for multiplies with the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .hostile_cluster import HOSTNAME, REQUIRED, ZONE, Manifest, ordinary

#: The feature gates without which there are no gangs.
GATES = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}

_NAME = "hostile"


@dataclass(frozen=True, slots=True)
class HostileGang:
    """How many members a gang has, what each asks for, and by which label they stay together."""

    size: int
    requests: Mapping[str, str]
    priority: int = 0
    rules: Mapping[str, Any] = field(default_factory=dict)
    topology_key: str = ""

    def group(self) -> Manifest:
        spec: Manifest = {
            "schedulingPolicy": {"gang": {"minCount": self.size}},
            "priority": self.priority,
        }
        if self.topology_key:
            spec["schedulingConstraints"] = {"topology": [{"key": self.topology_key}]}
        metadata = {"name": _NAME, "namespace": "ns-1", "uid": _NAME}
        return {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": metadata,
            "spec": spec,
        }

    def member(self, at: int) -> Manifest:
        made = ordinary(30_000_000, "")
        made["metadata"] |= {
            "name": f"{_NAME}-{at}",
            "namespace": "ns-1",
            "uid": f"{_NAME}-{at}",
            "labels": {"job": _NAME},
        }
        made["spec"] |= {"priority": self.priority, **self.rules}
        made["spec"]["schedulingGroup"] = {"podGroupName": _NAME}
        made["spec"]["containers"][0]["resources"] = {"requests": dict(self.requests)}
        return made


def _near(kind: str, key: str, labels: Manifest) -> Manifest:
    term = {"topologyKey": key, "labelSelector": labels}
    return {"affinity": {kind: {REQUIRED: [term]}}}


_OWN = {"matchLabels": {"job": _NAME}}
_WHOLE_NODE = {"cpu": "63999m"}

GANGS: Mapping[str, HostileGang] = {
    "a gang of 12,000": HostileGang(12_000, {"cpu": "1"}),
    "a gang apart from itself": HostileGang(
        2_000, {"cpu": "1"}, rules=_near("podAntiAffinity", HOSTNAME, _OWN)
    ),
    "a gang too large for any rack": HostileGang(
        100, {"cpu": "20"}, rules=_near("podAffinity", "rack", _OWN), topology_key="rack"
    ),
    "a gang that evicts": HostileGang(300, _WHOLE_NODE, priority=1_000),
    "a gang that evicts too many": HostileGang(1_000, _WHOLE_NODE, priority=1_000),
    "a gang near itself that evicts": HostileGang(
        200, _WHOLE_NODE, 1_000, _near("podAffinity", ZONE, _OWN)
    ),
    "a gang that wants others gone": HostileGang(
        100,
        {"cpu": "1"},
        1_000,
        _near("podAntiAffinity", "rack", {"matchLabels": {"tier": "tier-1"}}),
    ),
    "a gang of racks that evicts": HostileGang(
        20, _WHOLE_NODE, 1_000, _near("podAffinity", "rack", _OWN), topology_key="rack"
    ),
}
