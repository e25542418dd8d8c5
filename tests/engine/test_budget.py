"""Pods that cost too much to be decided: they are left alone, and others go on."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.engine import budget
from moorage.engine.actions import PatchPodStatus, RecordEvent
from moorage.engine.classes.classes import ClassSettings
from moorage.objects.pod import Pod
from moorage.plugins import REGISTRY
from moorage.plugins.inter_pod_affinity import affinity_hints
from moorage.plugins.node_affinity import NodeAffinity
from tests.builders import node, pod
from tests.engine.driver import Driver, engine, only
from tests.storage_builders import claiming, pv, pvc, storage_class

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def with_terms(name: str, count: int, **more: Any) -> Pod:
    terms = [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": f"x{at}"}}}
        for at in range(count)
    ]
    return pod(name, spec={"affinity": {"podAntiAffinity": {REQUIRED: terms}}}, **more)


def with_expressions(name: str, count: int) -> Pod:
    expressions = [{"key": f"key-{at}", "operator": "Exists"} for at in range(count)]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return pod(name, spec={"affinity": {"nodeAffinity": {REQUIRED: terms}}})


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget that a pod with a few hundred terms exceeds."""
    monkeypatch.setattr(budget, "MOST_WORK", 2_000_000)


@pytest.mark.usefixtures("small")
def test_a_pod_that_is_too_costly_is_told_so_and_others_go_on() -> None:
    driver = Driver(engine())
    driver.apply(node("one", cpu=4), with_terms("greedy", 300), pod("other"))
    driver.settle()

    assert driver.place("greedy") == "error backoff"
    assert driver.engine.cluster.pod("default/other") is not None
    (event,) = [each for each in only(driver.story, RecordEvent) if each.pod.name == "greedy"]
    assert event.reason == "FailedScheduling"
    assert event.note == (
        "0/1 nodes are available: the pod's 604 rules need 5.4 million steps, 2.0 million are the "
        "most. It is tried again later."
    )
    (patch,) = only(driver.story, PatchPodStatus)
    assert patch.condition is not None
    assert (patch.condition.reason, patch.condition.message) == ("TooCostly", event.note)
    assert driver.engine.too_costly == {"default-scheduler": 1}


@pytest.mark.usefixtures("small")
def test_it_is_left_alone_for_longer_each_time() -> None:
    driver = Driver(engine())
    driver.apply(node("one", cpu=4), with_terms("greedy", 300))
    waits = []
    for _ in range(9):
        driver.settle()
        queued = driver.engine.queue.get("default/greedy")
        assert queued is not None
        waits.append(queued.expiry - driver.now)
        driver.now = queued.expiry + 1

    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


