"""What belongs to something goes with it, or stays, as was asked."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.embedded.api.request_options import Propagation
from tests.embedded.controllers.playing import Json, Play, played, workload

ALL = ("deployments.apps", "replicasets.apps", "pods")


def left(cluster: Play) -> list[int]:
    return [len(cluster.names(each)) for each in ALL]


async def deployed(cluster: Play) -> None:
    cluster.create("deployments.apps", "web", workload(replicas=2))
    await cluster.settle()
    for each in cluster.pods():
        cluster.bind(each, "n")
    cluster.run()
    await cluster.settle()
    assert left(cluster) == [1, 1, 2]


@pytest.mark.parametrize(
    ("propagation", "at_once", "at_last"),
    [
        pytest.param("Background", [0, 0, 2], [0, 0, 0], id="background"),
        pytest.param("Foreground", [1, 1, 2], [0, 0, 0], id="foreground waits for the pods"),
        pytest.param("Orphan", [0, 1, 2], [0, 1, 2], id="orphan"),
    ],
)
@played
async def test_what_becomes_of_dependents(
    cluster: Play, propagation: Propagation, at_once: list[int], at_last: list[int]
) -> None:
    await deployed(cluster)

    cluster.delete("deployments.apps", "web", propagation)
    await cluster.settle()
    assert left(cluster) == at_once
    going = len(cluster.pods(going=True))
    assert going == (0 if propagation == "Orphan" else 2)

    cluster.sweep()
    await cluster.settle()
    assert left(cluster) == at_last


@played
async def test_orphans_are_adopted_by_who_comes_next(cluster: Play) -> None:
    await deployed(cluster)
    cluster.delete("deployments.apps", "web", "Orphan")
    await cluster.settle()
    (orphan,) = cluster.objects("replicasets.apps")
    assert "ownerReferences" not in orphan["metadata"]

    again = cluster.create("deployments.apps", "web", workload(replicas=2))
    await cluster.settle()
    (adopted,) = cluster.objects("replicasets.apps")
    assert adopted["metadata"]["uid"] == orphan["metadata"]["uid"]
    assert adopted["metadata"]["ownerReferences"][0]["uid"] == again["metadata"]["uid"]
    assert len(cluster.pods()) == 2


def owner(item: Json, **more: Any) -> Json:
    metadata = item["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": metadata["name"],
        "uid": metadata["uid"],
        **more,
    }


def owned(cluster: Play, name: str, *owners: Json) -> None:
    cluster.create("configmaps", name, metadata={"ownerReferences": list(owners)})


@played
async def test_an_object_goes_with_its_last_owner(cluster: Play) -> None:
    first, second = cluster.create("configmaps", "one"), cluster.create("configmaps", "two")
    owned(cluster, "both", owner(first), owner(second))
    cluster.delete("configmaps", "one")
    await cluster.settle()
    assert cluster.get("configmaps", "both")["metadata"]["ownerReferences"] == [owner(second)]

    cluster.delete("configmaps", "two")
    await cluster.settle()
    assert cluster.names("configmaps") == []


@pytest.mark.parametrize(
    ("reference", "stays"),
    [
        pytest.param({"uid": "another"}, False, id="another of the same name"),
        pytest.param({"uid": "x", "kind": "Unknown", "apiVersion": "x.io/v1"}, True, id="unserved"),
        pytest.param({}, True, id="there"),
    ],
)
@played
async def test_owners_are_known_by_uid(cluster: Play, reference: Json, stays: bool) -> None:
    root = cluster.create("configmaps", "root")
    owned(cluster, "leaf", {**owner(root), **reference})
    await cluster.settle()

    assert ("leaf" in cluster.names("configmaps")) is stays


@pytest.mark.parametrize("first", ["a", "b", "c"])
@played
async def test_foreground_deletion_of_a_circle_of_owners_ends(cluster: Play, first: str) -> None:
    names = ("a", "b", "c")
    made = {name: cluster.create("configmaps", name) for name in names}
    for name, behind in zip(names, ("c", "a", "b"), strict=True):
        item = cluster.get("configmaps", name)
        item["metadata"]["ownerReferences"] = [owner(made[behind], blockOwnerDeletion=True)]
        cluster.update("configmaps", item)
    await cluster.settle()
    assert cluster.names("configmaps") == list(names)

    cluster.delete("configmaps", first, "Foreground")
    await cluster.settle()

    assert cluster.names("configmaps") == []


@pytest.mark.parametrize("blocks", [True, False])
@played
async def test_only_dependents_that_block_are_waited_for(cluster: Play, blocks: bool) -> None:
    root = cluster.create("configmaps", "root")
    finalizers = ["example.com/mine"]
    cluster.create(
        "configmaps",
        "leaf",
        metadata={
            "ownerReferences": [owner(root, blockOwnerDeletion=blocks)],
            "finalizers": finalizers,
        },
    )
    cluster.delete("configmaps", "root", "Foreground")
    await cluster.settle()
    assert ("root" in cluster.names("configmaps")) is blocks

    item = cluster.get("configmaps", "leaf")
    item["metadata"]["finalizers"] = []
    cluster.update("configmaps", item)
    await cluster.settle()
    assert cluster.names("configmaps") == []


@played
async def test_a_namespace_goes_once_it_is_empty(cluster: Play) -> None:
    api = cluster.api
    cluster.create("namespaces", "mine")
    for kind, item in (
        ("configmaps", {"metadata": {"name": "a"}}),
        ("events", {"metadata": {"name": "e"}, "involvedObject": {"namespace": "mine"}}),
        ("deployments.apps", {"metadata": {"name": "web"}, "spec": workload(replicas=300)}),
    ):
        api.create(api.kinds[kind], "mine", item)
    await cluster.settle()
    held = api.create(
        api.kinds["configmaps"], "mine", {"metadata": {"name": "h", "finalizers": ["x.io/held"]}}
    ).object
    cluster.delete("namespaces", "mine")
    await cluster.settle()
    assert cluster.get("namespaces", "mine")["status"]["phase"] == "Terminating"
    assert left(cluster) == [0, 0, 0]
    assert cluster.names("configmaps") == ["h"]

    current = api.get(api.kinds["configmaps"], "mine", held["metadata"]["name"]).object
    current["metadata"]["finalizers"] = []
    cluster.update("configmaps", current)
    await cluster.settle()
    assert "mine" not in cluster.names("namespaces")
    assert cluster.names("events") == []


@played
async def test_custom_resources_own_things_too(cluster: Play) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"plural": "trains", "singular": "train", "kind": "Train", "listKind": "TrainList"}
    spec = {"group": "x.io", "scope": "Namespaced", "names": names, "versions": [version]}
    cluster.create("customresourcedefinitions.apiextensions.k8s.io", "trains.x.io", spec)
    await cluster.settle()
    train = cluster.create("trains.x.io", "t")
    reference = {**owner(train), "kind": "Train", "apiVersion": "x.io/v1"}
    owned(cluster, "leaf", reference)
    await cluster.settle()
    assert cluster.names("configmaps") == ["leaf"]

    cluster.delete("trains.x.io", "t")
    await cluster.settle()
    assert cluster.names("configmaps") == []
