"""Claims and volumes find each other."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.controllers.playing import Json, Play, played
from tests.embedded.serving import node

CLAIMS, VOLUMES, CLASSES = (
    "persistentvolumeclaims",
    "persistentvolumes",
    "storageclasses.storage.k8s.io",
)


def claim(size: str = "1Gi", **spec: Any) -> Json:
    requests = {"requests": {"storage": size}}
    return {
        "accessModes": ["ReadWriteOnce"],
        "resources": requests,
        "storageClassName": "",
        **spec,
    }


def volume(size: str = "1Gi", **spec: Any) -> Json:
    return {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "hostPath": {"path": "/x"},
        **spec,
    }


def phases(cluster: Play, resource: str) -> dict[str, str]:
    return {each["metadata"]["name"]: each["status"]["phase"] for each in cluster.objects(resource)}


def bound_to(cluster: Play, name: str = "c") -> str | None:
    return cluster.get(CLAIMS, name)["spec"].get("volumeName")


@pytest.mark.parametrize(
    ("wanted", "offered", "chosen"),
    [
        pytest.param(claim(), {"v": volume()}, "v", id="what suits"),
        pytest.param(
            claim("2Gi"),
            {"a": volume("9Gi"), "b": volume("3Gi"), "c": volume("1Gi")},
            "b",
            id="the smallest that is large enough",
        ),
        pytest.param(claim(), {"v": volume(storageClassName="fast")}, None, id="another class"),
        pytest.param(claim(volumeMode="Block"), {"v": volume()}, None, id="another mode"),
        pytest.param(
            claim(accessModes=["ReadWriteMany"]), {"v": volume()}, None, id="another access"
        ),
        pytest.param(
            claim(selector={"matchLabels": {"a": "b"}}), {"v": volume()}, None, id="other labels"
        ),
        pytest.param(
            claim(),
            {"v": volume(claimRef={"namespace": "default", "name": "d"}), "w": volume("2Gi")},
            "w",
            id="promised to another",
        ),
        pytest.param(
            claim("9Gi"),
            {"v": volume(claimRef={"namespace": "default", "name": "c"})},
            "v",
            id="promised to this one",
        ),
        pytest.param(claim(volumeName="v"), {"v": volume(), "a": volume()}, "v", id="by name"),
    ],
)
@pytest.mark.parametrize("claim_first", [True, False])
@played
async def test_a_claim_is_bound_to_what_suits_it(
    cluster: Play, wanted: Json, offered: dict[str, Json], chosen: str | None, claim_first: bool
) -> None:
    if claim_first:
        cluster.create(CLAIMS, "c", wanted)
        # All volumes come at once, so that the choice does not depend on which comes first.
    for name, spec in offered.items():
        cluster.create(VOLUMES, name, spec)
    if not claim_first:
        await cluster.settle()
        cluster.create(CLAIMS, "c", wanted)
    await cluster.settle()

    assert bound_to(cluster) == chosen
    assert phases(cluster, CLAIMS) == {"c": "Bound" if chosen else "Pending"}
    expected = {name: "Bound" if name == chosen else "Available" for name in offered}
    assert phases(cluster, VOLUMES) == expected
    if chosen:
        item = cluster.get(CLAIMS, "c")
        assert item["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
        assert item["status"]["capacity"] == offered[chosen]["capacity"]
        reference = cluster.get(VOLUMES, chosen)["spec"]["claimRef"]
        assert reference["uid"] == item["metadata"]["uid"]


def add_class(cluster: Play, mode: str = "Immediate", **more: Any) -> None:
    given = {"provisioner": "example.com/disks", "volumeBindingMode": mode, **more}
    cluster.create(CLASSES, "fast", **given)


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
@played
async def test_a_volume_is_made_and_reclaimed(cluster: Play, policy: str) -> None:
    add_class(cluster, reclaimPolicy=policy)
    cluster.create(CLAIMS, "c", claim("7Gi", storageClassName="fast"))
    await cluster.settle()
    (made,) = cluster.objects(VOLUMES)
    assert bound_to(cluster) == made["metadata"]["name"]
    assert made["spec"]["capacity"] == {"storage": "7Gi"}
    assert "nodeAffinity" not in made["spec"]
    assert phases(cluster, CLAIMS) == {"c": "Bound"}

    cluster.delete(CLAIMS, "c")
    await cluster.settle()
    left = list(phases(cluster, VOLUMES).values())
    assert left == ([] if policy == "Delete" else ["Released"])

    # What was left behind is nobody's before somebody has looked at it.
    cluster.create(CLAIMS, "c", claim("7Gi", storageClassName="fast"))
    await cluster.settle()
    assert bound_to(cluster) != made["metadata"]["name"]


@played
async def test_a_claim_that_waits_is_served_on_the_node_that_was_selected(cluster: Play) -> None:
    add_class(cluster, "WaitForFirstConsumer")
    cluster.create("nodes", "n", **{**node("n"), "metadata": {"labels": HOST}})
    cluster.create(CLAIMS, "c", claim(storageClassName="fast"))
    await cluster.settle()
    assert cluster.objects(VOLUMES) == []

    selected(cluster, "n")
    await cluster.settle()
    (made,) = cluster.objects(VOLUMES)
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    (expression,) = term["matchExpressions"]
    assert expression == {"key": "kubernetes.io/hostname", "operator": "In", "values": ["host"]}
    assert phases(cluster, CLAIMS) == {"c": "Bound"}


HOST = {"kubernetes.io/hostname": "host"}


def selected(cluster: Play, name: str) -> None:
    item = cluster.get(CLAIMS, "c")
    item["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": name}
    cluster.update(CLAIMS, item)


@played
async def test_the_choice_of_a_node_that_is_gone_is_taken_back(cluster: Play) -> None:
    add_class(cluster, "WaitForFirstConsumer")
    cluster.create(CLAIMS, "c", claim(storageClassName="fast"))
    selected(cluster, "nobody")
    await cluster.settle()

    assert cluster.get(CLAIMS, "c")["metadata"].get("annotations") in (None, {})
    assert cluster.objects(VOLUMES) == []


@played
async def test_what_the_scheduler_began_is_finished(cluster: Play) -> None:
    add_class(cluster, "WaitForFirstConsumer", provisioner="kubernetes.io/no-provisioner")
    wanted = cluster.create(CLAIMS, "c", claim(storageClassName="fast"))
    cluster.create(VOLUMES, "v", volume(storageClassName="fast"))
    await cluster.settle()
    assert bound_to(cluster) is None

    uid = wanted["metadata"]["uid"]
    cluster.change(VOLUMES, "v", claimRef={"namespace": "default", "name": "c", "uid": uid})
    await cluster.settle()
    assert bound_to(cluster) == "v"
    assert (phases(cluster, CLAIMS), phases(cluster, VOLUMES)) == ({"c": "Bound"}, {"v": "Bound"})


@played
async def test_a_claim_waits_for_its_class(cluster: Play) -> None:
    cluster.create(CLAIMS, "c", claim(storageClassName="fast"))
    await cluster.settle()
    assert phases(cluster, CLAIMS) == {"c": "Pending"}
    add_class(cluster)
    await cluster.settle()
    assert phases(cluster, CLAIMS) == {"c": "Bound"}


@played
async def test_a_claim_whose_volume_is_gone_is_lost(cluster: Play) -> None:
    cluster.create(VOLUMES, "v", volume())
    cluster.create(CLAIMS, "c", claim())
    await cluster.settle()
    cluster.delete(VOLUMES, "v")
    await cluster.settle()

    assert phases(cluster, CLAIMS) == {"c": "Lost"}
