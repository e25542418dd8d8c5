"""Like pods that need victims: what is kept for them is what each would find by itself."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.engine.actions import BindPod, EvictPod
from moorage.engine.classes.statistics import DecisionPath
from moorage.engine.events import Evicted, Removed
from moorage.objects.coexist import DAEMONSET_AND_STATIC_PODS
from moorage.objects.pod import Pod
from tests.builders import node, pod
from tests.exactness.test_traps import Told
from tests.storage_builders import DRIVER, claiming, csi_node, pv, pvc, storage_class

PORT = {"name": "main", "ports": [{"hostPort": 80}]}
NODES = ("a", "b", "c", "d", "e")
#: Longer than every backoff.
LONG = 11.0


def crowd(told: Told, *pods: Pod, waves: int = 3) -> dict[str, str]:
    """Where pods go for whom others are evicted at once; four ways of deciding have to agree."""
    runs = {each.uid: each for each in told.ways.engines["no reuse"].cluster.pods.values()}
    told.apply(*pods)
    placed: dict[str, str] = {}
    for _ in range(waves * len(pods)):
        actions = told.ways.step(told.now, 1)
        for action in actions:
            if isinstance(action, EvictPod):
                evicted = Evicted(action.pod.uid, action.preemptor.uid)
                told.ways.handle((evicted, Removed(runs[action.pod.uid])), told.now)
            elif isinstance(action, BindPod):
                placed[action.pod.name] = action.node
        told.now += 0.0 if actions else LONG
    told.ways.check()
    return placed


def full_nodes() -> list[Pod]:
    return [pod(f"low-{name}-{at}", node=name, cpu=1) for name in NODES for at in range(4)]


def test_one_look_at_all_nodes_is_enough() -> None:
    told = Told(*(node(name, cpu=4) for name in NODES), *full_nodes())
    asking = [pod(f"p{at}", cpu=3, spec={"priority": 9}) for at in range(5)]
    placed = crowd(told, *asking)

    assert sorted(placed.values()) == list(NODES)
    ways = told.ways.ways
    assert (ways[DecisionPath.FAILURE], ways[DecisionPath.NOMINATED]) == (4, 5)


def test_a_greater_pod_may_be_nominated_to_the_node_meanwhile() -> None:
    """The victims are gone, and what they leave is not for the pod that they left for."""
    told = Told(node("a", cpu=4), *(pod(f"low-{at}", node="a", cpu=1) for at in range(4)))
    told.apply(pod("p0", cpu=3, spec={"priority": 9}))
    for action in told.ways.step(told.now, 1):
        if isinstance(action, EvictPod):
            gone = pod(action.pod.name, node="a", cpu=1)
            told.ways.handle((Evicted(gone.uid, action.preemptor.uid), Removed(gone)), told.now)
    gated = {"priority": 10, "schedulingGates": [{"name": "wait"}]}
    told.apply(pod("greater", cpu=2, spec=gated, status={"nominatedNodeName": "a"}))
    told.now += LONG

    assert not any(isinstance(each, BindPod) for each in told.ways.step(told.now, 3))


def test_a_nominated_pod_goes_elsewhere_if_its_node_is_full() -> None:
    told = Told(node("a", cpu=4), node("b", cpu=4), pod("fills", node="a", cpu=3))
    nominated = pod("nominated", cpu=2, status={"nominatedNodeName": "a"})

    assert told.places(pod("first", cpu=2)) == {"first": "b"}
    assert told.places(nominated) == {"nominated": "b"}


@pytest.mark.parametrize(
    ("main", "apart"),
    [
        pytest.param(PORT, {"containers": [PORT]}, id="ports"),
        pytest.param(
            {"name": "main"}, {"coexistPolicy": DAEMONSET_AND_STATIC_PODS}, id="exclusive pods"
        ),
    ],
)
def test_rows_with_equal_figures_differ_by_their_nominated_pods(
    main: dict[str, Any], apart: dict[str, Any]
) -> None:
    large = {"containers": [{**main, "resources": {"requests": {"cpu": "2"}}}]}
    gated = {"priority": 5, "schedulingGates": [{"name": "wait"}]}
    full = {name: pod(f"full-{name}", node=name, cpu=3) for name in "ab"}
    told = Told(node("a", cpu=4), node("b", cpu=4), *full.values())
    for name, spec in (("a", {**gated, **apart}), ("b", gated)):
        told.apply(pod(f"waits-{name}", spec=spec, status={"nominatedNodeName": name}))
    asking = [pod(f"p{at}", spec=large) for at in range(3)]

    assert told.places(asking[0]) == {"p0": None}
    for name, placed in (("a", None), ("b", "b")):
        told.remove(asking.pop(0), full[name])
        assert told.places(asking[0]) == {asking[0].name: placed}


def test_a_cordoned_row_is_not_refused_for_its_nominated_pod() -> None:
    """The other row has the same figures, and is refused because of its nominated pod."""
    gated = {"priority": 5, "schedulingGates": [{"name": "wait"}]}
    told = Told(node("a", cpu=4), node("b", cpu=4))
    for name in "ab":
        told.apply(pod(f"waits-{name}", cpu=2, spec=gated, status={"nominatedNodeName": name}))
    first, *others = (pod(f"p{at}", cpu=3) for at in range(3))
    changes = (
        (pod("on-a", node="a", cpu="100m"),),
        (pod("on-b", node="b", cpu="100m"), node("b", cpu=4, spec={"unschedulable": True})),
    )

    assert told.places(first) == {"p0": None}
    for asking, changed in zip(others, changes, strict=True):
        told.apply(*changed)
        assert told.places(asking)[asking.name] is None


def test_a_row_may_be_refused_for_another_reason_than_before() -> None:
    told = Told(*(node(name, cpu=4) for name in NODES), *full_nodes())
    told.remove(*(each for each in full_nodes() if each.node_name == "b"), node("b", cpu=4))

    assert told.places(pod("first", cpu=3)) == {"first": None}
    told.apply(node("d", cpu=4, pods=1))
    assert told.places(pod("second", cpu=3))["second"] is None
    told.apply(node("c", cpu=4, spec={"unschedulable": True}))
    told.places(pod("third", cpu=3))
    assert told.ways.ways[DecisionPath.FAILURE] >= 2


def test_pods_with_a_claim_each_share_it_too() -> None:
    told = Told(storage_class(), *(node(name, cpu=4) for name in NODES), *full_nodes())
    for at in range(5):
        told.apply(pvc(f"c{at}", volume=f"v{at}"), pv(f"v{at}", claim=f"c{at}@uid-c{at}"))
    asking = [claiming(f"c{at}", name=f"p{at}", cpu=3, spec={"priority": 9}) for at in range(5)]
    placed = crowd(told, *asking)

    assert sorted(placed.values()) == list(NODES)
    assert told.ways.ways[DecisionPath.FAILURE] == 4


def test_a_pod_that_shares_the_claim_of_a_nominated_one_is_like_no_other() -> None:
    """A node takes one volume: that of the nominated pod, with whoever else uses it."""
    told = Told(storage_class(), node("a", cpu=4), csi_node("a", csi=1))
    for at in range(2):
        told.apply(pvc(f"c{at}", volume=f"v{at}"), pv(f"v{at}", claim=f"c{at}@uid-c{at}"))
    gate = {"schedulingGates": [{"name": "wait"}]}
    told.apply(claiming("c0", name="keeps", spec=gate, status={"nominatedNodeName": "a"}))

    assert told.places(claiming("c1", name="other", cpu=1)) == {"other": None}
    assert told.places(claiming("c0", name="shares", cpu=1)) == {"shares": "a"}


def test_a_claim_that_is_bound_anew_is_known_by_its_new_volume() -> None:
    """Two volumes may be the same disk."""
    told = Told(storage_class(), node("a", cpu=4), csi_node("a", csi=1))
    for name, disk in (("v0", "x"), ("v1", "y"), ("v2", "y"), ("v3", "z")):
        told.apply(pv(name, csi={"driver": DRIVER, "volumeHandle": disk}))
    for at in (0, 1, 3):
        told.apply(pvc(f"c{at}", volume=f"v{at}"))
    gate = {"schedulingGates": [{"name": "wait"}]}
    told.apply(claiming("c0", name="keeps", spec=gate, status={"nominatedNodeName": "a"}))
    told.apply(pvc("c0", volume="v2"))

    assert told.places(claiming("c3", name="other", cpu=1)) == {"other": None}
    assert told.places(claiming("c1", name="shares", cpu=1)) == {"shares": "a"}
