"""Devices of hollow nodes, and the resource slices by which their drivers would publish them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from moorage.embedded.store.object_store import Json
from moorage.objects.meta import Wire
from moorage.objects.quantity import Quantity

# What one slice may hold.
_MOST_IN_SLICE = 128
_MOST_DEVICES = 1024


class ShapeVersion(Wire, frozen=True, forbid_unknown_fields=True):
    """The value of an attribute that is a semantic version."""

    version: str


class ShapeDevice(Wire, frozen=True, forbid_unknown_fields=True):
    """Devices of one kind on a node: gpu-0, gpu-1, ..., which differ in their index only."""

    driver: str
    name: str = "device"
    count: int = 1
    attributes: dict[str, bool | int | str | ShapeVersion] = msgspec.field(default_factory=dict)
    capacity: dict[str, str | int] = msgspec.field(default_factory=dict)
    taints: tuple[dict[str, str], ...] = ()
    allow_multiple_allocations: bool = False


def device_problems(devices: Sequence[ShapeDevice]) -> Iterator[tuple[str, str]]:
    """Yields fields of devices that cannot be used, and why."""
    for at, each in enumerate(devices):
        if not 0 <= each.count <= _MOST_DEVICES:
            yield f"devices[{at}].count", f"must be from 0 to {_MOST_DEVICES}, got {each.count}"
        for name, amount in each.capacity.items():
            try:
                Quantity.parse(amount)
            except ValueError as error:
                yield f"devices[{at}].capacity[{name}]", str(error)


def slices_of(node: str, uid: str, devices: Sequence[ShapeDevice]) -> Iterator[Json]:
    """Yields the slices of a node: one pool per driver, which bears the node's name."""
    by_driver: dict[str, list[Json]] = {}
    for each in devices:
        made = by_driver.setdefault(each.driver, [])
        made.extend(_device(each, number) for number in range(each.count))
    for driver, made in by_driver.items():
        parts = [made[at : at + _MOST_IN_SLICE] for at in range(0, len(made), _MOST_IN_SLICE)]
        for number, part in enumerate(parts):
            pool = {"name": node, "generation": 1, "resourceSliceCount": len(parts)}
            yield _slice(node, uid, f"{node}-{driver}-{number}", driver, pool, part)


def _slice(node: str, uid: str, name: str, driver: str, pool: Json, devices: list[Json]) -> Json:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        # The slices of a node go with it.
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": devices},
    }


def _device(shape: ShapeDevice, number: int) -> Json:
    attributes: Mapping[str, bool | int | str | ShapeVersion] = {
        "index": number,
        **shape.attributes,
    }
    device: Json = {
        "name": f"{shape.name}-{number}",
        "attributes": {name: _attribute(value) for name, value in attributes.items()},
    }
    if shape.capacity:
        amounts = shape.capacity.items()
        device["capacity"] = {name: {"value": str(amount)} for name, amount in amounts}
    if shape.taints:
        device["taints"] = [dict(taint) for taint in shape.taints]
    if shape.allow_multiple_allocations:
        device["allowMultipleAllocations"] = True
    return device


def _attribute(value: bool | int | str | ShapeVersion) -> Json:
    match value:
        case bool():
            return {"bool": value}
        case int():
            return {"int": value}
        case str():
            return {"string": value}
        case ShapeVersion():
            return {"version": value.version}
