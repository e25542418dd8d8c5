"""Events: what controllers tell, and how much of it."""

from __future__ import annotations

from tests.embedded.controllers.playing import Json, Play, played, workload


def told(cluster: Play, reason: str) -> list[Json]:
    return [each for each in cluster.objects("events") if each["reason"] == reason]


@played
async def test_what_is_made_is_told_of_its_owner(cluster: Play) -> None:
    cluster.create("deployments.apps", "web", workload(replicas=1))
    await cluster.settle()

    (pod,) = cluster.pods()
    (scaled,), (created,) = told(cluster, "ScalingReplicaSet"), told(cluster, "SuccessfulCreate")
    (owner,) = cluster.names("replicasets.apps")
    assert scaled["message"] == f"Scaled up replica set {owner} from 0 to 1"
    assert scaled["source"] == {"component": "deployment-controller"}
    assert scaled["involvedObject"]["kind"] == "Deployment"
    assert created["message"] == f"Created pod: {pod['metadata']['name']}"
    assert created["involvedObject"]["name"] == owner
    assert (created["type"], created["count"]) == ("Normal", 1)


@played
async def test_many_alike_are_told_as_one_and_then_no_more(cluster: Play) -> None:
    cluster.create("replicasets.apps", "web", workload(replicas=600))
    await cluster.settle()

    events = told(cluster, "SuccessfulCreate")
    combined = [each for each in events if each["message"].startswith("(combined")]
    assert len(events) == 10
    assert [each["count"] for each in combined] == [16]


@played
async def test_after_a_while_there_is_more_to_tell(cluster: Play) -> None:
    cluster.create("replicasets.apps", "web", workload(replicas=100))
    await cluster.settle()
    cluster.change("replicasets.apps", "web", replicas=99)
    await cluster.settle()
    assert told(cluster, "SuccessfulDelete") == []

    await cluster.wait(301)
    cluster.change("replicasets.apps", "web", replicas=98)
    await cluster.settle()
    assert len(told(cluster, "SuccessfulDelete")) == 1


@played
async def test_the_same_again_is_counted(cluster: Play) -> None:
    spec = workload(replicas=1)
    cluster.create("deployments.apps", "web", spec)
    for size in (2, 1, 2, 1):
        cluster.change("deployments.apps", "web", replicas=size)
        await cluster.settle()

    counts = {
        each["message"].rpartition("from ")[2]: each["count"]
        for each in told(cluster, "ScalingReplicaSet")
    }
    assert (counts["1 to 2"], counts["2 to 1"]) == (1, 2)
