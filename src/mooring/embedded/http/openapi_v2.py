"""OpenAPI in its older version: one document of all kinds.

kubectl reads it, in protobuf, to check what no address serves, such as a List of other objects, and
older kubectls read it for everything. It is made from the newer documents, which say more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mooring.embedded.api.kind import ServedKinds
from mooring.embedded.store.table import Json, encode

from .answers import JSON
from .openapi import INFO, schemas

#: What clients ask for, and what it must be called in an answer, where no @ is allowed.
WANTED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
PROTOBUF = WANTED.replace("@", ".")

_NEWER, _OLDER = "#/components/schemas/", "#/definitions/"
_KEPT = ("default", "description", "format", "required")
# What an older document cannot say of a value, so that it says nothing.
_BEYOND = ("nullable", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
_BYTES = 2


def documents(kinds: ServedKinds) -> dict[str, bytes]:
    """Makes the document of all kinds, by media type."""
    definitions = {name: _older(shape) for name, shape in schemas(kinds).items()}
    whole = {"swagger": "2.0", "info": INFO, "paths": {}, "definitions": definitions}
    return {JSON: encode(whole), PROTOBUF: _in_protobuf(whole)}


def _in_protobuf(whole: Json) -> bytes:
    title = _text(1, whole["info"]["title"]) + _text(2, whole["info"]["version"])
    definitions = _named_schemas(whole["definitions"])
    return _text(1, whole["swagger"]) + _message(2, title) + _message(9, definitions)


def _older(shape: Json) -> Json:
    """Converts a schema of OpenAPI v3 to v2."""
    reference = next((each["$ref"] for each in shape.get("allOf") or () if "$ref" in each), "")
    extensions = {key: value for key, value in shape.items() if key.startswith("x-kubernetes-")}
    kept = {key: shape[key] for key in _KEPT if key in shape} | extensions
    if reference:
        return {**kept, "$ref": _OLDER + reference.removeprefix(_NEWER)}
    if any(shape.get(key) for key in _BEYOND):
        return {key: value for key, value in kept.items() if key not in ("format", "required")}
    return {**kept, **_type_schema(shape)}


def _type_schema(shape: Json) -> Json:
    kind = "string" if shape.get("oneOf") else shape.get("type")
    if kind is None or (kind == "array" and not isinstance(shape.get("items"), dict)):
        return {}
    typed: Json = {"type": kind}
    for part in ("items", "additionalProperties"):
        if isinstance(shape.get(part), dict):
            typed[part] = _older(shape[part])
    if "properties" in shape:
        typed["properties"] = {key: _older(each) for key, each in shape["properties"].items()}
    return typed


def _schema(shape: Json) -> bytes:
    known = (write(shape[key]) for key, write in _WRITERS.items() if key in shape)
    extensions = (
        _message(31, _text(1, key) + _message(2, _any(value)))
        for key, value in shape.items()
        if key.startswith("x-kubernetes-")
    )
    return b"".join((*known, *extensions))


def _named_schemas(shapes: Mapping[str, Json]) -> bytes:
    return b"".join(
        _message(1, _text(1, name) + _message(2, _schema(shape))) for name, shape in shapes.items()
    )


def _any(value: Any) -> bytes:
    """Encodes a value as YAML, by its JSON."""
    return _message(2, encode(value))


def _text(number: int, value: str) -> bytes:
    return _message(number, value.encode())


def _texts(number: int, values: Iterable[str]) -> bytes:
    return b"".join(_text(number, each) for each in values)


def _message(number: int, body: bytes) -> bytes:
    return bytes([*_varint(number << 3 | _BYTES), *_varint(len(body))]) + body


def _varint(value: int) -> Iterator[int]:
    while value > 0x7F:
        yield value & 0x7F | 0x80
        value >>= 7
    yield value


# The parts of a schema, with the numbers that they have in protobuf.
_WRITERS: Mapping[str, Callable[[Any], bytes]] = {
    "$ref": lambda value: _text(1, value),
    "format": lambda value: _text(2, value),
    "description": lambda value: _text(4, value),
    "default": lambda value: _message(5, _any(value)),
    "required": lambda value: _texts(19, value),
    "additionalProperties": lambda value: _message(21, _message(1, _schema(value))),
    "type": lambda value: _message(22, _text(1, value)),
    "items": lambda value: _message(23, _message(1, _schema(value))),
    "properties": lambda value: _message(25, _named_schemas(value)),
}
