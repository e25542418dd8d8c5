"""Measures pods and gangs that are made to be costly, and how long other pods wait.

    python -m moorage.bench.hostile --nodes 5000 --pods 150000

Each attack is a pod about as large as an API server accepts. It is decided, waits while others come
and go, is placed by its owner and deleted. Then come gangs that are costly by what they request.
`LIMITS` says what is too much.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import click
import msgspec

from moorage.config import FeatureGates, default
from moorage.engine import Engine
from moorage.engine.actions import BindPod, EvictPod
from moorage.engine.events import Applied, Bound, Evicted, Removed
from moorage.engine.explain import explain
from moorage.engine.registry import registry
from moorage.framework.profile import known_plugins
from moorage.objects.decode import from_json
from moorage.objects.kinds import Object

from .hostile_cluster import (
    HOSTNAME,
    NAMESPACES,
    REQUIRED,
    ZONE,
    Manifest,
    evicting_pod,
    greedy_pod,
    node,
    ordinary,
    spread_pod,
    storage,
)
from .hostile_pods import ATTACKS, pod

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


_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits for every attack: processor seconds of one step, and memory."""

    seconds: float = 1.0
    growth_mib: float = 50.0
    left_mib: float = 16.0


LIMITS = Limits()


@dataclass(slots=True)
class Outcome:
    """What one attack cost: the worst seconds of each phase, and memory in MiB."""

    attack: str
    size: int
    seconds: dict[str, float] = field(default_factory=dict)
    growth_mib: float = 0.0
    left_mib: float = 0.0
    message: str = ""

    @property
    def worst(self) -> float:
        return max(self.seconds.values())

    def is_within(self, limits: Limits) -> bool:
        return (
            self.worst <= limits.seconds
            and self.growth_mib <= limits.growth_mib
            and self.left_mib <= limits.left_mib
        )


class HostileBenchmark:
    """An engine with a large cluster of ordinary pods, on which attacks are tried one by one."""

    def __init__(
        self,
        nodes: int,
        pods: int,
        measure: Callable[[], float] | None = None,
        disks: int = 5_000,
    ) -> None:
        self._measure = measure or resident_mib
        plugins = registry()
        gates = FeatureGates(**GATES)
        self.engine = Engine(default(known_plugins(plugins), gates), plugins)
        self._now = 1_000.0
        self._nodes = nodes
        self._made = 0
        for at in range(NAMESPACES):
            self._apply("Namespace", _namespace(at))
        for at in range(nodes):
            self._apply("Node", node(at))
        for kind, manifest in storage(nodes, disks):
            self._apply(kind, manifest)
        for at in range(pods):
            self._apply("Pod", ordinary(at, f"node-{at % nodes}"))
        #: What it cost to begin with spreading and preemption, in seconds: it is paid once.
        self.warm_up = self._warm_up()

    def run(self, attack: str, manifest: Manifest) -> Outcome:
        """Tries one attack; the cluster is as before when it ends."""
        manifest["metadata"]["uid"] = attack
        text = msgspec.json.encode(manifest)
        outcome = Outcome(attack, len(text))
        self._warm_up()
        before = self._measure()
        hostile = self._time(outcome, "intake", from_json, "Pod", text)
        self._time(outcome, "intake", self._handle, Applied(hostile))
        self._time(outcome, "decision", self._settle)
        outcome.message = self._message(hostile)
        self._time(outcome, "explanation", explain, self.engine.decider, hostile)
        for _ in range(3):
            self._time(outcome, "others", self._decide_one)
            self._time(outcome, "events", self._change_a_node)
        outcome.growth_mib = self._measure() - before
        self._time(outcome, "removal", self._handle, Removed(hostile))
        del hostile
        self._place(outcome, manifest, before)
        self._pass_time()
        outcome.left_mib = self._measure() - before
        return outcome

    def run_gang(self, attack: str, gang: HostileGang) -> Outcome:
        """Tries one gang; the cluster is as before when it ends."""
        group = from_json("PodGroup", msgspec.json.encode(gang.group()))
        texts = [msgspec.json.encode(gang.member(at)) for at in range(gang.size)]
        outcome = Outcome(attack, sum(map(len, texts)))
        self._warm_up()
        before = self._measure()
        members = [from_json("Pod", text) for text in texts]
        for each in (group, *members):
            self._time(outcome, "intake", self._handle, Applied(each))
        self._time(outcome, "decision", self._settle)
        outcome.message = self._message(members[-1])
        for _ in range(3):
            self._time(outcome, "others", self._decide_one)
            self._time(outcome, "events", self._change_a_node)
        outcome.growth_mib = self._measure() - before
        for each in (*members, group):
            self._time(outcome, "removal", self._handle, Removed(each))
        del members, each
        self._pass_time()
        outcome.left_mib = self._measure() - before
        return outcome

    def _place(self, outcome: Outcome, manifest: Manifest, before: float) -> None:
        """Returns the same pod with a node that its owner chose."""
        manifest["metadata"]["uid"] += ", placed"
        text = msgspec.json.encode({**manifest, "spec": {**manifest["spec"], "nodeName": "node-0"}})
        placed = from_json("Pod", text)
        self._time(outcome, "placing", self._handle, Applied(placed))
        for _ in range(3):
            self._time(outcome, "others", self._decide_one)
            self._time(outcome, "events", self._change_a_node)
        self._time(outcome, "evicting", self._try, evicting_pod())
        outcome.growth_mib = max(outcome.growth_mib, self._measure() - before)
        self._time(outcome, "leaving", self._handle, Removed(placed))

    def _time(self, outcome: Outcome, phase: str, do: Callable[..., Any], *args: Any) -> Any:
        began = time.process_time()
        result = do(*args)
        spent = time.process_time() - began
        outcome.seconds[phase] = max(outcome.seconds.get(phase, 0.0), spent)
        return result

    def _decide_one(self) -> None:
        """Decides an ordinary pod of a new template, binds it and removes it."""
        self._made += 1
        self._try(ordinary(10_000_000 + self._made, ""))

    def _change_a_node(self) -> None:
        """Changes a label of a node, and removes and returns a pod on it."""
        self._made += 1
        changed = node(self._made % self._nodes)
        changed["metadata"]["labels"]["rack"] = f"changed-{self._made}"
        self._apply("Node", changed)
        resident = next(iter(self.engine.cluster.pods.values()))
        self._handle(Removed(resident))
        self._handle(Applied(resident))

    def _warm_up(self) -> float:
        """Decides pods with ordinary rules, so that what is kept for them exists already."""
        began = time.process_time()
        self._made += 1
        for manifest in (spread_pod(self._made), greedy_pod(), evicting_pod()):
            self._try(manifest)
        self._decide_one()
        return time.process_time() - began

    def _try(self, manifest: Manifest) -> None:
        """Adds a pod, decides it and removes it."""
        item = from_json("Pod", msgspec.json.encode(manifest))
        self._handle(Applied(item))
        self._settle()
        self._handle(Removed(item))

    def _settle(self) -> None:
        for action in self.engine.step(self._now, 1):
            if isinstance(action, BindPod):
                pod = self.engine.cluster.pods[action.pod.uid]
                self._handle(Bound(pod.uid))
                self._handle(Applied(pod))
            elif isinstance(action, EvictPod):
                # Victims take their time to leave.
                self._handle(Evicted(action.pod.uid, action.preemptor.uid))
        self._now += 0.001

    def _pass_time(self) -> None:
        for _ in range(4):
            self._now += 61.0
            self.engine.step(self._now, 1)
            self._warm_up()

    def _message(self, hostile: Object) -> str:
        queued = self.engine.queue.get(getattr(hostile, "uid", ""))
        return "" if queued is None else queued.message

    def _apply(self, kind: str, manifest: Mapping[str, Any]) -> None:
        self._handle(Applied(from_json(kind, msgspec.json.encode(manifest))))

    def _handle(self, event: Any) -> None:
        self.engine.handle(event, self._now)


