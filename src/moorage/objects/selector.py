"""Label selectors: what the API writes, and the compiled form that matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from .meta import Wire

Labels = Mapping[str, str]

#: A label, or with None any label of that key.
LabelMark = tuple[str, str | None]


#: The mark of all labels, even if there are none: no selector asks for it.
ANY_LABELS: LabelMark = "", None


def marks_of(labels: Labels) -> Iterator[LabelMark]:
    """Yields the marks that labels bear, at least one."""
    yield ANY_LABELS
    for key, value in labels.items():
        yield key, value
        yield key, None


class LabelSelectorRequirement(Wire, frozen=True):
    """One expression of a label selector, as written."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] | None = None


class LabelSelector(Wire, frozen=True):
    """A label selector, as written."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None

    @property
    def keys(self) -> list[str]:
        """The label keys that it reads."""
        return [*(self.match_labels or ()), *[each.key for each in self.match_expressions or ()]]


SetOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]


def selects(operator: SetOperator, values: tuple[str, ...], value: str | None) -> bool:
    """Whether an expression holds for the value of its label; None is no such label."""
    match operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One compiled expression. `values` is sorted, so that equal meanings compare equal."""

    key: str
    operator: SetOperator
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        return selects(self.operator, self.values, labels.get(self.key))


@dataclass(frozen=True, slots=True)
class Selector:
    """A compiled label selector: all requirements hold. Without any it matches everything."""

    requirements: tuple[Requirement, ...] = ()
    #: Selectors are looked up often, and may have many values.
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(self.requirements))

    def __hash__(self) -> int:
        return self._hash

    def matches(self, labels: Labels) -> bool:
        # Most selectors have one requirement: a generator would take longer than the comparison.
        for each in self.requirements:
            if not selects(each.operator, each.values, labels.get(each.key)):
                return False
        return True

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def __and__(self, other: Selector) -> Selector:
        if not self.requirements or not other.requirements:
            return self if self.requirements else other
        return Selector(_canonical({*self.requirements, *other.requirements}))

    def without(self, keys: Iterable[str]) -> Selector:
        """Returns the selector less what it says about some label keys."""
        dropped = frozenset(keys)
        return Selector(tuple(each for each in self.requirements if each.key not in dropped))

    @property
    def marks(self) -> tuple[LabelMark, ...] | None:
        """Marks of which whatever matches bears one; None if it need not bear any."""
        certain = [each for each in self.requirements if each.operator in ("In", "Exists")]
        if not certain:
            return None
        rarest = min(certain, key=lambda each: (each.operator == "Exists", len(each.values)))
        return tuple((rarest.key, value) for value in rarest.values or (None,))

    @property
    def keys(self) -> Iterator[str]:
        """The label keys that the selector reads."""
        return (requirement.key for requirement in self.requirements)


class SelectorError(ValueError):
    """A selector that the API server would have refused."""


EVERYTHING = Selector()


def compile_selector(written: LabelSelector | None) -> Selector | None:
    """Returns the compiled selector; None selects nothing and stays None."""
    if written is None:
        return None
    requirements = {
        Requirement(key, "In", (value,)) for key, value in (written.match_labels or {}).items()
    }
    requirements.update(_compile(expression) for expression in written.match_expressions or ())
    return Selector(_canonical(requirements))


def equality(labels: Labels) -> Selector:
    """Returns the selector that wants exactly these values."""
    return Selector(_canonical({Requirement(key, "In", (v,)) for key, v in labels.items()}))


def _compile(written: LabelSelectorRequirement) -> Requirement:
    values = tuple(sorted(set(written.values or ())))
    if written.operator in ("In", "NotIn") and not values:
        raise SelectorError(
            f"values: Invalid value: []: for '{written.operator}' operator, "
            "values set can't be empty"
        )
    if written.operator in ("Exists", "DoesNotExist") and values:
        raise SelectorError(
            f"values: Invalid value: {list(values)}: "
            "values set must be empty for exists and does not exist"
        )
    return Requirement(written.key, written.operator, values)


def _canonical(requirements: set[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(requirements, key=lambda each: (each.key, each.operator, each.values)))
