"""Server-side apply: a manager says what it wants of an object, and owns just that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from mooring.embedded.errors import Refused
from mooring.embedded.tables import decode, encode
from mooring.embedded.wire import Json, expect_shallow

from .field_sets import Path, Paths, is_item, item_step, paths_of, place, same_at
from .managers import Manager, managers_of, name_managers
from .shape import Shape

# Who owns what was there before anybody has applied anything.
_BEFORE = "before-first-apply"
_KUBECTL = "kubectl"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class Applied:
    """What is applied, and by whom."""

    config: Json
    shape: Shape
    manager: Manager
    force: bool


def apply(live: Json, wanted: Applied) -> Json:
    """The object with what is wanted, and without what its manager wants no more."""
    shape = wanted.shape
    mine = paths_of(wanted.config, shape)
    managers = managers_of(live) or [_before(live, wanted)]
    before = [each for each in managers if each.is_same(wanted.manager)]
    others = [each for each in managers if not each.is_same(wanted.manager)]
    merged = _merged(live, wanted.config, shape)
    contested = {path for path in mine if not same_at(live, merged, path, shape)}
    conflicts = [(each, path) for each in others for path in sorted(each.paths & contested)]
    conflicts = _serious(conflicts, live, wanted)
    if conflicts and not wanted.force:
        raise _conflicting(conflicts)
    others = [replace(each, paths=each.paths - contested) for each in others]
    dropped = frozenset[Path]().union(*(each.paths for each in before)) - mine
    _prune(merged, dropped, mine.union(*(each.paths for each in others)), shape)
    name_managers(merged, [*others, _latest(wanted.manager, mine, before, merged == live)])
    return merged


def _latest(manager: Manager, paths: Paths, before: list[Manager], unchanged: bool) -> Manager:
    """The manager with what it wants now; who wants the same again has done nothing new."""
    if unchanged and before and before[0].paths == paths:
        return before[0]
    return replace(manager, paths=paths)


def first(wanted: Applied) -> Json:
    """The object as it is created by applying it."""
    item = {**wanted.config, "metadata": {**wanted.config["metadata"]}}
    name_managers(item, [replace(wanted.manager, paths=paths_of(item, wanted.shape))])
    return item


def _before(live: Json, wanted: Applied) -> Manager:
    paths = paths_of(live, wanted.shape)
    return replace(wanted.manager, name=_BEFORE, operation="Update", subresource="", paths=paths)


def _serious(
    conflicts: list[tuple[Manager, Path]], live: Json, wanted: Applied
) -> list[tuple[Manager, Path]]:
    """Leaves out what kubectl has set itself, before it began to apply on the server's side."""
    notes = live["metadata"].get("annotations") or {}
    if wanted.manager.name != _KUBECTL or _LAST_APPLIED not in notes:
        return conflicts
    try:
        applied: Any = decode(notes[_LAST_APPLIED].encode())
        expect_shallow(applied)
    except (msgspec.DecodeError, RecursionError, Refused):
        return conflicts
    own = paths_of(applied, wanted.shape) if isinstance(applied, dict) else frozenset()
    return [(who, path) for who, path in conflicts if who.name != _BEFORE or path not in own]


def _merged(live: Any, config: Any, shape: Shape) -> Any:
    if shape.is_atomic:
        return config
    if isinstance(live, dict) and isinstance(config, dict):
        added = {
            key: _merged(live.get(key), value, shape.child(key)) for key, value in config.items()
        }
        return {**live, **added}
    if isinstance(live, list) and isinstance(config, list):
        if shape.keys:
            return _merged_list(live, config, shape)
        if shape.is_set:
            return [*live, *(each for each in config if each not in live)]
    return config


def _merged_list(live: list[Any], config: list[Any], shape: Shape) -> list[Any]:
    result = list(live)
    for item in config:
        at = place(result, item_step(shape, item), shape)
        if at is None:
            result.append(item)
        else:
            result[at] = _merged(result[at], item, shape.item)
    return result


def _prune(item: Json, dropped: Paths, owned: Paths, shape: Shape) -> None:
    """Takes fields away that nobody wants any more, whole items of lists first."""
    held = {path[:length] for path in owned for length in range(1, len(path) + 1)}
    for path in sorted(dropped, key=lambda each: (not is_item(each), len(each))):
        # An item that somebody else has fields of stays, and with it what tells it apart.
        if path not in held and not _is_key(path):
            _remove(item, path, shape)


def _is_key(path: Path) -> bool:
    """Whether a field is one of those that tell an item of a list apart."""
    if len(path) < 2 or not path[-2].startswith("k:"):
        return False
    return path[-1][2:] in decode(path[-2][2:].encode())


def _remove(value: Any, path: Path, shape: Shape) -> None:
    step, *rest = path
    if step.startswith("f:"):
        name = step[2:]
        if not isinstance(value, dict) or name not in value:
            return
        if not rest:
            del value[name]
            return
        _remove(value[name], tuple(rest), shape.child(name))
        if value[name] in ({}, []):
            del value[name]
    elif isinstance(value, list):
        at = place(value, step, shape)
        if at is not None and rest:
            _remove(value[at], tuple(rest), shape.item)
        elif at is not None:
            del value[at]


def _conflicting(conflicts: list[tuple[Manager, Path]]) -> Refused:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{manager.name}"',
            "field": _shown(path),
        }
        for manager, path in conflicts
    ]
    names = sorted({manager.name for manager, _ in conflicts})
    told = ", ".join(f'"{name}"' for name in names)
    fields = ", ".join(_shown(path) for _, path in conflicts)
    count = f"{len(conflicts)} conflict{'s' if len(conflicts) > 1 else ''}"
    message = f"Apply failed with {count}: conflict with {told}: {fields}"
    return Refused(409, "Conflict", message, {"causes": causes})


def _shown(path: Path) -> str:
    return "".join(f".{step[2:]}" if step.startswith("f:") else _shown_item(step) for step in path)


def _shown_item(step: str) -> str:
    """An item of a list as people write it: [name="c"]."""
    if step.startswith("v:"):
        return f"[={step[2:]}]"
    keys = decode(step[2:].encode())
    return f"[{','.join(f'{key}={encode(value).decode()}' for key, value in keys.items())}]"
