"""Claims of devices are made from templates, and are free again when nobody uses them."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.embedded.controllers.resource_claims import generated_prefix
from tests.embedded.controllers.playing import Json, Play, played
from tests.embedded.device_objects import (
    CLAIMS,
    PROTECTION,
    TEMPLATES,
    allocation,
    claim_spec,
    user,
)
from tests.embedded.serving import pod

TEMPLATE = {"name": "gpu", "resourceClaimTemplateName": "one-gpu"}


def make_template(cluster: Play, **metadata: Any) -> None:
    cluster.create(TEMPLATES, "one-gpu", {"metadata": metadata, "spec": claim_spec()})


def make_pod(cluster: Play, name: str = "p", *references: Json) -> Json:
    spec = pod(name, resourceClaims=list(references or (TEMPLATE,)))["spec"]
    return cluster.create("pods", name, spec)


def allocate(cluster: Play, name: str, *pods: Json) -> Json:
    """The scheduler's part: finalizer, then allocation and reservations."""
    item = cluster.get(CLAIMS, name)
    item["metadata"]["finalizers"] = [PROTECTION]
    item = cluster.update(CLAIMS, item)
    users = [user(each) for each in pods]
    return cluster.set_status(CLAIMS, item, allocation=allocation(), reservedFor=users)


def statuses(cluster: Play, name: str = "p") -> list[Json]:
    found: list[Json] = cluster.get("pods", name)["status"].get("resourceClaimStatuses", [])
    return found


