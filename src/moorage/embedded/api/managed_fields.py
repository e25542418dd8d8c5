"""Managed fields: who has set which fields of an object, as server-side apply notes it.

A path is a tuple of steps: `f:spec` is a field, `k:{"name":"a"}` an item of a list by its keys,
`v:"x"` an item of a list that is a set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from moorage.embedded.store.object_store import Json, decode, encode

from .schema import FieldShape

Path = tuple[str, ...]
Paths = frozenset[Path]

_ABSENT = object()

#: What the server alone writes, and what names the object: no manager owns it.
_UNOWNED: Paths = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "creationTimestamp",
                "deletionGracePeriodSeconds",
                "deletionTimestamp",
                "generation",
                "managedFields",
                "name",
                "namespace",
                "resourceVersion",
                "selfLink",
                "uid",
            )
        ),
    }
)


def paths_of(item: Json, shape: FieldShape) -> Paths:
    """Returns the paths of all fields of an object that a manager can own."""
    found = _paths(item, shape, ())
    return frozenset(
        path for path in found if path[:1] not in _UNOWNED and path[:2] not in _UNOWNED
    )


def _paths(value: Any, shape: FieldShape, at: Path) -> Iterator[Path]:
    if shape.is_atomic or not isinstance(value, dict | list):
        yield from [at] if at else []
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from _paths(child, shape.child(key), (*at, f"f:{key}"))
        if not value and at:
            yield at
    elif shape.keys:
        yield from _item_paths(value, shape, at)
    elif shape.is_set:
        for item in value:
            yield (*at, f"v:{encode(item).decode()}")
    else:
        yield at


def _item_paths(items: list[Any], shape: FieldShape, at: Path) -> Iterator[Path]:
    for item in items:
        step = (*at, item_step(shape, item))
        yield step
        if isinstance(item, dict):
            yield from _paths(item, shape.item, step)


def item_step(shape: FieldShape, item: Any) -> str:
    keys = shape.key_of(item) if isinstance(item, dict) else {}
    return f"k:{encode(keys).decode()}"


def is_item(path: Path) -> bool:
    return not path[-1].startswith("f:")


def same_at(one: Json, other: Json, path: Path, shape: FieldShape) -> bool:
    """Whether two objects have the same value at a path, or both have the same list item."""
    mine, theirs = value_at(one, path, shape), value_at(other, path, shape)
    if is_item(path):
        return (mine is _ABSENT) is (theirs is _ABSENT)
    return bool(mine == theirs)


def has(item: Json, path: Path, shape: FieldShape) -> bool:
    return value_at(item, path, shape) is not _ABSENT


def value_at(value: Any, path: Path, shape: FieldShape) -> Any:
    for step in path:
        value, shape = _down(value, step, shape)
        if value is _ABSENT:
            return _ABSENT
    return value


def _down(value: Any, step: str, shape: FieldShape) -> tuple[Any, FieldShape]:
    if step.startswith("f:"):
        name = step[2:]
        if isinstance(value, dict) and name in value:
            return value[name], shape.child(name)
    elif isinstance(value, list):
        at = place(value, step, shape)
        if at is not None:
            return value[at], shape.item
    return _ABSENT, shape


def place(items: list[Any], step: str, shape: FieldShape) -> int | None:
    """Returns the position of the item of a step in a list; None if it is not there."""
    if step.startswith("v:"):
        wanted = decode(step[2:].encode())
        return items.index(wanted) if wanted in items else None
    return next((at for at, each in enumerate(items) if item_step(shape, each) == step), None)


def to_tree(paths: Paths) -> Json:
    """Returns a set of fields in the form of `fieldsV1`."""
    tree: Json = {}
    for path in sorted(paths):
        below = tree
        for step in path:
            below = below.setdefault(step, {})
        if path[-1].startswith("k:"):
            below["."] = {}
    return tree


def from_tree(tree: Any) -> Paths:
    """Reads `fieldsV1`; steps that cannot be read are left out."""
    return frozenset(_read(tree, ()))


def _read(tree: Any, at: Path) -> Iterator[Path]:
    if not isinstance(tree, dict) or (not tree and at):
        if at:
            yield at
        return
    for step, below in tree.items():
        if step == ".":
            if at:
                yield at
        elif _makes_sense(step):
            yield from _read(below, (*at, step))


def _makes_sense(step: str) -> bool:
    if step.startswith("f:"):
        return True
    try:
        key = decode(step[2:].encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return step.startswith("v:") or (step.startswith("k:") and isinstance(key, dict))


@dataclass(frozen=True, slots=True)
class FieldManager:
    """A client that has set fields of an object."""

    name: str
    operation: str
    subresource: str
    api_version: str
    time: str
    paths: Paths

    def is_same(self, other: FieldManager) -> bool:
        return (self.name, self.operation, self.subresource) == (
            other.name,
            other.operation,
            other.subresource,
        )


def managers_of(item: Json) -> list[FieldManager]:
    """Reads the managers of an object."""
    return [
        FieldManager(
            str(each.get("manager", "")),
            str(each.get("operation", "")),
            str(each.get("subresource", "")),
            str(each.get("apiVersion", "")),
            str(each.get("time", "")),
            from_tree(each.get("fieldsV1")),
        )
        for each in item["metadata"].get("managedFields") or ()
    ]


def name_managers(item: Json, managers: Iterable[FieldManager]) -> None:
    """Writes the managers of an object; those that own no fields are left out."""
    entries = [_entry(each) for each in managers if each.paths]
    item["metadata"].pop("managedFields", None)
    if entries:
        item["metadata"]["managedFields"] = entries


def _entry(manager: FieldManager) -> Json:
    entry: dict[str, Any] = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": manager.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": to_tree(manager.paths),
    }
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return {key: value for key, value in entry.items() if value != ""}


def note_update(item: Json, old: Json, shape: FieldShape, writer: FieldManager) -> None:
    """Makes the writer of an update own what it changed, if the object has managers."""
    noted = item["metadata"].get("managedFields")
    if noted == []:
        item["metadata"].pop("managedFields")
        return
    before = old["metadata"].get("managedFields")
    if not before or noted != before:
        return
    had, has = paths_of(old, shape), paths_of(item, shape)
    changed = {path for path in has if path not in had or not same_at(item, old, path, shape)}
    gone = had - has
    if not changed and not gone:
        return
    name_managers(item, _shift(managers_of(old), writer, frozenset(changed), gone))


def _shift(
    managers: list[FieldManager], writer: FieldManager, changed: Paths, gone: Iterable[Path]
) -> list[FieldManager]:
    lost = changed | frozenset(gone)
    kept = [replace(each, paths=each.paths - lost) for each in managers]
    mine = [each for each in kept if each.is_same(writer)]
    others = [each for each in kept if not each.is_same(writer)]
    paths = changed.union(*(each.paths for each in mine))
    return [*others, replace(writer, paths=paths)]
