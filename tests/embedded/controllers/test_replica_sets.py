"""ReplicaSets: the right number of the right pods."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.embedded.controllers.items import PodItem
from moorage.embedded.controllers.replica_sets import DELETION_COST, rank_for_removal
from moorage.embedded.store.object_store import StoredObject, encode
from tests.embedded.controllers.playing import Play, played, template, workload
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
    await cluster.wait(5)
    first, second, _ = cluster.pods()
    cluster.end([first], "Failed")
    cluster.delete("pods", second["metadata"]["name"])
    await cluster.settle()

    assert len(cluster.pods()) == 4
    assert cluster.get("replicasets.apps", "web")["status"]["replicas"] == 3


@played
async def test_pods_that_fail_as_soon_as_they_come_are_replaced_after_a_pause(
    cluster: Play,
) -> None:
    cluster.create("replicasets.apps", "web", workload(replicas=3))
    await cluster.settle()
    for round_ in range(1, 4):
        cluster.end((e for e in cluster.pods() if e["status"]["phase"] == "Pending"), "Failed")
        await cluster.settle()
        assert len(cluster.pods()) == 3 * round_
        await cluster.wait(2.5)
    assert len(cluster.pods()) == 12


@played
async def test_pods_that_fail_because_they_are_deleted_are_replaced_at_once(cluster: Play) -> None:
    cluster.create("replicasets.apps", "web", workload(replicas=1))
    await cluster.settle()
    (first,) = cluster.pods()
    cluster.bind(first, "n")
    cluster.delete("pods", first["metadata"]["name"])
    cluster.end(cluster.pods(going=True), "Failed")
    await cluster.settle()

    assert len(cluster.pods()) == 1


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


@played
async def test_pods_that_are_stopping_are_counted(cluster: Play) -> None:
    cluster.create("replicasets.apps", "web", workload(replicas=2))
    await cluster.settle()
    for each in cluster.pods():
        cluster.bind(each, "n")
    cluster.run()
    cluster.change("replicasets.apps", "web", replicas=1)
    await cluster.settle()
    assert cluster.get("replicasets.apps", "web")["status"]["terminatingReplicas"] == 1

    cluster.sweep()
    await cluster.settle()
    assert cluster.get("replicasets.apps", "web")["status"]["terminatingReplicas"] == 0


@played
async def test_a_refusal_is_told_until_pods_come(cluster: Play) -> None:
    spec = workload(replicas=1)
    spec["template"]["spec"]["priorityClassName"] = "urgent"
    cluster.create("deployments.apps", "web", spec)
    await cluster.settle()

    (set_,) = cluster.objects("replicasets.apps")
    (failure,) = set_["status"]["conditions"]
    assert (failure["type"], failure["reason"]) == ("ReplicaFailure", "FailedCreate")
    assert "urgent" in failure["message"]
    told = [each for each in cluster.objects("events") if each["reason"] == "FailedCreate"]
    assert f"Error creating: {failure['message']}" in [each["message"] for each in told]
    # The first refusal, and the look at the status that tells of it.
    assert len(told) == 2
    deployment = cluster.get("deployments.apps", "web")["status"]["conditions"]
    assert failure["message"] in [each["message"] for each in deployment]

    cluster.create("priorityclasses.scheduling.k8s.io", "urgent", value=7)
    await cluster.wait(60)
    assert len(cluster.pods()) == 1
    assert "conditions" not in cluster.get("replicasets.apps", set_["metadata"]["name"])["status"]
    deployment = cluster.get("deployments.apps", "web")["status"]["conditions"]
    assert {each["type"] for each in deployment} == {"Available", "Progressing"}


@played
async def test_pods_of_other_versions_crowd_a_node_too(cluster: Play) -> None:
    cluster.create("deployments.apps", "web", workload(replicas=3))
    await cluster.settle()
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    for each, node in zip(cluster.pods(), "abc", strict=True):
        cluster.bind(each, node)
    cluster.run()
    await cluster.settle()
    newer = template()
    newer["spec"]["containers"][0]["image"] = "registry.example/app:2"
    cluster.change("deployments.apps", "web", template=newer, strategy=strategy)
    await cluster.settle()
    (first,) = [each for each in cluster.pods() if each["status"]["phase"] == "Pending"]
    running = [each for each in cluster.pods() if each["status"]["phase"] == "Running"]
    # By uid it would be the last.
    last = max(running, key=lambda each: each["metadata"]["uid"])
    cluster.bind(first, last["spec"]["nodeName"])
    cluster.run()
    await cluster.settle()

    (gone,) = cluster.pods(going=True)
    assert gone["metadata"]["name"] == last["metadata"]["name"]


def made(name: str, **facts: Any) -> PodItem:
    ready = facts.pop("ready", False)
    notes = {DELETION_COST: facts.pop("cost")} if "cost" in facts else {}
    body = {
        "metadata": {"annotations": notes},
        "status": {"containerStatuses": [{"restartCount": facts.pop("restarts", 0)}]},
    }
    return PodItem(
        table="pods",
        entry=StoredObject(f"default/{name}", 1, encode(body), {}, ()),
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
            "has_claims": False,
            **facts,
        },
    )


@pytest.mark.parametrize(
    ("first", "last"),
    [
        pytest.param({"node": ""}, {"phase": "Pending"}, id="without a node"),
        pytest.param({"phase": "Pending", "cost": "9"}, {"phase": "Running"}, id="not running"),
        pytest.param({"ready": 0, "cost": "9"}, {"ready": 5}, id="not ready"),
        pytest.param({"cost": "-1", "ready": 5}, {"ready": 9}, id="cheaper to lose"),
        pytest.param({"ready": 5}, {"cost": "1", "ready": 9}, id="free to lose"),
        pytest.param({"ready": 9}, {"ready": 5}, id="ready for a shorter time"),
        pytest.param({"restarts": 2}, {"restarts": 1, "created": 9.0}, id="restarted more often"),
        pytest.param({"created": 9.0}, {"created": 5.0}, id="younger"),
        pytest.param({"ready": 300, "created": 5.0}, {"ready": 5, "created": 300.0}, id="age last"),
    ],
)
def test_which_pods_go_first(first: dict[str, Any], last: dict[str, Any]) -> None:
    # By uid alone it would be the other way round.
    pods = [made("a-last", **last), made("b-first", **first)]

    assert [each.name for each in rank_for_removal(pods, 10.0)] == ["b-first", "a-last"]


@pytest.mark.parametrize("cost", ["+1", "007", "1.5", "much", "", "9999999999", "-9999999999"])
def test_a_cost_that_cannot_be_read_is_none(cost: str) -> None:
    pods = [made("b", cost=cost), made("c", cost="1"), made("a", cost="-1")]

    assert [each.name for each in rank_for_removal(pods, 10.0)] == ["a", "b", "c"]


def test_of_pods_of_about_the_same_age_chance_decides() -> None:
    pods = [made("b", ready=5), made("a", ready=4)]

    assert [each.name for each in rank_for_removal(pods, 1000.0)] == ["a", "b"]


def test_pods_of_a_crowded_node_go_first() -> None:
    pods = [made("alone", node="b", ready=9), made("one", ready=1), made("two", ready=1)]

    assert [each.name for each in rank_for_removal(pods, 10.0)] == ["one", "two", "alone"]
