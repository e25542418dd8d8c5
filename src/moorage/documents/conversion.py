"""Converts mappings and lists to typed values, and finds every field that cannot be read.

msgspec stops at the first mistake and describes its place in a sentence. This module walks the
types itself, so that it finds all mistakes, each with the path that its author would write.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from .errors import DecodeError, Problem, Problems, child, describe, entry, item

_NOUNS: dict[Any, str] = {
    bool: "true or false",
    datetime: "a time",
    float: "a number",
    int: "an integer",
    str: "a string",
}
_T = TypeVar("_T")

_BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "gt": (">", operator.gt),
    "ge": (">=", operator.ge),
    "lt": ("<", operator.lt),
    "le": ("<=", operator.le),
}


@cache
def find_fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Returns the fields of a type; msgspec evaluates all annotations anew each time."""
    return msgspec.structs.fields(kind)


def decode_hook(wanted: type, raw: Any) -> Any:
    """Teaches msgspec Moorage's own types: those that have a `parse` and a `noun`."""
    parse = getattr(wanted, "parse", None)
    if parse is None:
        raise NotImplementedError(wanted)
    if not isinstance(raw, str | int | float) or isinstance(raw, bool):
        raise ValueError(f"must be {wanted.noun}, got {describe(raw)}")  # type: ignore[attr-defined]
    return parse(raw)


def to_struct(wanted: type[_T], raw: Any) -> _T:
    """Returns the struct that mappings and lists describe.

    Raises DecodeError with the wrong field. Fields that the struct does not have are skipped.
    """
    try:
        return msgspec.convert(raw, wanted, dec_hook=decode_hook)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        problems = Problems()
        convert(wanted, raw, "", problems, skip_unknown=True)
        for problem in problems:
            raise DecodeError(problem.message, problem.path) from error
        raise DecodeError(str(error)) from error


def convert(
    wanted: Any, raw: Any, path: str, problems: Problems, *, skip_unknown: bool = False
) -> Any:
    """Returns the value of a type, as far as it can be read; adds mistakes to the problems.

    A wrong field of a Struct gets its default, so that the rest can still be checked; None means
    that nothing could be read. A null in a Struct means that the field is absent. Fields that a
    Struct does not have are problems, unless they are to be skipped.
    """
    return _Conversion(problems, skip_unknown).read(wanted, raw, path)


def check(value: Any, path: str, problems: Problems) -> None:
    """Asks a value that has a method `problems` what is wrong with it."""
    find = getattr(value, "problems", None)
    if find is not None:
        problems.add_found([Problem(child(path, where), message) for where, message in find()])


