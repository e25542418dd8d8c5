"""What nodes are like: so many of one shape, so many of another.

shapes:
  - name: worker            # worker-0, worker-1, ...
    count: 3
    zones: [a, b, c]        # in turn
    capacity: {cpu: 8, memory: 32Gi, pods: 110}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from mooring.objects.meta import Wire
from mooring.objects.quantity import Quantity

Json = dict[str, Any]

# Names of nodes are this and a number, and must stay names.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,200}[a-z0-9])?", re.ASCII)
_RESOURCE = re.compile(r"([a-z0-9][-a-z0-9.]*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
# msgspec tells where at the end of its message.
_WHERE = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<where>.*)`)?", re.DOTALL)

_MOST_NODES = 100_000

DEFAULT_CAPACITY: Mapping[str, str | int] = {"cpu": 8, "memory": "32Gi", "pods": 110}


class ShapeError(Exception):
    """A shape that cannot be used; the text names the field."""


class Image(Wire, frozen=True, forbid_unknown_fields=True):
    """A container image that is on the node already."""

    names: list[str]
    size_bytes: int = 0


class Taint(Wire, frozen=True, forbid_unknown_fields=True):
    """A mark that repels pods."""

    key: str
    effect: str
    value: str = ""


class Shape(Wire, frozen=True, forbid_unknown_fields=True):
    """Nodes that differ in name and zone only."""

    name: str = "node"
    count: int = 1
    region: str = ""
    zones: tuple[str, ...] = ()
    capacity: dict[str, str | int | float] = msgspec.field(default_factory=dict)
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    images: tuple[Image, ...] = ()
    #: The gate of the coexist policy of their kubelets, if it is not that of the cluster.
    coexist_policy: bool | None = None
    #: Objects of any kind to make for each node; `{node}` in a text is its name.
    objects: tuple[Json, ...] = ()


class _Written(Wire, frozen=True, forbid_unknown_fields=True):
    """What a file says."""

    shapes: tuple[Shape, ...]
    manifests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShapeFile:
    """A cluster: what its nodes are like, and files with objects to make before them."""

    shapes: tuple[Shape, ...]
    manifests: tuple[str, ...] = ()
    #: The file that says so; empty if none does.
    source: str = ""


def read_shape_file(raw: Mapping[str, Any], source: str = "") -> ShapeFile:
    """Reads what a shape file says; raises ShapeError."""
    try:
        cluster = msgspec.convert(raw, _Written)
    except msgspec.ValidationError as error:
        raise ShapeError(_told(str(error))) from None
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
    """So many nodes that are all alike."""
    return read_shape_file({"shapes": [{"count": count}]})


def _problems(shape: Shape) -> Iterator[tuple[str, str]]:
    if not _NAME.fullmatch(shape.name):
        yield "name", f"{shape.name!r} cannot begin the names of nodes"
    if not 0 <= shape.count <= _MOST_NODES:
        yield "count", f"must be from 0 to {_MOST_NODES}, got {shape.count}"
    for name, amount in shape.capacity.items():
        problem = _amount_problem(name, amount)
        if problem:
            yield f"capacity[{name}]", problem
    yield from _problems_of_parts(shape)


def _problems_of_parts(shape: Shape) -> Iterator[tuple[str, str]]:
    for at, image in enumerate(shape.images):
        if image.size_bytes < 0:
            yield f"images[{at}].sizeBytes", f"must not be negative, got {image.size_bytes}"
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


def _told(message: str) -> str:
    found = _WHERE.fullmatch(message)
    where, what = (found["where"], found["what"]) if found else (None, message)
    what = what.replace("`", "")
    return f"{where}: {what}" if where else what
