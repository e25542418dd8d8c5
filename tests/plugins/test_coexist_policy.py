"""CoexistPolicy, the plugin."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from moorage.cluster import Change, Cluster, WhatIf
from moorage.framework.coexist_ledgers import EXCLUSIVE_PODS, ORDINARY_PODS
from moorage.framework.status import Code, Rejected
from moorage.framework.wakeups import Action, Resource
from moorage.objects.coexist import ANNOTATION, EXCLUSIVE_THERE, OTHERS_THERE, conflict
from moorage.objects.pod import Pod
from moorage.plugins.coexist_policy import CoexistPolicy, CoexistPolicyArgs
from tests.builders import EMPTY, cluster, node, pod
from tests.coexisting import annotated, daemon, exclusive, exclusive_daemon, static
from tests.plugins.asking import Rejections, codes, listens, rejections, scores, wakes
from tests.strategies import clusters, pods

PLUGIN = CoexistPolicy()
SMALLEST = CoexistPolicy(CoexistPolicyArgs(prefer_smallest_node=True))
REPELLED = (f"node(s) {EXCLUSIVE_THERE}",)
IN_USE = (f"node(s) {OTHERS_THERE}",)
UNKNOWN = pod(spec={"coexistPolicy": "Alone"})


@pytest.fixture
def in_use() -> Cluster:
    """Nodes with one pod each, and one without any."""
    return cluster(
        *(node(name) for name in ("empty", "alone", "shared", "daemons", "lone-daemon")),
        exclusive("db", "alone"),
        pod("web", node="shared"),
        daemon("agent", "daemons"),
        static("proxy", "daemons"),
        exclusive_daemon("greedy", "lone-daemon"),
    )


@pytest.mark.parametrize(
    ("asks", "rejected"),
    [
        pytest.param(
            pod(), {"alone": REPELLED, "lone-daemon": REPELLED}, id="an ordinary pod keeps off"
        ),
        pytest.param(
            exclusive(),
            {"alone": REPELLED, "lone-daemon": REPELLED, "shared": IN_USE},
            id="an exclusive pod goes where only daemonset and static pods are",
        ),
        pytest.param(
            annotated(),
            {"alone": REPELLED, "lone-daemon": REPELLED, "shared": IN_USE},
            id="the annotation says the same",
        ),
        pytest.param(daemon(), None, id="a daemonset pod goes everywhere"),
        pytest.param(static(), None, id="a static pod goes everywhere"),
        pytest.param(
            exclusive_daemon(),
            {"alone": IN_USE, "shared": IN_USE},
            id="an exclusive daemonset pod is bound by its own policy",
        ),
    ],
)
def test_filter(asks: Pod, rejected: Rejections | None, in_use: Cluster) -> None:
    assert rejections(PLUGIN, asks, in_use) == rejected


@pytest.mark.parametrize("asks", [pod(), exclusive(), exclusive_daemon()])
def test_evicting_pods_helps(asks: Pod, in_use: Cluster) -> None:
    assert set(codes(PLUGIN, asks, in_use).values()) == {Code.UNSCHEDULABLE}


def test_a_node_that_came_to_be_shared_repels_everybody_but_daemons() -> None:
    both = cluster(node("n"), exclusive("db", "n"), pod("web", node="n"))

    assert rejections(PLUGIN, pod(), both) == {"n": REPELLED}
    assert rejections(PLUGIN, exclusive(), both) == {"n": REPELLED}
    assert rejections(PLUGIN, daemon(), both) is None


@given(clusters(focus="CoexistPolicy"), pods(focus="CoexistPolicy"))
def test_columns_say_what_the_kubelet_would(made: Cluster, asks: Pod) -> None:
    """The one definition, pod by pod, against the counts."""
    prepared = PLUGIN.pre_filter(asks, made.nodes)
    if isinstance(prepared, Rejected):
        return
    found = rejections(PLUGIN, asks, made) or {}
    expected = {}
    for row in made.nodes.rows.tolist():
        here = [conflict(asks, other) for other in made.nodes.pods(row).values()]
        reasons = {f"node(s) {why}" for why in here if why}
        if reasons:
            # Whoever is repelled need not hear that it would have repelled as well.
            expected[made.nodes.name(row)] = (max(reasons, key=lambda why: why in REPELLED),)
    assert found == expected


# Skipping


@pytest.mark.parametrize(
    ("asks", "skipped"),
    [
        pytest.param(pod(), False, id="an ordinary pod is concerned"),
        pytest.param(exclusive(), False, id="the pod is"),
        pytest.param(daemon(), True, id="a daemonset pod never is"),
        pytest.param(UNKNOWN, False, id="a wrong policy is told"),
    ],
)
def test_which_pods_are_skipped(asks: Pod, skipped: bool) -> None:
    plain = cluster(node("n"), pod("web", node="n"), daemon("agent", "n"))
    assert (PLUGIN.pre_filter(asks, plain.nodes) is None) == skipped


@pytest.mark.parametrize(
    ("says", "where"),
    [
        pytest.param({"spec": {"coexistPolicy": "Alone"}}, "spec.coexistPolicy", id="field"),
        pytest.param(
            {"metadata": {"annotations": {ANNOTATION: "Alone"}}},
            f"annotation {ANNOTATION}",
            id="annotation",
        ),
    ],
)
def test_an_unknown_policy_is_unschedulable(says: dict[str, Any], where: str) -> None:
    refused = PLUGIN.pre_filter(pod(**says), EMPTY)

    told = f'pod failed CoexistPolicy: {where} must be Any or DaemonsetAndStaticPods, got "Alone"'
    assert refused == Rejected(Code.UNRESOLVABLE, (told,))


# What if


def test_what_if_pods_come_and_go(in_use: Cluster) -> None:
    """Preemption and nominated pods: the rows as they would be."""
    nodes = in_use.nodes
    what_if = WhatIf(nodes)
    rows = {name: nodes.row(name) or 0 for name in ("alone", "empty", "shared")}
    what_if.remove_pod(exclusive("db", "alone"), rows["alone"])
    what_if.remove_pod(pod("web", node="shared"), rows["shared"])
    what_if.add_pod(exclusive("x"), rows["empty"])

    prepared = PLUGIN.pre_filter(exclusive("e"), nodes)
    assert prepared is not None
    assert not isinstance(prepared, Rejected)
    there = PLUGIN.filter(prepared, what_if, what_if.everything).rejected
    here = PLUGIN.filter(prepared, nodes, nodes.everything).rejected
    assert {name: (bool(here[row]), bool(there[row])) for name, row in rows.items()} == {
        "alone": (True, False),
        "empty": (False, True),
        "shared": (True, False),
    }
    again = WhatIf(what_if)
    again.remove_pod(exclusive("x"), rows["empty"])
    assert not PLUGIN.filter(prepared, again, again.everything).rejected[rows["empty"]]
    assert PLUGIN.filter(prepared, what_if, what_if.everything).rejected[rows["empty"]]


# Like pods


def test_what_tells_pods_apart() -> None:
    different = [pod(), exclusive(), daemon(), exclusive_daemon(), UNKNOWN]
    assert len({PLUGIN.sign(each, EMPTY) for each in different}) == len(different)
    assert PLUGIN.sign(annotated(), EMPTY) == PLUGIN.sign(exclusive(), EMPTY)
    assert PLUGIN.sign(static(), EMPTY) == PLUGIN.sign(daemon(), EMPTY)


@pytest.mark.parametrize(
    ("asks", "watched"),
    [
        pytest.param(pod(), EXCLUSIVE_PODS.change, id="ordinary"),
        pytest.param(exclusive(), EXCLUSIVE_PODS.change | ORDINARY_PODS.change, id="exclusive"),
        pytest.param(daemon(), Change.NONE, id="daemonset"),
        pytest.param(exclusive_daemon(), ORDINARY_PODS.change, id="exclusive daemonset"),
    ],
)
def test_a_pod_watches_those_who_can_be_in_its_way(asks: Pod, watched: Change) -> None:
    assert PLUGIN.watch(asks, EMPTY) == watched
    sized = SMALLEST.watch(asks, EMPTY) & Change.ALLOCATABLE
    assert bool(sized) == bool(watched & ORDINARY_PODS.change)


# Scoring


def test_the_smallest_node_scores_best() -> None:
    sizes = cluster(
        node("small", cpu=2, memory="8Gi"),
        node("medium", cpu=4, memory="16Gi"),
        node("large", cpu=64, memory="256Gi"),
        node("roomy", cpu=4, memory="32Gi"),
    )

    found = scores(SMALLEST, exclusive(), sizes)
    assert found == {"small": 92, "medium": 84, "large": 52, "roomy": 80}


@pytest.mark.parametrize(
    ("size", "score"),
    [
        pytest.param({"cpu": "10m", "memory": "1Mi"}, 100, id="tiny"),
        pytest.param({"cpu": 1, "memory": "4Gi"}, 100, id="one core"),
        pytest.param({"cpu": 0, "memory": 0}, 100, id="nothing"),
        pytest.param({"cpu": "9E", "memory": "9E"}, 0, id="absurd"),
    ],
)
def test_the_ends_of_the_scale(size: dict[str, str | int], score: int) -> None:
    assert scores(SMALLEST, exclusive(), cluster(node("n", **size))) == {"n": score}


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_a_larger_node_never_scores_better(one: int, other: int) -> None:
    small, large = sorted((one, other))
    both = cluster(node("small", cpu=f"{small}m"), node("large", cpu=f"{large}m"))
    found = scores(SMALLEST, exclusive(), both)
    assert found is not None
    assert found["small"] >= found["large"]


@pytest.mark.parametrize(
    ("plugin", "asks"),
    [
        pytest.param(PLUGIN, exclusive(), id="only on request"),
        pytest.param(SMALLEST, pod(), id="only for exclusive pods"),
    ],
)
def test_nothing_else_is_scored(plugin: CoexistPolicy, asks: Pod) -> None:
    assert scores(plugin, asks, cluster(node("n"))) is None


def test_args() -> None:
    assert msgspec.convert({"preferSmallestNode": True}, CoexistPolicyArgs).prefer_smallest_node


# Waking


def test_it_listens_to_pods_and_new_nodes() -> None:
    assert listens(PLUGIN) == {
        (Resource.POD, Action.DELETE),
        (Resource.POD, Action.UPDATE),
        (Resource.NODE, Action.ADD),
    }


@pytest.mark.parametrize(
    ("waits", "gone", "woken"),
    [
        pytest.param(pod(), exclusive("g", "n"), True, id="an exclusive pod is gone"),
        pytest.param(pod(), pod("g", node="n"), False, id="it was in nobody's way"),
        pytest.param(exclusive(), pod("g", node="n"), True, id="an ordinary pod is gone"),
        pytest.param(exclusive(), daemon("g", "n"), False, id="a daemonset pod never was"),
        pytest.param(
            exclusive(),
            pod("g", status={"nominatedNodeName": "n"}),
            True,
            id="a place is no longer kept",
        ),
        pytest.param(exclusive(), pod("g"), False, id="it had no place"),
        pytest.param(UNKNOWN, exclusive("g", "n"), False, id="its policy is wrong"),
    ],
)
def test_waking_after_a_pod_is_gone(waits: Pod, gone: Pod, woken: bool) -> None:
    assert wakes(PLUGIN, Resource.ASSIGNED_POD, Action.DELETE, pod=waits, old=gone) == woken


@pytest.mark.parametrize(
    ("waits", "old", "new", "woken"),
    [
        pytest.param(pod(), annotated("o", "n"), pod("o", node="n"), True, id="tolerates others"),
        pytest.param(pod(), pod("o", node="n"), annotated("o", "n"), False, id="no longer does"),
        pytest.param(exclusive(), pod("o", node="n"), daemon("o", "n"), True, id="is adopted"),
        pytest.param(UNKNOWN, UNKNOWN, exclusive("pod"), True, id="its own policy is right now"),
        pytest.param(annotated("p"), annotated("p"), pod("p"), True, id="it tolerates others"),
        pytest.param(pod(), pod(), pod(labels={"a": "b"}), False, id="its own labels"),
    ],
)
def test_waking_after_a_change_of_policy(waits: Pod, old: Pod, new: Pod, woken: bool) -> None:
    resource = Resource.UNSCHEDULED_POD if new.uid == waits.uid else Resource.ASSIGNED_POD
    for action in (Action.UPDATE, Action.UPDATE_POD_LABEL):
        assert wakes(PLUGIN, resource, action, pod=waits, old=old, new=new) == woken


def test_every_new_node_wakes_but_for_a_wrong_policy() -> None:
    assert wakes(PLUGIN, Resource.NODE, Action.ADD, pod=exclusive(), new=node())
    assert wakes(PLUGIN, Resource.NODE, Action.ADD, pod=pod(), new=node())
    assert not wakes(PLUGIN, Resource.NODE, Action.ADD, pod=UNKNOWN, new=node())
