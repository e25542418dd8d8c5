"""Near misses over groups of like nodes, and the order in which suggestions are told."""

from __future__ import annotations

import pytest

from moorage.engine.explain import explain
from moorage.objects.kinds import Object
from moorage.objects.pod import Pod
from tests.builders import node, pod
from tests.explain.building import engine
from tests.explain.trying import assert_holds

TYPE = "node.kubernetes.io/instance-type"
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
DEDICATED = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def used(name: str, cpu: int, by: str) -> tuple[Object, Pod]:
    """A node with so much cpu, and what runs there."""
    return node(name, cpu=cpu), pod(f"on-{name}", node=name, cpu=by)


def told(wanted: Pod, *objects: Object) -> list[tuple[str, str, set[str]]]:
    """What is suggested, in order, each of it tried."""
    asked = engine(*objects)
    found = explain(asked.decider, wanted).suggestions
    for each in found:
        assert_holds(asked, wanted, each)
    return [(each.problem, each.remedy, set(each.nodes)) for each in found]


def test_each_group_of_like_nodes_tells_its_nearest_miss() -> None:
    small = [*used("s1", 4, by="1500m"), *used("s2", 4, by="1700m")]
    large = [*used("l1", 8, by="5"), *used("l2", 8, by="6")]

    assert told(pod(cpu=4), *small, *large) == [
        (
            "node l1 was 1 cpu short, the nearest of 2 nodes with 8 cpu",
            "it asked for 1 less cpu",
            {"l1"},
        ),
        (
            "node s1 was 1.5 cpu short, the nearest of 2 nodes with 4 cpu",
            "it asked for 1.5 less cpu",
            {"s1", "l1"},
        ),
        ("2 nodes were up to 1.7 cpu short", "it asked for 1.7 less cpu", {"s1", "s2", "l1"}),
        (
            "1 pod of equal or higher priority in the way on node s1",
            "its priority were 1",
            {"s1", "s2", "l1", "l2"},
        ),
    ]


def test_nodes_of_one_type_are_alike_though_they_differ_by_some_bytes() -> None:
    kind = {TYPE: "m5.large"}
    (larger, nearest, *_) = told(
        pod(memory="4Gi"),
        node("a", memory="1025Mi", labels=kind),
        node("b", memory="1024Mi", labels=kind),
    )

    assert larger[0] == "no node is this large: add one with at least 4Gi memory"
    # 3071Mi: what is short is rounded up, so that asking for less by it is enough.
    assert nearest[0] == "node a was 3Gi memory short, the nearest of 2 m5.large nodes"


def test_to_ask_for_less_than_half_is_the_nearest_miss_and_to_evict_comes_last() -> None:
    busy = used("busy", 4, by="3")
    full = used("full", 4, by="3500m")
    taint = node("kept", cpu=4, spec={"taints": [DEDICATED]})

    assert told(pod(cpu=4), *busy, *full, taint) == [
        (
            "node kept had untolerated dedicated=ml:NoSchedule",
            "it tolerated dedicated=ml:NoSchedule",
            {"kept"},
        ),
        (
            "node busy was 3 cpu short, the nearest of 2 nodes with 4 cpu",
            "it asked for 3 less cpu",
            {"busy"},
        ),
        (
            "1 pod of equal or higher priority in the way on node busy",
            "its priority were 1",
            {"busy", "full"},
        ),
    ]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([("a", [NOT_READY])], [("a were ready", {"a"})], id="one"),
        pytest.param(
            [("a", [NOT_READY]), ("b", [NOT_READY])], [("they were ready", {"a", "b"})], id="two"
        ),
        pytest.param(
            [("a", [NOT_READY, DEDICATED]), ("b", [NOT_READY])],
            [
                ("b were ready", {"b"}),
                ("a were ready and it tolerated dedicated=ml:NoSchedule", {"a"}),
            ],
            id="with a taint that can be tolerated",
        ),
        pytest.param(
            [("a", [NOT_READY, CORDONED])],
            [("a were ready and a were uncordoned", {"a"})],
            id="and a cordon",
        ),
    ],
)
def test_a_node_in_trouble_is_to_recover_and_not_to_be_tolerated(
    nodes: list[tuple[str, list[dict[str, str]]]], expected: list[tuple[str, set[str]]]
) -> None:
    made = [node(name, spec={"taints": taints}) for name, taints in nodes]

    assert [(remedy, names) for _, remedy, names in told(pod(), *made)] == expected


def test_two_plugins_that_say_the_same_are_told_once() -> None:
    both = node("both", spec={"taints": [CORDONED], "unschedulable": True})
    other = node("other", spec={"taints": [CORDONED, DEDICATED], "unschedulable": True})

    assert [(remedy, names) for _, remedy, names in told(pod(), both, other)] == [
        ("both were uncordoned", {"both"}),
        ("other were uncordoned and it tolerated dedicated=ml:NoSchedule", {"other"}),
    ]


def test_four_changes_at_once_are_no_near_miss() -> None:
    taints = [DEDICATED, {**DEDICATED, "value": "gpu"}]
    far = node("far", labels={"disk": "hdd", "zone": "a"}, spec={"taints": taints})

    assert told(pod(spec={"nodeSelector": {"disk": "ssd", "zone": "b"}}), far) == []
