"""Managers: who has set which fields of an object, kept in its metadata."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from mooring.embedded.wire import Json

from .field_sets import Path, Paths, from_tree, paths_of, same_at, to_tree
from .shape import Shape


@dataclass(frozen=True, slots=True)
class Manager:
    """Somebody who has set fields of an object, by applying or otherwise."""

    name: str
    operation: str
    subresource: str
    api_version: str
    time: str
    paths: Paths

    def is_same(self, other: Manager) -> bool:
        return (self.name, self.operation, self.subresource) == (
            other.name,
            other.operation,
            other.subresource,
        )


def managers_of(item: Json) -> list[Manager]:
    """The managers that an object names."""
    return [
        Manager(
            str(each.get("manager", "")),
            str(each.get("operation", "")),
            str(each.get("subresource", "")),
            str(each.get("apiVersion", "")),
            str(each.get("time", "")),
            from_tree(each.get("fieldsV1")),
        )
        for each in item["metadata"].get("managedFields") or ()
    ]


def name_managers(item: Json, managers: Iterable[Manager]) -> None:
    """Writes down the managers of an object; those that have set nothing are left out."""
    entries = [_entry(each) for each in managers if each.paths]
    item["metadata"].pop("managedFields", None)
    if entries:
        item["metadata"]["managedFields"] = entries


def _entry(manager: Manager) -> Json:
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


def note_update(item: Json, old: Json, shape: Shape, writer: Manager) -> None:
    """Gives the writer what an update has changed, if anybody keeps track of the object."""
    written = item["metadata"].get("managedFields")
    if written == []:
        item["metadata"].pop("managedFields")
        return
    before = old["metadata"].get("managedFields")
    if not before or written != before:
        return
    had, has = paths_of(old, shape), paths_of(item, shape)
    changed = {path for path in has if path not in had or not same_at(item, old, path, shape)}
    gone = had - has
    if not changed and not gone:
        return
    name_managers(item, _shifted(managers_of(old), writer, frozenset(changed), gone))


def _shifted(
    managers: list[Manager], writer: Manager, changed: Paths, gone: Iterable[Path]
) -> list[Manager]:
    lost = changed | frozenset(gone)
    kept = [replace(each, paths=each.paths - lost) for each in managers]
    mine = [each for each in kept if each.is_same(writer)]
    others = [each for each in kept if not each.is_same(writer)]
    paths = changed.union(*(each.paths for each in mine))
    return [*others, replace(writer, paths=paths)]
