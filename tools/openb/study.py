"""What GPUAware changes: the same pods on the same nodes, with the plugin off and in each mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from moorage.config import Configuration, load_mapping
from moorage.engine import Engine
from moorage.framework.plugin import Registry
from moorage.framework.profile import known_plugins
from moorage.objects.pod import Pod
from moorage.objects.resources import CPU, MEMORY
from moorage.simulate.traces.arrivals import ArrivalTrace
from moorage.simulate.traces.csv_trace import GPU
from moorage.simulate.traces.virtual_run import VirtualRun
from moorage.world.cluster_use import GpuDemands, measure_free

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


def study(trace: ArrivalTrace, plugins: Registry) -> Iterator[Outcome]:
    """The outcome in each setting, one after the other; no pod leaves."""
    for setting in SETTINGS:
        run = VirtualRun(Engine(configure(setting, plugins), plugins), trace.without_ends())
        run.run()
        yield _outcome(setting, trace, run)


def wants_gpu(pod: Pod) -> bool:
    """Whether it is a GPU pod; all others are CPU pods."""
    return GPU in dict(pod.requests)


def _outcome(setting: str, trace: ArrivalTrace, run: VirtualRun) -> Outcome:
    nodes = run.engine.cluster.nodes
    pending = [each.pod for each in run.pods.values() if each.placed is None]
    with_gpus = {node.name for node in trace.nodes if GPU in dict(node.allocatable)}
    placed = [run.world.pods[each.pod.uid] for each in run.pods.values() if each.placed is not None]
    at = nodes.resource(GPU)
    return Outcome(
        setting=setting,
        gpus_allocated=0 if at is None else int(nodes.requested[at, nodes.rows].sum()),
        gpu_pods_pending=sum(map(wants_gpu, pending)),
        cpu_pods_pending=sum(not wants_gpu(pod) for pod in pending),
        cpu_pods_on_gpu_nodes=sum(
            pod.node_name in with_gpus for pod in placed if not wants_gpu(pod)
        ),
        nodes_with_free_gpus=int((measure_free(nodes, GPU) > 0).sum()),
        starved_for_pending=int(GpuDemands.of(pending).find_starved(nodes, GPU).sum()),
        starved_for_all=int(GpuDemands.of(trace.pods).find_starved(nodes, GPU).sum()),
    )


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
