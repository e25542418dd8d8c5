"""The fields of every kind that is served: names, types and how lists are merged.

`tools/schema_tables.py` writes the tables in `schemas`. They have one type per paragraph and one
field per line:

    containers: []Container = 2 | merge=name keys=name required

The number is that of the field in protobuf. `merge` is the key by which a strategic merge patch
matches items, `keys` the keys by which server-side apply does. `zero` says that a zero, an empty
text or an empty list is kept; without it such a value is the same as none. A type of another
package is written with its package.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

_TABLES = resources.files(__package__).joinpath("schemas")

#: The version of Kubernetes whose fields the tables have.
KUBERNETES_VERSION = _TABLES.joinpath("VERSION").read_text("utf-8").strip()

_LIST, _MAP = "[]", "map "
_ZEROS = {"boolean": False, "bytes": "", "int32": 0, "int64": 0, "string": ""}

#: What is written in lower case: everything else names a type of a table.
SCALARS = frozenset(
    [
        "any",
        "boolean",
        "bytes",
        "int32",
        "int64",
        "intOrString",
        "jsonSchema",
        "jsonSchemaOrArray",
        "jsonSchemaOrBool",
        "jsonSchemaOrStrings",
        "microTime",
        "number",
        "object",
        "quantity",
        "string",
        "time",
    ]
)


@dataclass(frozen=True, slots=True)
class SchemaType:
    """The type of a field: a scalar, the name of a type of a table, or a list or map of either."""

    name: str
    is_list: bool = False
    is_map: bool = False
    of: SchemaType | None = None


@dataclass(frozen=True, slots=True)
class SchemaField:
    """One field of a type."""

    name: str
    type: SchemaType
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
    #: Whether an empty value says something else than none.
    keeps_zero: bool = False
    #: The way to the field in protobuf; none if it has no place there.
    numbers: tuple[int, ...] = ()

    @property
    def zero(self) -> Any:
        """The value that says no more than none; None if there is no such value."""
        if self.keeps_zero:
            return None
        if self.type.is_list:
            return []
        return {} if self.type.is_map else _ZEROS.get(self.type.name)


@dataclass(frozen=True, slots=True)
class SchemaStruct:
    """A type of a table."""

    name: str
    fields: Mapping[str, SchemaField]
    atomic: bool = False


def struct(name: str) -> SchemaStruct:
    """Returns the type of a full name such as core.v1.Pod."""
    package, _, _ = name.rpartition(".")
    return package_structs(package)[name]


@cache
def package_structs(package: str) -> Mapping[str, SchemaStruct]:
    """Returns all types of a package such as core.v1."""
    table = _TABLES.joinpath(f"{package}.txt").read_text("utf-8")
    return {each.name: each for each in _read(package, table)}


def _read(package: str, table: str) -> Iterator[SchemaStruct]:
    for paragraph in table.strip().split("\n\n"):
        title, *lines = paragraph.split("\n")
        name, _, flags = title.partition(" | ")
        fields = (_field(package, line.strip()) for line in lines)
        yield SchemaStruct(
            f"{package}.{name}", {each.name: each for each in fields}, flags == "atomic"
        )


def _field(package: str, line: str) -> SchemaField:
    declared, _, flags = line.partition(" | ")
    declared, _, numbers = declared.partition(" = ")
    name, _, text = declared.partition(": ")
    pairs = [flag.partition("=") for flag in flags.split(" ") if flag]
    given = {key: value for key, _, value in pairs}
    return SchemaField(
        name,
        _type(package, text),
        required="required" in given,
        merges="merge" in given,
        merge_key=given.get("merge", ""),
        keys=tuple(given["keys"].split(",")) if "keys" in given else (),
        is_set="set" in given,
        atomic="atomic" in given,
        retains_keys="retainKeys" in given,
        keeps_zero="zero" in given,
        default=json.loads(given["default"]) if "default" in given else None,
        numbers=tuple(int(each) for each in numbers.split(".")) if numbers else (),
    )


def _type(package: str, text: str) -> SchemaType:
    if text.startswith(_LIST):
        return SchemaType(text, is_list=True, of=_type(package, text.removeprefix(_LIST)))
    if text.startswith(_MAP):
        return SchemaType(text, is_map=True, of=_type(package, text.removeprefix(_MAP)))
    if text in SCALARS or "." in text:
        return SchemaType(text)
    return SchemaType(f"{package}.{text}")


@dataclass(frozen=True, slots=True)
class FieldShape:
    """How a value is merged: by fields, by list items, or as a whole."""

    type: SchemaType | None = None
    field: SchemaField | None = None

    @property
    def is_atomic(self) -> bool:
        """Whether the value is owned and replaced as a whole."""
        if self.field is not None and self.field.atomic:
            return True
        kind = self.type
        if kind is None or kind.is_list or kind.is_map:
            return False
        return "." in kind.name and struct(kind.name).atomic

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that identify the items of a list; none for other values."""
        return self.field.keys if self.field is not None else ()

    @property
    def is_set(self) -> bool:
        return self.field is not None and self.field.is_set

    def child(self, name: str) -> FieldShape:
        """Returns the shape of a field, or of a value of a map."""
        kind = self.type
        if kind is None:
            return FieldShape()
        if kind.is_map:
            return FieldShape(kind.of)
        if kind.is_list or "." not in kind.name:
            return FieldShape()
        field = struct(kind.name).fields.get(name)
        return FieldShape(field.type, field) if field else FieldShape()

    @property
    def item(self) -> FieldShape:
        """The shape of the items of a list."""
        return (
            FieldShape(self.type.of)
            if self.type is not None and self.type.is_list
            else FieldShape()
        )

    def key_of(self, item: dict[str, Any]) -> dict[str, Any]:
        """Returns the values that identify an item of this list, with defaults."""
        return {name: self._key(item, name) for name in sorted(self.keys)}

    def _key(self, item: dict[str, Any], name: str) -> Any:
        if item.get(name) is not None:
            return item[name]
        field = self.item.child(name).field
        return field.default if field else None


def shape_of(schema: str) -> FieldShape:
    """Returns the shape of a type; without a type, lists are atomic."""
    return FieldShape(SchemaType(schema)) if schema else FieldShape()
