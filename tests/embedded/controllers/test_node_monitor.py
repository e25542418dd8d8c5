"""A node that falls silent, and one that comes back: kubelets and controllers together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from moorage.embedded.hollow.hollow_nodes import HollowNodes
from moorage.embedded.hollow.pod_life import KUBELET, HollowSettings
from tests.embedded.controllers.playing import Json, Play, played, template, workload

_UNREACHABLE = "node.kubernetes.io/unreachable"


@asynccontextmanager
async def kubelets(cluster: Play) -> AsyncIterator[None]:
    running = asyncio.create_task(HollowNodes(cluster.api, HollowSettings()).run())
    try:
        await cluster.settle()
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def stop_kubelet(cluster: Play, *, stopped: bool = True) -> None:
    node = cluster.get("nodes", "n")
    node["metadata"]["annotations"] = {KUBELET: "stopped"} if stopped else {}
    cluster.update("nodes", node)


def add_node(cluster: Play) -> None:
    cluster.create("nodes", "n", status={"capacity": {"cpu": "4", "memory": "8Gi", "pods": "9"}})


def conditions(item: Json) -> dict[str, str]:
    return {each["type"]: each["status"] for each in item["status"]["conditions"]}


def taints(cluster: Play) -> list[tuple[str, str]]:
    found = cluster.get("nodes", "n").get("spec", {}).get("taints") or ()
    return [(each["key"], each["effect"]) for each in found]


def pod(cluster: Play, name: str, seconds: int | None) -> None:
    toleration = {"key": _UNREACHABLE, "operator": "Exists", "effect": "NoExecute"}
    if seconds is not None:
        toleration["tolerationSeconds"] = seconds  # type: ignore[assignment]
    spec = template()["spec"]
    cluster.create("pods", name, {**spec, "tolerations": [toleration], "nodeName": "n"})


@played
async def test_a_node_whose_kubelet_stops_loses_its_pods(cluster: Play) -> None:
    add_node(cluster)
    async with kubelets(cluster):
        pod(cluster, "brief", 30)
        pod(cluster, "patient", None)
        await cluster.wait(100)
        assert conditions(cluster.get("nodes", "n"))["Ready"] == "True"
        assert conditions(cluster.get("pods", "brief"))["Ready"] == "True"

        stop_kubelet(cluster)
        await cluster.wait(45)
        assert conditions(cluster.get("nodes", "n"))["Ready"] == "True"
        await cluster.wait(10)
        node = cluster.get("nodes", "n")
        assert set(conditions(node).values()) == {"Unknown"}
        ready = next(each for each in node["status"]["conditions"] if each["type"] == "Ready")
        assert ready["reason"] == "NodeStatusUnknown"
        assert taints(cluster) == [(_UNREACHABLE, "NoSchedule"), (_UNREACHABLE, "NoExecute")]
        assert conditions(cluster.get("pods", "brief"))["Ready"] == "False"
        assert "deletionTimestamp" not in cluster.get("pods", "brief")["metadata"]

        # It is to go, and nobody is there to let it.
        await cluster.wait(32)
        evicted = cluster.get("pods", "brief")
        assert "deletionTimestamp" in evicted["metadata"]
        assert conditions(evicted)["DisruptionTarget"] == "True"
        assert "deletionTimestamp" not in cluster.get("pods", "patient")["metadata"]
        told = {
            (each["reason"], each["involvedObject"]["name"]) for each in cluster.objects("events")
        }
        assert told == {
            ("NodeNotReady", "n"),
            ("NodeNotReady", "brief"),
            ("NodeNotReady", "patient"),
            ("TaintManagerEviction", "brief"),
        }


@played
async def test_a_node_whose_kubelet_starts_again_is_as_before(cluster: Play) -> None:
    add_node(cluster)
    async with kubelets(cluster):
        pod(cluster, "brief", 30)
        pod(cluster, "patient", None)
        await cluster.settle()
        stop_kubelet(cluster)
        await cluster.wait(100)
        assert len(cluster.pods(going=True)) == 1

        stop_kubelet(cluster, stopped=False)
        await cluster.wait(5)
        assert conditions(cluster.get("nodes", "n"))["Ready"] == "True"
        assert "taints" not in cluster.get("nodes", "n")["spec"]
        assert cluster.names("pods") == ["patient"]
        assert conditions(cluster.get("pods", "patient"))["Ready"] == "True"

        # And once more: it is watched again.
        stop_kubelet(cluster)
        await cluster.wait(60)
        assert conditions(cluster.get("nodes", "n"))["Ready"] == "Unknown"


@played
async def test_a_deployment_moves_away_from_a_silent_node(cluster: Play) -> None:
    add_node(cluster)
    async with kubelets(cluster):
        spec = workload(replicas=1)
        spec["template"]["spec"]["tolerations"] = [
            {"key": _UNREACHABLE, "effect": "NoExecute", "tolerationSeconds": 10}
        ]
        cluster.create("deployments.apps", "web", spec)
        await cluster.settle()
        (first,) = cluster.pods()
        cluster.bind(first, "n")
        await cluster.settle()
        stop_kubelet(cluster)
        await cluster.wait(55)
        status = cluster.get("deployments.apps", "web")["status"]
        assert status["unavailableReplicas"] == 1
        await cluster.wait(11)

        (waiting,) = cluster.pods()
        assert waiting["metadata"]["uid"] != first["metadata"]["uid"]
        assert len(cluster.pods(going=True)) == 1


@pytest.mark.parametrize("duration", [None, 40, 200])
@played
async def test_a_lease_lasts_as_long_as_it_says(cluster: Play, duration: int | None) -> None:
    ready = {"type": "Ready", "status": "True"}
    cluster.create("nodes", "n", status={"conditions": [ready]})
    kind = cluster.api.kinds["leases.coordination.k8s.io"]
    spec = {} if duration is None else {"leaseDurationSeconds": duration}
    lease = {"metadata": {"name": "n"}, "spec": {"holderIdentity": "n", **spec}}
    cluster.api.create(kind, "kube-node-lease", lease)
    await cluster.settle()

    lasts = max(50, duration or 0)
    await cluster.wait(lasts - 1)
    assert conditions(cluster.get("nodes", "n"))["Ready"] == "True"
    await cluster.wait(2)
    assert conditions(cluster.get("nodes", "n"))["Ready"] == "Unknown"


@played
async def test_nodes_without_leases_are_left_alone(cluster: Play) -> None:
    ready = {"type": "Ready", "status": "True"}
    cluster.create("nodes", "n", status={"conditions": [ready]})
    await cluster.wait(1000)

    assert conditions(cluster.get("nodes", "n"))["Ready"] == "True"


@played
async def test_leases_of_other_things_say_nothing_of_a_node(cluster: Play) -> None:
    ready = {"type": "Ready", "status": "True"}
    cluster.create("nodes", "n", status={"conditions": [ready]})
    kind = cluster.api.kinds["leases.coordination.k8s.io"]
    for namespace in ("kube-node-lease", "default"):
        lease = {"metadata": {"name": "n"}, "spec": {"holderIdentity": "n"}}
        cluster.api.create(kind, namespace, lease)
    for turn in range(6):
        await cluster.wait(10)
        other = cluster.api.get(kind, "default", "n").object
        other["spec"]["leaseTransitions"] = turn
        cluster.update("leases.coordination.k8s.io", other)
    await cluster.settle()

    assert conditions(cluster.get("nodes", "n"))["Ready"] == "Unknown"
