"""The nodes that `mooring up` is asked for: a number, or a file with their shapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mooring.embedded.hollow.shapes import ShapeError, ShapeFile, plain_nodes, read_shape_file
from mooring.simulate.problems import InputError
from mooring.simulate.yaml_text import documents

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """What the nodes are like, and what is made before them, each with its place."""

    nodes: ShapeFile
    manifests: tuple[tuple[str, Json], ...] = ()


def read_cluster(nodes: str) -> ClusterFile:
    """Reads a number of nodes, or a file; raises InputError naming file and field."""
    if nodes.isascii() and nodes.isdigit():
        try:
            return ClusterFile(plain_nodes(int(nodes)))
        except ShapeError as error:
            raise InputError("--nodes", error) from None
    path = Path(nodes)
    found = list(documents(_text(path), nodes))
    if len(found) != 1:
        raise InputError(nodes, f"must be one YAML document, got {len(found)}")
    try:
        shapes = read_shape_file(found[0][1], nodes)
    except ShapeError as error:
        raise InputError(nodes, error) from None
    manifests = [each for name in shapes.manifests for each in _manifests(path.parent / name)]
    return ClusterFile(shapes, tuple(manifests))


def _manifests(path: Path) -> Iterator[tuple[str, Json]]:
    """The objects of a file, those of its lists one by one."""
    for place, item in documents(_text(path), str(path)):
        if item.get("kind") == "List":
            for at, each in enumerate(item.get("items") or ()):
                yield str(place.item(at)), each
        else:
            yield str(place), item


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except UnicodeDecodeError as error:
        raise InputError(path, f"not UTF-8: {error}") from None
