"""Server-side apply: merging a configuration into an object, and conflicts of managers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from moorage.embedded.request_refusals import RequestRefused, bad_request, invalid, required
from moorage.embedded.store.object_store import Json, StoredObject, decode, encode

from .decoding import expect_shallow, now_text
from .kind import ServedKind
from .managed_fields import (
    FieldManager,
    Path,
    Paths,
    is_item,
    item_step,
    managers_of,
    name_managers,
    paths_of,
    place,
    same_at,
)
from .object_api import ObjectApi
from .request_options import WriteOptions, expect_name, expect_namespace
from .schema import FieldShape, shape_of

# The manager of what was there before the first apply.
_BEFORE = "before-first-apply"
_KUBECTL = "kubectl"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class AppliedConfiguration:
    """A configuration that is applied, and its manager."""

    config: Json
    shape: FieldShape
    manager: FieldManager
    force: bool


def apply_configuration(live: Json, wanted: AppliedConfiguration) -> Json:
    """Merges a configuration into an object, and removes what its manager no longer applies."""
    shape = wanted.shape
    mine = paths_of(wanted.config, shape)
    managers = managers_of(live) or [_before(live, wanted)]
    before = [each for each in managers if each.is_same(wanted.manager)]
    others = [each for each in managers if not each.is_same(wanted.manager)]
    merged = _merge(live, wanted.config, shape)
    contested = {path for path in mine if not same_at(live, merged, path, shape)}
    conflicts = [(each, path) for each in others for path in sorted(each.paths & contested)]
    conflicts = _serious(conflicts, live, wanted)
    if conflicts and not wanted.force:
        raise _conflict_refusal(conflicts)
    others = [replace(each, paths=each.paths - contested) for each in others]
    dropped = frozenset[Path]().union(*(each.paths for each in before)) - mine
    _prune(merged, dropped, mine.union(*(each.paths for each in others)), shape)
    name_managers(merged, [*others, _latest(wanted.manager, mine, before, merged == live)])
    return merged


def _latest(
    manager: FieldManager, paths: Paths, before: list[FieldManager], unchanged: bool
) -> FieldManager:
    """Returns the manager with its fields; unchanged if it applies the same again."""
    if unchanged and before and before[0].paths == paths:
        return before[0]
    return replace(manager, paths=paths)


def create_configuration(wanted: AppliedConfiguration) -> Json:
    """Returns the object that applying a configuration creates."""
    item = {**wanted.config, "metadata": {**wanted.config["metadata"]}}
    name_managers(item, [replace(wanted.manager, paths=paths_of(item, wanted.shape))])
    return item


def _before(live: Json, wanted: AppliedConfiguration) -> FieldManager:
    paths = paths_of(live, wanted.shape)
    return replace(wanted.manager, name=_BEFORE, operation="Update", subresource="", paths=paths)


def _serious(
    conflicts: list[tuple[FieldManager, Path]], live: Json, wanted: AppliedConfiguration
) -> list[tuple[FieldManager, Path]]:
    """Leaves out conflicts over fields that kubectl itself applied on the client's side before."""
    notes = live["metadata"].get("annotations") or {}
    if wanted.manager.name != _KUBECTL or _LAST_APPLIED not in notes:
        return conflicts
    try:
        applied: Any = decode(notes[_LAST_APPLIED].encode())
        expect_shallow(applied)
    except (msgspec.DecodeError, RecursionError, RequestRefused):
        return conflicts
    own = paths_of(applied, wanted.shape) if isinstance(applied, dict) else frozenset()
    return [(who, path) for who, path in conflicts if who.name != _BEFORE or path not in own]


def _merge(live: Any, config: Any, shape: FieldShape) -> Any:
    if shape.is_atomic:
        return config
    if isinstance(live, dict) and isinstance(config, dict):
        added = {
            key: _merge(live.get(key), value, shape.child(key)) for key, value in config.items()
        }
        return {**live, **added}
    if isinstance(live, list) and isinstance(config, list):
        if shape.keys:
            return _merge_list(live, config, shape)
        if shape.is_set:
            return [*live, *(each for each in config if each not in live)]
    return config


def _merge_list(live: list[Any], config: list[Any], shape: FieldShape) -> list[Any]:
    result = list(live)
    for item in config:
        at = place(result, item_step(shape, item), shape)
        if at is None:
            result.append(item)
        else:
            result[at] = _merge(result[at], item, shape.item)
    return result


def _prune(item: Json, dropped: Paths, owned: Paths, shape: FieldShape) -> None:
    """Removes fields that no manager owns any more, whole list items first."""
    held = {path[:length] for path in owned for length in range(1, len(path) + 1)}
    for path in sorted(dropped, key=lambda each: (not is_item(each), len(each))):
        # An item in which other managers own fields stays, and so do its keys.
        if path not in held and not _is_key(path):
            _remove(item, path, shape)


def _is_key(path: Path) -> bool:
    """Whether a field is a key of a list item."""
    if len(path) < 2 or not path[-2].startswith("k:"):
        return False
    return path[-1][2:] in decode(path[-2][2:].encode())


def _remove(value: Any, path: Path, shape: FieldShape) -> None:
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


def _conflict_refusal(conflicts: list[tuple[FieldManager, Path]]) -> RequestRefused:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{manager.name}"',
            "field": _path_text(path),
        }
        for manager, path in conflicts
    ]
    names = sorted({manager.name for manager, _ in conflicts})
    names_text = ", ".join(f'"{name}"' for name in names)
    fields = ", ".join(_path_text(path) for _, path in conflicts)
    count = f"{len(conflicts)} conflict{'s' if len(conflicts) > 1 else ''}"
    message = f"Apply failed with {count}: conflict with {names_text}: {fields}"
    return RequestRefused(409, "Conflict", message, {"causes": causes})


def _path_text(path: Path) -> str:
    return "".join(f".{step[2:]}" if step.startswith("f:") else _item_text(step) for step in path)


def _item_text(step: str) -> str:
    """Formats the key of a list item for people: [name="c"]."""
    if step.startswith("v:"):
        return f"[={step[2:]}]"
    keys = decode(step[2:].encode())
    return f"[{','.join(f'{key}={encode(value).decode()}' for key, value in keys.items())}]"


def apply_object(
    api: ObjectApi, kind: ServedKind, at: tuple[str, str], raw: Json, options: WriteOptions
) -> tuple[StoredObject, bool]:
    """Applies a configuration; returns the object and whether it is new."""
    namespace, name = at
    if not options.named:
        fault = required("fieldManager", "is required for apply patch")
        raise invalid("meta.k8s.io", "PatchOptions", "", [fault])
    if not raw.get("kind") or not raw.get("apiVersion"):
        raise bad_request("an applied configuration must name its apiVersion and kind")
    config = kind.known(raw)
    metadata = config.setdefault("metadata", {})
    if metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    metadata.setdefault("name", name)
    expect_name(metadata, name)
    expect_namespace(kind, metadata, namespace)
    manager = FieldManager(
        options.manager,
        "Apply",
        options.subresource,
        kind.api_version,
        now_text(api.clock()),
        frozenset(),
    )
    wanted = AppliedConfiguration(config, shape_of(kind.schema), manager, options.force)
    entry = api.find(kind, namespace, name)
    if entry is None:
        if options.subresource:
            return api.get(kind, namespace, name), False
        return api.create(kind, namespace, create_configuration(wanted), options), True
    live = kind.view.outward(entry.object) if kind.view else entry.object
    write = api.update_status if options.subresource else api.update
    return write(kind, namespace, name, apply_configuration(live, wanted), options), False
