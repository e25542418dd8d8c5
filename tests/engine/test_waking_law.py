"""Whatever would be placed if all waiting pods were tried anew is placed without a periodic flush.

Random changes happen to a small crowded cluster. Then backoffs end, and no pod that still waits may
have a place: somebody should have woken it.
"""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from msgspec import structs

from mooring.engine.cycle import Found
from mooring.objects.coexist import ANNOTATION, DAEMONSET_AND_STATIC_PODS
from mooring.objects.node import HOSTNAME, ZONE
from mooring.objects.pod import Pod
from mooring.testing import Driver
from tests.builders import node, pod
from tests.engine.driver import driver

#: Long enough for every backoff, and too short for a flush.
BACKOFFS_END = 12.0

APPS = st.sampled_from(["web", "db"])
NODES = st.sampled_from(["one", "two", "three"])
TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


def towards(app: str, key: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


@st.composite
def needs(draw: st.DrawFn) -> dict[str, Any]:
    """What keeps a pod waiting, as keywords of `pod`."""
    app, key = draw(APPS), draw(st.sampled_from([HOSTNAME, ZONE]))
    spread = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    port = {"name": "main", "ports": [{"hostPort": draw(st.integers(80, 81))}]}
    specs: list[dict[str, Any]] = [
        {},
        {"containers": [port]},
        {"affinity": {"podAffinity": towards(app, key)}},
        {"affinity": {"podAntiAffinity": towards(app, key)}},
        {"topologySpreadConstraints": [{**spread, "labelSelector": {"matchLabels": {"app": app}}}]},
        {"nodeSelector": {"disk": draw(st.sampled_from(["ssd", "hdd"]))}},
        {"tolerations": [{"key": "k", "operator": "Exists"}]},
    ]
    given: dict[str, Any] = {
        "spec": {**draw(st.sampled_from(specs)), "preemptionPolicy": "Never"},
        "labels": {"app": draw(APPS)},
    }
    if draw(st.integers(0, 4)) == 0:
        given["metadata"] = {"annotations": {ANNOTATION: DAEMONSET_AND_STATIC_PODS}}
    if "containers" not in given["spec"]:
        given["cpu"] = draw(st.sampled_from([1, 2, 3]))
    return given


@st.composite
def node_forms(draw: st.DrawFn) -> dict[str, Any]:
    labels = {"disk": draw(st.sampled_from(["ssd", "hdd"]))}
    if draw(st.booleans()):
        labels[ZONE] = draw(st.sampled_from(["a", "b"]))
    spec = {"taints": [TAINT]} if draw(st.integers(0, 3)) == 0 else {}
    return {"labels": labels, "spec": spec, "cpu": draw(st.sampled_from([2, 4]))}


class Play:
    """Does things to a cluster, as drawn."""

    def __init__(self, data: st.DataObject, reuse: bool) -> None:
        gates = {"EquivalenceCache": reuse, "OpportunisticBatching": reuse}
        self.run: Driver = driver(gates=gates)
        self._data = data
        self._made = 0

    def settle(self) -> None:
        for _ in range(4):
            self.run.now += BACKOFFS_END
            self.run.settle(300)

    def go_on(self) -> None:
        placed = sorted(self.run.engine.cluster.pods)
        doings = [self._node, self._pods, self._pods]
        if placed:
            doings += [self._remove, self._remove, self._relabel]
        doing = self._data.draw(st.sampled_from(doings))
        doing()

    def _node(self) -> None:
        self.run.apply(node(self._data.draw(NODES), **self._data.draw(node_forms())))

    def _pods(self) -> None:
        form = self._data.draw(needs())
        for _ in range(self._data.draw(st.integers(1, 3))):
            self._made += 1
            self.run.apply(pod(f"p{self._made}", **form))

    def _some_placed(self) -> Pod:
        pods = self.run.engine.cluster.pods
        return pods[self._data.draw(st.sampled_from(sorted(pods)))]

    def _remove(self) -> None:
        self.run.remove(self._some_placed())

    def _relabel(self) -> None:
        placed = self._some_placed()
        self.run.apply(structs.replace(placed, labels={"app": self._data.draw(APPS)}))

    def check(self) -> None:
        engine = self.run.engine
        engine.queue.check()
        for queued in list(engine.queue):
            outcome = engine.decide(next(iter(engine.profiles.values())), queued.pod)
            assert not isinstance(outcome, Found), f"{queued.pod.name} waits, but has a place"


@pytest.mark.parametrize("reuse", [True, False])
@settings(max_examples=30)
@given(data=st.data())
def test_no_pod_that_has_a_place_waits(reuse: bool, data: st.DataObject) -> None:
    play = Play(data, reuse)
    for _ in range(data.draw(st.integers(4, 14))):
        play.go_on()
        if data.draw(st.booleans()):
            play.settle()
    play.settle()
    play.check()


def test_a_pod_that_others_keep_away_is_woken_by_a_node() -> None:
    run = driver()
    run.apply(node("one", cpu=2))
    run.apply(pod("web", spec={"affinity": {"podAntiAffinity": towards("db", HOSTNAME)}}))
    run.settle(10)
    run.apply(pod("db", labels={"app": "db"}, spec={"preemptionPolicy": "Never"}))
    run.settle(10)
    assert [queued.pod.name for queued in run.engine.queue] == ["db"]
    run.apply(node("two", cpu=2))
    run.now += BACKOFFS_END
    run.settle(10)
    assert not list(run.engine.queue)


def test_of_many_like_pods_only_those_are_tried_that_have_a_place_and_one_more() -> None:
    run = driver()
    run.apply(node("one", cpu=2))
    run.apply(pod("first", cpu=2))
    run.settle(10)
    for number in range(40):
        run.apply(pod(f"p{number:02}", cpu=1))
    run.settle(100)
    tried = sum(queued.attempts for queued in run.engine.queue)
    run.now += BACKOFFS_END
    run.remove(pod("first", cpu=2))
    run.settle(100)
    waiting = list(run.engine.queue)
    assert sorted(queued.pod.name for queued in waiting) == [f"p{at:02}" for at in range(2, 40)]
    assert sum(queued.attempts for queued in waiting) == tried - 2 + 1
