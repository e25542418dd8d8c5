"""Plugins of others that keep every promise: with reuse on and off, decisions are the same.

Each plugin reads something that the built-in ones do not read, declares it, and signs it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, cast

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from mooring.cluster import Change, Nodes, NodeView, Rows, Scope
from mooring.cluster.labels import ABSENT
from mooring.config import Configuration
from mooring.engine.actions import RecordEvent, Report
from mooring.engine.classes.classes import ClassSettings
from mooring.engine.engine import Engine
from mooring.engine.events import Applied
from mooring.framework.attempt import Failed
from mooring.framework.plugin import (
    Filter,
    NodeFilter,
    NoRemedy,
    Plugin,
    PostFilter,
    PreFilter,
    PreScore,
    Reduction,
    Registry,
    Remedy,
    Score,
    Scores,
    Sign,
    normalize_scores,
)
from mooring.framework.profile import Profile
from mooring.framework.status import Code, Reason
from mooring.framework.verdict import Verdict
from mooring.objects.kinds import Object
from mooring.objects.pod import Pod
from mooring.objects.selector import equality
from mooring.objects.workload import ReplicaSet, Service, StatefulSet
from mooring.plugins import REGISTRY
from tests.builders import node, pod
from tests.exactness.four_ways import FourWays, configuration, profile
from tests.exactness.test_traps import Told, anti


class Registrar(PostFilter):
    """Tells the team of a pod that fits nowhere, which nobody else reads."""

    name: ClassVar[str] = "Registrar"

    def post_filter(
        self, pod: Pod, failed: Failed, nodes: Nodes, profile: Profile
    ) -> Remedy | NoRemedy:
        return NoRemedy(Code.UNSCHEDULABLE, (f"ask team {pod.annotations.get('team')}",))


class Maintenance(PreScore[Pod], Score[Pod], Sign):
    """Prefers nodes that stay, and skips itself while no node is to be maintained."""

    name: ClassVar[str] = "Maintenance"
    reads = Change.LABELS
    scope = Scope.ROW
    reduces = Reduction.LARGEST

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def pre_score(self, pod: Pod, nodes: Nodes, rows: NDArray[np.intp]) -> Pod | None:
        return pod if nodes.label("maintenance").filled else None

    def score(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Scores:
        return (nodes.label("maintenance").codes[rows] != ABSENT).astype(np.int64)

    def normalize(self, prepared: Pod, scores: Scores) -> Scores:
        return normalize_scores(scores, reverse=True)


class PlainMaintenance(Maintenance):
    """The same with scores that need no normalising; they are not 0 where it would be skipped."""

    name: ClassVar[str] = "PlainMaintenance"
    reduces = Reduction.NOTHING

    def score(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Scores:
        leaving = nodes.label("maintenance").codes[rows] != ABSENT
        odd = np.array(nodes.numbers(rows), np.int64) % 2
        return np.where(leaving, 0, 90 + odd)

    def normalize(self, prepared: Pod, scores: Scores) -> Scores:
        return scores


class Freeze(PreFilter[Pod], Filter[Pod], Sign):
    """Rejects old nodes while any node says that old ones are frozen."""

    name: ClassVar[str] = "Freeze"
    reads = Change.LABELS
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def pre_filter(self, pod: Pod, nodes: Nodes) -> Pod | None:
        return pod if nodes.label("freeze").filled else None

    def filter(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Verdict:
        return Verdict.rejecting(nodes.label("old").codes[rows] != ABSENT, Reason("frozen"))


class Gossip(NodeFilter, Sign):
    """Keeps pods off nodes where a pod's annotation says so."""

    name: ClassVar[str] = "Gossip"
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        noisy = any(other.annotations.get("noisy") == "yes" for other in node.pods)
        return "a pod there is noisy" if noisy else None


class Starting(NodeFilter, Sign):
    """Keeps pods off nodes where a pod has not begun to run."""

    name: ClassVar[str] = "Starting"
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        late = any(other.status.phase == "Pending" for other in node.pods)
        return "a pod there is starting" if late else None


class Owners(NodeFilter, Sign):
    """Keeps pods off nodes where a pod belongs to a batch."""

    name: ClassVar[str] = "Owners"
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        batch = any(other.owner is not None and other.owner.name == "batch" for other in node.pods)
        return "a batch runs there" if batch else None


class Pressure(NodeFilter, Sign):
    """Keeps pods off nodes whose disk is full, as a condition tells."""

    name: ClassVar[str] = "Pressure"
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        full = any(
            each.type == "DiskPressure" and each.status == "True" for each in node.node.conditions
        )
        return "the disk is full" if full else None


