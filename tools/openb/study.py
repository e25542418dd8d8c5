"""What GPUAware changes: the same pods on the same nodes, with the plugin off and in each mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Mask, Nodes
from mooring.config import Configuration, load_mapping
from mooring.engine import Engine
from mooring.framework.plugin import Registry
from mooring.framework.profile import known_plugins
from mooring.objects.pod import Pod
from mooring.objects.resources import CPU, MEMORY
from mooring.simulate.simulation import Watch, simulate
from mooring.simulate.transcript import Transcript

from .trace import GPU, Trace

_GPU_AWARE = "GPUAware"
_RESERVE = {"reservePerFreeGPU": {"cpu": "12", "memory": "48Gi"}}
_PACKING = {
    "scoringStrategy": {
        "type": "MostAllocated",
        "resources": [
            {"name": GPU, "weight": 5},
            {"name": CPU, "weight": 1},
            {"name": MEMORY, "weight": 1},
        ],
    }
}

#: The default profile, and what is done otherwise: args by plugin. Packing is MostAllocated.
SETTINGS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "off": {},
    "Filter": {_GPU_AWARE: {"mode": "Filter"}},
    "Score": {_GPU_AWARE: {"mode": "Score"}},
    "Reserve": {_GPU_AWARE: _RESERVE},
    "Packing": {"NodeResourcesFit": _PACKING},
    "FGD": {"GPUFragmentation": {}},
}
# Enough for the fragments to decide, and the other scores to break ties.
_WEIGHTS = {"GPUFragmentation": 1000}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a cluster ends up in one setting; all are counts."""

    setting: str
    gpus_allocated: int
    gpu_pods_pending: int
    cpu_pods_pending: int
    cpu_pods_on_gpu_nodes: int
    nodes_with_free_gpus: int
    #: Those whose GPUs would do for a pod that waits, and whose CPU and memory do for none.
    starved_for_pending: int
    #: The same for all GPU pods of the trace, wherever they are: not even the smallest fits.
    starved_for_all: int


def study(trace: Trace, plugins: Registry, watch: Watch = lambda placed: None) -> Iterator[Outcome]:
    """The outcome in each setting, one after the other."""
    for setting in SETTINGS:
        engine = Engine(configure(setting, plugins), plugins)
        transcript = simulate(engine, (*trace.nodes, *trace.pods), watch)
        yield _outcome(setting, trace, transcript, engine.cluster.nodes)


def wants_gpu(pod: Pod) -> bool:
    """Whether it is a GPU pod; all others are CPU pods."""
    return GPU in dict(pod.requests)


def starved(nodes: Nodes, pods: Iterable[Pod]) -> Mask:
    """Nodes with free GPUs that would do for one of the pods, and CPU and memory for none."""
    gpus, cpu, memory = (free(nodes, name) for name in (GPU, CPU, MEMORY))
    would_do, fits = nodes.nothing(nodes.rows), nodes.nothing(nodes.rows)
    # Equal pods share their spec.
    for spec in {id(pod.spec): pod.spec for pod in pods if wants_gpu(pod)}.values():
        asked = dict(spec.requests)
        ready = gpus >= asked[GPU]
        if spec.node_terms is not None:
            ready &= nodes.satisfying_any(spec.node_terms, nodes.rows)
        would_do |= ready
        fits |= ready & (cpu >= asked.get(CPU, 0)) & (memory >= asked.get(MEMORY, 0))
    return would_do & ~fits


def _outcome(setting: str, trace: Trace, transcript: Transcript, nodes: Nodes) -> Outcome:
    pending = [each.pod for each in transcript.pending]
    with_gpus = {node.name for node in trace.nodes if GPU in dict(node.allocatable)}
    cpu_pods = [each for each in transcript.placed if not wants_gpu(each.pod)]
    return Outcome(
        setting=setting,
        gpus_allocated=transcript.use[GPU].after if GPU in transcript.use else 0,
        gpu_pods_pending=sum(map(wants_gpu, pending)),
        cpu_pods_pending=sum(not wants_gpu(pod) for pod in pending),
        cpu_pods_on_gpu_nodes=sum(each.node in with_gpus for each in cpu_pods),
        nodes_with_free_gpus=int((free(nodes, GPU) > 0).sum()),
        starved_for_pending=int(starved(nodes, pending).sum()),
        starved_for_all=int(starved(nodes, trace.pods).sum()),
    )


def free(nodes: Nodes, resource: str) -> NDArray[np.int64]:
    """What is left of a resource, by node, in the order of rows."""
    at = nodes.resource(resource)
    if at is None:
        return np.zeros(len(nodes.rows), np.int64)
    return nodes.allocatable[at, nodes.rows] - nodes.requested[at, nodes.rows]


def configure(setting: str, plugins: Registry) -> Configuration:
    given = SETTINGS[setting]
    enabled = [
        {"name": name, "weight": _WEIGHTS.get(name, 1)}
        for name in given
        if name != "NodeResourcesFit"
    ]
    profile: dict[str, Any] = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": enabled}},
        "pluginConfig": [{"name": name, "args": args} for name, args in given.items()],
    }
    written = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    return load_mapping(written, known=known_plugins(plugins))
