"""Custom resources against the schema of their definition: pruning, defaults, faults."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from moorage.embedded.request_refusals import Fault, invalid_value, required, unsupported
from moorage.embedded.store.object_store import Json

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}
_MINIMA = {"minimum": "should be greater than or equal to {}"}
_MAXIMA = {"maximum": "should be less than or equal to {}"}
_LEAST = {
    "minLength": "should be at least {} chars long",
    "minItems": "should have at least {} items",
    "minProperties": "should have at least {} properties",
}
_MOST = {
    "maxLength": "should be at most {} chars long",
    "maxItems": "should have at most {} items",
    "maxProperties": "should have at most {} properties",
}


_PARTS: dict[str, tuple[type, ...]] = {
    "additionalProperties": (dict, bool),
    "enum": (list,),
    "items": (dict,),
    "pattern": (str,),
    "properties": (dict,),
    "required": (list,),
    "type": (str,),
    **dict.fromkeys((*_MINIMA, *_MAXIMA, *_LEAST, *_MOST), (int, float)),
}


def shape_faults(schema: Json, at: str) -> Iterator[Fault]:
    """Yields what is wrong with a schema itself."""
    for name, types in _PARTS.items():
        value = schema.get(name)
        if value is not None and not isinstance(value, types):
            yield invalid_value(f"{at}.{name}", value, f"must be {types[0].__name__}")
            return
    below = {f"properties[{key}]": child for key, child in (schema.get("properties") or {}).items()}
    below |= {name: schema[name] for name in ("items", "additionalProperties") if name in schema}
    for name, child in below.items():
        if isinstance(child, dict):
            yield from shape_faults(child, f"{at}.{name}")
        elif not isinstance(child, bool) or name != "additionalProperties":
            yield invalid_value(f"{at}.{name}", child, "must be an object")


def prune(value: Any, schema: Json) -> Any:
    """Returns a value without unknown fields and nulls."""
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [prune(each, items) for each in value]
    if not isinstance(value, dict):
        return value
    known, rest = schema.get("properties") or {}, schema.get("additionalProperties")
    kept = {}
    for key, child in value.items():
        if key in known:
            if child is not None or known[key].get("nullable"):
                kept[key] = prune(child, known[key])
        elif isinstance(rest, dict):
            kept[key] = prune(child, rest)
        elif rest is True or schema.get(_PRESERVE) or schema.get(_EMBEDDED):
            kept[key] = child
    return kept


def fill_defaults(value: Any, schema: Json) -> None:
    """Sets the fields that are absent and have a default."""
    if isinstance(value, list):
        for each in value:
            fill_defaults(each, schema.get("items") or {})
    if not isinstance(value, dict):
        return
    known, rest = schema.get("properties") or {}, schema.get("additionalProperties")
    for key, child in known.items():
        if key not in value and "default" in child:
            value[key] = child["default"]
    for key, child in value.items():
        shape = known.get(key, rest)
        if isinstance(shape, dict):
            fill_defaults(child, shape)


def schema_faults(value: Any, schema: Json, at: str) -> Iterator[Fault]:
    """Yields what is wrong with a value by its schema."""
    if value is None and schema.get("nullable"):
        return
    if not _is_typed(value, schema):
        wanted = "integer or string" if schema.get(_INT_OR_STRING) else schema.get("type")
        detail = f"{at} in body must be of type {wanted}"
        yield Fault(at, "FieldValueTypeInvalid", f'Invalid value: "{_type_name(value)}": {detail}')
        return
    yield from _scalar_faults(value, schema, at)
    if isinstance(value, dict):
        yield from _object_faults(value, schema, at)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from schema_faults(each, schema.get("items") or {}, f"{at}[{index}]")


def _is_typed(value: Any, schema: Json) -> bool:
    if schema.get(_INT_OR_STRING):
        return isinstance(value, int | str) and not isinstance(value, bool)
    wanted = _TYPES.get(schema.get("type") or "")
    if wanted is None:
        return True
    return isinstance(value, wanted) and (bool in wanted or not isinstance(value, bool))


def _scalar_faults(value: Any, schema: Json, at: str) -> Iterator[Fault]:
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        yield unsupported(at, value, [str(each) for each in choices])
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield from _bound_faults(value, value, schema, at)
    elif isinstance(value, str | list | dict):
        yield from _bound_faults(value, len(value), schema, at)
    pattern = schema.get("pattern")
    if isinstance(value, str) and isinstance(pattern, str) and not _matches(pattern, value):
        yield invalid_value(at, value, f"{at} in body should match '{pattern}'")


def _bound_faults(value: Any, size: float, schema: Json, at: str) -> Iterator[Fault]:
    """Yields bounds that a number, or the length of a value, exceeds."""
    least, most = (_MINIMA, _MAXIMA) if size is value else (_LEAST, _MOST)
    for name, text in (least | most).items():
        bound = schema.get(name)
        if not isinstance(bound, int | float):
            continue
        if size < bound if name in least else size > bound:
            yield invalid_value(at, value, f"{at} in body {text.format(bound)}")


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:
        # What only Go's dialect understands is not checked.
        return True


def _object_faults(value: Json, schema: Json, at: str) -> Iterator[Fault]:
    for name in schema.get("required") or ():
        if name not in value:
            yield required(_below(at, name))
    properties, rest = schema.get("properties") or {}, schema.get("additionalProperties")
    for key, child in value.items():
        shape = properties.get(key) or (rest if isinstance(rest, dict) else None)
        if shape:
            yield from schema_faults(child, shape, _below(at, key))


def _below(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _type_name(value: Any) -> str:
    for name, types in _TYPES.items():
        if isinstance(value, types) and (bool in types or not isinstance(value, bool)):
            return name
    return "null"
