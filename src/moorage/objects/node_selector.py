"""Node selectors: ORed terms of ANDed expressions over node labels and names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from .label_names import find_key_faults, find_value_faults
from .meta import Wire
from .selector import Labels, selects

NodeOperator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]

#: The only field of a node that a selector can name.
NAME_FIELD = "metadata.name"

_INT64 = re.compile(r"[+-]?\d{1,19}", re.ASCII)


class NodeSelectorRequirement(Wire, frozen=True, gc=False):
    """One expression of a node selector term, as written."""

    key: str
    operator: NodeOperator
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(Wire, frozen=True, gc=False):
    """Expressions that must all hold, as written."""

    match_expressions: tuple[NodeSelectorRequirement, ...] | None = None
    match_fields: tuple[NodeSelectorRequirement, ...] | None = None


class NodeSelector(Wire, frozen=True, gc=False):
    """Terms of which one must hold, as written."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Wire, frozen=True):
    """A term that adds its weight where it holds, as written."""

    weight: int
    preference: NodeSelectorTerm


class NodeAffinityRules(Wire, frozen=True):
    """The rules by which a pod chooses nodes, as written."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: (
        tuple[PreferredSchedulingTerm, ...] | None
    ) = None

    @property
    def required(self) -> NodeSelector | None:
        return self.required_during_scheduling_ignored_during_execution

    @property
    def preferred(self) -> tuple[PreferredSchedulingTerm, ...]:
        return self.preferred_during_scheduling_ignored_during_execution or ()


@dataclass(frozen=True, slots=True)
class NodeRequirement:
    """One compiled expression over a label; `bound` is the number that Gt and Lt compare with."""

    key: str
    operator: NodeOperator
    values: tuple[str, ...] = ()
    bound: int = 0

    def matches(self, labels: Labels) -> bool:
        value = labels.get(self.key)
        if self.operator != "Gt" and self.operator != "Lt":
            return selects(self.operator, self.values, value)
        number = None if value is None else parse_int64(value)
        if number is None:
            return False
        return number > self.bound if self.operator == "Gt" else number < self.bound


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """A compiled term: every label requirement and every name rule holds."""

    requirements: tuple[NodeRequirement, ...] = ()
    names: tuple[str, ...] = ()
    other_names: tuple[str, ...] = ()

    def matches(self, labels: Labels, name: str) -> bool:
        return (
            all(name == wanted for wanted in self.names)
            and name not in self.other_names
            and all(requirement.matches(labels) for requirement in self.requirements)
        )


@dataclass(frozen=True, slots=True)
class Malformed:
    """Why a written term cannot be used: it never matches, and as a preference it is an error."""

    problems: tuple[str, ...]

    def __str__(self) -> str:
        """Returns the problems in one line, bracketed if there are several."""
        text = ", ".join(self.problems)
        return text if len(self.problems) == 1 else f"[{text}]"


#: Terms with their weights; no term comes twice.
Preferences = tuple[tuple[NodeTerm, int], ...]


def compile_preferences(written: Iterable[PreferredSchedulingTerm]) -> Preferences | Malformed:
    """Returns the compiled preferences; those without a weight or an expression mean nothing."""
    weights: dict[NodeTerm, int] = {}
    problems: list[str] = []
    for at, each in enumerate(written):
        term = compile_term(each.preference) if each.weight else None
        if isinstance(term, Malformed):
            problems += (f"[{at}].{problem}" for problem in term.problems)
        elif term is not None:
            weights[term] = weights.get(term, 0) + each.weight
    return Malformed(tuple(problems)) if problems else tuple(weights.items())


def named_nodes(selector: NodeSelector) -> frozenset[str] | None:
    """Returns the only nodes that a selector can match by name; None if it is open."""
    terms = [_named_by(term) for term in selector.node_selector_terms]
    if not terms or None in terms:
        return None
    return frozenset[str]().union(*(names for names in terms if names is not None))


def _named_by(term: NodeSelectorTerm) -> frozenset[str] | None:
    # As written: a field with several names never matches, and still narrows to these names.
    lists = [
        frozenset(field.values or ())
        for field in term.match_fields or ()
        if field.key == NAME_FIELD and field.operator == "In"
    ]
    return frozenset.intersection(*lists) if lists else None


def compile_term(written: NodeSelectorTerm) -> NodeTerm | Malformed | None:
    """Returns the compiled term; None for a term without any expression, which matches nothing."""
    expressions, fields = written.match_expressions or (), written.match_fields or ()
    if not expressions and not fields:
        return None
    problems = [
        f"matchExpressions[{at}].{problem}"
        for at, expression in enumerate(expressions)
        for problem in _expression_problems(expression)
    ]
    problems += [
        f"matchFields[{at}].{problem}"
        for at, field in enumerate(fields)
        for problem in _field_problems(field)
    ]
    if problems:
        return Malformed(tuple(problems))
    return NodeTerm(
        tuple(sorted({_requirement(each) for each in expressions}, key=_order)),
        tuple(sorted({_name(each) for each in fields if each.operator == "In"})),
        tuple(sorted({_name(each) for each in fields if each.operator == "NotIn"})),
    )


def _requirement(written: NodeSelectorRequirement) -> NodeRequirement:
    values = tuple(sorted(set(written.values or ())))
    # It has no sign: the value of a label does not begin with one.
    bound = parse_int64(values[0]) if written.operator in ("Gt", "Lt") else None
    return NodeRequirement(written.key, written.operator, values, bound or 0)


def _name(written: NodeSelectorRequirement) -> str:
    (name,) = written.values or ("",)
    return name


def _order(requirement: NodeRequirement) -> tuple[str, str, tuple[str, ...]]:
    return requirement.key, requirement.operator, requirement.values


def _expression_problems(written: NodeSelectorRequirement) -> Iterator[str]:
    """Yields what is wrong with an expression, in kube-scheduler's order."""
    faults = "; ".join(find_key_faults(written.key))
    if faults:
        yield f"key: Invalid value: {_quote(written.key)}: {faults}"
    yield from _operator_problems(written)
    for at, value in enumerate(written.values or ()):
        faults = "; ".join(find_value_faults(value))
        if faults:
            yield f"values[{at}][{written.key}]: Invalid value: {_quote(value)}: {faults}"