class Identity(NodeFilter, Sign):
    """Keeps pods off a node that is another one by the same name."""

    name: ClassVar[str] = "Identity"
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return "an impostor" if node.node.uid == "impostor" else None


class Ordinals(NodeFilter, Sign):
    """Spreads the pods of a stateful set by their ordinals, which it signs."""

    name: ClassVar[str] = "Ordinals"
    reads = Change.NONE
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return pod.name.rpartition("-")[2]

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        other = pod.name.rpartition("-")[2] != node.name[-1]
        return "the node is for another ordinal" if other else None


class Statuses(NodeFilter, Sign):
    """Reads, and signs, what is reported about the pod itself."""

    name: ClassVar[str] = "Statuses"
    reads = Change.NONE
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return pod.status.phase

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return "for pods that failed before" if pod.status.phase == "Unknown" else None


class Tired(NodeFilter, Sign):
    """Cannot sign pods of one team."""

    name: ClassVar[str] = "Tired"

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        if pod.labels.get("team") == "odd":
            raise ValueError("no idea")
        return cast(Hashable, [1]) if pod.labels.get("team") == "list" else None

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return None


OUTSIDERS: tuple[type[Plugin], ...] = (
    Registrar,
    Maintenance,
    PlainMaintenance,
    Freeze,
    Gossip,
    Starting,
    Owners,
    Pressure,
    Identity,
    Ordinals,
    Statuses,
    Tired,
)
KNOWN: Registry = {**REGISTRY, **{plugin.name: plugin for plugin in OUTSIDERS}}


def using(plugin: str, **more: object) -> Configuration:
    enabled = profile(plugins={"multiPoint": {"enabled": [{"name": plugin, "weight": 50}]}}, **more)
    return configuration(enabled, KNOWN)


class Contract(Told):
    """Four engines with one plugin of others."""

    def __init__(self, plugin: str, *objects: Object) -> None:
        self.ways = FourWays(using(plugin), KNOWN)
        self.now = 0.0
        self.apply(*objects)


def test_a_post_filter_that_does_not_sign_is_asked_about_every_pod() -> None:
    told = Contract("Registrar", node("a", cpu=1))
    for team in "abc":
        annotations = {"annotations": {"team": team}}
        told.apply(pod(team, cpu=3, metadata=annotations))
    texts = [
        action.note
        for _ in "abc"
        for action in told.ways.step(told.now, 1)
        if isinstance(action, RecordEvent)
    ]

    assert [text.rpartition("ask team ")[2] for text in texts] == ["a", "b", "c"]


@pytest.mark.parametrize("plugin", ["Maintenance", "PlainMaintenance"])
def test_a_score_that_skips_is_asked_again(plugin: str) -> None:
    told = Contract(plugin, node("a"), node("b"), node("c", cpu=3))
    leaving = node("a", labels={"maintenance": "tonight"})

    assert told.places(pod("p0"), pod("p1")).keys() == {"p0", "p1"}
    told.apply(leaving)
    found = told.places(*(pod(f"q{at}") for at in range(6)))
    assert "a" not in found.values()
    told.apply(node("a"))
    told.places(*(pod(f"r{at}") for at in range(6)))
    told.apply(leaving)
    assert "a" not in told.places(*(pod(f"s{at}") for at in range(6))).values()


def test_a_filter_that_begins_or_ceases_to_skip() -> None:
    told = Contract("Freeze", node("a", labels={"old": ""}), node("b"), node("c", cpu=2))

    assert "a" in told.places(*pods("p")).values()
    told.apply(node("c", cpu=2, labels={"freeze": ""}))
    assert "a" not in told.places(*pods("q")).values()
    told.apply(node("c", cpu=2))
    assert "a" in told.places(*pods("r")).values()


@pytest.mark.parametrize(
    ("plugin", "changed"),
    [
        ("Gossip", {"metadata": {"annotations": {"noisy": "yes"}}}),
        ("Starting", {"status": {"phase": "Pending"}}),
        (
            "Owners",
            {
                "metadata": {
                    "ownerReferences": [{"kind": "Job", "name": "batch", "controller": True}]
                }
            },
        ),
    ],
)
def test_what_is_said_of_a_running_pod_is_read(plugin: str, changed: dict[str, object]) -> None:
    told = Contract(plugin, node("a"), node("b"), pod("runs", node="a"))

    assert set(told.places(*pods("p")).values()) == {"a", "b"}
    told.apply(pod("runs", node="a", **changed))
    assert set(told.places(*pods("q")).values()) == {"b"}
    told.apply(pod("runs", node="a"))
    assert "a" in told.places(*pods("r")).values()


