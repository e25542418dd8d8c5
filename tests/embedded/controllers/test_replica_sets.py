"""ReplicaSets: the right number of the right pods."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.embedded.controllers.items import PodItem
from mooring.embedded.controllers.replica_sets import least_missed
from mooring.embedded.tables import Entry
from tests.embedded.controllers.playing import Play, played, workload
from tests.embedded.serving import pod


@pytest.mark.parametrize("sizes", [[3], [3, 1], [3, 0], [0, 2], [600], [600, 10]])
@played
async def test_there_are_as_many_pods_as_asked_for(cluster: Play, sizes: list[int]) -> None:
    cluster.create("replicasets.apps", "web", workload(replicas=sizes[0]))
    for size in sizes:
        cluster.change("replicasets.apps", "web", replicas=size)
        await cluster.settle()
        assert len(cluster.pods()) == size
        assert cluster.get("replicasets.apps", "web")["status"]["replicas"] == size


@played
async def test_pods_that_end_or_go_are_replaced(cluster: Play) -> None:
    cluster.create("replicasets.apps", "web", workload(replicas=3))
    await cluster.settle()
    first, second, _ = cluster.pods()
    cluster.end([first], "Failed")
    cluster.delete("pods", second["metadata"]["name"])
    await cluster.settle()

    assert len(cluster.pods()) == 4
    assert cluster.get("replicasets.apps", "web")["status"]["replicas"] == 3


@played
async def test_status_counts_what_is_ready_and_for_how_long(cluster: Play) -> None:
    cluster.create("replicasets.apps", "web", workload(replicas=3, minReadySeconds=10))
    await cluster.settle()
    cluster.run(cluster.pods()[:2])
    await cluster.settle()
    status = cluster.get("replicasets.apps", "web")["status"]
    assert (status["readyReplicas"], status.get("availableReplicas")) == (2, None)

    await cluster.wait(10)
    assert cluster.get("replicasets.apps", "web")["status"]["availableReplicas"] == 2


@played
async def test_a_pod_without_owner_is_adopted_and_one_with_other_labels_released(
    cluster: Play,
) -> None:
    cluster.create("pods", "mine", pod("mine")["spec"], metadata={"labels": {"app": "web"}})
    cluster.create("pods", "other", pod("other")["spec"], metadata={"labels": {"app": "db"}})
    cluster.create("replicasets.apps", "web", workload(replicas=2))
    await cluster.settle()

    assert len(cluster.pods()) == 3
    (owner,) = cluster.get("pods", "mine")["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("ReplicaSet", "web", True)
    assert "ownerReferences" not in cluster.get("pods", "other")["metadata"]

    stray = cluster.get("pods", "mine")
    stray["metadata"]["labels"]["app"] = "astray"
    cluster.update("pods", stray)
    await cluster.settle()

    assert "ownerReferences" not in cluster.get("pods", "mine")["metadata"]
    assert len(cluster.pods()) == 4
    assert cluster.get("replicasets.apps", "web")["status"]["replicas"] == 2


@played
async def test_a_pod_that_comes_later_is_adopted_and_makes_another_superfluous(
    cluster: Play,
) -> None:
    cluster.create("replicasets.apps", "web", workload(replicas=1))
    await cluster.settle()
    cluster.run()
    cluster.create("pods", "late", pod("late")["spec"], metadata={"labels": {"app": "web"}})
    await cluster.settle()

    (left,) = cluster.pods()
    assert left["metadata"]["name"] != "late"


def made(name: str, **facts: Any) -> PodItem:
    ready = facts.pop("ready", False)
    return PodItem(
        table="pods",
        entry=Entry(f"default/{name}", 1, b"", {}, ()),
        uid=name,
        terminating=False,
        owners=(),
        finalizers=(),
        **{
            "created": 1.0,
            "node": "a",
            "phase": "Running",
            "ready": bool(ready),
            "ready_changed": float(ready),
            **facts,
        },
    )


@pytest.mark.parametrize(
    ("first", "last"),
    [
        pytest.param({"node": ""}, {"phase": "Pending"}, id="without a node"),
        pytest.param({"phase": "Pending"}, {"phase": "Running"}, id="not running"),
        pytest.param({"ready": 0}, {"ready": 5}, id="not ready"),
        pytest.param({"ready": 9}, {"ready": 5}, id="ready for a shorter time"),
        pytest.param({"created": 9.0}, {"created": 5.0}, id="younger"),
    ],
)
def test_which_pods_go_first(first: dict[str, Any], last: dict[str, Any]) -> None:
    pods = [made("last", **last), made("first", **first)]

    assert [each.name for each in least_missed(pods)] == ["first", "last"]


def test_pods_of_a_crowded_node_go_first() -> None:
    pods = [made("alone", node="b", ready=9), made("one", ready=1), made("two", ready=1)]

    assert [each.name for each in least_missed(pods)] == ["one", "two", "alone"]
