"""NodePorts."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.framework.status import Code
from moorage.framework.wakeups import Action, Resource
from moorage.objects.pod import Pod
from moorage.plugins.node_ports import NodePorts
from tests.builders import (
    EMPTY,
    cluster,
    node,
    pod,
)
from tests.plugins.asking import codes, listens, rejections, wakes

PLUGIN = NodePorts()
REASON = ("node(s) didn't have free ports for the requested pod ports",)


def listening(*ports: dict[str, Any], name: str = "pod", **given: Any) -> Pod:
    return pod(name, spec={"containers": [{"name": "main", "ports": list(ports)}]}, **given)


@pytest.mark.parametrize(
    ("wanted", "taken", "conflict"),
    [
        pytest.param({"hostPort": 80}, {"hostPort": 80}, True, id="the same port"),
        pytest.param({"hostPort": 80}, {"hostPort": 81}, False, id="another port"),
        pytest.param({"hostPort": 80}, {"containerPort": 80}, False, id="not on the host"),
        pytest.param(
            {"hostPort": 80, "protocol": "TCP"}, {"hostPort": 80}, True, id="TCP is meant"
        ),
        pytest.param({"hostPort": 80}, {"hostPort": 80, "protocol": "UDP"}, False, id="protocol"),
        pytest.param(
            {"hostPort": 80},
            {"hostPort": 80, "hostIP": "127.0.0.1"},
            True,
            id="any address wants all addresses",
        ),
        pytest.param(
            {"hostPort": 80, "hostIP": "127.0.0.1"},
            {"hostPort": 80, "hostIP": "0.0.0.0"},
            True,
            id="any address takes all addresses",
        ),
        pytest.param(
            {"hostPort": 80, "hostIP": "127.0.0.1"},
            {"hostPort": 80, "hostIP": "127.0.0.1"},
            True,
            id="the same address",
        ),
        pytest.param(
            {"hostPort": 80, "hostIP": "127.0.0.1"},
            {"hostPort": 80, "hostIP": "127.0.0.2"},
            False,
            id="different addresses",
        ),
        pytest.param(
            {"hostPort": 80, "hostIP": "::"},
            {"hostPort": 80, "hostIP": "127.0.0.1"},
            False,
            id=":: is an address like any other",
        ),
    ],
)
def test_conflicts(wanted: dict[str, Any], taken: dict[str, Any], conflict: bool) -> None:
    holder = listening(taken, name="holder", node="busy")
    busy_and_free = cluster(node("busy"), node("free"), holder)

    assert rejections(PLUGIN, listening(wanted), busy_and_free) == (
        {"busy": REASON} if conflict else {}
    )
    woken = wakes(PLUGIN, Resource.ASSIGNED_POD, Action.DELETE, pod=listening(wanted), old=holder)
    assert woken == conflict


def test_evicting_pods_helps() -> None:
    taken = cluster(node("busy"), listening({"hostPort": 80}, name="holder", node="busy"))

    assert codes(PLUGIN, listening({"hostPort": 80}), taken) == {"busy": Code.UNSCHEDULABLE}


@pytest.mark.parametrize(
    ("init", "rejected"),
    [
        pytest.param({"restartPolicy": "Always"}, {"busy": REASON}, id="sidecars count"),
        pytest.param({}, None, id="other init containers do not"),
    ],
)
def test_init_containers(init: dict[str, Any], rejected: dict[str, Any] | None) -> None:
    taken = cluster(node("busy"), listening({"hostPort": 80}, name="holder", node="busy"))
    starting = {"name": "init", "ports": [{"hostPort": 80}], **init}

    asks = pod(spec={"initContainers": [starting], "containers": [{"name": "main"}]})

    assert rejections(PLUGIN, asks, taken) == rejected


def test_a_pod_without_host_ports_is_skipped() -> None:
    assert PLUGIN.pre_filter(listening({"containerPort": 80}), cluster().nodes) is None


def test_addresses_and_protocols_are_signed() -> None:
    plain = {"hostPort": 80}

    assert PLUGIN.sign(listening(plain), EMPTY) == PLUGIN.sign(
        listening({**plain, "hostIP": "0.0.0.0"}), EMPTY
    )
    assert PLUGIN.sign(listening(plain), EMPTY) != PLUGIN.sign(
        listening({**plain, "protocol": "UDP"}), EMPTY
    )
    assert PLUGIN.sign(listening(plain), EMPTY) != PLUGIN.sign(
        listening({**plain, "hostIP": "10.0.0.1"}), EMPTY
    )


@pytest.mark.parametrize(
    ("place", "woken"),
    [
        pytest.param({"node": "n"}, True, id="ran somewhere"),
        pytest.param({"status": {"nominatedNodeName": "n"}}, True, id="was nominated"),
        pytest.param({}, False, id="had no place"),
    ],
)
def test_waking_after_a_pod_is_gone(place: dict[str, Any], woken: bool) -> None:
    gone = listening({"hostPort": 80}, name="gone", **place)
    waiting = listening({"hostPort": 80})

    assert woken == wakes(PLUGIN, Resource.ASSIGNED_POD, Action.DELETE, pod=waiting, old=gone)


def test_every_new_node_wakes() -> None:
    assert listens(PLUGIN) == {(Resource.POD, Action.DELETE), (Resource.NODE, Action.ADD)}
    assert wakes(PLUGIN, Resource.NODE, Action.ADD, pod=pod(), new=node())
