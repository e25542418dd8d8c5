"""NodeResourcesFit: filtering, waking and arguments. Scores are in test_allocation.py."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.framework.status import Code
from moorage.framework.wakeups import Action, Resource
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from tests.builders import (
    EMPTY,
    cluster,
    node,
    pod,
)
from tests.plugins.asking import codes, listens, rejections, verdict, wakes

PLUGIN = NodeResourcesFit()

GPU = "example.com/gpu"
HUGE = "hugepages-2Mi"


def containers(*requests: dict[str, str], **spec: Any) -> Pod:
    listed = [{"name": f"c{at}", "resources": {"requests": r}} for at, r in enumerate(requests)]
    return pod(spec={"containers": listed, **spec})


def args(**given: Any) -> NodeResourcesFitArgs:
    return msgspec.convert(given, NodeResourcesFitArgs)


@pytest.mark.parametrize(
    ("asks", "reasons"),
    [
        pytest.param(pod(), (), id="nothing is asked for"),
        pytest.param(pod(cpu=1), (), id="exactly what is left"),
        pytest.param(pod(cpu="1001m"), ("Insufficient cpu",), id="a little more"),
        pytest.param(pod(memory="4Gi"), (), id="memory"),
        pytest.param(pod(memory="4097Mi"), ("Insufficient memory",), id="too much memory"),
        pytest.param(pod(ephemeral="1"), ("Insufficient ephemeral-storage",), id="storage"),
        pytest.param(pod(gpu=1), ("Insufficient example.com/gpu",), id="an unknown resource"),
        pytest.param(pod(cpu=0, gpu=0), (), id="zero is always there"),
        pytest.param(
            containers(
                {"cpu": "9", "memory": "9Gi", "ephemeral-storage": "1", GPU: "1", HUGE: "1"}
            ),
            (
                "Insufficient cpu",
                "Insufficient memory",
                "Insufficient ephemeral-storage",
                f"Insufficient {GPU}",
                f"Insufficient {HUGE}",
            ),
            id="all reasons in order",
        ),
        pytest.param(pod(foo=5), (), id="what is no resource does not count"),
        pytest.param(containers({"cpu": "600m"}, {"cpu": "600m"}), ("Insufficient cpu",), id="sum"),
        pytest.param(
            containers({"cpu": "1"}, overhead={"cpu": "1m"}), ("Insufficient cpu",), id="overhead"
        ),
        pytest.param(
            containers({"cpu": "9"}, resources={"requests": {"cpu": "1"}}), (), id="pod level"
        ),
    ],
)
def test_filter(asks: Pod, reasons: tuple[str, ...]) -> None:
    busy = cluster(
        node("busy", cpu=4, memory="8Gi"), pod("other", node="busy", cpu=3, memory="4Gi")
    )

    assert rejections(PLUGIN, asks, busy) == ({"busy": reasons} if reasons else {})


@pytest.mark.parametrize("asks", [pod(), pod(cpu=1)], ids=["nothing", "something"])
def test_too_many_pods(asks: Pod) -> None:
    full = cluster(node("full", pods=1), node("free", pods=2), pod("other", node="full"))

    assert rejections(PLUGIN, asks, full) == {"full": ("Too many pods",)}
    assert codes(PLUGIN, asks, full) == {"full": Code.UNSCHEDULABLE}


@pytest.mark.parametrize(
    ("asks", "code"),
    [
        pytest.param(pod(cpu=4), Code.UNSCHEDULABLE, id="evicting would make room"),
        pytest.param(pod(cpu=5), Code.UNRESOLVABLE, id="more than the node ever had"),
        pytest.param(pod(cpu=4, memory="9Gi"), Code.UNRESOLVABLE, id="one such resource is enough"),
        pytest.param(pod(gpu=1), Code.UNRESOLVABLE, id="not even the resource"),
    ],
)
def test_whether_evicting_pods_helps(asks: Pod, code: Code) -> None:
    busy = cluster(node("busy", cpu=4, memory="8Gi"), pod("other", node="busy", cpu=3))

    assert codes(PLUGIN, asks, busy) == {"busy": code}


@pytest.mark.parametrize(
    ("given", "rejected"),
    [
        pytest.param({}, True, id="nothing is ignored"),
        pytest.param({"ignoredResources": ["example.com/gpu"]}, False, id="the resource"),
        pytest.param({"ignoredResources": ["example.com/other"]}, True, id="another resource"),
        pytest.param({"ignoredResourceGroups": ["example.com"]}, False, id="its group"),
        pytest.param({"ignoredResourceGroups": ["example"]}, True, id="another group"),
    ],
)
def test_ignored_resources(given: dict[str, Any], rejected: bool) -> None:
    answer = rejections(NodeResourcesFit(args(**given)), pod(gpu=1), cluster(node("n")))

    assert bool(answer) is rejected


def test_only_extended_resources_can_be_ignored() -> None:
    plugin = NodeResourcesFit(args(ignoredResources=["cpu", HUGE]))

    assert rejections(plugin, containers({"cpu": "5", HUGE: "1"}), cluster(node("n", cpu=4))) == {
        "n": ("Insufficient cpu", f"Insufficient {HUGE}")
    }


def test_a_pod_is_never_skipped() -> None:
    assert verdict(PLUGIN, pod(), cluster(node())) is not None


def test_both_kinds_of_requests_are_signed() -> None:
    assert PLUGIN.sign(pod(cpu=1), EMPTY) == PLUGIN.sign(pod("other", cpu="1000m"), EMPTY)
    assert PLUGIN.sign(pod(cpu=1), EMPTY) != PLUGIN.sign(pod(cpu=2), EMPTY)
    # Only filtering looks at what is requested for the pod as a whole.
    whole = containers({}, resources={"requests": {"cpu": "1"}})
    assert PLUGIN.sign(containers({}), EMPTY) != PLUGIN.sign(whole, EMPTY)
    # The same in all, and yet one more container without a request counts in scoring.
    assert PLUGIN.sign(containers({"cpu": "1"}), EMPTY) != PLUGIN.sign(
        containers({"cpu": "1"}, {}), EMPTY
    )


@pytest.mark.parametrize(
    ("gone", "woken"),
    [
        pytest.param(pod("gone", node="n"), True, id="ran somewhere"),
        pytest.param(pod("gone", status={"nominatedNodeName": "n"}), True, id="was nominated"),
        pytest.param(pod("gone"), False, id="had no place"),
    ],
)
def test_waking_after_a_pod_is_gone(gone: Pod, woken: bool) -> None:
    assert woken == wakes(PLUGIN, Resource.ASSIGNED_POD, Action.DELETE, pod=pod(cpu=1), old=gone)


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        pytest.param(pod(cpu=2), pod(cpu=1), True, id="the pod itself"),
        pytest.param(pod("o", node="n", cpu=2), pod("o", node="n", cpu=1), True, id="a placed pod"),
        pytest.param(pod("o", cpu=2), pod("o", cpu=1), False, id="one without a place"),
        pytest.param(
            pod("o", node="n", cpu=2, memory=2),
            pod("o", node="n", cpu=2, memory=1),
            False,
            id="a resource that is not asked for",
        ),
        pytest.param(
            pod("o", node="n", gpu=2),
            pod("o", node="n", gpu=1),
            False,
            id="one of which none is asked for",
        ),
    ],
)
def test_waking_after_a_pod_shrank(old: Pod, new: Pod, woken: bool) -> None:
    resource = Resource.ASSIGNED_POD if new.node_name else Resource.UNSCHEDULED_POD
    action = Action.UPDATE_POD_SCALE_DOWN

    assert woken == wakes(PLUGIN, resource, action, pod=pod(cpu=1, gpu=0), old=old, new=new)


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        pytest.param(None, node(cpu=2), True, id="a new node with room"),
        pytest.param(None, node(cpu=1), False, id="a new node that is too small"),
        pytest.param(None, node(cpu=2, pods=0), False, id="a new node that takes no pods"),
        pytest.param(node(cpu=1), node(cpu=2), True, id="grew enough"),
        pytest.param(node(cpu="500m"), node(cpu=1), False, id="grew, but not enough"),
        pytest.param(node(cpu=3), node(cpu=2), False, id="shrank"),
        pytest.param(node(cpu=2, gpu=1), node(cpu=2, gpu=2), False, id="something else grew"),
        pytest.param(node(cpu=2, pods=5), node(cpu=2, pods=6), True, id="takes one more pod"),
    ],
)
def test_waking_after_a_node_change(old: Node | None, new: Node, woken: bool) -> None:
    action = Action.UPDATE_NODE_ALLOCATABLE if old else Action.ADD

    assert woken == wakes(PLUGIN, Resource.NODE, action, pod=pod(cpu=2), old=old, new=new)


def test_what_it_listens_to() -> None:
    assert listens(PLUGIN) == {
        (Resource.POD, Action.DELETE),
        (Resource.POD, Action.UPDATE_POD_SCALE_DOWN),
        (Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE),
        (Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE),
    }


RATIO = "RequestedToCapacityRatio"


def shape(*points: tuple[int, int]) -> dict[str, Any]:
    listed = [{"utilization": x, "score": y} for x, y in points]
    return {"type": RATIO, "requestedToCapacityRatio": {"shape": listed}}


@pytest.mark.parametrize(
    ("given", "path"),
    [
        pytest.param({}, None, id="the defaults are fine"),
        pytest.param({"ignoredResourceGroups": ["a", "b/c"]}, "ignoredResourceGroups[1]", id="a /"),
        pytest.param(
            {"scoringStrategy": {"resources": [{"name": "cpu", "weight": 0}]}}, None, id="weight 0"
        ),
        pytest.param(
            {"scoringStrategy": {"resources": [{"name": "cpu", "weight": 101}]}},
            "scoringStrategy.resources[0].weight",
            id="weight 101",
        ),
        pytest.param(
            {"scoringStrategy": {"resources": [{"name": "cpu", "weight": -1}]}},
            "scoringStrategy.resources[0].weight",
            id="weight -1",
        ),
        pytest.param(
            {"scoringStrategy": {"type": RATIO}},
            "scoringStrategy.requestedToCapacityRatio",
            id="no shape",
        ),
        pytest.param(
            {"scoringStrategy": {**shape((0, 0)), "type": "MostAllocated"}},
            "scoringStrategy.requestedToCapacityRatio",
            id="a shape for another type",
        ),
        pytest.param(
            {"scoringStrategy": shape()},
            "scoringStrategy.requestedToCapacityRatio.shape",
            id="an empty shape",
        ),
        pytest.param({"scoringStrategy": shape((0, 10), (100, 0))}, None, id="a falling shape"),
        pytest.param(
            {"scoringStrategy": shape((50, 1), (50, 2))},
            "scoringStrategy.requestedToCapacityRatio.shape[1].utilization",
            id="no increase",
        ),
        pytest.param(
            {"scoringStrategy": shape((0, 1), (101, 2))},
            "scoringStrategy.requestedToCapacityRatio.shape[1].utilization",
            id="utilization beyond 100",
        ),
        pytest.param(
            {"scoringStrategy": shape((0, 11))},
            "scoringStrategy.requestedToCapacityRatio.shape[0].score",
            id="a score beyond 10",
        ),
    ],
)
def test_args(given: dict[str, Any], path: str | None) -> None:
    assert [where for where, _ in args(**given).problems()] == ([path] if path else [])
