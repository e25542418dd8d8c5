"""Patches: JSON patches (RFC 6902), merge patches (RFC 7386) and strategic merge patches."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import msgspec

from moorage.embedded.request_refusals import RequestRefused, bad_request, too_large
from moorage.embedded.store.object_store import Json, encode

from .decoding import expect_shallow
from .schema import SchemaField, SchemaStruct, SchemaType, struct


def merge_patch(target: Any, patch: Any) -> Any:
    """Returns the target with a merge patch applied; the given target does not change."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


# More operations than these are refused, as the API server does.
_MOST_OPERATIONS = 10_000
# A few copies of copies would fill the memory.
_MOST_COPIED_BYTES = 3 * 1024 * 1024


class PatchOperation(msgspec.Struct, rename={"source": "from"}):
    """One step of a patch."""

    op: str
    path: str
    value: Any = msgspec.UNSET
    source: str = ""


class _Untrue(Exception):
    """A test of a patch failed, or its path does not exist."""


def json_patch(target: Any, raw: Any) -> Any:
    """Returns the target with a JSON patch applied; the given target does not change."""
    try:
        operations = msgspec.convert(raw, list[PatchOperation])
    except msgspec.ValidationError as error:
        raise bad_request(f"the patch is not a JSON patch: {error}") from error
    if len(operations) > _MOST_OPERATIONS:
        raise bad_request(f"the allowed maximum operations in a JSON patch is {_MOST_OPERATIONS}")
    result, copied = deepcopy(target), 0
    for operation in operations:
        try:
            if operation.op == "copy":
                copied += _size(_at(result, operation.source))
                if copied > _MOST_COPIED_BYTES:
                    raise too_large(_MOST_COPIED_BYTES)
            result = _apply(result, operation)
        except _Untrue as error:
            raise _unprocessable(str(error)) from error
    expect_shallow(result)
    return result


def _size(value: Any) -> int:
    expect_shallow(value)
    return len(encode(value))


def _apply(target: Any, step: PatchOperation) -> Any:
    match step.op:
        case "test":
            return _test(target, step)
        case "add":
            return _place(target, step.path, _value(step), new=True)
        case "replace":
            return _place(target, step.path, _value(step), new=False)
        case "remove":
            _take(target, step.path)
            return target
        case "move":
            return _place(target, step.path, _take(target, step.source), new=True)
        case "copy":
            return _place(target, step.path, deepcopy(_at(target, step.source)), new=True)
        case _:
            raise _Untrue(f"unknown operation {step.op!r} in a JSON patch")


def _test(target: Any, step: PatchOperation) -> Any:
    if _at(target, step.path) != _value(step):
        raise _Untrue(f"testing path {step.path} failed")
    return target


def _value(step: PatchOperation) -> Any:
    if step.value is msgspec.UNSET:
        raise bad_request(f"the operation {step.op!r} at {step.path!r} has no value")
    return step.value


