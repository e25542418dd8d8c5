"""Claims of stateful sets: kept or not when pods or sets go."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.controllers.playing import Json, Play, played, workload
from tests.embedded.controllers.test_sets import names, newer, step

_CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def stateful(deleted: str, scaled: str, **more: Any) -> Json:
    policy = {"whenDeleted": deleted, "whenScaled": scaled}
    return workload(
        serviceName="db",
        volumeClaimTemplates=[_CLAIM],
        persistentVolumeClaimRetentionPolicy=policy,
        **more,
    )


async def up(cluster: Play, deleted: str, scaled: str, size: int) -> None:
    spec = stateful(deleted, scaled, replicas=size, podManagementPolicy="Parallel")
    cluster.create("statefulsets.apps", "db", spec)
    for _ in range(3):
        await step(cluster)


def claims(cluster: Play) -> list[str]:
    return [name.rpartition("-")[2] for name in cluster.names("persistentvolumeclaims")]


@pytest.mark.parametrize(
    ("deleted", "scaled", "after_scaling", "after_deleting"),
    [
        ("Retain", "Retain", ["0", "1", "2"], ["0", "1", "2"]),
        ("Retain", "Delete", ["0"], ["0"]),
        ("Delete", "Retain", ["0", "1", "2"], []),
        ("Delete", "Delete", ["0"], []),
    ],
)
@played
async def test_what_becomes_of_claims(
    cluster: Play, deleted: str, scaled: str, after_scaling: list[str], after_deleting: list[str]
) -> None:
    await up(cluster, deleted, scaled, 3)
    assert claims(cluster) == ["0", "1", "2"]

    cluster.change("statefulsets.apps", "db", replicas=1)
    for _ in range(3):
        await step(cluster)
    assert names(cluster) == ["db-0"]
    assert claims(cluster) == after_scaling

    cluster.delete("statefulsets.apps", "db")
    for _ in range(3):
        await step(cluster)
    assert names(cluster) == []
    assert claims(cluster) == after_deleting


@played
async def test_a_policy_that_changes_holds_for_claims_that_are_there(cluster: Play) -> None:
    await up(cluster, "Retain", "Retain", 1)
    (claim,) = cluster.objects("persistentvolumeclaims")
    assert "ownerReferences" not in claim["metadata"]

    policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    cluster.change("statefulsets.apps", "db", persistentVolumeClaimRetentionPolicy=policy)
    await cluster.settle()
    (claim,) = cluster.objects("persistentvolumeclaims")
    assert [each["kind"] for each in claim["metadata"]["ownerReferences"]] == ["StatefulSet"]

    policy = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    cluster.change("statefulsets.apps", "db", persistentVolumeClaimRetentionPolicy=policy)
    await cluster.settle()
    (claim,) = cluster.objects("persistentvolumeclaims")
    assert "ownerReferences" not in claim["metadata"]


@played
async def test_a_claim_that_somebody_else_manages_is_left_to_them(cluster: Play) -> None:
    await up(cluster, "Retain", "Retain", 1)
    (claim,) = cluster.objects("persistentvolumeclaims")
    owner = cluster.create("configmaps", "other")
    claim["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "other",
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
    ]
    cluster.update("persistentvolumeclaims", claim)
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    cluster.change("statefulsets.apps", "db", persistentVolumeClaimRetentionPolicy=policy)
    await cluster.settle()

    (claim,) = cluster.objects("persistentvolumeclaims")
    assert [each["kind"] for each in claim["metadata"]["ownerReferences"]] == ["ConfigMap"]


@played
async def test_a_pod_waits_until_the_claims_of_the_last_of_its_name_are_gone(
    cluster: Play,
) -> None:
    await up(cluster, "Retain", "Delete", 2)
    held = cluster.get("persistentvolumeclaims", "data-db-1")
    held["metadata"]["finalizers"] = ["example.com/held"]
    cluster.update("persistentvolumeclaims", held)
    cluster.change("statefulsets.apps", "db", replicas=1)
    for _ in range(3):
        await step(cluster)
    cluster.change("statefulsets.apps", "db", replicas=2)
    await cluster.wait(5)
    assert names(cluster) == ["db-0"]

    held = cluster.get("persistentvolumeclaims", "data-db-1")
    held["metadata"]["finalizers"] = []
    cluster.update("persistentvolumeclaims", held)
    await cluster.wait(2)
    assert names(cluster) == ["db-0", "db-1"]
    fresh = cluster.get("persistentvolumeclaims", "data-db-1")["metadata"]
    assert fresh["uid"] != held["metadata"]["uid"]


@played
async def test_a_pod_waits_until_a_claim_that_was_deleted_is_gone(cluster: Play) -> None:
    await up(cluster, "Retain", "Retain", 1)
    held = cluster.get("persistentvolumeclaims", "data-db-0")
    held["metadata"]["finalizers"] = ["example.com/held"]
    cluster.update("persistentvolumeclaims", held)
    cluster.delete("persistentvolumeclaims", "data-db-0")
    cluster.delete("pods", "db-0", grace=0)
    await cluster.wait(5)
    assert names(cluster) == []

    held = cluster.get("persistentvolumeclaims", "data-db-0")
    held["metadata"]["finalizers"] = []
    cluster.update("persistentvolumeclaims", held)
    await cluster.wait(2)
    assert names(cluster) == ["db-0"]


@played
async def test_what_is_written_on_pods_versions_and_events(cluster: Play) -> None:
    spec = stateful("Retain", "Retain", replicas=1)
    cause = {"kubernetes.io/change-cause": "first"}
    cluster.create("statefulsets.apps", "db", spec, metadata={"annotations": cause})
    await step(cluster)
    (version,) = cluster.objects("controllerrevisions.apps")
    name = version["metadata"]["name"]
    labels = cluster.get("pods", "db-0")["metadata"]["labels"]
    assert labels == {
        "app": "web",
        "apps.kubernetes.io/pod-index": "0",
        "controller-revision-hash": name,
        "statefulset.kubernetes.io/pod-name": "db-0",
    }
    assert version["metadata"]["annotations"] == cause
    hashed = version["metadata"]["labels"]["controller.kubernetes.io/hash"]
    assert name == f"db-{hashed}"
    assert {each["message"] for each in cluster.objects("events")} == {
        "Create Claim data-db-0 Pod db-0 in StatefulSet db success",
        "Create Pod db-0 in StatefulSet db successful",
    }


@played
async def test_ordinals_and_partition_count_from_the_first(cluster: Play) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    spec = workload(replicas=2, serviceName="db", ordinals={"start": 5}, updateStrategy=strategy)
    cluster.create("statefulsets.apps", "db", spec)
    for _ in range(2):
        await step(cluster)
    assert names(cluster) == ["db-5", "db-6"]
    cluster.change("statefulsets.apps", "db", template=newer())
    for _ in range(3):
        await step(cluster)

    images = [each["spec"]["containers"][0]["image"][-1] for each in cluster.pods()]
    assert images == ["1", "2"]
