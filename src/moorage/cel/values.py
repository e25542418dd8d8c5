"""Values of expressions: which Python type stands for which type of CEL, and how they compare.

Numbers, texts, lists and maps are Python's own. Kubernetes compares numbers of different types by
value; values of other types that differ are not equal, and have no order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

INT_RANGE = range(-(2**63), 2**63)
UINT_RANGE = range(2**64)

#: Texts are charged by this many characters at a time.
_CHARACTERS_PER_STEP = 16


class CelError(Exception):
    """The expression cannot be compiled, or has no value for this device."""


class Meter:
    """Counts the steps of one evaluation, and stops it at the bound."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self.steps = 0

    def charge(self, steps: int) -> None:
        self.steps += steps
        if self.steps > self._bound:
            raise TooManyStepsError(f"the evaluation takes more than {self._bound} steps")

    def charge_text(self, length: int) -> None:
        self.charge(length // _CHARACTERS_PER_STEP)


class TooManyStepsError(Exception):
    """The evaluation is stopped; unlike a CelError, no operator of CEL hides it."""


class Uint(int):
    """An unsigned number."""


class DefaultMap(dict[Any, Any]):
    """A map in which every domain can be looked up; those that are not there are empty."""


@dataclass(frozen=True)
class TypeName:
    """A type as a value: what `type(x)` gives."""

    name: str


@dataclass(frozen=True, order=True)
class CelDuration:
    nanoseconds: int


@dataclass(frozen=True, order=True)
class CelTimestamp:
    #: Since 1970.
    nanoseconds: int


@dataclass(frozen=True)
class Maybe:
    """An optional value."""

    present: bool
    value: Any = None


class Device:
    """The variable `device` as a whole, of which nothing but equality can be asked."""


class Opaque:
    """A value of a type of Kubernetes, which is only compared with its like."""

    type_name: ClassVar[str]


_TYPE_NAMES = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    DefaultMap: "map",
    type(None): "null_type",
    TypeName: "type",
    CelDuration: "google.protobuf.Duration",
    CelTimestamp: "google.protobuf.Timestamp",
    Maybe: "optional_type",
    Device: "kubernetes.DRADevice",
}
NUMBERS = frozenset((int, Uint, float))
_ORDERED = frozenset((bool, str, bytes, CelDuration, CelTimestamp))


def type_name(value: Any) -> str:
    return value.type_name if isinstance(value, Opaque) else _TYPE_NAMES[type(value)]


def equal(meter: Meter, left: Any, right: Any) -> bool:
    """Whether two values are equal; every pair of elements is a step."""
    meter.charge(1)
    kinds = type(left), type(right)
    if NUMBERS.issuperset(kinds):
        return bool(left == right)
    if isinstance(left, Opaque) or isinstance(right, Opaque):
        if kinds[0] is not kinds[1]:
            raise CelError("no such overload")
        return bool(left == right)
    if isinstance(left, dict) and isinstance(right, dict):
        return _equal_maps(meter, left, right)
    if kinds[0] is not kinds[1]:
        return False
    if isinstance(left, list):
        pairs = zip(left, right, strict=False)
        return len(left) == len(right) and all(equal(meter, *pair) for pair in pairs)
    if isinstance(left, Maybe):
        return left.present == right.present and equal(meter, left.value, right.value)
    return bool(left == right)


def _equal_maps(meter: Meter, left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    if len(left) != len(right):
        return False
    return all(key in right and equal(meter, left[key], right[key]) for key in left)


def place_of(meter: Meter, elements: list[Any], value: Any) -> int:
    """Returns the first place of a value, or -1. An error counts only if the value is nowhere."""
    error = None
    for place, element in enumerate(elements):
        try:
            if equal(meter, element, value):
                return place
        except CelError as failure:
            error = failure
    if error:
        raise error
    return -1


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1; raises CelError for values without an order."""
    kinds = type(left), type(right)
    if not NUMBERS.issuperset(kinds) and (kinds[0] is not kinds[1] or kinds[0] not in _ORDERED):
        raise CelError("no such overload")
    return int(left > right) - int(left < right)


def look_up(container: Any, key: Any) -> Any:
    """Returns the value at a key of a map or a place of a list.

    Raises CelError when there is none.
    """
    if isinstance(container, dict):
        if is_key(key) and key in container:
            return container[key]
        if isinstance(container, DefaultMap):
            return {}
        raise CelError(f"no such key: {text_of_key(key)}")
    if isinstance(container, list):
        return _element(container, key)
    raise CelError(f"no such key: {text_of_key(key)}")


def select(container: Any, field: str) -> Any:
    if isinstance(container, Maybe):
        return look_up_maybe(container, field)
    return look_up(container, field)


def look_up_maybe(container: Any, key: Any) -> Maybe:
    """Returns what `container.?key` gives: nothing where a plain look-up would fail."""
    if isinstance(container, Maybe):
        return look_up_maybe(container.value, key) if container.present else Maybe(False)
    if isinstance(container, dict):
        present = isinstance(container, DefaultMap) or (is_key(key) and key in container)
        return Maybe(True, look_up(container, key)) if present else Maybe(False)
    if isinstance(container, list) and type(key) is int:
        return Maybe(True, container[key]) if 0 <= key < len(container) else Maybe(False)
    raise CelError("no such overload")


def _element(elements: list[Any], place: Any) -> Any:
    if type(place) not in NUMBERS or place != int(place):
        raise CelError(f"unsupported index type '{type_name(place)}' in list")
    if not 0 <= place < len(elements):
        raise CelError(f"index out of bounds: {int(place)}")
    return elements[int(place)]


def is_key(value: Any) -> bool:
    """Whether a value may be the key of a map. Python takes true for 1, so that bool may not."""
    return type(value) in NUMBERS or isinstance(value, str)


def text_of_key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)
