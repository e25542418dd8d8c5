"""A node for a job: exclusive pods that share it with their group, and limits per namespace."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cluster import Change
from moorage.objects.coexist import ANNOTATION, DAEMONSET_AND_STATIC_PODS, GROUP, LIMIT_LABEL
from moorage.objects.decode import from_builtins
from moorage.objects.kinds import Object
from moorage.objects.pod import Pod
from moorage.plugins.coexist_policy import CoexistPolicy
from moorage.testing import Driver, conditions, drive, evictions, make_engine
from tests.builders import node, pod
from tests.coexisting import placed

OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j", "controller": True}


def member(name: str, group: str = "label:job", *, alone: bool = True, **given: Any) -> Pod:
    """A pod that says which others it tolerates; exclusive unless it says otherwise."""
    said = {GROUP: group, **({ANNOTATION: DAEMONSET_AND_STATIC_PODS} if alone else {})}
    more = given.pop("metadata", {})
    labels = given.pop("labels", {"job": "train"})
    on = given.pop("node", "")
    made = pod(name, labels=labels, metadata={"annotations": said, **more}, **given)
    return placed(made, on) if on else made


def driven(*objects: Object) -> Driver:
    run = drive(*objects)
    run.settle()
    return run


def places(run: Driver, *names: str) -> list[str]:
    return [run.node_of(name) for name in names]


def test_members_share_a_node_and_nobody_else_does() -> None:
    run = driven(
        node("a"),
        member("worker", node="a"),
        member("other-worker"),
        member("launcher", alone=False),
        member("stranger", labels={"job": "serve"}),
        pod("plain"),
        pod("labelled", labels={"job": "train"}),
    )

    assert places(run, "other-worker", "launcher") == ["a", "a"]
    assert places(run, "stranger", "plain", "labelled") == ["", "", ""]


@pytest.mark.parametrize(
    ("group", "alike", "unlike"),
    [
        pytest.param("label:job", {"labels": {"job": "x"}}, {"labels": {"job": "y"}}, id="label"),
        pytest.param("Job", {"metadata": {"ownerReferences": [OWNER]}}, {}, id="job"),
        pytest.param(
            "PodGroup",
            {"spec": {"schedulingGroup": {"podGroupName": "g"}}},
            {"spec": {"schedulingGroup": {"podGroupName": "h"}}},
            id="pod group",
        ),
        pytest.param(
            "PodGroup",
            {"labels": {"scheduling.x-k8s.io/pod-group": "g"}},
            {"labels": {"scheduling.x-k8s.io/pod-group": "h"}},
            id="pod group of scheduler-plugins",
        ),
    ],
)
def test_what_members_have_in_common(
    group: str, alike: dict[str, Any], unlike: dict[str, Any]
) -> None:
    run = driven(
        node("a"),
        member("one", group, node="a", **alike),
        member("same", group, **alike),
        member("different", group, **unlike),
    )

    assert places(run, "same", "different") == ["a", ""]


def test_a_group_ends_at_its_namespace() -> None:
    run = driven(node("a"), member("one", node="a"), member("there", namespace="other"))

    assert not run.engine.cluster.pod("other/there")


def test_a_group_that_cannot_be_read_is_named() -> None:
    run = driven(node("a"), member("one", "mine"))

    wrong = f"annotation {GROUP} must be Job, PodGroup or label:KEY"
    assert wrong in conditions(run.story)["one"].message


def test_like_pods_of_two_groups_are_told_apart() -> None:
    """They share template and annotations, and no selector reads the label."""
    run = driven(node("a"), member("one", node="a"))
    run.apply(*(member(f"in-{at}") for at in range(3)))
    run.apply(*(member(f"out-{at}", labels={"job": "serve"}) for at in range(3)))
    run.settle()

    assert places(run, "in-0", "in-1", "in-2") == ["a"] * 3
    assert places(run, "out-0", "out-1", "out-2") == [""] * 3


def test_strangers_are_evicted_for_a_member_and_members_are_not() -> None:
    run = driven(node("a"), member("one", node="a"), pod("plain", node="a"))
    run.apply(member("urgent", spec={"priority": 9}))
    run.settle()

    assert evictions(run.story) == ["plain"]


def test_a_pod_without_a_group_sees_counts_only() -> None:
    """Then preemption looks at many nodes at once, as before."""
    run = driven(node("a"), member("one", node="a"))
    plugin, nodes = CoexistPolicy(), run.engine.cluster.nodes
    seen = [plugin.watch(each, nodes) & Change.PODS for each in (pod("p"), member("m"))]

    assert seen == [Change.NONE, Change.PODS]


# Limits


def limited(most: int | None = None, label: str | None = None) -> Driver:
    args = {} if most is None else {"maxNodesPerNamespace": most}
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": "ExclusiveNodeLimits"}]}},
        "pluginConfig": [{"name": "ExclusiveNodeLimits", "args": args}],
    }
    run = Driver(make_engine(profiles=[profile]))
    run.apply(namespace(label), *(node(name) for name in "abc"))
    return run


def namespace(label: str | None = None) -> Object:
    said = {} if label is None else {LIMIT_LABEL: label}
    return from_builtins("Namespace", {"metadata": {"name": "default", "labels": said}})


@pytest.mark.parametrize("how", [{"most": 2}, {"most": 9, "label": "2"}])
def test_a_namespace_holds_no_more_nodes_than_it_may(how: dict[str, Any]) -> None:
    run = limited(**how)
    run.apply(*(member(f"p{at}", labels={"job": str(at)}) for at in range(4)))
    run.apply(pod("plain"))
    run.settle()

    assert sorted(map(bool, places(run, "p0", "p1", "p2", "p3"))) == [False, False, True, True]
    assert run.node_of("plain")
    message = conditions(run.story)["p3"].message
    assert "namespace default holds 2 of 2 exclusive nodes" in message


def test_a_node_that_is_held_already_is_no_further_one() -> None:
    run = limited(1)
    run.apply(member("one"), member("two"))
    run.settle()

    assert run.node_of("two") == run.node_of("one") != ""


def test_other_namespaces_have_limits_of_their_own() -> None:
    run = limited(1)
    run.apply(member("one", labels={}), member("there", namespace="other", labels={}))
    run.settle()

    assert run.node_of("one")
    assert run.engine.cluster.pod("other/there")


def test_a_raised_limit_and_a_pod_that_goes_let_others_in() -> None:
    run = limited(label="1")
    first = member("one", labels={"job": "1"})
    run.apply(first, member("two", labels={"job": "2"}), member("three", labels={"job": "3"}))
    run.settle()
    assert [bool(each) for each in places(run, "one", "two", "three")] == [True, False, False]

    run.apply(namespace("2"))
    run.now += 60
    run.settle()
    assert [bool(each) for each in places(run, "one", "two", "three")] == [True, True, False]

    run.remove(first.on(run.node_of("one")))
    run.now += 60
    run.settle()
    assert run.node_of("three")


def test_own_pods_are_evicted_to_stay_within_the_limit() -> None:
    run = limited(1)
    run.apply(member("low", labels={"job": "1"}))
    run.settle()
    run.apply(member("high", labels={"job": "2"}, spec={"priority": 9}))
    run.settle()

    assert evictions(run.story) == ["low"]


def test_nobody_is_evicted_where_the_namespace_would_still_hold_too_many() -> None:
    run = limited(label="2")
    run.apply(*(member(f"low-{at}", labels={"job": str(at)}) for at in range(2)))
    run.settle()
    run.apply(namespace("1"), member("high", labels={"job": "9"}, spec={"priority": 9}))
    run.settle()

    assert evictions(run.story) == []
    assert "holds 2 of 1 exclusive nodes" in conditions(run.story)["high"].message


def test_a_limit_that_is_no_number_is_named() -> None:
    run = limited(label="many")
    run.apply(member("one"))
    run.settle()

    assert "must be a number, got 'many'" in conditions(run.story)["one"].message