def _steps(path: str) -> list[str]:
    if path == "":
        return []
    if not path.startswith("/"):
        raise bad_request(f"{path!r} is not a JSON pointer")
    return [step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/")]


def _at(target: Any, path: str) -> Any:
    for step in _steps(path):
        target = _child(target, step, path)
    return target


def _child(target: Any, step: str, path: str) -> Any:
    if isinstance(target, dict) and step in target:
        return target[step]
    if isinstance(target, list):
        return target[_index(step, len(target) - 1, path)]
    raise _Untrue(f"the path {path} does not exist")


def _index(step: str, last: int, path: str) -> int:
    if step.isascii() and step.isdigit() and len(step) < 10 and int(step) <= last:
        return int(step)
    raise _Untrue(f"the path {path} does not exist")


def _place(target: Any, path: str, value: Any, *, new: bool) -> Any:
    steps = _steps(path)
    if not steps:
        return value
    *way, last = steps
    parent = target
    for step in way:
        parent = _child(parent, step, path)
    if isinstance(parent, dict):
        if not new and last not in parent:
            raise _Untrue(f"the path {path} does not exist")
        parent[last] = value
    elif isinstance(parent, list) and new:
        parent.insert(len(parent) if last == "-" else _index(last, len(parent), path), value)
    elif isinstance(parent, list):
        parent[_index(last, len(parent) - 1, path)] = value
    else:
        raise _Untrue(f"the path {path} does not exist")
    return target


def _take(target: Any, path: str) -> Any:
    *way, last = _steps(path) or [""]
    parent = target
    for step in way:
        parent = _child(parent, step, path)
    value = _child(parent, last, path)
    del parent[last if isinstance(parent, dict) else int(last)]
    return value


def _unprocessable(message: str) -> RequestRefused:
    return RequestRefused(422, "Invalid", f"the server rejected our request: {message}")


_PATCH = "$patch"
_RETAIN = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"

_NO_FIELDS: Mapping[str, SchemaField] = {}


def strategic_merge(target: Json, patch: Json, schema: str) -> Json:
    """Returns the target with a strategic merge patch applied; the given target does not change."""
    return _merge(target, patch, struct(schema))


def _merge(target: Any, patch: Json, shape: SchemaStruct | None) -> Json:
    directive = patch.get(_PATCH)
    if directive == "delete":
        return {}
    current = dict(target) if isinstance(target, dict) else {}
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive not in (None, "merge"):
        raise bad_request(f"unknown patch directive {directive!r}")
    if _RETAIN in patch:
        retained = _texts(patch[_RETAIN], _RETAIN)
        current = {key: value for key, value in current.items() if key in retained}
    fields = shape.fields if shape else _NO_FIELDS
    for key, value in patch.items():
        if key.startswith("$"):
            _delete_from(current, key, value)
        else:
            _set(current, key, value, fields.get(key))
    _reorder_all(current, patch, fields, target if isinstance(target, dict) else {})
    return current


def _set(current: Json, key: str, value: Any, field: SchemaField | None) -> None:
    if value is None:
        current.pop(key, None)
    elif isinstance(value, dict):
        shape = _shape(field.type) if field else None
        if field is not None and field.type.is_map:
            current[key] = _merge_map(current.get(key), value, field.type)
        else:
            current[key] = _merge(current.get(key), value, shape)
    elif isinstance(value, list) and field is not None and field.merges:
        current[key] = _merge_lists(current.get(key), value, field)
    else:
        current[key] = value


def _merge_map(target: Any, patch: Json, kind: SchemaType) -> Json:
    shape = _shape(kind.of) if kind.of else None
    if shape is None:
        return _merge(target, patch, None)
    current = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            current.pop(key, None)
        else:
            current[key] = _merge(current.get(key), _object(value), shape)
    return current


def _merge_lists(target: Any, patch: list[Any], field: SchemaField) -> list[Any]:
    current = list(target) if isinstance(target, list) else []
    before = list(current)
    if not field.merge_key:
        current += [each for each in patch if each not in current]
        return _in_order(current, patch, before, "")
    if any(isinstance(each, dict) and each.get(_PATCH) == "replace" for each in patch):
        return [each for each in patch if _PATCH not in _object(each)]
    shape = _shape(field.type.of) if field.type.of else None
    for each in map(_object, patch):
        _merge_item(current, each, field, shape)
    return _in_order(current, patch, before, field.merge_key)


def _merge_item(
    current: list[Any], item: Json, field: SchemaField, shape: SchemaStruct | None
) -> None:
    key = field.merge_key
    if key not in item:
        raise bad_request(f"map: {item} does not contain declared merge key: {key}")
    places = [at for at, each in enumerate(current) if _has(each, key, item[key])]
    if item.get(_PATCH) == "delete":
        for at in reversed(places):
            del current[at]
    elif places:
        current[places[0]] = _merge(current[places[0]], item, shape)
    else:
        current.append(_merge({}, item, shape))


def _has(item: Any, key: str, value: Any) -> bool:
    return isinstance(item, dict) and item.get(key) == value


def _delete_from(current: Json, directive: str, value: Any) -> None:
    if not directive.startswith(_DELETE_FROM):
        return
    key = directive.removeprefix(_DELETE_FROM)
    if isinstance(current.get(key), list) and isinstance(value, list):
        current[key] = [each for each in current[key] if each not in value]


def _reorder_all(
    current: Json, patch: Json, fields: Mapping[str, SchemaField], before: Mapping[str, Any]
) -> None:
    for directive, order in patch.items():
        key = directive.removeprefix(_ORDER)
        if key != directive and isinstance(current.get(key), list) and isinstance(order, list):
            field, old = fields.get(key), before.get(key)
            old = old if isinstance(old, list) else []
            current[key] = _in_order(current[key], order, old, field.merge_key if field else "")


def _in_order(items: list[Any], order: list[Any], before: list[Any], key: str) -> list[Any]:
    """The items that the client names in its order, and before each of them those others that
    stood before it."""

    def identity(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    wanted = [identity(each) for each in order]
    places = [identity(each) for each in before]
    named = [each for each in items if identity(each) in wanted]
    named.sort(key=lambda each: wanted.index(identity(each)))
    others = [each for each in items if identity(each) not in wanted]
    result: list[Any] = []
    for item in named:
        while others and _stood_before(identity(others[0]), identity(item), places):
            result.append(others.pop(0))
        result.append(item)
    return [*result, *others]


def _stood_before(one: Any, other: Any, places: list[Any]) -> bool:
    return one in places and other in places and places.index(one) < places.index(other)


def _shape(kind: SchemaType) -> SchemaStruct | None:
    if kind.is_list or kind.is_map or "." not in kind.name:
        return None
    return struct(kind.name)


def _object(value: Any) -> Json:
    if not isinstance(value, dict):
        raise bad_request("a list that is merged by key takes objects only")
    return value


def _texts(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise bad_request(f"{name} must be a list")
    return value
