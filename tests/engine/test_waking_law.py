"""Whatever would be placed if all waiting pods were tried anew is placed without a periodic flush.

Random changes happen to a small crowded cluster. Then backoffs end, and no pod that still waits may
have a place: somebody should have woken it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from msgspec import structs

from moorage.engine.cycle import Found
from moorage.framework.plugin import Plugin
from moorage.objects.coexist import ANNOTATION, DAEMONSET_AND_STATIC_PODS
from moorage.objects.node import HOSTNAME, ZONE
from moorage.objects.pod import Pod
from moorage.objects.workload import Namespace
from moorage.testing import Driver
from moorage_policies.disk_io.disk_io import DiskIO
from moorage_policies.disk_io.disk_io_resource import KIND as DISK, READ
from tests.builders import node, pod
from tests.device_builders import device_class, resource_slice
from tests.engine.driver import driver
from tests.extended_fakes import custom
from tests.storage_builders import claiming, csi_node, pv, pvc

#: Long enough for every backoff, and too short for a flush.
BACKOFFS_END = 12.0

APPS = st.sampled_from(["web", "db"])
NODES = st.sampled_from(["one", "two", "three"])
NAMESPACES = st.sampled_from(["default", "prod"])
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
def distant_terms(draw: st.DrawFn) -> dict[str, Any]:
    """A term about pods of the own namespace, or of those that it names or selects."""
    selected: dict[str, Any] = {"namespaceSelector": {"matchLabels": {"env": draw(NAMESPACES)}}}
    where = draw(st.sampled_from([{}, {"namespaces": [draw(NAMESPACES)]}, selected, selected]))
    key = draw(st.sampled_from([HOSTNAME, ZONE]))
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": draw(APPS)}}, **where}


@st.composite
def node_forms(draw: st.DrawFn) -> dict[str, Any]:
    labels = {"disk": draw(st.sampled_from(["ssd", "hdd"]))}
    if draw(st.booleans()):
        labels[ZONE] = draw(st.sampled_from(["a", "b"]))
    spec = {"taints": [TAINT]} if draw(st.integers(0, 3)) == 0 else {}
    return {"labels": labels, "spec": spec, "cpu": draw(st.sampled_from([2, 4]))}


class Play:
    """Does things to a cluster, as drawn."""

    def __init__(self, data: st.DataObject, reuse: bool, *plugins: type[Plugin]) -> None:
        gates = {"EquivalenceCache": reuse, "OpportunisticBatching": reuse}
        self.run: Driver = driver(gates=gates, plugins=plugins)
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
        doings += self._find_doings()
        doing = self._data.draw(st.sampled_from(doings))
        doing()

    def _find_doings(self) -> list[Callable[[], None]]:
        """What else may happen."""
        return []

    def _node(self) -> None:
        self.run.apply(node(self._data.draw(NODES), **self._data.draw(node_forms())))

    def _pods(self) -> None:
        form = self._data.draw(needs())
        for _ in range(self._data.draw(st.integers(1, 3))):
            self.run.apply(pod(self._name(), **form))

    def _some_placed(self) -> Pod:
        pods = self.run.engine.cluster.pods
        return pods[self._data.draw(st.sampled_from(sorted(pods)))]

    def _remove(self) -> None:
        self.run.remove(self._some_placed())

    def _relabel(self) -> None:
        placed = self._some_placed()
        self.run.apply(structs.replace(placed, labels={"app": self._data.draw(APPS)}))

    def _name(self) -> str:
        self._made += 1
        return f"p{self._made}"

    def check(self) -> None:
        engine = self.run.engine
        engine.queue.check()
        for queued in list(engine.queue):
            outcome = engine.decide(next(iter(engine.profiles.values())), queued.pod)
            assert not isinstance(outcome, Found), f"{queued.pod.name} waits, but has a place"


class ClaimPlay(Play):
    """The same with claims: of their own, shared, or for one pod alone; volumes move about."""

    def _find_doings(self) -> list[Callable[[], None]]:
        return [self._claiming, self._claiming, self._claiming, self._attach_limits, self._volume]

    def _attach_limits(self) -> None:
        self.run.apply(csi_node(self._data.draw(NODES), csi=self._data.draw(st.integers(0, 2))))

    def _volume(self) -> None:
        """A volume can be used elsewhere, or its claim is there at last."""
        name = self._data.draw(st.sampled_from(["p1", "p2", "p3", "shared"]))
        zone = self._data.draw(st.sampled_from(["a", "b", ""]))
        self.run.apply(pv(f"pv-{name}", claim=name, labels={ZONE: zone} if zone else {}))
        self.run.apply(pvc(name, volume=f"pv-{name}"))

    def _claiming(self) -> None:
        form = {"cpu": 1, "labels": {"app": self._data.draw(APPS)}}
        sort = self._data.draw(st.sampled_from(["own", "own", "own", "shared", "alone"]))
        for _ in range(self._data.draw(st.integers(1, 3))):
            name = self._name()
            claim = name if sort == "own" else sort
            modes: dict[str, Any] = {"accessModes": ["ReadWriteOncePod"]} if sort == "alone" else {}
            if sort != "shared" or self._data.draw(st.booleans()):
                self.run.apply(pv(f"pv-{claim}", claim=claim, **modes))
                self.run.apply(pvc(claim, volume=f"pv-{claim}", **modes))
            self.run.apply(claiming(claim, name=name, **form))


class RankPlay(Play):
    """The same with priorities: pods are evicted, and nominations end. Waiting pods change."""

    def _find_doings(self) -> list[Callable[[], None]]:
        doings: list[Callable[[], None]] = [self._important, self._important]
        return [*doings, self._change_waiting] if len(self.run.engine.queue) else doings

    def _important(self) -> None:
        priority = self._data.draw(st.sampled_from([1, 10, 100]))
        spec: dict[str, Any] = {"priority": priority}
        if self._data.draw(st.booleans()):
            spec["preemptionPolicy"] = "Never"
        for _ in range(self._data.draw(st.integers(1, 2))):
            self.run.apply(pod(self._name(), cpu=self._data.draw(st.integers(1, 3)), spec=spec))

    def _change_waiting(self) -> None:
        waiting = {queued.pod.name: queued.pod for queued in self.run.engine.queue}
        known = waiting[self._data.draw(st.sampled_from(sorted(waiting)))]
        if self._data.draw(st.booleans()):
            self.run.apply(structs.replace(known, labels={"app": self._data.draw(APPS)}))
        else:
            self.run.remove(known)


class NeighbourPlay(Play):
    """The same with pods that have several terms about pods of two namespaces."""

    def __init__(self, data: st.DataObject, reuse: bool) -> None:
        super().__init__(data, reuse)
        for name in ("default", "prod"):
            self.run.apply(Namespace(name=name, labels={"env": name}))

    def _find_doings(self) -> list[Callable[[], None]]:
        return [self._neighbours] * 4

    def _neighbours(self) -> None:
        drawn = self._data.draw
        side = drawn(st.sampled_from(["podAffinity", "podAntiAffinity", "podAntiAffinity"]))
        terms = drawn(st.lists(distant_terms(), min_size=1, max_size=2))
        rules = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        spec = {"affinity": {side: rules}, "preemptionPolicy": "Never"}
        form = {"namespace": drawn(NAMESPACES), "labels": {"app": drawn(APPS)}, "spec": spec}
        for _ in range(drawn(st.integers(1, 2))):
            self.run.apply(pod(self._name(), **form))


class DiskPlay(Play):
    """The same with disks that have so much bandwidth."""

    def _find_doings(self) -> list[Callable[[], None]]:
        return [self._disk, self._reading, self._reading]

    def _disk(self) -> None:
        name = self._data.draw(NODES)
        read = self._data.draw(st.sampled_from(["1Gi", "2Gi", "4Gi"]))
        spec = {"nodeName": name, "capacity": {"read": read, "write": read}}
        self.run.apply(custom(DISK, f"disk-of-{name}", spec=spec))

    def _reading(self) -> None:
        metadata = {"annotations": {READ: self._data.draw(st.sampled_from(["1Gi", "2Gi"]))}}
        for _ in range(self._data.draw(st.integers(1, 3))):
            self.run.apply(pod(self._name(), metadata=metadata, spec={"preemptionPolicy": "Never"}))


def make_disk_play(data: st.DataObject, reuse: bool) -> DiskPlay:
    return DiskPlay(data, reuse, DiskIO)


@pytest.mark.parametrize(
    ("make", "reuse"),
    [
        (Play, True),
        (Play, False),
        (ClaimPlay, True),
        (RankPlay, True),
        (NeighbourPlay, True),
        (make_disk_play, True),
    ],
)
@settings(max_examples=15)
@given(data=st.data())
def test_no_pod_that_has_a_place_waits(
    make: Callable[[st.DataObject, bool], Play], reuse: bool, data: st.DataObject
) -> None:
    play = make(data, reuse)
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


def test_a_pod_that_lacks_an_extended_resource_hears_of_devices_that_serve_it() -> None:
    run = driver(node("one", cpu=2), resource_slice("one"))
    run.apply(pod("w", **{"example.com/gpu": 1}))
    run.settle(10)
    assert run.place("w") == "unschedulable"
    run.apply(device_class("gpu", extendedResourceName="example.com/gpu"))
    run.now += BACKOFFS_END
    run.settle(10)
    assert run.place("w") != "unschedulable"
