"""JSON patches (RFC 6902) and merge patches (RFC 7386)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec

from mooring.embedded.request_refusals import RequestRefused, bad_request, too_large
from mooring.embedded.store.table import encode

from .decoding import expect_shallow


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
