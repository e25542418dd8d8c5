"""Drives an engine in tests: sets the time, hands in objects and performs actions at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from moorage.cluster import check
from moorage.config import FeatureGates, load_mapping
from moorage.engine import Engine
from moorage.engine.actions import (
    Action,
    BindPod,
    EvictPod,
    PatchPodStatus,
    PodScheduledCondition,
    RecordEvent,
)
from moorage.engine.events import BindingFailed, Bound, Event
from moorage.framework.plugin import Plugin
from moorage.framework.profile import known_plugins
from moorage.objects.kinds import Object
from moorage.objects.pod import Pod
from moorage.world import World

from .builders import pod
from .installed import find_plugins

A = TypeVar("A")


def make_engine(
    *plugins: type[Plugin],
    args: Mapping[str, Mapping[str, Any]] | None = None,
    gates: Mapping[str, bool] | None = None,
    **config: Any,
) -> Engine:
    """Makes an engine with the default profile and more plugins.

    `args` has arguments by the name of the plugin, as `pluginConfig` has them.
    `gates` says which feature gates differ from their default; FeatureGates of a version of
    Kubernetes let the engine follow that version. Other keywords are fields of the
    KubeSchedulerConfiguration, such as `profiles=[...]`.
    """
    registry = {**find_plugins(), **{plugin.name: plugin for plugin in plugins}}
    enabled = [{"name": plugin.name} for plugin in plugins]
    arguments = [{"name": name, "args": dict(each)} for name, each in (args or {}).items()]
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}, "pluginConfig": arguments}],
        **config,
    }
    switched = gates if isinstance(gates, FeatureGates) else FeatureGates.parse(gates or {})
    return Engine(load_mapping(raw, known=known_plugins(registry), gates=switched), registry)


@dataclass
class Driver:
    """Drives an engine. `story` keeps all actions; only the caller moves the time `now`."""

    engine: Engine
    now: float = 1000.0
    story: list[Action] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = World(self.engine)

    @property
    def pods(self) -> dict[str, Pod]:
        """The pods of the cluster, by uid."""
        return self.world.pods

    def apply(self, *objects: Object) -> None:
        """Tells the engine of objects that are new or changed."""
        for item in objects:
            self.world.apply(item, self.now)

    def remove(self, *objects: Object) -> None:
        """Tells the engine that objects were deleted."""
        for item in objects:
            self.world.remove(item, self.now)

    def tell(self, event: Event) -> None:
        """Hands an event to the engine."""
        self.engine.handle(event, self.now)

    def step(self, budget: int = 1) -> list[Action]:
        """Makes decisions without performing them, and checks the engine's invariants."""
        actions = self.engine.step(self.now, budget)
        self.story += actions
        check(self.engine.cluster)
        self.engine.queue.check()
        return actions

    def bind(self, actions: Iterable[Action]) -> None:
        """Performs every binding."""
        for action in actions:
            if isinstance(action, BindPod):
                self.world.bind(action, self.now)

    def evict(self, actions: Iterable[Action]) -> None:
        """Performs every eviction; the victims are gone at once."""
        for action in actions:
            if isinstance(action, EvictPod):
                self.world.evict(action, self.now)

    def tell_bound(self, name: str) -> None:
        self.tell(Bound(self.uid(name)))

    def fail_binding(self, actions: Iterable[Action], message: str = "no") -> None:
        """Lets every binding fail."""
        for action in only(actions, BindPod):
            self.tell(BindingFailed(action.pod.uid, message))

    def settle(self, steps: int = 100) -> None:
        """Decides and performs until nothing is left to do at this time."""
        for _ in range(steps):
            actions = self.step(8)
            if not actions:
                return
            self.bind(actions)
            self.evict(actions)

    def place(self, name: str) -> str:
        """Returns where in the queue a pod is."""
        uid = self.uid(name)
        queued = self.engine.queue.get(uid)
        if queued is not None:
            return str(queued.place)
        flying = {each.pod.uid for each in self.engine.queue.in_flight}
        return "in flight" if uid in flying else "nowhere"

    def node_of(self, name: str) -> str:
        """Returns the node on which the cluster counts a pod, assumed or bound."""
        known = self.engine.cluster.pod(self.uid(name))
        return "" if known is None else known.node_name

    def nominated(self, name: str) -> str:
        """Returns the node that a pod is nominated to."""
        return self.engine.cluster.nodes.nominations.node_of(pod(name))

    def uid(self, name: str) -> str:
        return f"default/{name}"


def drive(*objects: Object, plugins: tuple[type[Plugin], ...] = (), **config: Any) -> Driver:
    """Makes a driver of a new engine that knows these objects.

        driven = drive(node("a"), pod("p"), plugins=(Racks,), args={"Racks": {"watts": 500}})

    See `make_engine` for the other keywords.
    """
    made = Driver(make_engine(*plugins, **config))
    made.apply(*objects)
    return made


def only(actions: Iterable[Action], kind: type[A]) -> list[A]:
    """Selects the actions of a kind."""
    return [action for action in actions if isinstance(action, kind)]


def bindings(actions: Iterable[Action]) -> dict[str, str]:
    """Returns which pods are bound to which nodes, by name."""
    return {action.pod.name: action.node for action in only(actions, BindPod)}


def notes(actions: Iterable[Action]) -> list[str]:
    """Returns the texts of the events that users see."""
    return [action.note for action in only(actions, RecordEvent)]


def conditions(actions: Iterable[Action]) -> dict[str, PodScheduledCondition]:
    """Returns the PodScheduled conditions that are written, by pod."""
    return {
        action.pod.name: action.condition
        for action in only(actions, PatchPodStatus)
        if action.condition is not None
    }


def nominations(actions: Iterable[Action]) -> dict[str, str]:
    """Returns which pods are nominated to which nodes, by name."""
    return {
        action.pod.name: action.nominated_node_name
        for action in only(actions, PatchPodStatus)
        if action.nominated_node_name is not None
    }


def evictions(actions: Iterable[Action]) -> list[str]:
    """Returns the names of the pods that are evicted."""
    return [action.pod.name for action in only(actions, EvictPod)]
