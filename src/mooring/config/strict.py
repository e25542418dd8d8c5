"""Strict decoding: every field that cannot be read is reported with its path."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from mooring.documents.errors import Problem, Problems, child, item, shown
from mooring.objects.meta import decode_hook

_NOUNS = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}


def convert(wanted: Any, raw: Any, path: str, problems: Problems) -> Any:
    """The value of a type, as far as it can be read; what cannot is added to the problems.

    What is broken inside a Struct stands at its default in the result, so that the rest can still
    be checked; None means that nothing could be read. A null in a Struct means: not given.
    """
    wanted = _without_none(wanted, raw)
    origin, parameters = get_origin(wanted), get_args(wanted)
    if wanted is None:
        return None
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        return _struct(wanted, raw, path, problems)
    if origin is list or (origin is tuple and parameters[1:] == (...,)):
        read = _elements(parameters[0], raw, path, problems)
        return read if read is None else origin(read)
    if origin is dict:
        return _entries(parameters[1], raw, path, problems)
    return _leaf(wanted, raw, path, problems)


def check(value: Any, path: str, problems: Problems) -> None:
    """Asks a decoded value that has a method `problems` what is wrong with it."""
    told = getattr(value, "problems", None)
    if told is not None:
        problems.add_found([Problem(child(path, where), message) for where, message in told()])


def _without_none(wanted: Any, raw: Any) -> Any:
    if get_origin(wanted) not in (Union, types.UnionType):
        return wanted
    rest = [each for each in get_args(wanted) if each is not types.NoneType]
    if raw is None and len(rest) < len(get_args(wanted)):
        return None
    return rest[0] if len(rest) == 1 else wanted


def _struct(wanted: type[msgspec.Struct], raw: Any, path: str, problems: Problems) -> Any:
    if not isinstance(raw, Mapping):
        problems.add(path, f"must be a mapping, got {shown(raw)}")
        return _built(wanted, {}, path, problems)
    fields = {field.encode_name: field for field in msgspec.structs.fields(wanted)}
    for name in raw:
        if name not in fields:
            problems.add(child(path, str(name)), "unknown field")
    values = {}
    for name, field in fields.items():
        given = raw.get(name)
        if given is not None:
            values[field.name] = convert(field.type, given, child(path, name), problems)
        elif field.required:
            problems.add(child(path, name), "is required")
    return _built(wanted, values, path, problems)


def _built(
    wanted: type[msgspec.Struct], values: dict[str, Any], path: str, problems: Problems
) -> Any:
    read = {name: value for name, value in values.items() if value is not None}
    required = {field.name for field in msgspec.structs.fields(wanted) if field.required}
    if not required <= read.keys():
        return None
    try:
        return wanted(**read)
    except (TypeError, ValueError) as error:
        # A Struct may refuse its values in __post_init__.
        problems.add(path, str(error))
        return None


def _elements(wanted: Any, raw: Any, path: str, problems: Problems) -> list[Any] | None:
    if not isinstance(raw, list | tuple):
        problems.add(path, f"must be a list, got {shown(raw)}")
        return None
    read = [convert(wanted, each, item(path, at), problems) for at, each in enumerate(raw)]
    # Leaving out what could not be read would move the others to wrong indices.
    return None if any(each is None for each in read) else read


def _entries(wanted: Any, raw: Any, path: str, problems: Problems) -> dict[str, Any] | None:
    if not isinstance(raw, Mapping):
        problems.add(path, f"must be a mapping, got {shown(raw)}")
        return None
    read = {}
    for key, value in raw.items():
        where = f"{path}[{key}]"
        if not isinstance(key, str):
            problems.add(where, f"must have a string as its key, got {shown(key)}")
        else:
            read[key] = convert(wanted, value, where, problems)
    return read


def _leaf(wanted: Any, raw: Any, path: str, problems: Problems) -> Any:
    try:
        return msgspec.convert(raw, wanted, strict=True, dec_hook=decode_hook)
    except (msgspec.ValidationError, ValueError) as error:
        problems.add(path, _told(wanted, raw, str(error)))
        return None


def _told(wanted: Any, raw: Any, error: str) -> str:
    """msgspec's complaint in the words of this package."""
    kind = get_args(wanted)[0] if get_origin(wanted) is Annotated else wanted
    if get_origin(kind) is Literal:
        allowed = ", ".join(shown(each) for each in get_args(kind))
        return f"must be one of {allowed}, got {shown(raw)}"
    noun = _NOUNS.get(kind)
    if noun is None:
        return error
    expected, _, bound = error.partition("`, got")[0].partition(f"Expected `{kind.__name__}`")
    return f"must be {noun}{'' if expected else bound}, got {shown(raw)}"
