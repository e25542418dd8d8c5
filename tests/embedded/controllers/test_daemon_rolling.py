"""From one version of a daemon to the next, with nodes that have two pods for a while."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.controllers.playing import Json, Play, played, workload
from tests.embedded.controllers.test_sets import add_node, chosen_node, newer


def versions(cluster: Play) -> str:
    """The versions of the pods on each node."""
    found = sorted(
        (chosen_node(each), each["spec"]["containers"][0]["image"][-1]) for each in cluster.pods()
    )
    nodes = sorted({node for node, _ in found})
    return " ".join("".join(version for at, version in found if at == node) for node in nodes)


async def begin(cluster: Play, **rolling: Any) -> None:
    """A daemon on three nodes that is to be updated."""
    for name in "abc":
        add_node(cluster, name)
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    cluster.create("daemonsets.apps", "agent", workload(updateStrategy=strategy))
    await cluster.settle()
    cluster.run(cluster.bind(each, chosen_node(each)) for each in cluster.pods())
    await cluster.settle()
    cluster.change("daemonsets.apps", "agent", template=newer())
    await cluster.settle()


def pending(cluster: Play) -> list[Json]:
    return [each for each in cluster.pods() if each["status"]["phase"] == "Pending"]


@pytest.mark.parametrize(
    ("surge", "course"),
    [
        (1, ["12 1 1", "2 12 1", "2 2 12", "2 2 2"]),
        (2, ["12 12 1", "2 2 12", "2 2 2"]),
        ("100%", ["12 12 12", "2 2 2"]),
    ],
)
@played
async def test_the_old_pod_stays_until_the_new_one_is_good(
    cluster: Play, surge: int | str, course: list[str]
) -> None:
    await begin(cluster, maxSurge=surge, maxUnavailable=0)
    seen = []
    for _ in course:
        seen.append(versions(cluster))
        cluster.run(cluster.bind(each, chosen_node(each)) for each in pending(cluster))
        await cluster.settle()
    cluster.sweep()
    await cluster.settle()

    assert seen == course
    status = cluster.get("daemonsets.apps", "agent")["status"]
    assert status["updatedNumberScheduled"] == status["numberAvailable"] == 3


@played
async def test_a_pod_that_is_no_good_is_replaced_whatever_the_surge(cluster: Play) -> None:
    await begin(cluster, maxSurge=1, maxUnavailable=0)
    assert versions(cluster) == "12 1 1"
    (bad,) = [each for each in cluster.pods() if each["spec"].get("nodeName") == "c"]
    cluster.phase(bad, "Running", ready=False)
    await cluster.settle()

    assert versions(cluster) == "12 1 2"


@played
async def test_while_nodes_may_have_two_nobody_waits_for_the_last_to_go(cluster: Play) -> None:
    await begin(cluster, maxSurge=1, maxUnavailable=0)
    (old,) = [each for each in cluster.pods() if each["spec"].get("nodeName") == "c"]
    cluster.delete("pods", old["metadata"]["name"])
    await cluster.settle()

    assert versions(cluster) == "12 1 2"
    assert len(cluster.pods(going=True)) == 1


@played
async def test_going_back_removes_the_pods_that_came_too_early(cluster: Play) -> None:
    await begin(cluster, maxSurge=1, maxUnavailable=0)
    cluster.change("daemonsets.apps", "agent", template=workload()["template"])
    await cluster.settle()

    assert versions(cluster) == "1 1 1"


@played
async def test_without_any_leeway_one_node_at_a_time_does_without(cluster: Play) -> None:
    await begin(cluster, maxSurge=0, maxUnavailable="0%")
    for _ in range(6):
        cluster.sweep()
        await cluster.settle()
        cluster.run(cluster.bind(each, chosen_node(each)) for each in pending(cluster))
        await cluster.settle()

    assert versions(cluster) == "2 2 2"


@played
async def test_a_pod_that_fails_as_soon_as_it_comes_is_replaced_after_a_pause(
    cluster: Play,
) -> None:
    add_node(cluster, "a")
    cluster.create("daemonsets.apps", "agent", workload())
    await cluster.settle()
    (first,) = cluster.pods()
    cluster.end([first], "Failed")
    await cluster.settle()
    assert [each["metadata"]["name"] for each in cluster.pods()] == [first["metadata"]["name"]]

    await cluster.wait(3)
    (second,) = cluster.pods()
    assert second["metadata"]["name"] != first["metadata"]["name"]
