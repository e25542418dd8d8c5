"""One stream through engines that reuse answers or do not: all of them must decide the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from moorage.cluster import Cluster, check
from moorage.config import Configuration, FeatureGates, load_mapping
from moorage.config.kubernetes_versions import DEFAULT_VERSION, KubernetesVersion
from moorage.engine import Engine, diagnosis
from moorage.engine.actions import Action, BindPod, Report, encode
from moorage.engine.classes.classes import Classes, ClassSettings
from moorage.engine.classes.signature import Signer
from moorage.engine.classes.statistics import DecisionPath
from moorage.engine.cycle import Found, Window, decide
from moorage.engine.events import Applied, Event, Removed
from moorage.framework.attempt import Failed
from moorage.framework.plugin import Registry
from moorage.framework.profile import Profile, known_plugins
from moorage.framework.status import PluginError
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.pod_status import FINISHED
from moorage.testing.declarations import Declarations
from tests.builders import Manifest
from tests.exactness.streams import Shape, World
from tests.registered import REGISTRY

#: After so many turns in which pods only fail, a stream of fleeting ones ends: it says no more.
_STUCK = 4

NodeLog = Sequence[tuple[str, Node | None]]

#: The two that users meet: all reuse, and none.
ON_AND_OFF: Mapping[str, tuple[bool, bool]] = {
    "no reuse": (False, False),
    "classes and batches": (True, True),
}

#: Without any reuse first: that is the one the others are compared with.
WAYS: Mapping[str, tuple[bool, bool]] = {
    "no reuse": (False, False),
    "classes": (True, False),
    "batches": (False, True),
    "classes and batches": (True, True),
}


class Differs(AssertionError):
    """A decision that another way of finding it does not make."""


def configuration(
    raw: Manifest | None = None,
    registry: Registry = REGISTRY,
    version: KubernetesVersion = DEFAULT_VERSION,
    **gates: bool,
) -> Configuration:
    header = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    known = known_plugins(registry)
    switched = FeatureGates.parse(gates, version=version)
    return load_mapping({**header, **(raw or {})}, known=known, gates=switched)


@dataclass
class FourWays:
    """The engines, which are told the same, and a recount of every decision of the first."""

    configuration: Configuration
    registry: Registry = field(default_factory=lambda: REGISTRY)
    most_classes: int | None = None
    recounts: bool = True
    ways_to_decide: Mapping[str, tuple[bool, bool]] = field(default_factory=lambda: WAYS)
    #: Whether plugins see no more of the cluster than they declare, which takes twice as long.
    limits_plugins: bool = True
    declarations: Declarations = field(default_factory=Declarations)
    #: Nodes as they came, moved to another zone and went: what the visit order depends on.
    node_log: list[tuple[str, Node | None]] = field(default_factory=list)
    #: The last recount of a step, and what was nominated and placed then.
    recounted: tuple[Hashable, Cluster] | None = None

    def __post_init__(self) -> None:
        registry = self.registry
        if self.limits_plugins:
            registry = self.declarations.registry(registry)
        self.engines = {
            name: Engine(
                self.configuration,
                registry,
                ClassSettings(classes, batches, self.most_classes),
            )
            for name, (classes, batches) in self.ways_to_decide.items()
        }
        if self.recounts:
            first = self.engines["no reuse"]
            for name, profile in first.profiles.items():
                witness = Witness(profile, first.cluster, self)
                # It stands where decisions are made, and has the one method that matters.
                first.classes[name] = cast(Classes, witness)

    def handle(self, events: Iterable[Event], now: float) -> None:
        for event in events:
            if isinstance(event, Applied | Removed) and isinstance(event.object, Node):
                self._log(event.object, gone=isinstance(event, Removed))
            for engine in self.engines.values():
                engine.handle(event, now)

    def _log(self, node: Node, *, gone: bool) -> None:
        known = (each for name, each in reversed(self.node_log) if name == node.name)
        before = next(known, None)
        if gone:
            self.node_log.append((node.name, None))
        elif before is None or before.zone != node.zone:
            self.node_log.append((node.name, node))

    def step(self, now: float, budget: int) -> list[Action]:
        """One step of all engines; raises Differs unless they ask for the same."""
        self.recounted = None
        asked = {name: engine.step(now, budget) for name, engine in self.engines.items()}
        first = asked["no reuse"]
        expected = _encoded(first)
        for name, actions in asked.items():
            _look_for_broken_classes(actions)
            found = _encoded(actions)
            if found != expected:
                raise Differs(f"with {name}:\n{_unlike(expected, found)}")
        self.declarations.check()
        return first

    def check(self) -> None:
        for engine in self.engines.values():
            check(engine.cluster)
            engine.queue.check()
            assert not engine.caught, f"exceptions were caught: {engine.caught}"

    def check_room(self, world: World) -> None:
        """Raises AssertionError if a pod takes room that has ended or is gone."""
        there = {
            uid
            for uid, manifest in world.all("Pod").items()
            if manifest["status"].get("phase") not in FINISHED
        }
        for engine in self.engines.values():
            leaked = engine.cluster.pods.keys() - there
            assert not leaked, f"pods that are gone take room: {leaked}"

    @property
    def ways(self) -> Counter[DecisionPath]:
        """How decisions were made where everything is reused."""
        both = self.engines["classes and batches"].classes.values()
        return sum((each.statistics.paths for each in both), Counter())


#: An exception of Python's; what plugins raise is told with the plugin first.
BROKEN_CLASS = re.compile(r"such pods are decided one by one: \w+: ")


def _look_for_broken_classes(actions: Iterable[Action]) -> None:
    """Raises AssertionError if a class raised an exception that is not a plugin's.

    The pod is decided alone then, so that nothing else would tell.
    """
    for action in actions:
        told = isinstance(action, Report) and BROKEN_CLASS.search(action.message)
        assert not told, action


def _encoded(actions: Iterable[Action]) -> list[bytes]:
    """Actions byte for byte; what is said about reuse itself is no decision."""
    return [encode(action) for action in actions if not isinstance(action, Report)]


def _unlike(expected: list[bytes], found: list[bytes]) -> str:
    pairs = zip(expected, found, strict=False)
    at = next((at for at, (one, other) in enumerate(pairs) if one != other), None)
    if at is None:
        return f"{len(found)} actions instead of {len(expected)}"
    return f"expected {expected[at].decode()}\n   found {found[at].decode()}"


# The fifth opinion


class Witness:
    """Decides plainly, then once more on a cluster that is built anew from the objects."""

    def __init__(self, profile: Profile, cluster: Cluster, ways: FourWays) -> None:
        self._profile = profile
        self._cluster = cluster
        self._ways = ways
        self._signer = Signer(profile)

    def decide(self, pod: Pod, window: Window) -> Found | Failed:
        anew = self._recount()
        expected = tell(attempt(self._profile, pod, anew, window), anew)
        outcome = attempt(self._profile, pod, self._cluster, window)
        found = tell(outcome, self._cluster)
        if found != expected:
            raise Differs(f"{pod.key} recounted:\nexpected {expected}\n   found {found}")
        if not isinstance(outcome, Failed):
            self._ways.recounted = None
        if isinstance(outcome, PluginError):
            raise outcome
        return outcome

    def _recount(self) -> Cluster:
        """The cluster counted anew; after a pod that failed, nothing else has changed."""
        nominations, pods = self._cluster.nodes.nominations, self._cluster.pods.values()
        state = tuple((name, tuple(each)) for name, each in nominations), tuple(map(id, pods))
        if self._ways.recounted is None or self._ways.recounted[0] != state:
            self._ways.recounted = state, recount(self._cluster, self._ways.node_log)
        return self._ways.recounted[1]

    def find_feasible(self, pod: Pod, window: Window, *, again: bool = False) -> None:
        """It keeps no class that could tell."""

    def find_class(self, pod: Pod, window: Window) -> None:
        """It keeps no class that could tell."""

    def find_alike(self, pod: Pod) -> Hashable:
        """What the queue knows of like pods is the same however they are decided."""
        self._signer.sign(pod, self._cluster.nodes)
        return self._signer.find_alike(pod, self._cluster.nodes)

    def sweep(self) -> None:
        """It keeps nothing."""

    def forget(self) -> None:
        """It keeps nothing."""


def attempt(
    profile: Profile, pod: Pod, cluster: Cluster, window: Window
) -> Found | Failed | PluginError:
    """What is decided for a pod, or what a plugin raised."""
    try:
        return decide(profile, pod, cluster.nodes, window)
    except PluginError as error:
        return error


def tell(outcome: Found | Failed | PluginError, cluster: Cluster) -> str:
    """The node of a pod, or why there is none."""
    if isinstance(outcome, PluginError):
        return f"broken: {outcome}"
    if isinstance(outcome, Found):
        return f"on {cluster.nodes.name(outcome.row)}"
    return f"{sorted(diagnosis.rejectors(outcome))}: {diagnosis.message(outcome)}"


def _set_resources(cluster: Cluster, anew: Cluster) -> None:
    for each in cluster.extended.empties():
        anew.extended.set(*each)


def recount(cluster: Cluster, node_log: NodeLog) -> Cluster:
    """A new cluster with the same objects, in which nothing has ever been counted up or down."""
    anew = Cluster(cluster.extended.handles)
    _set_resources(cluster, anew)
    _put_in_order(anew, node_log)
    nodes = cluster.nodes
    for row in nodes.rows.tolist():
        anew.put_node(nodes.node(row))
    for workload in nodes.workloads:
        anew.put_workload(workload)
    for item in nodes.storage:
        anew.put_storage(item)
    for device in cluster._state.devices:
        anew.put_device(device)
    for pod in cluster.pods.values():
        anew.put_pod(pod)
    anew._state.storage.assume_as(cluster._state.storage)
    anew._state.devices.decide_as(cluster._state.devices)
    for name, nominated in nodes.nominations:
        for pod in nominated.values():
            anew.nominate(pod, name)
    return anew


def _put_in_order(anew: Cluster, node_log: NodeLog) -> None:
    for name, node in node_log:
        if node is None:
            anew.remove_node(name)
        else:
            anew.put_node(node)


# Running a stream


def run(
    seed: int,
    using: Configuration,
    shape: Shape | None = None,
    *,
    registry: Registry = REGISTRY,
    most_classes: int | None = None,
    recounts: bool = True,
    ways: Mapping[str, tuple[bool, bool]] = WAYS,
    limits_plugins: bool = True,
) -> Counter[DecisionPath]:
    """Runs a stream; raises Differs, with the turn at which it is first seen."""
    world = World(seed, shape or Shape())
    made = FourWays(using, registry, most_classes, recounts, ways, limits_plugins)
    turns = stuck = 0
    try:
        made.handle(world.opening(), world.now)
        while turns < world.shape.turns:
            turns += 1
            made.handle(world.turn(), world.now)
            budget = world.random.choice([1, 1, 3, 10]) * world.shape.burst
            actions = made.step(world.now, budget)
            made.handle(world.perform(actions), world.now)
            placed = any(isinstance(each, BindPod) for each in actions)
            stuck = 0 if placed or not actions else stuck + 1
            if world.shape.fleeting and stuck == _STUCK:
                break
        made.check()
        made.check_room(world)
    except Exception as error:
        error.add_note(f"in turn {turns} of the stream with seed {seed}")
        raise
    return made.ways


def profile(**given: Any) -> Manifest:
    """A configuration with one profile."""
    return {"profiles": [{"schedulerName": "default-scheduler", **given}]}
