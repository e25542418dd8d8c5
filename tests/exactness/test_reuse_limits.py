"""Where reuse ends: gates, verified shares, percentages, named pods, and classes that go."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cluster import Change, Nodes
from moorage.config import default
from moorage.config.gates import FeatureGates
from moorage.engine.actions import BindPod, Report
from moorage.engine.classes.classes import ClassSettings
from moorage.engine.classes.statistics import DecisionPath, Flush
from moorage.engine.engine import Engine
from moorage.engine.events import Applied, Removed
from moorage.engine.settings import class_settings
from moorage.framework.profile import known_plugins
from moorage.objects.node import HOSTNAME
from moorage.objects.pod import Pod
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.simulate.place_study import study_places
from tests.builders import node, pod
from tests.exactness.four_ways import configuration, profile
from tests.exactness.outsiders import WITH_OUTSIDERS
from tests.exactness.test_traps import Told, anti, important
from tests.registered import REGISTRY
from tests.strategies import REQUIRED


def engine_of(settings: ClassSettings | None = None, nodes: int = 3, **raw: Any) -> Engine:
    engine = Engine(configuration(raw or None), REGISTRY, settings)
    for at in range(nodes):
        engine.handle(Applied(node(f"n{at}")), 0.0)
    return engine


def decide(engine: Engine, *pods: Pod) -> list[str]:
    """The nodes of pods that come one after the other; empty where there is none."""
    places = []
    for each in pods:
        engine.handle(Applied(each), 0.0)
        bound = [action.node for action in engine.step(0.0) if isinstance(action, BindPod)]
        places.append(bound[0] if bound else "")
    return places


def like(count: int, prefix: str = "p", **given: Any) -> list[Pod]:
    return [pod(f"{prefix}{at}", cpu="100m", **given) for at in range(count)]


@pytest.mark.parametrize("classes", [True, False])
@pytest.mark.parametrize("batches", [True, False])
def test_the_gates_say_what_is_reused(classes: bool, batches: bool) -> None:
    gates = {"EquivalenceCache": classes, "SchedulerOpportunisticBatching": batches}
    using = default(known_plugins(REGISTRY), FeatureGates.parse(gates))
    settings = class_settings(using)
    assert (settings.classes, settings.batches) == (classes, batches)
    engine = engine_of(settings)
    decide(engine, *like(4))

    paths = engine.classes["default-scheduler"].statistics.paths
    served = DecisionPath.BATCH if batches else DecisionPath.COLUMNS
    expected = {DecisionPath.FIRST: 1, served: 3} if classes or batches else {DecisionPath.OFF: 4}
    assert paths == expected


def test_without_classes_other_changes_interrupt() -> None:
    engine = engine_of(ClassSettings(classes=False))
    decide(engine, *like(2))
    engine.handle(Applied(pod("other", node="n2", cpu=1)), 0.0)
    decide(engine, *like(2, "q"))

    assert engine.classes["default-scheduler"].statistics.flushes == {Flush.INTERRUPTED: 1}


def reports(engine: Engine) -> list[str]:
    return [each.message for each in engine.step(0.0) if isinstance(each, Report)]


def test_plugins_that_do_not_sign_are_told_by_name() -> None:
    enabled = profile(plugins={"multiPoint": {"enabled": [{"name": "Unsigned"}]}})
    engine = Engine(configuration(enabled, WITH_OUTSIDERS), WITH_OUTSIDERS)
    (report,) = reports(engine)
    engine.handle(Applied(node("a")), 0.0)
    decide(engine, *like(3))

    assert "Unsigned" in report
    unsigned = engine.classes["default-scheduler"].statistics.unsigned
    assert unsigned == {("Unsigned", "silent"): 3}


def test_a_plugin_that_does_not_sign_is_asked_for_each_pod_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enabled = profile(plugins={"multiPoint": {"enabled": [{"name": "Unsigned"}]}})
    engine = Engine(configuration(enabled, WITH_OUTSIDERS), WITH_OUTSIDERS)
    engine.handle(Applied(node("a")), 0.0)
    asked: dict[str, list[object]] = {"NodeResourcesFit": [], "Unsigned": []}
    for name, calls in asked.items():
        kind: Any = WITH_OUTSIDERS[name]
        ask = kind.filter

        def count(
            self: Any, prepared: Any, nodes: Nodes, rows: Any, ask: Any = ask, calls: Any = calls
        ) -> Any:
            calls.append(rows)
            return ask(self, prepared, nodes, rows)

        monkeypatch.setattr(kind, "filter", count)
    decide(engine, *like(3))

    assert {name: len(calls) for name, calls in asked.items()} == {
        "NodeResourcesFit": 1,
        "Unsigned": 3,
    }
    assert engine.classes["default-scheduler"].is_on


def test_a_difference_is_told_ends_reuse_and_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A filter that says less than it reads keeps its first answer."""
    engine = engine_of(ClassSettings(verify_share=1.0), nodes=1)
    monkeypatch.setattr(NodeResourcesFit, "reads", Change.NONE)
    places = decide(engine, *(pod(f"p{at}", cpu=2) for at in range(4)))
    statistics = engine.classes["default-scheduler"].statistics

    assert places == ["n0", "n0", "", ""]
    assert (statistics.verified, statistics.differences) == (2, 1)
    assert not engine.classes["default-scheduler"].is_on
    assert statistics.paths[DecisionPath.OFF] == 1


@pytest.mark.parametrize(
    ("share", "verified"), [(0.0, range(1)), (0.5, range(8, 32)), (1.0, range(39, 40))]
)
def test_a_share_of_decisions_is_verified(share: float, verified: range) -> None:
    engine = engine_of(ClassSettings(verify_share=share))
    decide(engine, *like(40))

    assert engine.classes["default-scheduler"].statistics.verified in verified


