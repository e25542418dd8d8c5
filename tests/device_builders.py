"""Claims, classes and slices for tests."""

from __future__ import annotations

from typing import Any

from moorage.objects.decode import from_builtins
from moorage.objects.device import DeviceClass, DeviceTaintRule, ResourceSlice
from moorage.objects.resource_claim import ResourceClaim

DRIVER = "gpu.example.com"


def device(name: str, **fields: Any) -> dict[str, Any]:
    """A device of a slice."""
    return {"name": name, **fields}


def slice_manifest(
    name: str, devices: list[dict[str, Any]] | int = 1, **spec: Any
) -> dict[str, Any]:
    """A slice for the node of its name, unless the spec says otherwise."""
    if isinstance(devices, int):
        devices = [device(f"gpu-{number}") for number in range(devices)]
    where = {} if _WHERE & spec.keys() else {"nodeName": name}
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1, **spec.pop("pool", {})}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {"driver": DRIVER, "pool": pool, "devices": devices, **where, **spec},
    }


_WHERE = frozenset(("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"))


def resource_slice(
    name: str, devices: list[dict[str, Any]] | int = 1, **spec: Any
) -> ResourceSlice:
    made = from_builtins("ResourceSlice", slice_manifest(name, devices, **spec))
    assert isinstance(made, ResourceSlice)
    return made


def device_class(name: str = "gpu", *expressions: str, **spec: Any) -> DeviceClass:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    raw = {"metadata": {"name": name}, "spec": {"selectors": selectors, **spec}}
    made = from_builtins("DeviceClass", raw)
    assert isinstance(made, DeviceClass)
    return made


def request(name: str = "r0", class_name: str = "gpu", **fields: Any) -> dict[str, Any]:
    """A request for one device, unless the fields say otherwise."""
    exactly = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": 1}
    return {"name": name, "exactly": {**exactly, **fields}}


def result(pool: str, name: str, request: str = "r0", **fields: Any) -> dict[str, Any]:
    """A device that a request was given."""
    return {"request": request, "driver": DRIVER, "pool": pool, "device": name, **fields}


def claim_manifest(
    name: str,
    *requests: dict[str, Any],
    allocation: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **devices: Any,
) -> dict[str, Any]:
    own_status = {} if allocation is None else {"allocation": allocation}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            **(metadata or {}),
        },
        "spec": {"devices": {"requests": list(requests) or [request()], **devices}},
        "status": {**own_status, **(status or {})},
    }


def claim(name: str, *requests: dict[str, Any], **parts: Any) -> ResourceClaim:
    made = from_builtins("ResourceClaim", claim_manifest(name, *requests, **parts))
    assert isinstance(made, ResourceClaim)
    return made


def holding(name: str, *results: dict[str, Any], **parts: Any) -> ResourceClaim:
    """A claim that has devices."""
    return claim(name, allocation={"devices": {"results": list(results)}}, **parts)


def taint_rule_manifest(
    name: str, effect: str = "NoSchedule", key: str = "broken", **selector: Any
) -> dict[str, Any]:
    """A rule that taints the devices of a driver, pool and name; without these, all devices."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {"deviceSelector": selector, "taint": {"key": key, "effect": effect}},
    }


def taint_rule(name: str, effect: str = "NoSchedule", **parts: Any) -> DeviceTaintRule:
    made = from_builtins("DeviceTaintRule", taint_rule_manifest(name, effect, **parts))
    assert isinstance(made, DeviceTaintRule)
    return made
