"""A node shows its devices, and who has them."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.objects.decode import reader
from moorage.web.details import describe_node
from tests.builders import node, pod_manifest
from tests.engine.driver import driver

Json = dict[str, Any]


def build(kind: str, name: str, **parts: Any) -> Any:
    read = reader(kind)
    item = {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, **parts}
    return read.build(read.one.decode(msgspec.json.encode(item)))


def gpu(name: str, **more: Any) -> Json:
    attributes = {"model": {"string": "A100"}, "index": {"int": 0}, "healthy": {"bool": True}}
    return {
        "name": name,
        "attributes": attributes,
        "capacity": {"memory": {"value": "40Gi"}},
    } | more


def resource_slice(name: str, *devices: Json, **where: Any) -> Any:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "pool": pool, "devices": list(devices), **where}
    return build("ResourceSlice", name, spec=spec)


def claim(name: str, device: str, share: str | None = None) -> Any:
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "n", "device": device}
    if share:
        result["shareID"] = share
    allocation = {"devices": {"results": [result]}}
    user = {"resource": "pods", "name": "p", "uid": "uid-p"}
    status = {"allocation": allocation, "reservedFor": [user]}
    return build("ResourceClaim", name, spec={"devices": {}}, status=status)


def devices(*objects: Any, name: str = "n") -> list[Json]:
    driven = driver(node("n"), node("m"), *objects)
    told = msgspec.json.decode(describe_node(driven.engine, name) or b"")
    found: list[Json] = told["devices"]
    return found


def user() -> Any:
    reference = {"name": "gpu", "resourceClaimName": "c"}
    manifest = pod_manifest("p", spec={"nodeName": "n", "resourceClaims": [reference]})
    read = reader("Pod")
    return read.build(read.one.decode(msgspec.json.encode(manifest)))


def test_devices_and_their_users() -> None:
    tainted = gpu("gpu-1", taints=[{"key": "broken", "value": "yes", "effect": "NoSchedule"}])
    found = devices(
        resource_slice("n", gpu("gpu-0"), tainted, nodeName="n"), claim("c", "gpu-0"), user()
    )

    assert found[0] == {
        "driver": "gpu.example.com",
        "pool": "n",
        "name": "gpu-0",
        "about": "healthy true, index 0, model A100, memory 40Gi",
        "state": "taken",
        "taints": [],
        "claims": ["default/c"],
        "pods": ["default/p"],
    }
    assert (found[1]["state"], found[1]["taints"]) == ("free", ["broken=yes:NoSchedule"])


def test_shared_devices() -> None:
    found = devices(
        resource_slice("n", gpu("gpu-0", allowMultipleAllocations=True), nodeName="n"),
        claim("c", "gpu-0", "s-1"),
        claim("d", "gpu-0", "s-2"),
    )

    assert [each["state"] for each in found] == ["shared by 2"]


def test_devices_of_other_nodes_are_left_out() -> None:
    everywhere = resource_slice("net", gpu("nic-0"), allNodes=True)
    mine = resource_slice("n", gpu("gpu-0"), nodeName="n")
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["m"]}]}
    chosen = resource_slice("some", gpu("x-0"), nodeSelector={"nodeSelectorTerms": [term]})

    seen = {
        name: [each["name"] for each in devices(everywhere, mine, chosen, name=name)]
        for name in ("n", "m")
    }

    assert seen == {"n": ["gpu-0", "nic-0"], "m": ["nic-0", "x-0"]}
