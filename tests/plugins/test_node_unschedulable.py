"""NodeUnschedulable."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.framework.status import Code
from moorage.framework.wakeups import Action, Resource
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.plugins.node_unschedulable import NodeUnschedulable
from tests.builders import (
    EMPTY,
    cluster,
    node,
    pod,
)
from tests.plugins.asking import codes, listens, rejections, wakes

PLUGIN = NodeUnschedulable()
KEY = "node.kubernetes.io/unschedulable"
REASON = ("node(s) were unschedulable",)

OPEN = node("open")
CORDONED = node("cordoned", spec={"unschedulable": True})


def tolerating(**toleration: str) -> Pod:
    return pod(spec={"tolerations": [toleration]})


@pytest.mark.parametrize(
    ("asks", "rejected"),
    [
        pytest.param(pod(), {"cordoned": REASON}, id="without tolerations"),
        pytest.param(tolerating(key=KEY, operator="Exists"), {}, id="tolerated"),
        pytest.param(tolerating(key=KEY, effect="NoSchedule"), {}, id="tolerated by empty value"),
        pytest.param(tolerating(operator="Exists"), {}, id="everything is tolerated"),
        pytest.param(
            tolerating(key=KEY, operator="Exists", effect="NoExecute"),
            {"cordoned": REASON},
            id="another effect is tolerated",
        ),
        pytest.param(
            tolerating(key=KEY, value="true"), {"cordoned": REASON}, id="another value is tolerated"
        ),
    ],
)
def test_cordoned_nodes_are_rejected(asks: Pod, rejected: dict[str, Any]) -> None:
    assert rejections(PLUGIN, asks, cluster(OPEN, CORDONED)) == rejected


def test_evicting_pods_does_not_help() -> None:
    assert codes(PLUGIN, pod(), cluster(OPEN, CORDONED)) == {"cordoned": Code.UNRESOLVABLE}


def test_without_cordoned_nodes_there_is_nothing_to_reject() -> None:
    assert rejections(PLUGIN, pod(), cluster(OPEN)) == {}


def test_only_what_is_asked_of_the_rule_is_signed() -> None:
    assert PLUGIN.sign(pod(), EMPTY) == PLUGIN.sign(tolerating(key="gpu", operator="Exists"), EMPTY)
    assert PLUGIN.sign(pod(), EMPTY) != PLUGIN.sign(tolerating(key=KEY, operator="Exists"), EMPTY)


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        pytest.param(None, OPEN, True, id="a new node"),
        pytest.param(None, CORDONED, False, id="a new node that is cordoned"),
        pytest.param(CORDONED, OPEN, True, id="uncordoned"),
        pytest.param(OPEN, OPEN, False, id="was not cordoned before"),
        pytest.param(OPEN, CORDONED, False, id="cordoned"),
    ],
)
def test_waking_after_a_node_change(old: Node | None, new: Node, woken: bool) -> None:
    action = Action.UPDATE_NODE_TAINT if old else Action.ADD

    assert woken == wakes(PLUGIN, Resource.NODE, action, pod=pod(), old=old, new=new)


@pytest.mark.parametrize(
    ("new", "woken"),
    [
        pytest.param(tolerating(key=KEY, operator="Exists"), True, id="tolerates now"),
        pytest.param(tolerating(key="other"), False, id="tolerates something else"),
        pytest.param(
            pod("other", spec={"tolerations": [{"operator": "Exists"}]}), False, id="another pod"
        ),
    ],
)
def test_waking_after_a_new_toleration(new: Pod, woken: bool) -> None:
    action = Action.UPDATE_POD_TOLERATION

    assert woken == wakes(
        PLUGIN, Resource.UNSCHEDULED_POD, action, pod=pod(), old=pod(new.name), new=new
    )


def test_what_it_listens_to() -> None:
    assert listens(PLUGIN) == {
        (Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT),
        (Resource.POD, Action.UPDATE_POD_TOLERATION),
    }