@played
async def test_a_claim_is_made_from_a_template(cluster: Play) -> None:
    make_template(cluster, labels={"team": "a"}, annotations={"note": "b"})
    owner = make_pod(cluster)
    await cluster.settle()

    (claim,) = cluster.objects(CLAIMS)
    metadata = claim["metadata"]
    assert metadata["generateName"] == "p-gpu-"
    assert metadata["labels"] == {"team": "a"}
    assert metadata["annotations"] == {
        "note": "b",
        "resource.kubernetes.io/pod-claim-name": "gpu",
    }
    (reference,) = metadata["ownerReferences"]
    assert reference["uid"] == owner["metadata"]["uid"]
    assert reference["controller"]
    assert claim["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    assert statuses(cluster) == [{"name": "gpu", "resourceClaimName": metadata["name"]}]


@played
async def test_a_pod_waits_for_its_template(cluster: Play) -> None:
    make_pod(cluster)
    await cluster.settle()

    assert cluster.objects(CLAIMS) == []
    (event,) = cluster.objects("events")
    assert (event["type"], event["reason"]) == ("Warning", "FailedResourceClaimCreation")
    assert event["message"] == (
        'PodResourceClaim gpu: resource claim template "one-gpu": '
        'resourceclaimtemplate.resource.k8s.io "one-gpu" not found'
    )

    make_template(cluster)
    await cluster.settle()

    assert len(cluster.objects(CLAIMS)) == len(statuses(cluster)) == 1


@played
async def test_a_claim_that_was_made_before_is_found_again(cluster: Play) -> None:
    make_template(cluster)
    make_pod(cluster)
    await cluster.settle()
    (claim,) = cluster.names(CLAIMS)
    item = cluster.get("pods", "p")
    del item["status"]["resourceClaimStatuses"]
    cluster.api.update_status(cluster.api.kinds["pods"], "default", "p", item)
    await cluster.settle()

    assert cluster.names(CLAIMS) == [claim]
    assert statuses(cluster) == [{"name": "gpu", "resourceClaimName": claim}]


@played
async def test_a_claim_that_is_deleted_is_made_again(cluster: Play) -> None:
    make_template(cluster)
    make_pod(cluster)
    await cluster.settle()
    (first,) = cluster.names(CLAIMS)
    cluster.delete(CLAIMS, first)
    await cluster.settle()

    (second,) = cluster.names(CLAIMS)
    assert second != first
    assert statuses(cluster) == [{"name": "gpu", "resourceClaimName": second}]


@played
async def test_a_finished_pod_frees_its_generated_claim(cluster: Play) -> None:
    make_template(cluster)
    owner = make_pod(cluster)
    await cluster.settle()
    (claim,) = cluster.names(CLAIMS)
    allocate(cluster, claim, owner)
    cluster.bind(owner, "n")
    await cluster.settle()
    assert cluster.get(CLAIMS, claim)["status"]["reservedFor"] == [user(owner)]

    cluster.end([cluster.get("pods", "p")])
    await cluster.settle()

    assert cluster.objects(CLAIMS) == []


@played
async def test_a_deleted_pod_takes_its_generated_claim_with_it(cluster: Play) -> None:
    make_template(cluster)
    owner = make_pod(cluster)
    await cluster.settle()
    (claim,) = cluster.names(CLAIMS)
    allocate(cluster, claim, owner)
    cluster.bind(owner, "n")
    cluster.delete("pods", "p")
    await cluster.settle()
    assert cluster.get(CLAIMS, claim)["status"]["reservedFor"], "it is still running"

    cluster.sweep()
    await cluster.settle()

    assert cluster.objects(CLAIMS) == []


@played
async def test_a_shared_claim_is_free_after_its_last_user(cluster: Play) -> None:
    cluster.create(CLAIMS, "shared", claim_spec())
    reference = {"name": "gpu", "resourceClaimName": "shared"}
    users = [make_pod(cluster, name, reference) for name in ("a", "b")]
    allocate(cluster, "shared", *users)
    for each in users:
        cluster.bind(each, "n")
    await cluster.settle()

    cluster.end([cluster.get("pods", "a")])
    await cluster.settle()
    shared = cluster.get(CLAIMS, "shared")
    assert shared["status"] == {"allocation": allocation(), "reservedFor": [user(users[1])]}

    cluster.end([cluster.get("pods", "b")])
    await cluster.settle()
    shared = cluster.get(CLAIMS, "shared")
    assert shared["status"] == {}
    assert "finalizers" not in shared["metadata"]


@played
async def test_a_user_that_never_ran_is_dropped(cluster: Play) -> None:
    cluster.create(CLAIMS, "shared", claim_spec())
    waiting = make_pod(cluster, "a", {"name": "gpu", "resourceClaimName": "shared"})
    gone = {**user(waiting), "uid": "somebody-else"}
    item = allocate(cluster, "shared", waiting)
    cluster.set_status(CLAIMS, item, reservedFor=[gone, user(waiting)])
    await cluster.settle()
    assert cluster.get(CLAIMS, "shared")["status"]["reservedFor"] == [user(waiting)]

    cluster.delete("pods", "a")
    await cluster.settle()

    assert cluster.get(CLAIMS, "shared")["status"] == {}


@played
async def test_an_allocated_claim_without_users_stays_until_it_is_deleted(cluster: Play) -> None:
    cluster.create(CLAIMS, "spare", claim_spec())
    allocate(cluster, "spare")
    await cluster.settle()
    assert cluster.get(CLAIMS, "spare")["status"]["allocation"] == allocation()

    cluster.delete(CLAIMS, "spare")
    await cluster.settle()

    assert cluster.objects(CLAIMS) == []


@played
async def test_a_claim_with_users_is_not_removed(cluster: Play) -> None:
    cluster.create(CLAIMS, "shared", claim_spec())
    running = make_pod(cluster, "a", {"name": "gpu", "resourceClaimName": "shared"})
    allocate(cluster, "shared", running)
    cluster.bind(running, "n")
    cluster.delete(CLAIMS, "shared")
    await cluster.settle()
    assert cluster.get(CLAIMS, "shared")["status"]["allocation"]

    cluster.end([cluster.get("pods", "a")])
    await cluster.settle()

    assert cluster.objects(CLAIMS) == []


@played
async def test_a_pod_bound_around_the_scheduler_gets_its_reservation(cluster: Play) -> None:
    cluster.create(CLAIMS, "shared", claim_spec())
    cluster.create(CLAIMS, "free", claim_spec())
    bound = make_pod(
        cluster,
        "a",
        {"name": "gpu", "resourceClaimName": "shared"},
        {"name": "other", "resourceClaimName": "free"},
    )
    allocate(cluster, "shared")
    cluster.bind(bound, "n")
    await cluster.settle()

    assert cluster.get(CLAIMS, "shared")["status"]["reservedFor"] == [user(bound)]
    assert cluster.get(CLAIMS, "free")["status"] == {}


@pytest.mark.parametrize(
    ("pod_name", "reference", "prefix"),
    [
        ("web", "gpu", "web-gpu-"),
        ("p" * 53, "gpu", f"{'p' * 53}-gpu-"),
        ("p" * 80, "gpu", f"{'p' * 54}-gp-"),
        ("p" * 40, "r" * 40, f"{'p' * 28}-{'r' * 28}-"),
    ],
)
def test_names_are_shortened_in_proportion(pod_name: str, reference: str, prefix: str) -> None:
    assert generated_prefix(pod_name, reference) == prefix
