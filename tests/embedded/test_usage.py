"""What pods and nodes use, for kubectl top: by annotation or by requests."""

from __future__ import annotations

import pytest

from moorage.embedded.kinds.usage_kinds import USAGE
from tests.embedded.serving import NODES, PODS, Client, Json, node, pod

ROOT = "/apis/metrics.k8s.io/v1beta1"
RUNNING = {"status": {"phase": "Running"}}


async def run(client: Client, name: str, requests: Json, usage: str = "") -> None:
    containers = [
        {"name": "main", "image": "a", "resources": {"requests": requests}},
        {"name": "beside", "image": "a"},
    ]
    made = pod(name, containers=containers, nodeName="n")
    made["metadata"] |= {"labels": {"app": name}, "annotations": {USAGE: usage} if usage else {}}
    await client.create(PODS, made)
    await client.patch(f"{PODS}/{name}/status", RUNNING)


async def test_pods_use_what_they_request_or_say(client: Client) -> None:
    await client.create(NODES, node("n"))
    await run(client, "a", {"cpu": "250m", "memory": "64Mi"})
    await run(client, "b", {"cpu": "1"}, "cpu=1500m, memory=1Gi")
    await client.create(PODS, pod("waits"))

    pods = await client.get(f"{ROOT}/namespaces/default/pods")
    found = {each["metadata"]["name"]: each["containers"] for each in pods["items"]}
    nothing = {"cpu": "0", "memory": "0"}
    assert found == {
        "a": [
            {"name": "main", "usage": {"cpu": "250m", "memory": "64Mi"}},
            {"name": "beside", "usage": nothing},
        ],
        "b": [
            {"name": "main", "usage": {"cpu": "1500m", "memory": "1Gi"}},
            {"name": "beside", "usage": nothing},
        ],
    }
    assert (await client.get(f"{ROOT}/nodes/n"))["usage"] == {"cpu": "1750m", "memory": "1088Mi"}
    chosen = await client.get(f"{ROOT}/pods?labelSelector=app%3Db")
    assert [each["metadata"]["name"] for each in chosen["items"]] == ["b"]
    await client.refused(404, "GET", f"{ROOT}/namespaces/default/pods/waits")
    await client.refused(405, "POST", f"{ROOT}/nodes", {})


@pytest.mark.parametrize("said", ["cpu", "cpu=x", "disk=3", "memory=1Gi,,cpu=-"])
async def test_an_annotation_that_cannot_be_read_says_nothing(client: Client, said: str) -> None:
    await run(client, "a", {"cpu": "250m"}, said)

    found = await client.get(f"{ROOT}/namespaces/default/pods/a")

    assert found["containers"][0]["usage"] == {"cpu": "250m", "memory": "0"}
