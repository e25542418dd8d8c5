"""The workloads that are measured: the shapes of scheduler_perf, as manifests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mooring.objects.decode import from_builtins
from mooring.objects.node import HOSTNAME, ZONE, Node
from mooring.objects.pod import Pod

Manifest = Mapping[str, Any]

ZONES = ("zone-1", "zone-2", "zone-3")


@dataclass(frozen=True, slots=True)
class Workload:
    """Nodes, pods that run before, and pods whose placement is measured."""

    name: str
    pod_spec: Manifest = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    #: How many pods of the same kind run already, per node.
    running_per_node: float = 0.2
    cpu: str = "100m"
    one_per_node: bool = False

    def most(self, nodes: int) -> int:
        """How many further pods find a place at the most."""
        return nodes - int(nodes * self.running_per_node) if self.one_per_node else 2**31

    def nodes(self, count: int) -> Iterator[Node]:
        for number in range(count):
            name = f"node-{number:06}"
            node = from_builtins("Node", _node(name, ZONES[number % len(ZONES)]))
            assert isinstance(node, Node)
            yield node

    def pods(self, count: int, prefix: str) -> Iterator[Pod]:
        for number in range(count):
            pod = from_builtins("Pod", self._pod(f"{prefix}-{number:06}"))
            assert isinstance(pod, Pod)
            yield pod

    def _pod(self, name: str) -> Manifest:
        return {
            "metadata": {"name": name, "namespace": "bench", "uid": name, "labels": self.labels},
            "spec": {"containers": [_container(self.cpu)], **self.pod_spec},
        }


def _container(cpu: str) -> Manifest:
    return {
        "name": "pause",
        "image": "registry.example.com/pause:3.10",
        "resources": {"requests": {"cpu": cpu, "memory": "500Mi"}},
    }


def _listening() -> Manifest:
    return {**_container("100m"), "ports": [{"containerPort": 80, "hostPort": 80}]}


def _node(name: str, zone: str) -> Manifest:
    return {
        "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: zone}},
        "status": {"allocatable": {"cpu": "4", "memory": "32Gi", "pods": "110"}},
    }


def _affinity(kind: str, rule: str, term: Manifest) -> Manifest:
    return {"affinity": {kind: {f"{rule}DuringSchedulingIgnoredDuringExecution": [term]}}}


def _term(key: str) -> Manifest:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"color": "blue"}}}


def _spread(action: str) -> Manifest:
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": action,
        "labelSelector": {"matchLabels": {"color": "blue"}},
    }
    return {"topologySpreadConstraints": [constraint]}


_BLUE = {"color": "blue"}


def _weighted(key: str) -> Manifest:
    return {"weight": 1, "podAffinityTerm": _term(key)}


def _listed(*workloads: Workload) -> Mapping[str, Workload]:
    return {workload.name: workload for workload in workloads}


WORKLOADS = _listed(
    Workload("plain pods"),
    Workload("required pod affinity", _affinity("podAffinity", "required", _term(ZONE)), _BLUE),
    Workload(
        "required pod anti-affinity",
        _affinity("podAntiAffinity", "required", _term(HOSTNAME)),
        _BLUE,
        one_per_node=True,
    ),
    Workload(
        "preferred pod affinity",
        _affinity("podAffinity", "preferred", _weighted(HOSTNAME)),
        _BLUE,
    ),
    Workload("hard topology spread", _spread("DoNotSchedule"), _BLUE),
    Workload("soft topology spread", _spread("ScheduleAnyway"), _BLUE),
)

ONE_PER_NODE = _listed(
    Workload("a host port each", {"containers": [_listening()]}, running_per_node=0),
    Workload("a node each", running_per_node=0, cpu="3"),
)

#: Fills the nodes; what comes next must evict three of the four pods on a node.
LOW_PRIORITY = Workload("low priority", {"priority": 0}, running_per_node=4, cpu="900m")
HIGH_PRIORITY = Workload("preemption", {"priority": 1000}, cpu="3")

#: As large as what HIGH_PRIORITY asks for, and no more important than what runs.
HOPELESS = Workload("one class that fits nowhere", {"priority": 0}, cpu="3")


def kinds(count: int) -> list[Workload]:
    """So many kinds of plain pods, each a class of its own."""
    return [Workload(f"kind {number}", cpu=f"{100 + number}m") for number in range(count)]
