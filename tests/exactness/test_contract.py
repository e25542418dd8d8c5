"""Plugins of others that keep every promise: with reuse on and off, decisions are the same.

Each plugin reads something that the built-in ones do not read, declares it, and signs it.
"""

from __future__ import annotations

import gc

import msgspec
import pytest

from moorage.config import Configuration
from moorage.engine.actions import RecordEvent, Report
from moorage.engine.classes.classes import ClassSettings
from moorage.engine.engine import Engine
from moorage.engine.events import Applied
from moorage.framework.attempt import Failed
from moorage.objects.kinds import Object
from moorage.objects.pod import Pod
from moorage.objects.selector import equality
from moorage.objects.workload import ReplicaSet, Service, StatefulSet
from moorage.simulate.place_study import study_places
from tests.builders import node, pod
from tests.exactness.four_ways import FourWays, configuration, profile
from tests.exactness.honest_plugins import WITH_HONEST
from tests.exactness.test_traps import Told, anti
from tests.registered import REGISTRY


def using(plugin: str, **more: object) -> Configuration:
    enabled = profile(plugins={"multiPoint": {"enabled": [{"name": plugin, "weight": 50}]}}, **more)
    return configuration(enabled, WITH_HONEST)


class Contract(Told):
    """Four engines with one plugin of others."""

    def __init__(self, plugin: str, *objects: Object) -> None:
        self.ways = FourWays(using(plugin), WITH_HONEST)
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
    assert all(found[f"web-{at}"] not in (None, f"n{at}") for at in range(3))


def test_a_plugin_that_signs_statuses_is_asked() -> None:
    told = Contract("Statuses", node("n1"))
    failed = {"conditions": [{"type": "PodScheduled", "status": "False"}]}

    assert told.places(pod("p0"), pod("p1")) == {"p0": "n1", "p1": "n1"}
    assert told.places(pod("p2", status=failed)) == {"p2": None}


@pytest.mark.parametrize("team", ["odd", "list"])
def test_a_plugin_that_cannot_sign_is_named_and_only_its_pods_are_slow(team: str) -> None:
    engine = Engine(using("Tired"), WITH_HONEST)
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
    gc.collect()
    before = sum(isinstance(each, Failed) for each in gc.get_objects())
    engine = Engine(configuration({"percentageOfNodesToScore": 50}), REGISTRY)
    for at in range(120):
        engine.handle(Applied(node(f"n{at}")), 0.0)
    for at in range(30):
        engine.handle(Applied(pod("huge", cpu=99, labels={"try": str(at)})), at * 400.0)
        other = equality({"app": f"other-{at}"})
        engine.handle(Applied(Service(namespace="x", name=f"s{at}", selector=other)), at * 400.0)
        engine.step(at * 400.0)

    gc.collect()
    assert sum(isinstance(each, Failed) for each in gc.get_objects()) <= before + 1


@pytest.mark.parametrize("spec", [anti("app", "web"), {}], ids=["anti-affinity", "ports"])
def test_the_share_of_one_pod_per_node_means_the_same(spec: dict[str, object]) -> None:
    shares = []
    for reuse in (True, False):
        engine = Engine(configuration(), REGISTRY, ClassSettings(reuse, reuse))
        places = study_places(engine)["default-scheduler"]
        for at in range(6):
            engine.handle(Applied(node(f"n{at}", cpu=1)), 0.0)
        for at in range(9):
            engine.handle(Applied(pod(f"p{at}", labels={"app": "web"}, spec=spec, cpu="600m")), 0.0)
            engine.step(0.0)
        shares.append((places.alone_on_node, places.looked_at))

    assert shares[0] == shares[1]
    assert shares[0][0] >= 5
