"""Making the nodes that shapes describe, and what belongs to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address
from typing import Any

from mooring.embedded.api import Api
from mooring.embedded.errors import Refused
from mooring.embedded.http.discovery import VERSION
from mooring.embedded.kinds import Kind
from mooring.embedded.tables import Entry
from mooring.embedded.wire import Json, now_text

from .node_statuses import report_ready
from .settings import COEXIST_GATE
from .shapes import DEFAULT_CAPACITY, Shape, ShapeError

_FIRST_ADDRESS = int(IPv4Address("10.0.0.1"))


def node_names(shape: Shape) -> Iterator[str]:
    return (f"{shape.name}-{number}" for number in range(shape.count))


def make_nodes(api: Api, shapes: Sequence[Shape], source: str = "") -> int:
    """Makes the nodes that are not there yet; returns how many that were.

    The source is the file that the shapes are from, for those that cannot be made.
    """
    made = first = 0
    for at, shape in enumerate(shapes):
        place = f"{source}: shapes[{at}]" if source else f"shapes[{at}]"
        for number, name in enumerate(node_names(shape)):
            address = str(IPv4Address(_FIRST_ADDRESS + first + number))
            node = node_of(shape, number, address, now_text(api.clock()))
            made += make(api, node, place)
            for part, item in enumerate(shape.objects):
                make(api, _named(item, name), f"{place}.objects[{part}]")
        first += shape.count
    return made


def make(api: Api, item: Json, place: str) -> bool:
    """Makes an object of any kind, unless there is one of the name already."""
    kind = _kind(api, item)
    metadata = item.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    label = f"{place}: {item.get('kind')} {named.get('name', '')!r}"
    if kind is None:
        raise ShapeError(f"{label}: {item.get('apiVersion')} {item.get('kind')} is not served here")
    namespace = named.get("namespace", "default") if kind.namespaced else ""
    try:
        if api.find(kind, namespace, named.get("name", "")) is not None:
            return False
        entry = api.create(kind, namespace, item)
        _write_status(api, kind, entry, item)
    except Refused as refusal:
        raise ShapeError(f"{label}: {refusal.message}") from refusal
    return True


def node_of(shape: Shape, number: int, address: str, now: str) -> Json:
    """One node of a shape, ready from the start."""
    name = f"{shape.name}-{number}"
    annotations = dict(shape.annotations)
    if shape.coexist_policy is not None:
        annotations[COEXIST_GATE] = str(shape.coexist_policy).lower()
    capacity = {**DEFAULT_CAPACITY, **shape.capacity}
    amounts = {key: str(amount) for key, amount in capacity.items()}
    node: Json = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**_labels(shape, number, name), **shape.labels},
            "annotations": annotations,
        },
        "spec": {"taints": [_told(each) for each in shape.taints]},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": name},
            ],
            "images": [
                {"names": each.names, "sizeBytes": each.size_bytes} for each in shape.images
            ],
            "nodeInfo": _info(name),
        },
    }
    report_ready(node, now)
    return node


def _labels(shape: Shape, number: int, name: str) -> dict[str, str]:
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    if shape.region:
        labels["topology.kubernetes.io/region"] = shape.region
    if shape.zones:
        labels["topology.kubernetes.io/zone"] = shape.zones[number % len(shape.zones)]
    return labels


def _told(taint: Any) -> Json:
    told = {"key": taint.key, "effect": taint.effect}
    return {**told, "value": taint.value} if taint.value else told


def _info(name: str) -> Json:
    return {
        "machineID": name,
        "systemUUID": name,
        "bootID": name,
        "kernelVersion": "hollow",
        "osImage": "a hollow node of Mooring",
        "containerRuntimeVersion": "hollow://1",
        "kubeletVersion": VERSION["gitVersion"],
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


def _kind(api: Api, item: Mapping[str, Any]) -> Kind | None:
    wanted = item.get("apiVersion"), item.get("kind")
    found = (kind for kind in api.kinds if (kind.api_version, kind.kind) == wanted)
    return next(found, None)


def _write_status(api: Api, kind: Kind, entry: Entry, item: Json) -> None:
    """A status that creation does not keep is written by itself, as its owner would."""
    status = item.get("status")
    if status and kind.rules.status and "status" not in entry.object:
        whole = {**entry.object, "status": status}
        api.update_status(kind, entry.namespace, entry.name, whole)


def _named(value: Any, node: str) -> Any:
    """The same with the name of the node wherever it is asked for."""
    match value:
        case str():
            return value.replace("{node}", node)
        case dict():
            return {key: _named(each, node) for key, each in value.items()}
        case list():
            return [_named(each, node) for each in value]
        case _:
            return value
