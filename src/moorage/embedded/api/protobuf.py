"""Reads Kubernetes' protobuf into the objects that JSON would give.

kubectl and kube-scheduler create objects in this form whatever discovery says.
Answers are always JSON, which both understand. The numbers of the fields are in the tables of
`schemas`; a number such as 2.4 is field 4 of a message that JSON shows as part of its parent.
"""

from __future__ import annotations

import base64
import struct as binary
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import msgspec

from moorage.embedded.request_refusals import RequestRefused, bad_request
from moorage.embedded.store.object_store import Json

from .decoding import expect_shallow
from .schema import SchemaField, SchemaType, struct

_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10
_EPOCH = datetime(1970, 1, 1)
_JSON_SCHEMA = "apiextensions.v1.JSONSchemaProps"

#: The fields of a message by number; a mapping stands for a message shown as part of its parent.
_Numbers = dict[int, Any]


class _Malformed(ValueError):
    """Bytes that are not valid protobuf."""


@cache
def is_numbered(schema: str) -> bool:
    """Whether the numbers of a type's fields are known, so that it can be read."""
    return any(field.numbers for field in struct(schema).fields.values())


def read_protobuf(schema: str, body: bytes) -> Json:
    """Reads an object in the envelope that Kubernetes puts around it."""
    if not body.startswith(_MAGIC):
        raise _unreadable("it does not begin with k8s")
    try:
        parts = {number: value for number, value in _fields(body[len(_MAGIC) :])}
        names = {number: value for number, value in _fields(_bytes(parts.get(1, b"")))}
        item = _message(_bytes(parts.get(2, b"")), _numbers(schema))
        version, kind = (_bytes(names.get(number, b"")).decode() for number in (1, 2))
    except (
        _Malformed,
        UnicodeDecodeError,
        msgspec.DecodeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise _unreadable(str(error)) from error
    expect_shallow(item)
    return {"apiVersion": version, "kind": kind, **item}


@cache
def _numbers(schema: str) -> _Numbers:
    numbers: _Numbers = {}
    for field in struct(schema).fields.values():
        *way, last = field.numbers or (0,)
        below = numbers
        for number in way:
            below = below.setdefault(number, {})
        below[last] = field
    return numbers


def _message(data: bytes, numbers: _Numbers) -> Json:
    item: Json = {}
    for number, raw in _fields(data):
        known = numbers.get(number)
        if isinstance(known, dict):
            item |= _message(_bytes(raw), known)
        elif known is not None:
            _set(item, known, raw)
    return item


def _set(item: Json, field: SchemaField, raw: Any) -> None:
    kind = field.type
    if kind.is_list and kind.of:
        item.setdefault(field.name, []).append(_value(kind.of, raw))
    elif kind.is_map and kind.of:
        entry = {number: value for number, value in _fields(_bytes(raw))}
        key = _bytes(entry.get(1, b"")).decode()
        item.setdefault(field.name, {})[key] = _value(kind.of, entry.get(2, b""))
    else:
        value, zero = _value(kind, raw), field.zero
        # What is not set comes as a zero, an empty text or an empty time.
        if value is not None and (zero is None or value != zero):
            item[field.name] = value


def _value(kind: SchemaType, raw: Any) -> Any:
    match kind.name:
        case "string":
            return _bytes(raw).decode()
        case "boolean":
            return _int(raw) != 0
        case "int32" | "int64":
            return _int(raw)
        case "number":
            return binary.unpack("<d", _bytes(raw))[0] if len(_bytes(raw)) == 8 else 0.0
        case "bytes":
            return base64.b64encode(_bytes(raw)).decode()
        case _:
            return _special(kind.name, _bytes(raw))


def _special(name: str, data: bytes) -> Any:
    """Reads types that are messages in protobuf but simple values in JSON."""
    if "." in name:
        return _message(data, _numbers(name))
    if name.startswith("jsonSchema"):
        return _json_schema(name, data)
    parts = {number: value for number, value in _fields(data)}
    match name:
        case "quantity":
            return _bytes(parts.get(1, b"")).decode() or "0"
        case "time" | "microTime":
            return _time(parts, micro=name == "microTime")
        case "intOrString":
            if _int(parts.get(1, 0)):
                return _bytes(parts.get(3, b"")).decode()
            return _int(parts.get(2, 0))
        case _:
            text = _bytes(parts.get(1, b""))
            return msgspec.json.decode(text) if text else None


def _json_schema(name: str, data: bytes) -> Any:
    """Reads the schema of a custom resource, or what JSON allows in its place."""
    if name == "jsonSchema":
        return _message(data, _numbers(_JSON_SCHEMA))
    found: dict[int, list[Any]] = {1: [], 2: []}
    for number, value in _fields(data):
        found.setdefault(number, []).append(value)
    first, second = found[1], found[2]
    match name:
        case "jsonSchemaOrBool":
            return _json_schema("jsonSchema", _bytes(second[-1])) if second else any(first)
        case "jsonSchemaOrArray" if not first:
            return [_json_schema("jsonSchema", _bytes(each)) for each in second]
        case "jsonSchemaOrStrings" if not first:
            return [_bytes(each).decode() for each in second]
        case _:
            return _json_schema("jsonSchema", _bytes(first[-1]))


def _time(parts: dict[int, Any], *, micro: bool) -> str | None:
    if not parts:
        return None
    seconds, nanos = _int(parts.get(1, 0)), _int(parts.get(2, 0))
    moment = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    return moment.isoformat(timespec="microseconds" if micro else "seconds") + "Z"


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yields the fields of a message: their numbers, and integers or bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise _Malformed(f"unknown wire type {wire}")
        if size > len(data) - at:
            raise _Malformed("it ends within a field")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_LONGEST_VARINT):
        if at + place >= len(data):
            raise _Malformed("it ends within a number")
        value |= (data[at + place] & 0x7F) << (7 * place)
        if data[at + place] < 0x80:
            return value & (2**64 - 1), at + place + 1
    raise _Malformed("a number is too long")


def _int(raw: Any) -> int:
    if not isinstance(raw, int):
        raise _Malformed("a number is expected")
    return raw - 2**64 if raw >= 2**63 else raw


def _bytes(raw: Any) -> bytes:
    if not isinstance(raw, bytes):
        raise _Malformed("a text or a message is expected")
    return raw


def _unreadable(why: str) -> RequestRefused:
    return bad_request(f"the body is not protobuf of Kubernetes: {why}")
