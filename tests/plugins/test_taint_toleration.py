"""TaintToleration."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.config import FeatureGates
from moorage.framework.status import Code
from moorage.framework.wakeups import Action, Resource
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.plugins.taint_toleration import TaintToleration
from tests.builders import (
    EMPTY,
    cluster,
    node,
    pod,
)
from tests.plugins.asking import codes, listens, rejections, scores, wakes

PLUGIN = TaintToleration()
COMPARING = TaintToleration.create(None, FeatureGates(TaintTolerationComparisonOperators=True))
REASON = ("node(s) had untolerated taint(s)",)


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


def tainted(name: str, *taints: dict[str, str]) -> Node:
    return node(name, spec={"taints": list(taints)})


def tolerating(*tolerations: dict[str, str], name: str = "pod") -> Pod:
    return pod(name, spec={"tolerations": list(tolerations)})


@pytest.mark.parametrize(
    ("taints", "tolerations", "accepted"),
    [
        pytest.param([], [], True, id="no taint"),
        pytest.param([taint("a")], [], False, id="no toleration"),
        pytest.param([taint("a", effect="NoExecute")], [], False, id="NoExecute repels too"),
        pytest.param([taint("a", effect="PreferNoSchedule")], [], True, id="a soft taint does not"),
        pytest.param([taint("a", "1")], [{"key": "a", "value": "1"}], True, id="Equal by default"),
        pytest.param(
            [taint("a", "1")], [{"key": "a", "operator": "Equal", "value": "1"}], True, id="Equal"
        ),
        pytest.param(
            [taint("a", "1")], [{"key": "a", "value": "2"}], False, id="the value differs"
        ),
        pytest.param([taint("a", "1")], [{"key": "b", "value": "1"}], False, id="the key differs"),
        pytest.param([taint("a", "1")], [{"key": "a", "operator": "Exists"}], True, id="Exists"),
        pytest.param([taint("a", "1")], [{"operator": "Exists"}], True, id="an empty key is any"),
        pytest.param(
            [taint("a", "1")], [{"value": "1"}], True, id="an empty key with an equal value"
        ),
        pytest.param(
            [taint("a")],
            [{"key": "a", "operator": "Exists", "effect": "NoExecute"}],
            False,
            id="the effect differs",
        ),
        pytest.param(
            [taint("a"), taint("b")],
            [{"key": "a", "operator": "Exists"}],
            False,
            id="every taint counts",
        ),
        pytest.param(
            [taint("a"), taint("b")],
            [{"key": "b", "operator": "Exists"}, {"key": "a", "operator": "Exists"}],
            True,
            id="each by its own toleration",
        ),
        pytest.param(
            [taint("a", "1")],
            [{"key": "a", "operator": "Lt", "value": "2"}],
            False,
            id="Lt means nothing while its gate is off",
        ),
    ],
)
def test_filter(taints: list[Any], tolerations: list[Any], accepted: bool) -> None:
    clean_and_tainted = cluster(node("clean"), tainted("tainted", *taints))

    rejected = rejections(PLUGIN, tolerating(*tolerations), clean_and_tainted)

    assert rejected == ({} if accepted else {"tainted": REASON})


@pytest.mark.parametrize(
    ("value", "operator", "bound", "accepted"),
    [
        pytest.param("5", "Lt", "10", True, id="less"),
        pytest.param("10", "Lt", "10", False, id="not less"),
        pytest.param("11", "Gt", "10", True, id="greater"),
        pytest.param("10", "Gt", "10", False, id="not greater"),
        pytest.param("-3", "Lt", "0", True, id="negative"),
        pytest.param("05", "Lt", "10", False, id="a leading zero is no number"),
        pytest.param("5", "Lt", "+10", False, id="nor is a plus sign"),
        pytest.param("many", "Gt", "1", False, id="nor is a word"),
        pytest.param("5", "Lt", "9223372036854775808", False, id="nor is more than 64 bits"),
    ],
)
def test_comparing(value: str, operator: str, bound: str, accepted: bool) -> None:
    asks = tolerating({"key": "a", "operator": operator, "value": bound})

    rejected = rejections(COMPARING, asks, cluster(tainted("tainted", taint("a", value))))

    assert rejected == ({} if accepted else {"tainted": REASON})


def test_evicting_pods_does_not_help() -> None:
    asked = codes(PLUGIN, pod(), cluster(tainted("tainted", taint("a"))))

    assert asked == {"tainted": Code.UNRESOLVABLE}


def test_taints_that_appear_later_count() -> None:
    grown = cluster(node("a"), tainted("b", taint("x")))
    rejections(PLUGIN, pod(), grown)
    grown.put_node(tainted("a", taint("y")))
    grown.put_node(tainted("b"))

    assert rejections(PLUGIN, pod(), grown) == {"a": REASON}


SOFT = cluster(
    node("none"),
    tainted("one", taint("a", effect="PreferNoSchedule"), taint("hard")),
    tainted("three", *(taint(key, effect="PreferNoSchedule") for key in "abc")),
)


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param([], {"none": 100, "one": 67, "three": 0}, id="fewer soft taints are better"),
        pytest.param(
            [{"key": "a", "operator": "Exists"}],
            {"none": 100, "one": 100, "three": 0},
            id="what is tolerated does not count",
        ),
        pytest.param(
            [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
            {"none": 100, "one": 67, "three": 0},
            id="unless it is tolerated with another effect",
        ),
        pytest.param(
            [{"operator": "Exists"}], {"none": 100, "one": 100, "three": 100}, id="all tolerated"
        ),
    ],
)
def test_score(tolerations: list[Any], expected: dict[str, int]) -> None:
    assert scores(PLUGIN, tolerating(*tolerations), SOFT) == expected


def test_the_order_of_tolerations_is_not_signed() -> None:
    one, other = {"key": "a", "value": "1"}, {"key": "b", "value": "1"}

    assert PLUGIN.sign(tolerating(one, other), EMPTY) == PLUGIN.sign(tolerating(other, one), EMPTY)
    assert PLUGIN.sign(tolerating(one), EMPTY) != PLUGIN.sign(tolerating(other), EMPTY)


CLEAN, REPELLING = node("n"), tainted("n", taint("a"))


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        pytest.param(None, CLEAN, True, id="a new node"),
        pytest.param(None, REPELLING, False, id="a new node with a taint"),
        pytest.param(REPELLING, CLEAN, True, id="the taint is gone"),
        pytest.param(CLEAN, REPELLING, False, id="there is a taint now"),
        pytest.param(CLEAN, CLEAN, False, id="there was no taint before"),
    ],
)
def test_waking_after_a_node_change(old: Node | None, new: Node, woken: bool) -> None:
    action = Action.UPDATE_NODE_TAINT if old else Action.ADD

    assert woken == wakes(PLUGIN, Resource.NODE, action, pod=pod(), old=old, new=new)


def test_waking_after_a_new_toleration() -> None:
    resource, action = Resource.UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION

    assert wakes(PLUGIN, resource, action, pod=pod(), old=pod(), new=pod())
    assert not wakes(PLUGIN, resource, action, pod=pod(), old=pod("other"), new=pod("other"))


def test_what_it_listens_to() -> None:
    assert listens(PLUGIN) == {
        (Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT),
        (Resource.POD, Action.UPDATE_POD_TOLERATION),
    }