@pytest.mark.usefixtures("small")
def test_it_is_decided_once_it_costs_less(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(engine())
    driver.apply(node("one", cpu=4), with_terms("greedy", 300))
    driver.settle()
    monkeypatch.setattr(budget, "MOST_WORK", 300_000_000)
    driver.now += 30
    driver.settle()
    assert driver.place("greedy") == "error backoff"

    driver.now += 32
    driver.settle()
    assert driver.engine.cluster.pod("default/greedy") is not None


@pytest.mark.parametrize(
    ("volumes", "free", "decided"),
    [
        pytest.param(100, 0, True, id="volumes are made"),
        pytest.param(2_000, 0, False, id="too many are made"),
        pytest.param(20, 40, True, id="volumes are chosen"),
        pytest.param(100, 200, False, id="too many are compared"),
    ],
)
def test_volumes_cost_by_their_claims(volumes: int, free: int, decided: bool) -> None:
    # A pod may name one claim as often as it likes.
    claims = [f"claim-{at % 50}" for at in range(volumes)]
    driver = Driver(engine())
    driver.apply(node("one", cpu=4), storage_class(), *map(pvc, sorted(set(claims))))
    driver.apply(*(pv(f"pv-{at}") for at in range(free)), claiming(*claims, name="greedy"))
    driver.step()

    assert (driver.engine.too_costly == {}) is decided


def test_bound_claims_cost_by_their_number() -> None:
    claims = [f"claim-{at}" for at in range(40)]
    bound = [pvc(claim, volume=f"pv-{claim}") for claim in claims]
    driver = Driver(engine())
    driver.apply(node("one", cpu=4), storage_class(), *bound)
    cluster = driver.engine.cluster

    few, many = (budget.work(claiming(*claims * times), cluster) for times in (1, 100))
    assert few < budget.MOST_WORK // 100
    assert many > 90 * few


@pytest.mark.usefixtures("small")
def test_reuse_makes_no_difference() -> None:
    stories = []
    for reuse in (ClassSettings(), ClassSettings(classes=False, batches=False)):
        made = engine()
        driver = Driver(type(made)(made.configuration, REGISTRY, reuse))
        driver.apply(node("one", cpu=4), node("two", cpu=4))
        for at in range(3):
            driver.apply(with_terms(f"greedy-{at}", 300), with_terms(f"modest-{at}", 40))
        driver.settle()
        stories.append(driver.story)

    assert stories[0] == stories[1]


def test_pods_with_few_rules_are_never_too_costly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MOST_WORK", 0)
    driver = Driver(engine())
    driver.apply(node("one", cpu=4), with_terms("modest", 40))
    driver.settle()

    assert driver.engine.cluster.pod("default/modest") is not None


def test_no_plugin_is_asked_whether_an_event_helps_a_pod_with_many_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    suits = NodeAffinity._suits

    def counting(self: NodeAffinity, spec: Any, on: Any) -> bool:
        asked.append(on.name)
        return suits(self, spec, on)

    monkeypatch.setattr(NodeAffinity, "_suits", counting)
    driver = Driver(engine())
    driver.apply(node("one", cpu=4), with_expressions("greedy", 500))
    driver.settle()
    assert driver.place("greedy") == "unschedulable"
    asked.clear()
    driver.apply(node("two", cpu=4))

    assert asked == []
    assert driver.place("greedy") == "error backoff"
    driver.now += 62
    driver.settle()
    assert driver.place("greedy") == "unschedulable"


def test_pods_with_many_rules_are_not_remembered() -> None:
    driver = Driver(engine())
    driver.apply(node("one", cpu=4), node("two", cpu=4), with_terms("greedy", 200))
    driver.settle()

    reuse = driver.engine.classes["default-scheduler"]
    assert len(reuse) == 0
    assert not len(driver.engine.answers)
    assert not len(reuse._signer._templates._known)


def test_what_was_worked_out_is_dropped_when_nobody_asks() -> None:
    driver = Driver(engine())
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    driver.apply(node("one", cpu=4, labels={"zone": "a"}), node("two", labels={"zone": "b"}))
    for name in ("first", "second"):
        spec = {"topologySpreadConstraints": [spread]}
        driver.apply(pod(name, labels={"app": "a"}, spec=spec))
    driver.settle()
    state, reuse = driver.engine.cluster._state, driver.engine.classes["default-scheduler"]
    assert len(reuse) == 1
    assert len(list(state.tallies)) == 1
    assert "zone" in {column.key for column in state.labels.columns}

    for _ in range(3):
        driver.now += 61
        driver.step()

    assert len(reuse) == 0
    assert not len(reuse._signer._templates._known)
    assert not list(state.tallies)
    assert "zone" not in {column.key for column in state.labels.columns}


def test_a_pod_with_many_terms_that_leaves_is_not_compared_with_all_that_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[int] = []

    def matches(terms: tuple[Any, ...], _: Pod) -> bool:
        compared.append(len(terms))
        return False

    monkeypatch.setattr(affinity_hints, "_matches_any", matches)
    waiting = with_terms("waiting", 1)

    assert affinity_hints.pod_helps(waiting, with_terms("gone", 300, node="one"), None)
    assert not affinity_hints.pod_helps(waiting, with_terms("gone", 9, node="one"), None)
    assert compared == [1, 1, 9]
