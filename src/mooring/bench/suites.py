"""What is measured together, and how it is told."""

from __future__ import annotations

import gc
import resource
from collections.abc import Callable, Iterator
from itertools import chain
from time import perf_counter

from mooring.engine import Engine
from mooring.engine.actions import BindPod
from mooring.engine.events import Applied, Removed
from mooring.objects.pod import Pod

from .coexist import exclusive, overhead
from .measure import MakeEngine, Measured, fill, measure, measure_preemption, place_all
from .workloads import (
    HOPELESS,
    LOW_PRIORITY,
    ONE_PER_NODE,
    WORKLOADS,
    Workload,
    kinds,
)


def core(make_engine: MakeEngine, nodes: int, pods: int) -> Iterator[Measured]:
    """Every kind of pod, one after the other."""
    for workload in WORKLOADS.values():
        yield measure(workload, nodes, min(pods, workload.most(nodes)), make_engine)
    # Three evictions make room for each, and no more than one fits on a node.
    yield measure_preemption(nodes, min(pods, nodes // 5), make_engine)


def one_per_node(make_engine: MakeEngine, nodes: int, pods: int) -> Iterator[Measured]:
    """Pods that take a node each."""
    for workload in ONE_PER_NODE.values():
        yield measure(workload, nodes, min(pods, nodes), make_engine)


def interleaved(make_engine: MakeEngine, nodes: int, pods: int) -> Iterator[Measured]:
    """One class, then ten whose pods take turns."""
    for count in (1, 10):
        engine = make_engine()
        classes = kinds(count)
        fill(engine, classes[0], nodes)
        each = [list(kind.pods(pods // count, f"kind-{at}")) for at, kind in enumerate(classes)]
        turns = chain.from_iterable(zip(*each, strict=True))
        deciding, seconds = place_all(engine, turns)
        name = f"{count} classes in turn" if count > 1 else "one class"
        yield Measured(name, nodes, pods, deciding, seconds)


def scale(make_engine: MakeEngine, nodes: int, pods: int) -> Iterator[Measured]:
    """The same pods on ever more nodes."""
    for name in ("plain pods", "soft topology spread"):
        for many in (nodes, 4 * nodes, 20 * nodes):
            yield measure(WORKLOADS[name], many, pods, make_engine)


def hopeless(make_engine: MakeEngine, nodes: int, pods: int) -> Iterator[Measured]:
    """Pods of one class that fit nowhere; then one node is emptied and the first is placed."""
    engine = make_engine()
    fill(engine, LOW_PRIORITY, nodes)
    place_all(engine, LOW_PRIORITY.pods(nodes * 4, "low"))
    for pod in HOPELESS.pods(pods, "hopeless"):
        engine.handle(Applied(pod), 0.0)
    started = perf_counter()
    engine.step(0.0, pods)
    failing = perf_counter() - started
    yield Measured("fit nowhere", nodes, pods, failing, failing)
    waking = _wake_first(engine)
    yield Measured("first placed after room", nodes, 1, waking, waking)


def _wake_first(engine: Engine) -> float:
    """Three of the four pods of a node go; the last one makes room. How long until it is taken?"""
    leaving = [pod for pod in engine.cluster.pods.values() if pod.node_name == "node-000007"][:3]
    # Long after the attempts, so that no backoff holds a pod back.
    now = 20.0
    for pod in leaving[:-1]:
        engine.handle(Removed(pod), now)
        engine.step(now, 100_000)
    now += 20.0
    started = perf_counter()
    engine.handle(Removed(leaving[-1]), now)
    while not any(isinstance(action, BindPod) for action in engine.step(now)):
        pass
    return perf_counter() - started


def memory(make_engine: MakeEngine, nodes: int, pods: int) -> Iterator[tuple[str, float]]:
    """Resident memory of a cluster in use, in all and per thing that is kept; in bytes."""
    begin = _resident()
    engine = make_engine()
    fill(engine, Workload("memory"), nodes)
    with_nodes = _resident()
    yield "per node", (with_nodes - begin) / nodes
    for number in range(pods):
        engine.handle(Applied(_running(number, nodes)), 0.0)
    with_pods = _resident()
    yield "per running pod", (with_pods - with_nodes) / pods
    count = 200
    place_all(engine, (pod for kind in kinds(count) for pod in kind.pods(2, kind.name)))
    with_classes = _resident()
    yield "per class and node", (with_classes - with_pods) / count / nodes
    yield "in all", float(with_classes)


def _running(number: int, nodes: int) -> Pod:
    workload = Workload("running", labels={"app": f"app-{number % 500}"}, cpu="10m")
    (pod,) = workload.pods(1, f"running-{number:06}")
    return pod.on(f"node-{number % nodes:06}")


def _resident() -> int:
    gc.collect()
    with open("/proc/self/statm") as told:
        return int(told.read().split()[1]) * resource.getpagesize()


SUITES: dict[str, Callable[[MakeEngine, int, int], Iterator[Measured]]] = {
    "core": core,
    "one-per-node": one_per_node,
    "interleaved": interleaved,
    "scale": scale,
    "hopeless": hopeless,
    "exclusive": exclusive,
    "coexist-overhead": overhead,
}