@pytest.mark.parametrize(
    "raw",
    [
        {"percentageOfNodesToScore": 50},
        profile(plugins={"score": {"disabled": [{"name": "*"}]}}),
    ],
    ids=["percentage", "no score"],
)
def test_where_not_all_nodes_are_looked_at(raw: dict[str, Any]) -> None:
    engine = engine_of(None, 120, **raw)
    decide(engine, *like(4), pod("huge", cpu=99), pod("huge2", cpu=99))

    assert engine.classes["default-scheduler"].statistics.paths.keys() == {DecisionPath.SAMPLING}
    assert len(engine.answers) == 0


def on_node(name: str, **more: Any) -> dict[str, Any]:
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    return {
        "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}},
        **more,
    }


def test_a_named_pod_yields_to_a_nominated_one() -> None:
    waiting = pod(
        "waiting",
        cpu=3,
        spec={"priority": 5, "schedulingGates": [{"name": "wait"}]},
        status={"nominatedNodeName": "a"},
    )
    told = Told(node("a", cpu=4), node("b"), waiting)

    never = {"preemptionPolicy": "Never"}
    found = told.places(
        pod("p0", cpu=2, spec=on_node("a", **never)), pod("p1", cpu=2, spec=on_node("a", **never))
    )
    assert found == {"p0": None, "p1": None}


def test_a_named_pod_that_others_turn_away() -> None:
    enabled = profile(plugins={"multiPoint": {"enabled": [{"name": "Doorkeeper"}]}})
    told = Told(*(node(name) for name in "abcd"), using=configuration(enabled, WITH_OUTSIDERS))

    assert told.places(pod("p0", spec=on_node("d"))) == {"p0": "d"}
    told.apply(node("a", spec={"unschedulable": True}))
    assert told.places(pod("p1", spec=on_node("d"))) == {"p1": None}
    told.apply(node("b", spec={"unschedulable": True}))
    assert told.places(pod("p2", spec=on_node("d"))) == {"p2": None}


def test_what_is_unused_is_dropped() -> None:
    engine = engine_of()
    decide(engine, *like(2), pod("huge", cpu=99))
    assert len(engine.answers) > 1
    for now in (61.0, 122.0, 183.0):
        engine.step(now)

    assert len(engine.answers) == 0
    assert engine.classes["default-scheduler"].statistics.flushes[Flush.UNUSED] >= 1


def test_long_annotations_are_not_remembered() -> None:
    key = "scheduling.moorage.dev/coexist-policy"
    engine = engine_of()
    decide(engine, pod("p", metadata={"annotations": {key: "x" * 5_000}}))
    signer = engine.classes["default-scheduler"]._signer

    assert len(signer._templates._known) == 0


def test_a_failure_ends_with_what_it_depends_on() -> None:
    """Nodes that come, pods that go, and places that are kept; nothing else."""
    engine = engine_of(nodes=1)
    fills = pod("fills", node="n0", cpu=3)
    engine.handle(Applied(fills), 0.0)
    paths = engine.classes["default-scheduler"].statistics.paths
    wants = [important(f"p{at}", 0, cpu=2) for at in range(8)]

    assert decide(engine, *wants[:2]) == ["", ""]
    assert paths[DecisionPath.FAILURE] == 1
    engine.handle(Applied(node("n0")), 0.0)
    assert decide(engine, wants[2]) == [""]
    assert paths[DecisionPath.FAILURE] == 2
    engine.handle(Applied(node("n1", cpu=1)), 0.0)
    assert decide(engine, wants[3]) == [""]
    assert paths[DecisionPath.FAILURE] == 2
    engine.handle(Removed(fills), 0.0)
    assert decide(engine, wants[4]) == ["n0"]


def test_a_class_without_a_row_has_prepared_for_its_reasons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Like pods fail, one is placed where there is room again, and the next fails as before."""
    engine = engine_of(nodes=1)
    decide(engine, *(pod(f"p{at}", cpu=2) for at in range(3)))
    prepare, asked = NodeResourcesFit.pre_filter, []

    def count(self: NodeResourcesFit, each: Pod, nodes: Nodes) -> Any:
        asked.append(each.name)
        return prepare(self, each, nodes)

    monkeypatch.setattr(NodeResourcesFit, "pre_filter", count)
    engine.handle(Removed(pod("p0", cpu=2, node="n0")), 0.0)

    assert decide(engine, pod("q0", cpu=2), pod("q1", cpu=2)) == ["n0", ""]
    waiting = engine.queue.get(pod("q1").uid)
    assert waiting is not None
    assert waiting.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert asked == []


def test_one_of_many_anti_affine_pods_counts_as_alone() -> None:
    engine = engine_of(nodes=4)
    spec = anti("app", "web", HOSTNAME)
    places = study_places(engine)["default-scheduler"]
    decide(engine, *like(4, labels={"app": "web"}, spec=spec))

    assert (places.alone_on_node, places.looked_at, places.longest_run) == (3, 3, 4)


def labels_seen(nodes: Nodes) -> int:
    return nodes.labels_version


def test_a_label_that_is_read_again_and_no_more_changes_the_version() -> None:
    engine = engine_of()
    nodes = engine.cluster.nodes
    before = labels_seen(nodes)
    shy = pod("shy", node="n0", spec=anti("index", "1"))
    engine.handle(Applied(shy), 0.0)
    assert labels_seen(nodes) > before
    between = labels_seen(nodes)
    engine.handle(Removed(shy), 0.0)
    assert labels_seen(nodes) > between
