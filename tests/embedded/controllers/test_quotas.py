"""Quotas: the server adds what is created, the controller takes off what is gone."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.embedded.api.request_options import WriteOptions
from moorage.embedded.request_refusals import RequestRefused
from tests.embedded.controllers.playing import Json, Play, played, workload


async def limited(cluster: Play, hard: Json, **spec: Any) -> None:
    cluster.create("resourcequotas", "q", {"hard": hard, **spec})
    await cluster.settle()


def used(cluster: Play) -> Json:
    found: Json = cluster.get("resourcequotas", "q")["status"]["used"]
    return found


def pod(cluster: Play, name: str, requests: Json | None = None, **spec: Any) -> None:
    resources = {"requests": requests} if requests else {}
    containers = [{"name": "main", "image": "a", "resources": resources}]
    cluster.create("pods", name, {"containers": containers, **spec})


@played
async def test_requests_are_counted_and_given_back(cluster: Play) -> None:
    await limited(cluster, {"requests.cpu": "2", "memory": "1Gi", "pods": "5"})
    assert used(cluster) == {"requests.cpu": "0", "memory": "0", "pods": "0"}
    pod(cluster, "a", {"cpu": "1500m", "memory": "512Mi"})
    assert used(cluster) == {"requests.cpu": "1500m", "memory": "512Mi", "pods": "1"}

    with pytest.raises(RequestRefused) as refused:
        pod(cluster, "b", {"cpu": "1", "memory": "1Mi"})
    assert refused.value.message == (
        'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=1, '
        "used: requests.cpu=1500m, limited: requests.cpu=2"
    )
    with pytest.raises(RequestRefused, match="must specify memory for: main"):
        pod(cluster, "b", {"cpu": "1"})
    cluster.delete("pods", "a")
    await cluster.settle()

    assert used(cluster) == {"requests.cpu": "0", "memory": "0", "pods": "0"}


@played
async def test_pods_that_have_ended_do_not_count(cluster: Play) -> None:
    await limited(cluster, {"pods": "1", "count/pods": "2"})
    pod(cluster, "a")
    cluster.end(cluster.pods())
    await cluster.settle()

    assert used(cluster) == {"pods": "0", "count/pods": "1"}
    pod(cluster, "b")
    with pytest.raises(RequestRefused, match="count/pods=2"):
        pod(cluster, "c")


@played
async def test_objects_of_any_kind_are_counted(cluster: Play) -> None:
    cluster.create("configmaps", "before")
    hard = {"configmaps": "2", "count/deployments.apps": "1", "services.nodeports": "1"}
    await limited(cluster, hard)
    cluster.create("deployments.apps", "web", workload(replicas=0))
    cluster.create("services", "open", {"type": "NodePort", "ports": [{"port": 80}]})
    await cluster.settle()

    assert used(cluster) == {
        "configmaps": "1",
        "count/deployments.apps": "1",
        "services.nodeports": "1",
    }
    for resource, spec in (
        ("deployments.apps", workload(replicas=0)),
        ("services", {"type": "NodePort", "ports": [{"port": 81}]}),
    ):
        with pytest.raises(RequestRefused, match="exceeded quota: q"):
            cluster.create(resource, "more", spec)


@pytest.mark.parametrize(
    ("scope", "spec", "counts"),
    [
        ("BestEffort", {}, True),
        ("NotBestEffort", {}, False),
        ("Terminating", {"activeDeadlineSeconds": 9}, True),
        ("NotTerminating", {"activeDeadlineSeconds": 9}, False),
        ("PriorityClass", {"priorityClassName": "system-node-critical"}, True),
        ("PriorityClass", {}, False),
    ],
)
@played
async def test_a_quota_may_be_for_some_pods(
    cluster: Play, scope: str, spec: Json, counts: bool
) -> None:
    await limited(cluster, {"pods": "3"}, scopes=[scope])
    pod(cluster, "a", **spec)
    assert used(cluster) == {"pods": str(int(counts))}
    cluster.create("resourcequotas", "later", {"hard": {"pods": "3"}, "scopes": [scope]})
    await cluster.settle()

    assert cluster.get("resourcequotas", "later")["status"]["used"] == {"pods": str(int(counts))}


@played
async def test_a_dry_run_is_refused_but_not_counted(cluster: Play) -> None:
    await limited(cluster, {"configmaps": "1"})
    kind = cluster.api.kinds["configmaps"]
    item = {"metadata": {"name": "a"}}
    cluster.api.create(kind, "default", item, WriteOptions(dry_run=True))
    assert used(cluster) == {"configmaps": "0"}
    cluster.create("configmaps", "b")

    with pytest.raises(RequestRefused, match="exceeded quota"):
        cluster.api.create(kind, "default", item, WriteOptions(dry_run=True))


@played
async def test_a_set_says_that_a_quota_holds_it_back(cluster: Play) -> None:
    await limited(cluster, {"pods": "2"})
    cluster.create("replicasets.apps", "web", workload(replicas=3))
    await cluster.wait(1)
    held = cluster.get("replicasets.apps", "web")["status"]
    assert held["conditions"][0]["reason"] == "FailedCreate"
    assert held["replicas"] == 2

    item = cluster.get("resourcequotas", "q")
    cluster.update("resourcequotas", {**item, "spec": {"hard": {"pods": "3"}}})
    await cluster.wait(60)
    free = cluster.get("replicasets.apps", "web")["status"]
    assert (free["replicas"], free.get("conditions")) == (3, None)