def pods(prefix: str, count: int = 5) -> list[Pod]:
    """Pods that go to equal nodes in turn."""
    return [pod(f"{prefix}{at}", cpu="100m") for at in range(count)]


def test_the_conditions_of_a_node_are_read() -> None:
    told = Contract("Pressure", node("a"), node("b"))
    full = {"conditions": [{"type": "DiskPressure", "status": "True"}]}

    assert set(told.places(*pods("p", 6)).values()) == {"a", "b"}
    told.apply(node("a", status=full))
    assert set(told.places(*pods("q")).values()) == {"b"}


def test_a_node_that_is_another_one_by_the_same_name() -> None:
    told = Contract("Identity", node("a"), node("b"))

    assert set(told.places(*pods("p", 6)).values()) == {"a", "b"}
    told.apply(msgspec.structs.replace(node("a"), uid="impostor"))
    assert set(told.places(*pods("q")).values()) == {"b"}


def test_a_plugin_that_signs_names_is_asked() -> None:
    told = Contract("Ordinals", *(node(f"n{at}") for at in range(3)))

    found = told.places(*(pod(f"web-{at}") for at in range(3)))
    assert found == {"web-0": "n0", "web-1": "n1", "web-2": "n2"}


def test_a_plugin_that_signs_statuses_is_asked() -> None:
    told = Contract("Statuses", node("a"))

    assert told.places(pod("p0"), pod("p1")) == {"p0": "a", "p1": "a"}
    assert told.places(pod("p2", status={"phase": "Unknown"})) == {"p2": None}


@pytest.mark.parametrize("team", ["odd", "list"])
def test_a_plugin_that_cannot_sign_is_named_and_only_its_pods_are_slow(team: str) -> None:
    engine = Engine(using("Tired"), KNOWN)
    for name in "ab":
        engine.handle(Applied(node(name)), 0.0)
    reports: list[str] = []
    for at in range(8):
        named = "plain" if at % 2 else team
        engine.handle(Applied(pod(f"p{at}", labels={"team": named})), 0.0)
        reports += [each.message for each in engine.step(0.0) if isinstance(each, Report)]
    reuse = engine.classes["default-scheduler"].statistics

    (report,) = reports
    assert "Tired" in report
    assert reuse.reused == 3
    assert reuse.unsigned == {("Tired", "broken"): 4}


@pytest.mark.parametrize("kind", [ReplicaSet, Service, StatefulSet])
@pytest.mark.parametrize("namespace", ["default", "elsewhere"])
def test_what_selects_nobody_ends_no_class(kind: type[Service], namespace: str) -> None:
    engine = Engine(configuration(), REGISTRY)
    for name in "abc":
        engine.handle(Applied(node(name)), 0.0)
    for at in range(40):
        if at % 4 == 0:
            other = equality({"app": f"other-{at}"})
            item = kind(namespace=namespace, name=f"r{at}", selector=other)
            engine.handle(Applied(item), 0.0)
        engine.handle(Applied(pod(f"p{at}", labels={"app": "web"}, cpu="10m")), 0.0)
        engine.step(0.0)
    reuse = engine.classes["default-scheduler"]

    # The first such selector begins to read the label that all of them read.
    assert reuse.statistics.reused >= 38
    assert len(reuse) <= 2


def test_failures_of_pods_that_are_tried_again_do_not_pile_up() -> None:
    engine = Engine(configuration({"percentageOfNodesToScore": 50}), REGISTRY)
    for at in range(120):
        engine.handle(Applied(node(f"n{at}")), 0.0)
    for at in range(30):
        engine.handle(Applied(pod("huge", cpu=99, labels={"try": str(at)})), at * 400.0)
        other = equality({"app": f"other-{at}"})
        engine.handle(Applied(Service(namespace="x", name=f"s{at}", selector=other)), at * 400.0)
        engine.step(at * 400.0)

    assert len(engine.answers) <= 1


@pytest.mark.parametrize("spec", [anti("app", "web"), {}], ids=["anti-affinity", "ports"])
def test_the_share_of_one_pod_per_node_means_the_same(spec: dict[str, object]) -> None:
    shares = []
    for reuse in (True, False):
        engine = Engine(configuration(), REGISTRY, ClassSettings(reuse, reuse))
        for at in range(6):
            engine.handle(Applied(node(f"n{at}", cpu=1)), 0.0)
        for at in range(9):
            engine.handle(Applied(pod(f"p{at}", labels={"app": "web"}, spec=spec, cpu="600m")), 0.0)
            engine.step(0.0)
        statistics = engine.classes["default-scheduler"].statistics
        shares.append((statistics.alone_on_node, statistics.looked_at))

    assert shares[0] == shares[1]
    assert shares[0][0] >= 5
