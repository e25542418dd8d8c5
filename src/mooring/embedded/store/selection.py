"""Label and field selectors as requests write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mooring.embedded.request_refusals import bad_request
from mooring.objects.selector import EVERYTHING, Requirement, Selector

from .table import StoredObject

_KEY = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_SET = re.compile(rf"\s*({_KEY})\s+(in|notin)\s*\(([^()]*)\)\s*", re.ASCII)
_EQUAL = re.compile(rf"\s*({_KEY})\s*(==|=|!=)\s*([-A-Za-z0-9_.]*)\s*", re.ASCII)
_PRESENT = re.compile(rf"\s*(!?)\s*({_KEY})\s*", re.ASCII)
_ORDERED = re.compile(rf"\s*({_KEY})\s*([<>])\s*(-?\d+)\s*", re.ASCII)
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?", re.ASCII)
_FIELD = re.compile(r"\s*([A-Za-z0-9.\[\]]+)\s*(==|=|!=)(.*)", re.ASCII | re.DOTALL)

# A key has at most a prefix of 253 characters, a slash and a name of 63.
_LONGEST_KEY = 317
_LONGEST_VALUE = 63

#: Whether a field must have a value, or must not.
FieldTerm = tuple[int, str, bool]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a table a request selects."""

    namespace: str = ""
    labels: Selector = EVERYTHING
    #: What numbers of labels must be more or less than: key, sign, number.
    orders: tuple[tuple[str, str, int], ...] = ()
    #: Terms over the selectable fields of the kind, by position.
    fields: tuple[FieldTerm, ...] = ()

    def matches(self, entry: StoredObject | None) -> bool:
        """Whether an object is selected."""
        if entry is None:
            return False
        if self.namespace and not entry.key.startswith(f"{self.namespace}/"):
            return False
        for position, value, wanted in self.fields:
            if (entry.fields[position] == value) is not wanted:
                return False
        return self.labels.matches(entry.labels) and self._matches_orders(entry)

    @property
    def namespace_only(self) -> bool:
        """Whether nothing but the namespace matters."""
        return not (self.labels or self.fields or self.orders)

    @property
    def everything(self) -> bool:
        return not self.namespace and self.namespace_only

    def _matches_orders(self, entry: StoredObject) -> bool:
        return all(_compares(entry.labels.get(key), sign, at) for key, sign, at in self.orders)


def read_labels(text: str) -> tuple[Selector, tuple[tuple[str, str, int], ...]]:
    """Reads a label selector such as "app in (a, b), !canary"."""
    requirements = set()
    orders = []
    for term in _terms(text):
        ordered = _ORDERED.fullmatch(term)
        if ordered:
            orders.append((ordered[1], ordered[2], int(ordered[3])))
        else:
            requirements.add(_requirement(term, text))
    in_order = sorted(requirements, key=lambda each: (each.key, each.operator, each.values))
    return Selector(tuple(in_order)), tuple(orders)


def read_fields(text: str, position_of: Callable[[str], int | None]) -> tuple[FieldTerm, ...]:
    """Reads a field selector such as "spec.nodeName=a,status.phase!=Failed"."""
    terms = []
    for part in _split_fields(text):
        match = _FIELD.fullmatch(part)
        if match is None:
            raise bad_request(f"invalid field selector: {part!r}")
        field, operator, value = match.groups()
        position = position_of(field)
        if position is None:
            raise bad_request(f"field label not supported: {field}")
        terms.append((position, re.sub(r"\\(.)", r"\1", value), operator != "!="))
    return tuple(terms)


def _split_fields(text: str) -> Iterator[str]:
    # A backslash keeps the comma after it in the value.
    for part in re.findall(r"(?:\\.|[^,\\])+", text, re.DOTALL):
        if part.strip():
            yield part


def _terms(text: str) -> Iterator[str]:
    """Yields the terms of a label selector; commas within parentheses do not separate them."""
    if not text.strip():
        return
    depth, start = 0, 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _requirement(term: str, whole: str) -> Requirement:
    equal = _EQUAL.fullmatch(term)
    if equal:
        operator = "NotIn" if equal[2] == "!=" else "In"
        return _make_requirement(equal[1], operator, (equal[3],), whole)
    in_set = _SET.fullmatch(term)
    if in_set:
        values = tuple(sorted({each.strip() for each in in_set[3].split(",")}))
        return _make_requirement(in_set[1], "In" if in_set[2] == "in" else "NotIn", values, whole)
    present = _PRESENT.fullmatch(term)
    if present is None:
        raise bad_request(f"unable to parse requirement: {whole!r}")
    return _make_requirement(present[2], "DoesNotExist" if present[1] else "Exists", (), whole)


def _make_requirement(key: str, operator: str, values: tuple[str, ...], whole: str) -> Requirement:
    if len(key) > _LONGEST_KEY or key.count("/") > 1:
        raise bad_request(f"unable to parse requirement: invalid label key {key!r} in {whole!r}")
    for value in values:
        if len(value) > _LONGEST_VALUE or not _VALUE.fullmatch(value):
            raise bad_request(f"unable to parse requirement: invalid label value {value!r}")
    match operator:
        case "In" | "NotIn" | "Exists" | "DoesNotExist":
            return Requirement(key, operator, values)
        case _:
            raise AssertionError(operator)


def _compares(value: str | None, sign: str, bound: int) -> bool:
    if value is None or not re.fullmatch(r"-?\d{1,18}", value, re.ASCII):
        return False
    return int(value) > bound if sign == ">" else int(value) < bound
