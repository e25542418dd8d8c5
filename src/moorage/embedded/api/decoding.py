"""Reads what clients send into objects with known fields, right types and canonical values.

Types are compiled into msgspec structs when they are first used, so that checking and pruning run
at the speed of decoding."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache
from types import GenericAlias
from typing import Annotated, Any

import msgspec

from moorage.embedded.request_refusals import RequestRefused, bad_request
from moorage.embedded.store.object_store import Json
from moorage.objects.quantity import NANOS_PER_UNIT, Quantity, units

from .schema import SchemaField, SchemaType, struct

_DECIMAL = {18: "E", 15: "P", 12: "T", 9: "G", 6: "M", 3: "k", 0: "", -3: "m", -6: "u", -9: "n"}
_BINARY = {60: "Ei", 50: "Pi", 40: "Ti", 30: "Gi", 20: "Mi", 10: "Ki"}
_EXPONENT = re.compile(r"[\d.][eE][+-]?\d")

# Smaller numbers are written without a binary suffix.
_LEAST_BINARY = 1024


@lru_cache(maxsize=65_536)
def canonical(text: str) -> str:
    """Returns a quantity in its canonical form; raises ValueError for a text that is none."""
    nanos = int(Quantity.parse(text))
    if text.endswith("i") and abs(nanos) >= _LEAST_BINARY * NANOS_PER_UNIT:
        return _binary(units(nanos))
    return _decimal(nanos, exponents=_EXPONENT.search(text) is not None)


def amount_text(name: str, nanos: int) -> str:
    """Writes an amount of a resource; bytes with a binary suffix."""
    value = units(nanos)
    if name.endswith(("memory", "storage")) and value >= _LEAST_BINARY:
        return _binary(value)
    return _decimal(nanos, exponents=False)


def _binary(value: int) -> str:
    for power, suffix in _BINARY.items():
        whole, rest = divmod(value, 2**power)
        if rest == 0:
            return f"{whole}{suffix}"
    return str(value)


def _decimal(nanos: int, *, exponents: bool) -> str:
    if nanos == 0:
        return "0"
    power = next(each for each in _DECIMAL if nanos % 10 ** (each + 9) == 0)
    whole = nanos // 10 ** (power + 9)
    if exponents:
        return f"{whole}e{power}" if power else str(whole)
    return f"{whole}{_DECIMAL[power]}"


# No function that follows an object calls itself more than a few times per level, and Python allows
# a thousand calls.
_MOST_LEVELS = 200

_TYPE_META = (("kind", str | None, None), ("apiVersion", str | None, None))
_MICRO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)", re.ASCII)


class _Bytes(str):
    """Bytes as text, in base 64."""


class _Quantity(str):
    """A quantity in canonical form."""


class _Time(str):
    """A time in UTC, in whole seconds."""


class _MicroTime(str):
    """A time with exactly six digits of its second."""


_SCALARS: Mapping[str, Any] = {
    "any": Any,
    "boolean": bool,
    "bytes": _Bytes,
    "int32": Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)],
    "int64": Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)],
    "intOrString": int | str,
    "jsonSchema": dict[str, Any],
    "jsonSchemaOrArray": Any,
    "jsonSchemaOrBool": Any,
    "jsonSchemaOrStrings": Any,
    "microTime": _MicroTime,
    "number": float,
    "object": dict[str, Any],
    "quantity": _Quantity,
    "string": str,
    "time": _Time,
}


def decode_known(schema: str, raw: Any, title: str) -> Json:
    """Returns an object with its known fields only, all of the right type, without nulls."""
    try:
        value = msgspec.convert(raw, _struct_class(schema), dec_hook=_parse)
    except (msgspec.ValidationError, ValueError) as error:
        raise _unreadable(title, error) from error
    return msgspec.to_builtins(value, enc_hook=str)


def without_zeros(schema: str, item: Json) -> Json:
    """Returns a decoded object in the form in which it is stored, with one value for none.

    What a client in Go reads and writes back is the same object then, in JSON and in protobuf.
    """
    return msgspec.to_builtins(msgspec.convert(item, _stored_class(schema)))


def expect_shallow(raw: Any) -> None:
    """Refuses a value that is nested too deeply for recursive functions."""
    level = [raw]
    for _ in range(_MOST_LEVELS + 1):
        level = [child for each in level for child in _children(each)]
        if not level:
            return
    raise bad_request(f"the object is nested more than {_MOST_LEVELS} levels deep")


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def unknown_fields(raw: Any, kept: Any, path: str = "") -> Iterator[str]:
    """Yields the paths of fields that were sent but not kept; nulls do not count."""
    if isinstance(raw, dict) and isinstance(kept, dict):
        for key, value in raw.items():
            at = f"{path}.{key}" if path else str(key)
            if key in kept:
                yield from unknown_fields(value, kept[key], at)
            elif value is not None:
                yield at
    elif isinstance(raw, list) and isinstance(kept, list):
        for index, (one, other) in enumerate(zip(raw, kept, strict=False)):
            yield from unknown_fields(one, other, f"{path}[{index}]")


def now_text(moment: datetime) -> str:
    """Formats a time as the API does."""
    # Not strftime, which writes the year 1 without zeros.
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def _unreadable(title: str, error: Exception) -> RequestRefused:
    return bad_request(f"{title} cannot be handled: {error}")


@cache
def _struct_class(schema: str) -> type[msgspec.Struct]:
    fields = [
        (each.name, _optional(each), None)
        for each in struct(schema).fields.values()
        if each.name not in ("kind", "apiVersion")
    ]
    return msgspec.defstruct(
        re.sub(r"\W", "_", schema), [*_TYPE_META, *fields], omit_defaults=True, kw_only=True
    )


@cache
def _stored_class(schema: str) -> type[msgspec.Struct]:
    """Makes a type that leaves out what is none. msgspec leaves out the default of a field."""
    fields = [
        (each.name, *_stored_field(each))
        for each in struct(schema).fields.values()
        if each.name not in ("kind", "apiVersion")
    ]
    name = re.sub(r"\W", "_", f"stored_{schema}")
    return msgspec.defstruct(name, [*_TYPE_META, *fields], omit_defaults=True, kw_only=True)


def _stored_field(field: SchemaField) -> tuple[Any, Any]:
    kind, zero = _stored_type(field.type), field.zero
    if zero is None:
        return kind | None, None
    # Of lists and maps msgspec compares the factory.
    return kind, msgspec.field(default_factory=type(zero)) if field.type.of else zero


def _stored_type(kind: SchemaType) -> Any:
    if kind.of is not None:
        inner = _stored_type(kind.of)
        return GenericAlias(list, (inner,)) if kind.is_list else GenericAlias(dict, (str, inner))
    # Scalars are in canonical form already.
    return Any if kind.name in _SCALARS else _stored_class(kind.name)


def _optional(field: SchemaField) -> Any:
    return _python(field.type) | None


def _python(kind: SchemaType) -> Any:
    if kind.of is not None:
        inner = _python(kind.of)
        return GenericAlias(list, (inner,)) if kind.is_list else GenericAlias(dict, (str, inner))
    return _SCALARS.get(kind.name) or _struct_class(kind.name)


def _parse(wanted: type, raw: Any) -> Any:
    if wanted is _Quantity:
        if isinstance(raw, bool) or not isinstance(raw, str | int | float):
            raise ValueError(f"expected a quantity, got {type(raw).__name__}")
        return _Quantity(canonical(raw if isinstance(raw, str) else repr(raw)))
    if wanted is _Bytes:
        if not isinstance(raw, str):
            raise ValueError(f"expected base64, got {type(raw).__name__}")
        base64.b64decode(raw.replace("\r", "").replace("\n", ""), validate=True)
        return _Bytes(raw)
    if not isinstance(raw, str):
        raise ValueError(f"expected a time, got {type(raw).__name__}")
    if wanted is _MicroTime:
        return _MicroTime(_micro(raw))
    return _Time(_seconds(raw))


def _seconds(text: str) -> str:
    return now_text(msgspec.convert(text, Annotated[datetime, msgspec.Meta(tz=True)]))


def _micro(text: str) -> str:
    if not _MICRO.fullmatch(text):
        raise ValueError(f"{text!r} is not a time such as 2025-01-31T12:00:00.000000Z")
    msgspec.convert(text, datetime)
    return text


def part(item: Mapping[str, Any], name: str) -> Json:
    """Returns the mapping in a field of a mapping; an empty one if there is none."""
    value = item.get(name)
    return value if isinstance(value, dict) else {}


def fill(item: Json, **values: Any) -> None:
    """Sets the fields that are absent."""
    for name, value in values.items():
        item.setdefault(name, value)
