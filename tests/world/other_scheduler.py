"""A model of another scheduler, of those who use its cluster, and of a shadow that watches both.

There is a log of pods and one of nodes. The other scheduler and the shadow read each of them at a
pace of their own. The other assumes what it has decided, and binds in any order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec
import numpy as np

from moorage.engine import Engine
from moorage.engine.cycle import decide
from moorage.engine.events import Applied, Removed
from moorage.framework.attempt import Failed
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.world.shadow_judge import Shadow
from tests.builders import node, pod

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_FAILED = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no"}]}
_KINDS = 5

replace = msgspec.structs.replace


def make_node(at: int, *, closed: bool = False) -> Node:
    spec = {"unschedulable": True} if closed else {}
    return node(f"n{at}", cpu=4 + at % 4, labels={ZONE: "abc"[at % 3]}, spec=spec)


def make_pod(at: int, priority: int = 0, *, failed: bool = False) -> Pod:
    kind = at % _KINDS
    same = {"labelSelector": {"matchLabels": {"app": f"a{kind}"}}}
    soft = {**same, "maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway"}
    hard = {**soft, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    term = {"weight": 50, "podAffinityTerm": {**same, "topologyKey": ZONE}}
    apart = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
    spec: tuple[dict[str, Any], ...] = (
        {},
        {"topologySpreadConstraints": [hard]},
        {"topologySpreadConstraints": [soft]},
        {"affinity": {"podAntiAffinity": apart}},
        {"topologySpreadConstraints": [hard]},
    )
    return pod(
        f"p{at}",
        cpu=f"{100 + 70 * kind}m",
        labels={"app": f"a{kind}"},
        spec={**spec[kind], "priority": priority},
        status=_FAILED if failed else {},
    )


@dataclass
class OtherScheduler:
    """Decides one pod after the other by what it has read, and binds later."""

    engine: Engine
    dice: Random
    #: Whether it takes any feasible node instead of one of the best.
    takes_any: bool = False
    queue: list[tuple[int, int, Pod]] = field(default_factory=list)
    #: What it has decided and not bound yet.
    binding: list[Pod] = field(default_factory=list)
    failed: list[Pod] = field(default_factory=list)
    _came: int = 0

    def read(self, event: Applied | Removed) -> None:
        item = event.object
        if isinstance(item, Pod) and not item.node_name:
            self._read_waiting(event, item)
            return
        self.engine.handle(event, 0.0)
        if isinstance(item, Node) or isinstance(event, Removed):
            for each in self.failed:
                self._enqueue(each)
            self.failed.clear()

    def _read_waiting(self, event: Applied | Removed, item: Pod) -> None:
        if isinstance(event, Removed):
            self.queue = [each for each in self.queue if each[2].uid != item.uid]
            self.failed = [each for each in self.failed if each.uid != item.uid]
        elif not item.status.conditions:
            self._enqueue(item)

    def _enqueue(self, item: Pod) -> None:
        self._came += 1
        self.queue.append((-item.priority, self._came, item))
        self.queue.sort(key=lambda each: each[:2])

    def decide(self) -> Pod | None:
        """Decides the next pod; returns it if it fits nowhere."""
        if not self.queue:
            return None
        item = self.queue.pop(0)[2]
        (profile,) = self.engine.profiles.values()
        outcome = decide(profile, item, self.engine.cluster.nodes)
        if isinstance(outcome, Failed):
            self.failed.append(item)
            return item
        row = outcome.row
        if outcome.scored is not None:
            totals = outcome.scored.totals
            best = np.flatnonzero((totals == totals.max()) | self.takes_any)
            row = int(outcome.scored.rows[self.dice.choice(best.tolist())])
        placed = replace(item, node_name=self.engine.cluster.nodes.name(row))
        self.engine.handle(Applied(placed), 0.0)
        self.binding.append(placed)
        return None


@dataclass
class SharedCluster:
    """What happens, one step after the other, by the dice."""

    shadow: Shadow
    other: OtherScheduler
    dice: Random
    nodes: int = 12
    priorities: tuple[int, ...] = (0,)
    now: float = 100.0
    pods: list[Applied | Removed] = field(default_factory=list)
    changed: list[Applied | Removed] = field(default_factory=list)
    #: How far the other and the shadow have read the log of pods, and that of nodes.
    read: dict[str, list[int]] = field(default_factory=lambda: {"other": [0, 0], "us": [0, 0]})
    waiting: dict[str, Pod] = field(default_factory=dict)
    placed: dict[str, Pod] = field(default_factory=dict)
    _made: int = 0
    _closed: int | None = None

    def __post_init__(self) -> None:
        for at in range(self.nodes):
            self.changed.append(Applied(make_node(at)))
        self._read("other", 1, self.nodes)
        self._read("us", 1, self.nodes)
        self.shadow.begin()

    def run(self, steps: int) -> None:
        acts = (
            *(self.create,) * 6,
            *(self.delete,) * 3,
            self.cordon,
            *(lambda: self._read("other", 0, self.dice.randint(1, 6)),) * 3,
            *(lambda: self._read("other", 1, 2),) * 2,
            *(self.decide,) * 8,
            *(self.bind,) * 8,
            *(lambda: self._read("us", 0, self.dice.randint(1, 12)),) * 2,
            *(lambda: self._read("us", 1, 2),) * 2,
        )
        for _ in range(steps):
            self.now += 0.005
            self.dice.choice(acts)()
        self._finish()

    def _finish(self) -> None:
        while self.other.queue or self.other.binding or not self._is_read("other"):
            self._read("other", 1, 99)
            self._read("other", 0, 99)
            self.decide()
            self.bind()
        self._read("us", 0, len(self.pods))
        self._read("us", 1, len(self.changed))

    def _is_read(self, who: str) -> bool:
        return self.read[who] == [len(self.pods), len(self.changed)]

    def create(self) -> None:
        made = make_pod(self._made, self.dice.choice(self.priorities))
        self._made += 1
        self.waiting[made.uid] = made
        self.pods.append(Applied(made))

    def delete(self) -> None:
        if self.placed:
            gone = self.placed.pop(self.dice.choice(list(self.placed)))
            self.pods.append(Removed(gone))

    def cordon(self) -> None:
        if self._closed is not None:
            self.changed.append(Applied(make_node(self._closed)))
        self._closed = self.dice.randrange(self.nodes)
        self.changed.append(Applied(make_node(self._closed, closed=True)))

    def decide(self) -> None:
        failed = self.other.decide()
        if failed is not None and failed.uid in self.waiting:
            at = int(failed.name[1:])
            self.pods.append(Applied(make_pod(at, failed.priority, failed=True)))

    def bind(self) -> None:
        if not self.other.binding:
            return
        at = self.dice.randrange(len(self.other.binding))
        bound = self.other.binding.pop(at)
        del self.waiting[bound.uid]
        self.placed[bound.uid] = bound
        self.pods.append(Applied(bound))

    def _read(self, who: str, log: int, count: int) -> None:
        events = (self.pods, self.changed)[log]
        at = self.read[who][log]
        for event in events[at : at + count]:
            self.read[who][log] += 1
            if who == "other":
                self.other.read(event)
            else:
                self.shadow.handle(event, self.now)