def _operator_problems(written: NodeSelectorRequirement) -> list[str]:
    values = written.values or ()
    match written.operator:
        case "In" | "NotIn" if not values:
            return [
                "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
            ]
        case "Exists" | "DoesNotExist" if values:
            return [
                f"values: Invalid value: {_list_text(values)}: values set must be empty "
                "for exists and does not exist"
            ]
        case "Gt" | "Lt":
            found = [
                f"values[{at}]: Invalid value: {_quote(value)}: for 'Gt', 'Lt' operators, "
                "the value must be an integer"
                for at, value in enumerate(values)
                if parse_int64(value) is None
            ]
            if len(values) != 1:
                wrong = "for 'Gt', 'Lt' operators, exactly one value is required"
                found.insert(0, f"values: Invalid value: {_list_text(values)}: {wrong}")
            return found
        case _:
            return []


def _field_problems(written: NodeSelectorRequirement) -> list[str]:
    if written.operator not in ("In", "NotIn"):
        return [
            f'operator: Unsupported value: "{written.operator}": supported values: "In", "NotIn"'
        ]
    if len(written.values or ()) != 1:
        return ["values: Invalid value: must have one element"]
    if written.key != NAME_FIELD:
        return [f'key: Unsupported value: "{written.key}": supported values: "{NAME_FIELD}"']
    return []


def _list_text(values: tuple[str, ...]) -> str:
    return "[" + ", ".join(map(_quote, values)) + "]"


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def parse_int64(text: str) -> int | None:
    """Returns a base-10 integer that fits 64 bits, else None."""
    if not _INT64.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def meets_any(
    terms: Iterable[NodeTerm | Malformed | None] | None, node_name: str, labels: Labels
) -> bool:
    """Whether a node meets one of the terms; without a rule, every node does."""
    if terms is None:
        return True
    return any(term.matches(labels, node_name) for term in terms if isinstance(term, NodeTerm))
