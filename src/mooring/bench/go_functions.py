"""The functions that templates may call: scheduler_perf's, and those that Go always has."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import reduce
from operator import ge, gt, le, lt, ne
from typing import Any


class Missing:
    """What a name stands for that nobody has given: false, and no value to write."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __bool__(self) -> bool:
        return False


def text(value: Any) -> str:
    """A value as Go writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer():
            return str(int(value))
        case _:
            return str(value)


def _number(value: Any) -> float:
    if isinstance(value, bool | Missing) or not isinstance(value, int | float | str):
        told = f"{value.name} is not given" if isinstance(value, Missing) else repr(value)
        raise ValueError(f"expected a number, got {told}")
    return float(value)


def _whole(value: Any) -> int:
    return int(_number(value))


def _sum(*values: Any) -> float:
    return sum(map(_number, values))


def _product(*values: Any) -> float:
    return math.prod(map(_number, values))


def _difference(one: Any, other: Any) -> float:
    return _number(one) - _number(other)


def _quotient(one: Any, other: Any) -> float:
    if not _number(other):
        raise ValueError("division by zero")
    return _number(one) / _number(other)


def _remainder(one: Any, other: Any) -> int:
    if not _whole(other):
        raise ValueError("division by zero")
    # Go's remainder has the sign of the first number.
    return int(math.fmod(_whole(one), _whole(other)))


def _whole_of(function: Callable[..., float]) -> Callable[..., int]:
    return lambda *values: int(function(*values))


def _comparing(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compared(one: Any, other: Any) -> bool:
        if isinstance(one, str) != isinstance(other, str):
            raise ValueError(f"cannot compare {text(one)} with {text(other)}")
        return compare(one, other)

    return compared


def _any_equal(one: Any, *others: Any) -> bool:
    if isinstance(one, Missing):
        return False
    return any(one == each for each in others)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "AddFloat": _sum,
    "AddInt": _whole_of(_sum),
    "DivideFloat": _quotient,
    "DivideInt": _whole_of(_quotient),
    "Int": _whole,
    "JSON": json.dumps,
    "Mod": _remainder,
    "MultiplyFloat": _product,
    "MultiplyInt": _whole_of(_product),
    "SubtractFloat": _difference,
    "SubtractInt": _whole_of(_difference),
    "and": lambda *values: reduce(lambda one, other: one and other, values),
    "eq": _any_equal,
    "ge": _comparing(ge),
    "gt": _comparing(gt),
    "le": _comparing(le),
    "lt": _comparing(lt),
    "ne": _comparing(ne),
    "not": lambda value: not value,
    "or": lambda *values: reduce(lambda one, other: one or other, values),
}
