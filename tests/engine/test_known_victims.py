"""Victims that are kept for identical pods are those that a look at every node finds."""

from __future__ import annotations

from collections import Counter
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from msgspec import structs

from moorage.engine import Engine
from moorage.engine.cycle import decide
from moorage.framework.attempt import Failed
from moorage.framework.plugin import UNSIGNABLE
from moorage.objects.node import HOSTNAME
from moorage.objects.pod import Pod
from moorage.objects.selector import equality
from moorage.objects.workload import PodDisruptionBudget
from moorage.plugins.preemption.default_preemption import (
    DefaultPreemption,
    DefaultPreemptionArgs,
)
from moorage.plugins.preemption.known_victims import VictimColumns
from moorage.plugins.volumes.volume_binding import VolumeBinding
from tests.builders import node, pod
from tests.engine.driver import engine
from tests.storage_builders import claiming, pv, pvc

NODES = ("n0", "n1", "n2", "n3", "n4")
ASKS = pod("asks", cpu=3, spec={"priority": 9})


class Changes:
    """Changes a cluster, as drawn, in whatever may make other pods victims."""

    def __init__(self, data: st.DataObject, of: Engine) -> None:
        self._data = data
        self._engine = of
        self._made = 0
        for name in NODES:
            of.cluster.put_node(node(name, cpu=4))
            for _ in range(3):
                self._add(name)

    def go_on(self) -> None:
        doings = (
            self._place,
            self._remove,
            self._start,
            self._nominate,
            self._resize,
            self._budget,
        )
        self._data.draw(st.sampled_from(doings))()

    def _draw(self, *choices: Any) -> Any:
        return self._data.draw(st.sampled_from(choices))

    def _add(self, on: str) -> None:
        self._made += 1
        spec = {"priority": self._draw(0, 1, 2, 9)}
        labels = {"app": self._draw("web", "db")}
        cluster = self._engine.cluster
        name = f"p{self._made}"
        cluster.put_pod(pod(name, node=on, cpu=self._draw(1, 2), spec=spec, labels=labels))

    def _place(self) -> None:
        self._add(self._draw(*NODES))

    def _some(self) -> Pod | None:
        pods = self._engine.cluster.pods
        return pods[self._draw(*sorted(pods))] if pods else None

    def _remove(self) -> None:
        some = self._some()
        if some is not None:
            self._engine.cluster.remove_pod(some.uid)

    def _start(self) -> None:
        some = self._some()
        if some is not None:
            began = pod("x", status={"startTime": f"2024-01-01T00:00:0{self._draw(1, 2, 3)}Z"})
            self._engine.cluster.put_pod(structs.replace(some, status=began.status))

    def _nominate(self) -> None:
        other = pod(self._draw("a", "b"), cpu=1, spec={"priority": self._draw(5, 9)})
        self._engine.cluster.nominate(other, self._draw("", *NODES))

    def _resize(self) -> None:
        form = {"labels": {"zone": self._draw("a", "b")}, "cpu": self._draw(1, 4, 5)}
        self._engine.cluster.put_node(node(self._draw(*NODES), **form))

    def _budget(self) -> None:
        self._engine.cluster.put_workload(
            PodDisruptionBudget(
                namespace="default",
                name="web",
                selector=equality({"app": "web"}),
                disruptions_allowed=self._draw(0, 1, 2),
            )
        )


def found(plugin: DefaultPreemption, of: Engine, asks: Pod) -> list[Any] | None:
    """The candidates that a plugin weighs; None if the pod has a place."""
    profile = of.profiles["default-scheduler"]
    outcome = decide(profile, asks, of.cluster.nodes)
    if not isinstance(outcome, Failed):
        return None
    reasons: Counter[str] = Counter()
    weighed = plugin.candidates(asks, outcome, of.cluster.nodes, profile, reasons)
    columns = (weighed.rows, *weighed.columns)
    victims = [[each.uid for each in weighed.victims(at)] for at in range(len(weighed))]
    best = weighed.best() if len(weighed) else reasons
    return [*(np.asarray(each).tolist() for each in columns), victims, best]


