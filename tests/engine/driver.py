"""An engine with a clock and somebody who performs what it asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mooring.cluster import check
from mooring.config import FeatureGates, load_mapping
from mooring.engine import Engine
from mooring.engine.actions import (
    Action,
    BindPod,
    EvictPod,
    PatchPodStatus,
    PodScheduledCondition,
    RecordEvent,
)
from mooring.engine.events import BindingFailed, Bound, Event
from mooring.framework.plugin import Plugin
from mooring.framework.profile import known_plugins
from mooring.objects.kinds import Object
from mooring.objects.pod import Pod
from mooring.plugins import REGISTRY
from mooring.world import World
from tests import builders

A = TypeVar("A")

#: The engines of the running test: none of them may have caught an exception when it ends.
engines: list[Engine] = []


def engine(
    *plugins: type[Plugin], gates: Mapping[str, bool] | None = None, **config: Any
) -> Engine:
    """An engine with the default profile and some plugins more; keywords go into the file."""
    registry = {**REGISTRY, **{plugin.name: plugin for plugin in plugins}}
    enabled = [{"name": plugin.name} for plugin in plugins]
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}],
        **config,
    }
    switched = FeatureGates.parse(gates or {})
    made = Engine(load_mapping(raw, known=known_plugins(registry), gates=switched), registry)
    builders.made.append(made.cluster)
    engines.append(made)
    return made


@dataclass
class Driver:
    """Drives an engine; what it asked for is kept in `story`."""

    engine: Engine
    now: float = 1000.0
    story: list[Action] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = World(self.engine)

    @property
    def pods(self) -> dict[str, Pod]:
        """The pods that there are, by uid."""
        return self.world.pods

    def apply(self, *objects: Object) -> None:
        for item in objects:
            self.world.apply(item, self.now)

    def remove(self, *objects: Object) -> None:
        for item in objects:
            self.world.remove(item, self.now)

    def tell(self, event: Event) -> None:
        self.engine.handle(event, self.now)

    def step(self, budget: int = 1) -> list[Action]:
        """Decides, and performs nothing."""
        taken = self.engine.step(self.now, budget)
        self.story += taken
        check(self.engine.cluster)
        self.engine.queue.check()
        return taken

    def bind(self, actions: Iterable[Action]) -> None:
        """Every binding succeeds."""
        for action in actions:
            if isinstance(action, BindPod):
                self.world.bind(action, self.now)

    def evict(self, actions: Iterable[Action]) -> None:
        """Every eviction succeeds, and the victims are gone at once."""
        for action in actions:
            if isinstance(action, EvictPod):
                self.world.evict(action, self.now)

    def tell_bound(self, name: str) -> None:
        self.tell(Bound(self.uid(name)))

    def fail_binding(self, actions: Iterable[Action], message: str = "no") -> None:
        for action in only(actions, BindPod):
            self.tell(BindingFailed(action.pod.uid, message))

    def settle(self, steps: int = 100) -> None:
        """Decides and performs until nothing is left to be done at this time."""
        for _ in range(steps):
            taken = self.step(8)
            if not taken:
                return
            self.bind(taken)
            self.evict(taken)

    def place(self, name: str) -> str:
        """Where in the queue a pod is."""
        uid = self.uid(name)
        queued = self.engine.queue.get(uid)
        if queued is not None:
            return str(queued.place)
        flying = {each.pod.uid for each in self.engine.queue.in_flight}
        return "in flight" if uid in flying else "nowhere"

    def node_of(self, name: str) -> str:
        """Where the cluster counts a pod, assumed or not."""
        known = self.engine.cluster.pod(self.uid(name))
        return "" if known is None else known.node_name

    def nominated(self, name: str) -> str:
        return self.engine.cluster.nodes.nominations.node_of(builders.pod(name))

    def uid(self, name: str) -> str:
        return f"default/{name}"


def driver(*objects: Object, plugins: tuple[type[Plugin], ...] = (), **config: Any) -> Driver:
    """A driver whose engine has heard of these objects."""
    made = Driver(engine(*plugins, **config))
    made.apply(*objects)
    return made


def only(actions: Iterable[Action], kind: type[A]) -> list[A]:
    return [action for action in actions if isinstance(action, kind)]


def bindings(actions: Iterable[Action]) -> dict[str, str]:
    return {action.pod.name: action.node for action in only(actions, BindPod)}


def notes(actions: Iterable[Action]) -> list[str]:
    return [action.note for action in only(actions, RecordEvent)]


def conditions(actions: Iterable[Action]) -> dict[str, PodScheduledCondition]:
    return {
        action.pod.name: action.condition
        for action in only(actions, PatchPodStatus)
        if action.condition is not None
    }


def nominations(actions: Iterable[Action]) -> dict[str, str]:
    return {
        action.pod.name: action.nominated_node_name
        for action in only(actions, PatchPodStatus)
        if action.nominated_node_name is not None
    }


def evictions(actions: Iterable[Action]) -> list[str]:
    return [action.pod.name for action in only(actions, EvictPod)]
