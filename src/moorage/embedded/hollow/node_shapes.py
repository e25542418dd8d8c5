"""What nodes are like, and how they are made: so many of one shape, so many of another.

shapes:
  - name: worker            # worker-0, worker-1, ...
    count: 3
    zones: [a, b, c]        # in turn
    capacity: {cpu: 8, memory: 32Gi, pods: 110}"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

import msgspec

from moorage.documents.errors import InputError
from moorage.embedded.api.decoding import now_text
from moorage.embedded.api.kind import ServedKind
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.api.schema import KUBERNETES_VERSION
from moorage.embedded.request_refusals import RequestRefused
from moorage.embedded.store.object_store import Json, StoredObject
from moorage.objects.meta import Wire
from moorage.objects.quantity import Quantity

from .hosts import report_ready
from .node_devices import ShapeDevice, device_problems, slices_of

# Names of nodes are this and a number, and must stay names.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,200}[a-z0-9])?", re.ASCII)
_RESOURCE = re.compile(r"([a-z0-9][-a-z0-9.]*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
# msgspec names the place at the end of its message.
_WHERE = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<where>.*)`)?", re.DOTALL)

_MOST_NODES = 100_000

DEFAULT_CAPACITY: Mapping[str, str | int] = {
    "cpu": 8,
    "memory": "32Gi",
    "ephemeral-storage": "100Gi",
    "pods": 110,
}
#: Where nodes are of which only the number is said.
_REGION, _ZONES = "local", ("local-a", "local-b", "local-c")


class ShapeError(InputError):
    """A shape that cannot be used; the text names the field."""


class ShapeImage(Wire, frozen=True, forbid_unknown_fields=True):
    """A container image that is on the node already."""

    names: list[str]
    size_bytes: int = 0


class ShapeTaint(Wire, frozen=True, forbid_unknown_fields=True):
    """A taint of a shape."""

    key: str
    effect: str
    value: str = ""


class NodeShape(Wire, frozen=True, forbid_unknown_fields=True):
    """Nodes that differ in name and zone only."""

    name: str = "node"
    count: int = 1
    region: str = ""
    zones: tuple[str, ...] = ()
    capacity: dict[str, str | int | float] = msgspec.field(default_factory=dict)
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    taints: tuple[ShapeTaint, ...] = ()
    images: tuple[ShapeImage, ...] = ()
    #: Devices that claims can ask for; every node publishes its own.
    devices: tuple[ShapeDevice, ...] = ()
    #: Objects of any kind to make for each node; `{node}` in a text is its name.
    objects: tuple[Json, ...] = ()


class _FileContent(Wire, frozen=True, forbid_unknown_fields=True):
    """The content of a shape file."""

    shapes: tuple[NodeShape, ...]
    manifests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShapeFile:
    """A cluster: what its nodes are like, and files with objects to make before them."""

    shapes: tuple[NodeShape, ...]
    manifests: tuple[str, ...] = ()
    #: The file that says so; empty if none does.
    source: str = ""


def read_shape_file(raw: Mapping[str, Any], source: str = "") -> ShapeFile:
    """Reads the content of a shape file; raises ShapeError."""
    try:
        cluster = msgspec.convert(raw, _FileContent)
    except msgspec.ValidationError as error:
        raise ShapeError(_error_text(str(error))) from None
    for at, shape in enumerate(cluster.shapes):
        for where, what in _problems(shape):
            raise ShapeError(f"shapes[{at}].{where}: {what}")
    names = [shape.name for shape in cluster.shapes]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise ShapeError(f"shapes[{at}].name: {name!r} is the name of another shape, too")
    if sum(shape.count for shape in cluster.shapes) > _MOST_NODES:
        raise ShapeError(f"shapes: more than {_MOST_NODES} nodes in all")
    return ShapeFile(cluster.shapes, cluster.manifests, source)


def plain_nodes(count: int) -> ShapeFile:
    """Returns a shape file with so many nodes of the default shape, in three zones."""
    return read_shape_file({"shapes": [{"count": count, "region": _REGION, "zones": _ZONES}]})


def _problems(shape: NodeShape) -> Iterator[tuple[str, str]]:
    if not _NAME.fullmatch(shape.name):
        yield "name", f"{shape.name!r} cannot begin the names of nodes"
    if not 0 <= shape.count <= _MOST_NODES:
        yield "count", f"must be from 0 to {_MOST_NODES}, got {shape.count}"
    for name, amount in shape.capacity.items():
        problem = _amount_problem(name, amount)
        if problem:
            yield f"capacity[{name}]", problem
    yield from _problems_of_parts(shape)


def _problems_of_parts(shape: NodeShape) -> Iterator[tuple[str, str]]:
    for at, image in enumerate(shape.images):
        if image.size_bytes < 0:
            yield f"images[{at}].sizeBytes", f"must not be negative, got {image.size_bytes}"
    yield from device_problems(shape.devices)
    for at, item in enumerate(shape.objects):
        for field in ("apiVersion", "kind", "metadata"):
            if field not in item:
                yield f"objects[{at}].{field}", "is missing"


def _amount_problem(name: str, amount: str | int | float) -> str:
    if not _RESOURCE.fullmatch(name):
        return "is not the name of a resource"
    try:
        negative = Quantity.parse(amount) < 0
    except ValueError as error:
        return str(error)
    return f"must not be negative, got {amount}" if negative else ""


def _error_text(message: str) -> str:
    found = _WHERE.fullmatch(message)
    where, what = (found["where"], found["what"]) if found else (None, message)
    what = what.replace("`", "")
    return f"{where}: {what}" if where else what


FIRST_ADDRESS = int(IPv4Address("10.0.0.1"))


def node_names(shape: NodeShape) -> Iterator[str]:
    return (f"{shape.name}-{number}" for number in range(shape.count))


def make_nodes(api: ObjectApi, shapes: Sequence[NodeShape], source: str = "") -> int:
    """Makes the nodes that do not exist yet; returns how many it made.

    The source is the file that the shapes are from, for those that cannot be made.
    """
    made = first = 0
    for at, shape in enumerate(shapes):
        place = f"{source}: shapes[{at}]" if source else f"shapes[{at}]"
        for number, name in enumerate(node_names(shape)):
            address = str(IPv4Address(FIRST_ADDRESS + first + number))
            node = node_of(shape, number, address, now_text(api.clock()))
            made += make(api, node, place)
            uid = api.get(api.kinds["nodes"], "", name).object["metadata"]["uid"]
            for each in slices_of(name, uid, shape.devices):
                make(api, each, f"{place}.devices")
            for part, item in enumerate(shape.objects):
                make(api, fill_in_name(item, name), f"{place}.objects[{part}]")
        first += shape.count
    return made


def make(api: ObjectApi, item: Json, place: str) -> bool:
    """Makes an object of any kind, unless it exists; returns whether it did."""
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
    except RequestRefused as refusal:
        raise ShapeError(f"{label}: {refusal.message}") from refusal
    return True


def node_of(shape: NodeShape, number: int, address: str, now: str) -> Json:
    """Makes one node of a shape, ready from the start."""
    name = f"{shape.name}-{number}"
    capacity = {**DEFAULT_CAPACITY, **shape.capacity}
    amounts = {key: str(amount) for key, amount in capacity.items()}
    node: Json = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**_labels(shape, number, name), **shape.labels},
            "annotations": dict(shape.annotations),
        },
        "spec": {"taints": [_taint(each) for each in shape.taints]},
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


def _labels(shape: NodeShape, number: int, name: str) -> dict[str, str]:
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


def _taint(taint: Any) -> Json:
    item = {"key": taint.key, "effect": taint.effect}
    return {**item, "value": taint.value} if taint.value else item


def _info(name: str) -> Json:
    return {
        "machineID": name,
        "systemUUID": name,
        "bootID": name,
        "kernelVersion": "hollow",
        "osImage": "a hollow node of Moorage",
        "containerRuntimeVersion": "hollow://1",
        "kubeletVersion": f"v{KUBERNETES_VERSION}-moorage",
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


def _kind(api: ObjectApi, item: Mapping[str, Any]) -> ServedKind | None:
    wanted = item.get("apiVersion"), item.get("kind")
    found = (kind for kind in api.kinds if (kind.api_version, kind.kind) == wanted)
    return next(found, None)


def _write_status(api: ObjectApi, kind: ServedKind, entry: StoredObject, item: Json) -> None:
    """Writes the status of an object if its creation did not keep it."""
    status = item.get("status")
    if status and kind.rules.status and "status" not in entry.object:
        whole = {**entry.object, "status": status}
        api.update_status(kind, entry.namespace, entry.name, whole)


def fill_in_name(value: Any, node: str) -> Any:
    """Returns a value with `{node}` replaced by the name of a node."""
    match value:
        case str():
            return value.replace("{node}", node)
        case dict():
            return {key: fill_in_name(each, node) for key, each in value.items()}
        case list():
            return [fill_in_name(each, node) for each in value]
        case _:
            return value