@settings(max_examples=40)
@given(data=st.data(), wanted=st.integers(1, 5))
def test_what_is_kept_is_what_a_look_finds(data: st.DataObject, wanted: int) -> None:
    of = engine()
    changes = Changes(data, of)
    args = DefaultPreemptionArgs(0, wanted)
    keeping = DefaultPreemption(args)
    for at in range(data.draw(st.integers(3, 12))):
        asks = structs.replace(ASKS, name=f"asks-{at}", uid=f"asks-{at}")
        assert found(keeping, of, asks) == found(DefaultPreemption(args), of, asks)
        changes.go_on()


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that are looked at."""
    rows_seen: list[int] = []
    learn = VictimColumns._learn

    def note(self: VictimColumns, run: Any, rows: Any) -> None:
        rows_seen.extend(rows.tolist())
        learn(self, run, rows)

    monkeypatch.setattr(VictimColumns, "_learn", note)
    return rows_seen


def crowded() -> Engine:
    """Nodes on which somebody has to go for whoever asks."""
    of = engine()
    for name in NODES:
        of.cluster.put_node(node(name, cpu=3, labels={HOSTNAME: name}))
        of.cluster.put_pod(pod(f"on-{name}", node=name, cpu=2))
    return of


def asks_with_volume(name: str, of: Engine, *hosts: str) -> Pod:
    """A pod with a claim of its own, whose volume these nodes can use, or all."""
    of.cluster.put_storage(pv(f"pv-{name}", claim=f"claim-{name}", hosts=hosts))
    of.cluster.put_storage(pvc(f"claim-{name}", volume=f"pv-{name}"))
    asks = claiming(f"claim-{name}", name=name, cpu=3)
    return structs.replace(asks, spec=structs.replace(asks.spec, priority=9))


def test_pods_with_a_volume_each_share_what_is_kept(learned: list[int]) -> None:
    of = crowded()
    asking = [asks_with_volume(f"asks-{at}", of) for at in range(2)]
    plugin = DefaultPreemption(DefaultPreemptionArgs())
    assert found(plugin, of, asking[0])
    assert sorted(learned) == [0, 1, 2, 3, 4]

    learned.clear()
    again = found(plugin, of, asking[1])
    assert not learned
    assert again == found(DefaultPreemption(DefaultPreemptionArgs()), of, asking[1])


def test_pods_of_which_a_filter_does_not_say_what_it_reads_share_nothing(
    learned: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VolumeBinding, "sign", lambda *_: UNSIGNABLE)
    of = crowded()
    asking = [asks_with_volume(f"asks-{at}", of) for at in range(2)]
    plugin = DefaultPreemption(DefaultPreemptionArgs())
    for asks in asking:
        learned.clear()
        assert found(plugin, of, asks)
        assert sorted(learned) == [0, 1, 2, 3, 4]


def test_pods_whose_volumes_are_elsewhere_share_nothing() -> None:
    of = crowded()
    hosts = ("n1",), ("n2", "n3"), ()
    asking = [asks_with_volume(f"asks-{at}", of, *each) for at, each in enumerate(hosts)]
    plugin = DefaultPreemption(DefaultPreemptionArgs())
    for asks in (*asking, *asking):
        assert found(plugin, of, asks) == found(
            DefaultPreemption(DefaultPreemptionArgs()), of, asks
        )


def test_rows_that_did_not_change_are_not_looked_at_again(learned: list[int]) -> None:
    of = crowded()
    plugin = DefaultPreemption(DefaultPreemptionArgs())
    assert found(plugin, of, ASKS)
    assert sorted(learned) == [0, 1, 2, 3, 4]

    learned.clear()
    of.cluster.remove_pod("default/on-n3")
    of.cluster.put_pod(pod("new", node="n3", cpu=2))
    assert found(plugin, of, ASKS)
    assert learned == [of.cluster.nodes.row("n3")]
