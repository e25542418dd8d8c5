"""Functions of lists, alone and taken as sets."""

from __future__ import annotations

from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from moorage.cel.functions.function_table import FunctionTable
from moorage.cel.functions.operators import whole
from moorage.cel.values import (
    CelDuration,
    CelError,
    Maybe,
    Meter,
    Uint,
    compare,
    equal,
    place_of,
)

TABLE = FunctionTable()


@TABLE.takes("sets.contains", list, list)
def _includes(meter: Meter, left: list[Any], right: list[Any]) -> bool:
    return all(place_of(meter, left, each) >= 0 for each in right)


@TABLE.takes("sets.equivalent", list, list)
def _equivalent(meter: Meter, left: list[Any], right: list[Any]) -> bool:
    return _includes(meter, left, right) and _includes(meter, right, left)


@TABLE.takes("sets.intersects", list, list)
def _intersects(meter: Meter, left: list[Any], right: list[Any]) -> bool:
    return any(place_of(meter, left, each) >= 0 for each in right)


@TABLE.takes_any("indexOf", 2)
def _index_of(meter: Meter, elements: list[Any], value: Any) -> int:
    return place_of(meter, _require_list(elements), value)


@TABLE.takes_any("lastIndexOf", 2)
def _last_index_of(meter: Meter, elements: list[Any], value: Any) -> int:
    place = place_of(meter, _require_list(elements)[::-1], value)
    return len(elements) - 1 - place if place >= 0 else -1


def _require_list(elements: Any) -> list[Any]:
    if not isinstance(elements, list):
        raise CelError("no such overload")
    return elements


@TABLE.takes("isSorted", list)
def _is_sorted(meter: Meter, elements: list[Any]) -> bool:
    meter.charge(len(elements))
    pairs = pairwise(elements)
    return all(compare(left, right) <= 0 for left, right in pairs)


@TABLE.takes("sort", list)
def _sort(meter: Meter, elements: list[Any]) -> list[Any]:
    meter.charge(len(elements) * len(elements).bit_length())
    return sorted(elements, key=cmp_to_key(compare))


@TABLE.takes("@sortByAssociatedKeys", list, list)
def _sort_by(meter: Meter, elements: list[Any], keys: list[Any]) -> list[Any]:
    meter.charge(len(elements) * len(elements).bit_length())
    pairs = zip(keys, elements, strict=True)
    order = cmp_to_key(compare)
    return [element for _, element in sorted(pairs, key=lambda pair: order(pair[0]))]


@TABLE.takes("first", list)
def _first(meter: Meter, elements: list[Any]) -> Maybe:
    return Maybe(True, elements[0]) if elements else Maybe(False)


@TABLE.takes("last", list)
def _last(meter: Meter, elements: list[Any]) -> Maybe:
    return Maybe(True, elements[-1]) if elements else Maybe(False)


@TABLE.takes("min", list)
def _min(meter: Meter, elements: list[Any]) -> Any:
    return _extreme(meter, elements, "min", -1)


@TABLE.takes("max", list)
def _max(meter: Meter, elements: list[Any]) -> Any:
    return _extreme(meter, elements, "max", 1)


def _extreme(meter: Meter, elements: list[Any], function: str, sign: int) -> Any:
    meter.charge(len(elements))
    if not elements:
        raise CelError(f"{function} called on empty list")
    best = elements[0]
    for element in elements[1:]:
        if compare(element, best) == sign:
            best = element
    return best


@TABLE.takes("sum", list)
def _sum(meter: Meter, elements: list[Any]) -> Any:
    meter.charge(len(elements))
    kinds = set(map(type, elements))
    if kinds <= {int}:
        return _sum_of_whole(elements, unsigned=False)
    if kinds == {Uint}:
        return _sum_of_whole(elements, unsigned=True)
    if kinds == {float}:
        return sum(elements)
    if kinds == {CelDuration}:
        return CelDuration(whole(sum(each.nanoseconds for each in elements)))
    raise CelError("no such overload")


def _sum_of_whole(elements: list[int], unsigned: bool) -> int:
    total = 0
    for element in elements:
        total = int(whole(total + int(element), unsigned))
    return Uint(total) if unsigned else total


@TABLE.takes("distinct", list)
def _distinct(meter: Meter, elements: list[Any]) -> list[Any]:
    distinct: list[Any] = []
    for element in elements:
        if not any(equal(meter, element, other) for other in distinct):
            distinct.append(element)
    return distinct


@TABLE.takes("flatten", list)
@TABLE.takes("flatten", list, int)
def _flatten(meter: Meter, elements: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    flat: list[Any] = []
    for element in elements:
        meter.charge(1)
        if isinstance(element, list) and depth > 0:
            flat.extend(_flatten(meter, element, depth - 1))
        else:
            flat.append(element)
    return flat


@TABLE.takes("lists.range", int)
def _range(meter: Meter, end: int) -> list[int]:
    meter.charge(max(0, end))
    return list(range(end))


@TABLE.takes("reverse", list)
def _reverse(meter: Meter, elements: list[Any]) -> list[Any]:
    meter.charge(len(elements))
    return elements[::-1]


@TABLE.takes("slice", list, int, int)
def _slice(meter: Meter, elements: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise CelError("cannot slice, negative indexes not supported")
    if start > end or end > len(elements):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(elements)}")
    meter.charge(end - start)
    return elements[start:end]
