"""The fields of every kind that is served: names, types and how lists are merged.

The tables in `schemas` have one type per paragraph and one field per line:

    containers: []Container = 2 | merge=name keys=name required

The number is that of the field in protobuf. `merge` is the key by which a strategic merge patch
matches items, `keys` the keys by which server-side apply does. A type of another package is
written with its package.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

_LIST, _MAP = "[]", "map "

#: What is written in lower case: everything else names a type of a table.
SCALARS = frozenset(
    [
        "any",
        "boolean",
        "bytes",
        "int32",
        "int64",
        "intOrString",
        "microTime",
        "number",
        "object",
        "quantity",
        "string",
        "time",
    ]
)


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a field: a scalar, the name of a type of a table, or a list or map of either."""

    name: str
    is_list: bool = False
    is_map: bool = False
    of: Type | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a type."""

    name: str
    type: Type
    required: bool = False
    #: A strategic merge patch merges this list or struct instead of replacing it.
    merges: bool = False
    merge_key: str = ""
    #: The keys that identify an item of this list.
    keys: tuple[str, ...] = ()
    #: A list that is a set of scalars.
    is_set: bool = False
    #: A list, map or struct with one owner: replaced as a whole.
    atomic: bool = False
    retains_keys: bool = False
    default: Any = None
    #: The way to the field in protobuf; none if it has no place there.
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Struct:
    """A type of a table."""

    name: str
    fields: Mapping[str, Field]
    atomic: bool = False


def struct(name: str) -> Struct:
    """The type of a full name such as core.v1.Pod."""
    package, _, _ = name.rpartition(".")
    return package_structs(package)[name]


@cache
def package_structs(package: str) -> Mapping[str, Struct]:
    """All types of a package such as core.v1."""
    table = resources.files(__package__).joinpath("schemas", f"{package}.txt").read_text("utf-8")
    return {each.name: each for each in _read(package, table)}


def _read(package: str, table: str) -> Iterator[Struct]:
    for paragraph in table.strip().split("\n\n"):
        title, *lines = paragraph.split("\n")
        name, _, flags = title.partition(" | ")
        fields = (_field(package, line.strip()) for line in lines)
        yield Struct(f"{package}.{name}", {each.name: each for each in fields}, flags == "atomic")


def _field(package: str, line: str) -> Field:
    declared, _, flags = line.partition(" | ")
    declared, _, numbers = declared.partition(" = ")
    name, _, written = declared.partition(": ")
    pairs = [flag.partition("=") for flag in flags.split(" ") if flag]
    given = {key: value for key, _, value in pairs}
    return Field(
        name,
        _type(package, written),
        required="required" in given,
        merges="merge" in given,
        merge_key=given.get("merge", ""),
        keys=tuple(given["keys"].split(",")) if "keys" in given else (),
        is_set="set" in given,
        atomic="atomic" in given,
        retains_keys="retainKeys" in given,
        default=json.loads(given["default"]) if "default" in given else None,
        numbers=tuple(int(each) for each in numbers.split(".")) if numbers else (),
    )


def _type(package: str, written: str) -> Type:
    if written.startswith(_LIST):
        return Type(written, is_list=True, of=_type(package, written.removeprefix(_LIST)))
    if written.startswith(_MAP):
        return Type(written, is_map=True, of=_type(package, written.removeprefix(_MAP)))
    if written in SCALARS or "." in written:
        return Type(written)
    return Type(f"{package}.{written}")
