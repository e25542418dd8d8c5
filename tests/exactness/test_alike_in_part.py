"""Pods that are like no other share the answers of the plugins that sign them alike."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.engine import Engine
from moorage.engine.classes.statistics import DecisionPath
from moorage.engine.cycle import EVERY_NODE
from moorage.framework.attempt import Failed
from moorage.objects.node import HOSTNAME, ZONE
from moorage.objects.pod import Pod
from moorage.plugins.volumes.volume_claims import claims_of
from tests.builders import node, pod
from tests.exactness.four_ways import FourWays, configuration
from tests.exactness.test_traps import Told, anti, outcomes
from tests.storage_builders import claiming, csi_node, pv, pvc
from tests.strategies import PREFERRED, REQUIRED

DEFAULT = "default-scheduler"


class ToldInTurn(Told):
    """Engines that say how pods were decided."""

    def __init__(self, *objects: Any) -> None:
        super().__init__()
        self.ways = FourWays(configuration())
        self.apply(*objects)

    @property
    def engine(self) -> Engine:
        return self.ways.engines["classes and batches"]

    @property
    def paths(self) -> dict[DecisionPath, int]:
        return dict(self.engine.classes[DEFAULT].statistics.paths)


def near(value: str, kind: str = "podAffinity") -> dict[str, Any]:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"color": value}}}
    return {"affinity": {kind: {REQUIRED: [term]}}}


def drawn_to(value: str) -> dict[str, Any]:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"color": value}}}
    weighted = {"weight": 100, "podAffinityTerm": term}
    return {"affinity": {"podAffinity": {PREFERRED: [weighted]}}}


def colored(name: str, color: str, **given: Any) -> Pod:
    return pod(name, labels={"color": color}, **given)


@pytest.fixture
def told() -> ToldInTurn:
    """Two nodes; one runs a red pod, the other a blue pod that repels green ones."""
    return ToldInTurn(
        node("a", labels={HOSTNAME: "a", ZONE: "z"}),
        node("b", labels={HOSTNAME: "b", ZONE: "y"}),
        colored("red", "red", node="a"),
        colored("blue", "blue", node="b", spec=anti("color", "green")),
    )


def test_unlike_pods_are_decided_by_one_class(told: ToldInTurn) -> None:
    found = told.places(*(colored(f"p{at}", f"color-{at}") for at in range(6)))

    assert set(found.values()) == {"a", "b"}
    assert told.paths == {DecisionPath.FIRST: 1, DecisionPath.BATCH: 5}
    assert len(told.engine.classes[DEFAULT]) == 1


def test_each_is_asked_about_by_those_that_tell_it_from_the_last(told: ToldInTurn) -> None:
    found = told.places(
        colored("p0", "x"),
        colored("p1", "y"),
        pod("near red", spec=near("red")),
        pod("near blue", spec=near("blue")),
        colored("green", "green"),
        pod("near nobody", spec=near("nobody")),
        pod("far from red", spec=near("red", "podAntiAffinity")),
        pod("far from both", spec=near("blue", "podAntiAffinity")),
    )

    del found["p0"], found["p1"]
    assert found == {
        "near red": "a",
        "near blue": "b",
        "green": "a",
        "near nobody": None,
        "far from red": "b",
        "far from both": "a",
    }
    assert DecisionPath.COLUMNS in told.paths


@pytest.mark.parametrize(("color", "place"), [("red", "a"), ("blue", "b")])
def test_a_preference_counts_for_the_pod_that_has_it(
    told: ToldInTurn, color: str, place: str
) -> None:
    told.places(colored("p0", "x"), colored("p1", "y"))

    assert told.places(pod("drawn", spec=drawn_to(color))) == {"drawn": place}
    found = told.places(*(colored(f"q{at}", f"color-{at}") for at in range(4)))
    assert set(found.values()) == {"a", "b"}


def test_a_pod_that_asks_for_more_shares_nothing_with_others(told: ToldInTurn) -> None:
    told.places(colored("p0", "x"), colored("p1", "y"))

    assert told.places(colored("large", "z", cpu=1_000)) == {"large": None}


def test_every_node_is_rejected_by_the_first_filter_that_rejects_it(told: ToldInTurn) -> None:
    """The reasons of a class are those of all filters in their order."""
    told.apply(node("c", spec={"unschedulable": True}, labels={HOSTNAME: "c"}))
    told.places(colored("p0", "x"), colored("p1", "y"))

    # Messages are compared, too.
    assert told.places(pod("nowhere", spec=near("nobody"))) == {"nowhere": None}


def test_changes_are_seen_by_those_that_read_them(told: ToldInTurn) -> None:
    told.places(colored("p0", "x"), colored("p1", "y"))
    told.apply(node("a", spec={"unschedulable": True}, labels={HOSTNAME: "a", ZONE: "z"}))

    assert told.places(colored("p2", "z")) == {"p2": "b"}
    assert told.places(pod("near red", spec=near("red"))) == {"near red": None}
    told.apply(node("a", labels={HOSTNAME: "a", ZONE: "z"}))
    assert told.places(pod("near red too", spec=near("red")))["near red too"] == "a"


@pytest.mark.parametrize(("color", "place"), [("red", "a"), ("blue", "b")])
def test_a_pod_that_fitted_nowhere_has_its_preference_when_it_fits(
    told: ToldInTurn, color: str, place: str
) -> None:
    """Scores are not asked about it while it fits nowhere; the pod before it had no terms."""
    told.places(colored("p0", "x"), colored("p1", "y"))
    wanted, preferred = near("white")["affinity"], drawn_to(color)["affinity"]
    affinity = {"podAffinity": wanted["podAffinity"] | preferred["podAffinity"]}
    assert told.places(pod("drawn", spec={"affinity": affinity})) == {"drawn": None}

    told.apply(*(colored(f"white {each}", "white", node=each) for each in "ab"))
    told.now += 10.0
    assert dict(outcomes(told.ways.step(told.now, 1))) == {"drawn": place}
    told.ways.check()


# Pods with volumes


def own_claim(name: str, mode: str = "ReadWriteOncePod") -> list[Any]:
    """A claim of which only one pod at a time can make use, and its volume."""
    volume = pv(f"pv-{name}", claim=name, accessModes=[mode])
    return [volume, pvc(name, volume=volume.name, accessModes=[mode])]


def test_pods_with_claims_that_nobody_else_may_use_are_decided_by_one_class(
    told: ToldInTurn,
) -> None:
    names = [f"c{at}" for at in range(6)]
    told.apply(*(each for name in names for each in own_claim(name)))

    found = told.places(*(claiming(name, name=f"p-{name}") for name in names))
    assert set(found.values()) == {"a", "b"}
    assert told.paths[DecisionPath.FIRST] == 1
    assert len(told.engine.classes[DEFAULT]) == 1


def test_each_is_asked_about_its_own_claim(told: ToldInTurn) -> None:
    names = [f"c{at}" for at in range(4)]
    told.apply(*(each for name in names for each in own_claim(name)))
    told.places(*(claiming(name, name=f"p-{name}") for name in names[:3]))

    found = told.places(*(claiming(name, name=f"q-{name}") for name in names))
    assert found.pop("q-c3") in ("a", "b")
    assert set(found.values()) == {None}
    told.remove(claiming("c1", name="p-c1"))
    told.now += 60
    assert set(told.places(claiming("c2", name="r-c2"), pod("other"))) == {"q-c1", "r-c2"}


def test_identical_pods_are_decided_with_those_that_differ_for_wide_plugins(
    told: ToldInTurn,
) -> None:
    told.places(colored("p0", "x"), colored("p1", "y"))

    told.places(*(colored(f"q{at}", "z") for at in range(20)))
    assert len(told.engine.classes[DEFAULT]) == 1


def test_what_is_prepared_for_a_failed_pod_is_about_its_own_volume(told: ToldInTurn) -> None:
    names = [f"c{at}" for at in range(4)]
    told.apply(csi_node("a", csi=1), csi_node("b", csi=1))
    told.apply(*(each for name in names for each in own_claim(name, "ReadWriteOnce")))
    told.places(*(claiming(name, name=f"p-{name}") for name in names[:3]))
    classes, nodes = told.engine.classes[DEFAULT], told.engine.cluster.nodes

    told.remove(claiming("c0", name="p-c0"))
    told.now += 60
    assert set(told.places(pod("other"))) == {"p-c2"}
    last = claiming("c3", name="p-c3")
    failed = classes.decide(last, EVERY_NODE)
    assert isinstance(failed, Failed)
    claims = claims_of(last, nodes.storage)
    assert failed.pre_filtered.prepared["VolumeBinding"] == claims


def test_a_pod_with_a_claim_that_asks_for_more_shares_nothing_with_others(
    told: ToldInTurn,
) -> None:
    names = [f"c{at}" for at in range(3)]
    told.apply(*(each for name in names for each in own_claim(name)))
    told.places(*(claiming(name, name=f"p-{name}") for name in names[:2]))

    assert told.places(claiming("c2", name="large", cpu=1_000)) == {"large": None}
