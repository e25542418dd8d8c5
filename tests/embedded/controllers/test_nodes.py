"""Nodes in trouble repel pods and lose them."""

from __future__ import annotations

import pytest

from tests.embedded.controllers.playing import Json, Play, played
from tests.embedded.serving import node, pod

PREFIX = "node.kubernetes.io/"


def add_node(cluster: Play, **conditions: str) -> None:
    made = node("n")
    made["status"]["conditions"] = [
        {"type": name, "status": status} for name, status in conditions.items()
    ]
    cluster.create("nodes", "n", **{**made, "metadata": {}})


def taints(cluster: Play) -> set[tuple[str, str]]:
    found = cluster.get("nodes", "n")["spec"].get("taints") or ()
    return {(each["key"].removeprefix(PREFIX), each["effect"]) for each in found}


def both(key: str) -> set[tuple[str, str]]:
    return {(key, "NoSchedule"), (key, "NoExecute")}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param({}, set(), id="says nothing"),
        pytest.param({"Ready": "True"}, set(), id="ready"),
        pytest.param({"Ready": "False"}, both("not-ready"), id="not ready"),
        pytest.param({"Ready": "Unknown"}, both("unreachable"), id="not heard of"),
        pytest.param(
            {"Ready": "True", "DiskPressure": "True", "PIDPressure": "False"},
            {("disk-pressure", "NoSchedule")},
            id="short of something",
        ),
    ],
)
@played
async def test_taints_follow_conditions(
    cluster: Play, conditions: dict[str, str], expected: set[tuple[str, str]]
) -> None:
    add_node(cluster, **conditions)
    await cluster.settle()
    assert taints(cluster) == expected

    recovered = [{"type": "Ready", "status": "True"}]
    item = cluster.get("nodes", "n")
    item["spec"]["taints"] = [*(item["spec"].get("taints") or ()), TAINT]
    cluster.update("nodes", item)
    cluster.set_status("nodes", cluster.get("nodes", "n"), conditions=recovered)
    await cluster.settle()
    assert taints(cluster) == {("mine", "NoSchedule")}


TAINT = {"key": "mine", "effect": "NoSchedule"}


@played
async def test_a_cordoned_node_is_tainted(cluster: Play) -> None:
    add_node(cluster, Ready="True")
    for cordoned in (True, False):
        cluster.change("nodes", "n", unschedulable=cordoned)
        await cluster.settle()
        assert (("unschedulable", "NoSchedule") in taints(cluster)) is cordoned


def tolerating(seconds: int | None) -> list[Json]:
    given = {} if seconds is None else {"tolerationSeconds": seconds}
    return [
        {"key": f"{PREFIX}not-ready", "operator": "Exists", "effect": "NoExecute", **given},
    ]


@pytest.mark.parametrize(
    ("spec", "stays_for"),
    [
        pytest.param({}, 300, id="by default"),
        pytest.param({"tolerations": tolerating(60)}, 60, id="as long as it says"),
        pytest.param({"tolerations": tolerating(0)}, 0, id="not at all"),
        pytest.param({"tolerations": tolerating(None)}, None, id="for ever"),
    ],
)
@played
async def test_pods_bear_a_node_in_trouble_for_a_while(
    cluster: Play, spec: Json, stays_for: int | None
) -> None:
    add_node(cluster, Ready="True")
    cluster.create("pods", "p", pod("p", nodeName="n", **spec)["spec"])
    cluster.run()
    await cluster.wait(50)
    cluster.set_status(
        "nodes", cluster.get("nodes", "n"), conditions=[{"type": "Ready", "status": "False"}]
    )
    await cluster.settle()
    if stays_for is None:
        await cluster.wait(10_000)
        assert len(cluster.pods()) == 1
        return
    if stays_for:
        await cluster.wait(stays_for - 1)
        assert len(cluster.pods()) == 1
        await cluster.wait(2)

    (going,) = cluster.pods(going=True)
    reasons = [each.get("reason") for each in going["status"]["conditions"]]
    assert "DeletionByTaintManager" in reasons


@played
async def test_a_pod_that_comes_to_a_node_in_trouble_leaves_it_too(cluster: Play) -> None:
    add_node(cluster, Ready="False")
    await cluster.settle()
    cluster.create("pods", "p", pod("p", tolerations=tolerating(5))["spec"])
    cluster.bind(cluster.get("pods", "p"), "n")
    await cluster.wait(4)
    assert len(cluster.pods()) == 1
    await cluster.wait(2)
    assert len(cluster.pods(going=True)) == 1


@pytest.mark.parametrize("existed", [True, False])
@played
async def test_pods_of_a_node_that_is_not_there_are_removed(cluster: Play, existed: bool) -> None:
    if existed:
        add_node(cluster, Ready="True")
    cluster.create("pods", "p", pod("p", nodeName="n")["spec"])
    await cluster.settle()
    if existed:
        cluster.delete("nodes", "n")
    await cluster.wait(39)
    assert len(cluster.pods()) == 1

    await cluster.wait(2)
    assert cluster.objects("pods") == []


@played
async def test_a_node_that_comes_back_keeps_its_pods(cluster: Play) -> None:
    cluster.create("pods", "p", pod("p", nodeName="n")["spec"])
    await cluster.wait(30)
    add_node(cluster, Ready="True")
    await cluster.wait(1000)

    assert len(cluster.pods()) == 1