def _namespace(at: int) -> Manifest:
    name = f"ns-{at}"
    return {"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}}


def resident_mib() -> float:
    """Returns the memory that the process has now, once what is free was given back."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / _MIB


def run(benchmark: HostileBenchmark, size: int, only: str = "") -> Iterator[Outcome]:
    """Tries every attack whose name contains a text, each in a pod of about so many bytes."""
    for name, attack in ATTACKS.items():
        if only in name:
            yield benchmark.run(name, pod(attack, size))
    gangs = {name: gang for name, gang in GANGS.items() if only in name}
    if gangs:
        # What the process keeps once it has seen many pods is no gang's own.
        benchmark.run_gang("first", GANGS["a gang of 12,000"])
    for name, gang in gangs.items():
        yield benchmark.run_gang(name, gang)


@click.command()
@click.option("--nodes", default=5_000, show_default=True, help="Number of nodes.")
@click.option("--pods", default=150_000, show_default=True, help="Number of ordinary pods.")
@click.option("--size", default=1_400_000, show_default=True, help="Bytes of a hostile pod.")
@click.option("--only", default="", help="Run the attacks whose name contains this text.")
def main(nodes: int, pods: int, size: int, only: str) -> None:
    """Measure what hostile pods cost. Exit code 1 means that a limit was exceeded."""
    failed = 0
    benchmark = HostileBenchmark(nodes, pods)
    click.echo(f"first pods that spread and preempt: {benchmark.warm_up:.3f} s")
    for outcome in run(benchmark, size, only):
        verdict = "ok" if outcome.is_within(LIMITS) else "TOO MUCH"
        failed += verdict != "ok"
        phases = " ".join(f"{name} {spent:.3f}" for name, spent in outcome.seconds.items())
        click.echo(
            f"{outcome.attack:34} {outcome.size:>9} B  worst {outcome.worst:7.3f} s  "
            f"memory +{outcome.growth_mib:6.1f} MiB, left {outcome.left_mib:6.1f} MiB  {verdict}"
        )
        click.echo(f"    {phases}")
        click.echo(f"    {outcome.message[:160]}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
