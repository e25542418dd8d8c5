"""NodeDeclaredFeatures."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.framework.status import Code
from moorage.framework.wakeups import Action, Resource
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.plugins.node_declared_features import (
    RESTART_ALL,
    USER_NAMESPACES_ON_HOST_NETWORK,
    NodeDeclaredFeatures,
)
from tests.builders import (
    EMPTY,
    cluster,
    node,
    pod,
)
from tests.plugins.asking import codes, listens, rejections, wakes

PLUGIN = NodeDeclaredFeatures()
REASON = ("node(s) didn't match Pod's required features",)

RESTARTS = {"name": "main", "restartPolicyRules": [{"action": "RestartAllContainers"}]}
PLAIN = {"name": "main", "restartPolicyRules": [{"action": "Restart"}]}


def needing(name: str = "pod", **spec: Any) -> Pod:
    return pod(name, spec=spec)


def declaring(name: str, *features: str) -> Node:
    return node(name, status={"declaredFeatures": list(features)})


BOTH = needing(containers=[RESTARTS], hostNetwork=True, hostUsers=False)


@pytest.mark.parametrize(
    ("asks", "accepted"),
    [
        pytest.param(needing(containers=[RESTARTS]), {"restart", "both"}, id="restart of all"),
        pytest.param(
            needing(initContainers=[RESTARTS], containers=[PLAIN]),
            {"restart", "both"},
            id="also from init containers",
        ),
        pytest.param(
            needing(hostNetwork=True, hostUsers=False), {"users", "both"}, id="user namespaces"
        ),
        pytest.param(BOTH, {"both"}, id="every feature is needed"),
    ],
)
def test_filter(asks: Pod, accepted: set[str]) -> None:
    nodes = cluster(
        declaring("none"),
        declaring("restart", RESTART_ALL, "Unrelated"),
        declaring("users", USER_NAMESPACES_ON_HOST_NETWORK),
        declaring("both", RESTART_ALL, USER_NAMESPACES_ON_HOST_NETWORK),
    )

    rejected = rejections(PLUGIN, asks, nodes)

    assert rejected == {
        name: REASON for name in ("none", "restart", "users", "both") if name not in accepted
    }


@pytest.mark.parametrize(
    "asks",
    [
        pytest.param(pod(), id="nothing special"),
        pytest.param(needing(containers=[PLAIN]), id="an ordinary restart rule"),
        pytest.param(needing(hostNetwork=True), id="host users on the host network"),
        pytest.param(needing(hostNetwork=True, hostUsers=True), id="said so"),
        pytest.param(needing(hostUsers=False), id="user namespaces off the host network"),
    ],
)
def test_a_pod_that_needs_nothing_is_skipped(asks: Pod) -> None:
    assert rejections(PLUGIN, asks, cluster(node())) is None


def test_evicting_pods_does_not_help() -> None:
    assert codes(PLUGIN, BOTH, cluster(node("n"))) == {"n": Code.UNRESOLVABLE}


def test_needs_are_signed() -> None:
    assert PLUGIN.sign(pod(), EMPTY) == PLUGIN.sign(needing(hostNetwork=True), EMPTY)
    assert PLUGIN.sign(pod(), EMPTY) != PLUGIN.sign(
        needing(hostNetwork=True, hostUsers=False), EMPTY
    )


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        pytest.param(None, node(), True, id="a new node"),
        pytest.param(declaring("n"), declaring("n", RESTART_ALL), True, id="features changed"),
        pytest.param(declaring("n", "A"), declaring("n", "A"), False, id="features stayed"),
    ],
)
def test_waking_after_a_node_change(old: Node | None, new: Node, woken: bool) -> None:
    action = Action.UPDATE_NODE_DECLARED_FEATURE if old else Action.ADD

    assert woken == wakes(PLUGIN, Resource.NODE, action, pod=BOTH, old=old, new=new)


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        pytest.param(BOTH, pod(), True, id="other needs"),
        pytest.param(BOTH, BOTH, False, id="the same needs"),
        pytest.param(
            needing("other", containers=[RESTARTS]), pod("other"), False, id="another pod"
        ),
    ],
)
def test_waking_after_a_pod_change(old: Pod, new: Pod, woken: bool) -> None:
    assert woken == wakes(
        PLUGIN, Resource.UNSCHEDULED_POD, Action.UPDATE, pod=BOTH, old=old, new=new
    )


def test_what_it_listens_to() -> None:
    assert listens(PLUGIN) == {
        (Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE),
        (Resource.POD, Action.UPDATE),
    }
