"""Selectors over labels and nodes, as far as the API server looks into them."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.embedded.errors import (
    Fault,
    forbidden_field,
    invalid_value,
    required,
)
from mooring.embedded.names import label_faults, label_key_faults, label_value_faults

from .plain import Json, part

_LABEL_OPERATORS = ("DoesNotExist", "Exists", "In", "NotIn")
_NODE_OPERATORS = (*_LABEL_OPERATORS, "Gt", "Lt")
_IN, _EXISTS, _ORDER = ("In", "NotIn"), ("Exists", "DoesNotExist"), ("Gt", "Lt")


def label_selector_faults(at: str, selector: Json | None) -> Iterator[Fault]:
    """What is wrong with a selector of labels."""
    if selector is None:
        return
    yield from label_faults(f"{at}.matchLabels", part(selector, "matchLabels"))
    for index, each in enumerate(selector.get("matchExpressions") or ()):
        where = f"{at}.matchExpressions[{index}]"
        operator, values = each.get("operator", ""), each.get("values") or []
        if operator in _IN and not values:
            yield required(
                f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'"
            )
        elif operator in _EXISTS and values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden_field(f"{where}.values", detail)
        elif operator not in _LABEL_OPERATORS:
            yield invalid_value(f"{where}.operator", operator, "not a valid selector operator")
        yield from label_key_faults(f"{where}.key", each.get("key", ""))
        for place, value in enumerate(values):
            yield from label_value_faults(f"{where}.values[{place}]", value)


def node_selector_faults(at: str, selector: Json) -> Iterator[Fault]:
    """What is wrong with a selector of nodes."""
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        yield required(f"{at}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        yield from node_term_faults(f"{at}.nodeSelectorTerms[{index}]", term)


def node_term_faults(at: str, term: Json) -> Iterator[Fault]:
    for index, each in enumerate(term.get("matchExpressions") or ()):
        yield from _node_requirement_faults(f"{at}.matchExpressions[{index}]", each)
    for index, each in enumerate(term.get("matchFields") or ()):
        yield from _field_requirement_faults(f"{at}.matchFields[{index}]", each)


def _node_requirement_faults(at: str, requirement: Json) -> Iterator[Fault]:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    if operator in _IN and not values:
        yield required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _EXISTS and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield forbidden_field(f"{at}.values", detail)
    elif operator in _ORDER and len(values) != 1:
        detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        yield required(f"{at}.values", detail)
    elif operator not in _NODE_OPERATORS:
        yield invalid_value(f"{at}.operator", operator, "not a valid selector operator")
    yield from label_key_faults(f"{at}.key", requirement.get("key", ""))


def _field_requirement_faults(at: str, requirement: Json) -> Iterator[Fault]:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    if operator not in _IN:
        yield invalid_value(f"{at}.operator", operator, "not a valid selector operator")
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{at}.values", detail)
    if requirement.get("key") != "metadata.name":
        detail = "not a valid field selector key"
        yield invalid_value(f"{at}.key", requirement.get("key", ""), detail)