class _Conversion:
    """One walk over a value and its type."""

    def __init__(self, problems: Problems, skip_unknown: bool) -> None:
        self._problems = problems
        self._skip_unknown = skip_unknown

    def read(self, wanted: Any, raw: Any, path: str) -> Any:
        wanted = self._choose(wanted, raw, path)
        origin, parameters = get_origin(wanted), get_args(wanted)
        if wanted is None:
            return None
        if _is_struct(wanted):
            return self._struct(wanted, raw, path)
        if origin is list or (origin is tuple and parameters[1:] == (...,)):
            read = self._elements(parameters[0], raw, path)
            return read if read is None else origin(read)
        if origin in (dict, Mapping):
            return self._entries(parameters[1], raw, path)
        return self._leaf(wanted, raw, path)

    def _choose(self, wanted: Any, raw: Any, path: str) -> Any:
        """Returns the type that is meant, if there are several; None if that is not clear."""
        if get_origin(wanted) not in (Union, types.UnionType):
            return wanted
        rest = [each for each in get_args(wanted) if each is not types.NoneType]
        if raw is None and len(rest) < len(get_args(wanted)):
            return None
        if len(rest) == 1:
            return rest[0]
        if all(_is_struct(each) for each in rest) and isinstance(raw, Mapping):
            return self._choose_by_tag(rest, raw, path)
        return wanted

    def _choose_by_tag(self, choices: list[Any], raw: Mapping[str, Any], path: str) -> Any:
        field = choices[0].__struct_config__.tag_field
        by_tag = {each.__struct_config__.tag: each for each in choices}
        tag = raw.get(field)
        if isinstance(tag, str) and tag in by_tag:
            return by_tag[tag]
        complaint = "is required" if tag is None else f"unknown {field} {describe(tag)}"
        self._problems.add(child(path, field), complaint)
        return None

    def _struct(self, wanted: type[msgspec.Struct], raw: Any, path: str) -> Any:
        if not isinstance(raw, Mapping):
            self._problems.add(path, f"must be a mapping, got {describe(raw)}")
            return self._build(wanted, {}, path)
        fields = {field.encode_name: field for field in find_fields(wanted)}
        config = wanted.__struct_config__
        if not self._skip_unknown or config.forbid_unknown_fields:
            for name in raw:
                if name not in fields and name != config.tag_field:
                    self._problems.add(child(path, str(name)), "unknown field")
        values = {}
        for name, field in fields.items():
            given = raw.get(name)
            if given is not None:
                values[field.name] = self.read(field.type, given, child(path, name))
            elif field.required:
                self._problems.add(child(path, name), "is required")
        return self._build(wanted, values, path)

    def _build(self, wanted: type[msgspec.Struct], values: dict[str, Any], path: str) -> Any:
        read = {name: value for name, value in values.items() if value is not None}
        required = {field.name for field in find_fields(wanted) if field.required}
        if not required <= read.keys():
            return None
        try:
            return wanted(**read)
        except (TypeError, ValueError) as error:
            # A Struct may refuse its values in __post_init__.
            self._problems.add(path, str(error))
            return None

    def _elements(self, wanted: Any, raw: Any, path: str) -> list[Any] | None:
        if not isinstance(raw, list | tuple):
            self._problems.add(path, f"must be a list, got {describe(raw)}")
            return None
        read = [self.read(wanted, each, item(path, at)) for at, each in enumerate(raw)]
        # Leaving out what could not be read would move the others to wrong indices.
        return None if any(each is None for each in read) else read

    def _entries(self, wanted: Any, raw: Any, path: str) -> dict[str, Any] | None:
        if not isinstance(raw, Mapping):
            self._problems.add(path, f"must be a mapping, got {describe(raw)}")
            return None
        read = {}
        for key, value in raw.items():
            if not isinstance(key, str):
                complaint = f"must have a string as its key, got {describe(key)}"
                self._problems.add(f"{path}[{key}]", complaint)
            else:
                read[key] = self.read(wanted, value, entry(path, key))
        return read

    def _leaf(self, wanted: Any, raw: Any, path: str) -> Any:
        try:
            return msgspec.convert(raw, wanted, strict=True, dec_hook=decode_hook)
        except (msgspec.ValidationError, ValueError) as error:
            self._problems.add(path, _complaint(wanted, raw, error))
        except RecursionError:
            self._problems.add(path, "nested too deeply")
        return None


def _is_struct(wanted: Any) -> bool:
    return isinstance(wanted, type) and issubclass(wanted, msgspec.Struct)


def _complaint(wanted: Any, raw: Any, error: Exception) -> str:
    """Describes what is wrong with a value, in words that its author knows."""
    bounds = ""
    if get_origin(wanted) is Annotated:
        wanted, *notes = get_args(wanted)
        if isinstance(raw, int | float) and not isinstance(raw, bool):
            bounds = "".join(_broken_bounds(note, raw) for note in notes)
    choices = _choices(wanted)
    if choices:
        return f"must be one of {', '.join(map(describe, choices))}, got {describe(raw)}"
    if wanted is datetime and isinstance(raw, str):
        return f"{describe(raw)} is not a time such as 2025-01-31T12:00:00Z"
    nouns = [_NOUNS.get(each, "") for each in _alternatives(wanted)]
    # Types of ours complain in these words themselves.
    return (
        f"must be {' or '.join(nouns)}{bounds}, got {describe(raw)}" if all(nouns) else str(error)
    )


def _broken_bounds(note: Any, number: float) -> str:
    found = ((getattr(note, name, None), *how) for name, how in _BOUNDS.items())
    return "".join(
        f" {sign} {bound}"
        for bound, sign, holds in found
        if bound is not None and not holds(number, bound)
    )


def _choices(wanted: Any) -> tuple[Any, ...]:
    if get_origin(wanted) is Literal:
        # An empty word stands for none, which is said by leaving it out.
        return tuple(each for each in get_args(wanted) if each != "")
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return tuple(each.value for each in wanted)
    return ()


def _alternatives(wanted: Any) -> tuple[Any, ...]:
    is_union = get_origin(wanted) in (Union, types.UnionType)
    return get_args(wanted) if is_union else (wanted,)
