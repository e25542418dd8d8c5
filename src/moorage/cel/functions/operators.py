"""Operators, conversions and optional values."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from moorage.cel.functions.function_table import FunctionTable, Run
from moorage.cel.values import (
    INT_RANGE,
    UINT_RANGE,
    CelDuration,
    CelError,
    DefaultMap,
    Maybe,
    Meter,
    TypeName,
    Uint,
    compare,
    equal,
    is_key,
    place_of,
    type_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable

TABLE = FunctionTable()

_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
_DECIMAL = re.compile(r"[+-]?([0-9]{1,100}\.?[0-9]{0,100}|\.[0-9]{1,100})([eE][+-]?[0-9]{1,4})?")


def whole(value: int, unsigned: bool = False) -> int:
    """Returns a result of whole numbers; raises if 64 bits cannot hold it."""
    if value not in (UINT_RANGE if unsigned else INT_RANGE):
        raise CelError("unsigned integer overflow" if unsigned else "integer overflow")
    return Uint(value) if unsigned else value


@TABLE.takes_any("_==_", 2)
def _equals(meter: Meter, left: Any, right: Any) -> bool:
    return equal(meter, left, right)


@TABLE.takes_any("_!=_", 2)
def _differs(meter: Meter, left: Any, right: Any) -> bool:
    return not equal(meter, left, right)


def _order(test: Callable[[int], bool]) -> Run:
    """Returns an order; nothing is less or greater than NaN."""

    def run(meter: Meter, left: Any, right: Any) -> bool:
        order = compare(left, right)
        return left == left and right == right and test(order)

    return run


TABLE.takes_any("_<_", 2)(_order(lambda order: order < 0))
TABLE.takes_any("_<=_", 2)(_order(lambda order: order <= 0))
TABLE.takes_any("_>_", 2)(_order(lambda order: order > 0))
TABLE.takes_any("_>=_", 2)(_order(lambda order: order >= 0))


def _declare_arithmetic(name: str, run: Callable[[Any, Any], Any]) -> None:
    TABLE.takes(name, int, int)(lambda meter, left, right: whole(run(left, right)))
    TABLE.takes(name, Uint, Uint)(
        lambda meter, left, right: whole(run(int(left), int(right)), unsigned=True)
    )
    TABLE.takes(name, float, float)(lambda meter, left, right: run(left, right))


def _divide(left: Any, right: Any) -> Any:
    if isinstance(left, float):
        return _divide_floats(left, right)
    if right == 0:
        raise CelError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _divide_floats(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, math.copysign(1, left) * math.copysign(1, right))


_declare_arithmetic("_+_", lambda left, right: left + right)
_declare_arithmetic("_-_", lambda left, right: left - right)
_declare_arithmetic("_*_", lambda left, right: left * right)
_declare_arithmetic("_/_", _divide)


@TABLE.takes("_%_", int, int)
@TABLE.takes("_%_", Uint, Uint)
def _remainder(meter: Meter, left: int, right: int) -> int:
    if right == 0:
        raise CelError("modulus by zero")
    value = abs(int(left)) % abs(int(right))
    return Uint(value) if isinstance(left, Uint) else value if left >= 0 else -value


@TABLE.takes("-_", int)
def _negate(meter: Meter, value: int) -> int:
    return whole(-value)


@TABLE.takes("-_", float)
def _negate_float(meter: Meter, value: float) -> float:
    return -value


@TABLE.takes("!_", bool)
def _not(meter: Meter, value: bool) -> bool:
    return not value


@TABLE.takes("_+_", str, str)
@TABLE.takes("_+_", bytes, bytes)
def _join_texts(meter: Meter, left: Any, right: Any) -> Any:
    meter.charge_text(len(left) + len(right))
    return left + right


@TABLE.takes("_+_", list, list)
def _join_lists(meter: Meter, left: list[Any], right: list[Any]) -> list[Any]:
    meter.charge(len(left) + len(right))
    return left + right


@TABLE.takes_any("@in", 2)
def _contains(meter: Meter, value: Any, container: Any) -> bool:
    if isinstance(container, dict):
        return is_key(value) and value in container
    if not isinstance(container, list):
        raise CelError("no such overload")
    return place_of(meter, container, value) >= 0


@TABLE.takes("size", str)
@TABLE.takes("size", bytes)
@TABLE.takes("size", list)
@TABLE.takes("size", dict)
@TABLE.takes("size", DefaultMap)
def _size(meter: Meter, value: Any) -> int:
    return len(value)


@TABLE.takes("cel.@mapInsert", dict, dict)
def _insert_all(meter: Meter, entries: dict[Any, Any], more: dict[Any, Any]) -> dict[Any, Any]:
    for key, value in more.items():
        entries = _insert(meter, entries, key, value)
    return entries


@TABLE.takes_any("cel.@mapInsert", 3)
def _insert(meter: Meter, entries: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    meter.charge(1 + len(entries))
    if key in entries or not is_key(key):
        raise CelError(f"insert failed: key {key!r} already exists")
    return {**entries, key: value}


@TABLE.takes_any("type", 1)
def _type(meter: Meter, value: Any) -> TypeName:
    return TypeName(type_name(value))


@TABLE.takes_any("dyn", 1)
def _dyn(meter: Meter, value: Any) -> Any:
    return value


@TABLE.takes("int", int)
@TABLE.takes("int", Uint)
@TABLE.takes("int", float)
@TABLE.takes("int", str)
def _int(meter: Meter, value: Any) -> int:
    return whole(_whole_of(value))


@TABLE.takes("uint", int)
@TABLE.takes("uint", Uint)
@TABLE.takes("uint", float)
@TABLE.takes("uint", str)
def _uint(meter: Meter, value: Any) -> int:
    return whole(_whole_of(value), unsigned=True)


def _whole_of(value: Any) -> int:
    if isinstance(value, str) and not _WHOLE.fullmatch(value):
        raise CelError("type conversion error from 'string' to 'int'")
    if isinstance(value, float) and not math.isfinite(value):
        raise CelError("integer overflow")
    return int(value)


@TABLE.takes("double", int)
@TABLE.takes("double", Uint)
@TABLE.takes("double", float)
@TABLE.takes("double", str)
def _double(meter: Meter, value: Any) -> float:
    if isinstance(value, str) and not _DECIMAL.fullmatch(value):
        raise CelError("type conversion error from 'string' to 'double'")
    return float(value)


@TABLE.takes("string", str)
@TABLE.takes("string", int)
@TABLE.takes("string", Uint)
@TABLE.takes("string", bool)
def _string(meter: Meter, value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@TABLE.takes("bool", bool)
def _same(meter: Meter, value: bool) -> bool:
    return value


@TABLE.takes("bool", str)
def _bool(meter: Meter, value: str) -> bool:
    if value in ("true", "True", "TRUE", "t", "1"):
        return True
    if value in ("false", "False", "FALSE", "f", "0"):
        return False
    raise CelError("type conversion error from 'string' to 'bool'")


@TABLE.takes_any("optional.of", 1)
def _optional_of(meter: Meter, value: Any) -> Maybe:
    return Maybe(True, value)


@TABLE.takes_any("optional.none", 0)
def _optional_none(meter: Meter) -> Maybe:
    return Maybe(False)


@TABLE.takes_any("optional.ofNonZeroValue", 1)
def _optional_of_non_zero(meter: Meter, value: Any) -> Maybe:
    empty = value == CelDuration(0) or not value
    return Maybe(False) if empty else Maybe(True, value)


@TABLE.takes("hasValue", Maybe)
def _has_value(meter: Meter, value: Maybe) -> bool:
    return value.present


@TABLE.takes("value", Maybe)
def _value(meter: Meter, value: Maybe) -> Any:
    if not value.present:
        raise CelError("optional.none() dereference")
    return value.value
