"""What names, labels, annotations and selectors may look like."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from moorage.embedded.api.decoding import part
from moorage.embedded.request_refusals import Fault, forbidden_field, invalid_value, required
from moorage.embedded.store.object_store import Json
from moorage.objects.label_names import find_key_faults, find_prefix_faults, find_value_faults
from moorage.objects.selector import LabelSelector, Selector, SelectorError, compile_selector

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_LONGEST_LABEL = 63
_MOST_ANNOTATIONS_BYTES = 256 * 1024


def subdomain_faults(field: str, name: str) -> Iterator[Fault]:
    if not name:
        yield required(field)
        return
    yield from (invalid_value(field, name, fault) for fault in find_prefix_faults(name))


def label_name_faults(field: str, name: str) -> Iterator[Fault]:
    yield from _shape_faults(field, name, _DNS_LABEL, _LABEL_TEXT)


def dns_1035_faults(field: str, name: str) -> Iterator[Fault]:
    yield from _shape_faults(field, name, _DNS_1035, _1035_TEXT)


def label_faults(field: str, labels: Mapping[str, Any]) -> Iterator[Fault]:
    """Yields what is wrong with labels, or with the labels of a selector."""
    for key, value in labels.items():
        yield from label_key_faults(field, key)
        yield from label_value_faults(field, value)


def label_key_faults(field: str, key: str) -> Iterator[Fault]:
    yield from (invalid_value(field, key, fault) for fault in find_key_faults(key))


def label_value_faults(field: str, value: str) -> Iterator[Fault]:
    yield from (invalid_value(field, value, fault) for fault in find_value_faults(value))


def annotation_faults(field: str, annotations: Mapping[str, str]) -> Iterator[Fault]:
    size = 0
    for key, value in annotations.items():
        yield from label_key_faults(field, key.lower())
        size += len(key.encode("utf-8", "replace")) + len(value.encode("utf-8", "replace"))
    if size > _MOST_ANNOTATIONS_BYTES:
        yield Fault(field, "FieldValueTooLong", "Too long: may not be more than 262144 bytes")


def _shape_faults(field: str, name: str, shape: re.Pattern[str], text: str) -> Iterator[Fault]:
    if not name:
        yield required(field)
    elif len(name) > _LONGEST_LABEL:
        yield invalid_value(field, name, f"must be no more than {_LONGEST_LABEL} bytes")
    elif not shape.fullmatch(name):
        yield invalid_value(field, name, text)


_LABEL_OPERATORS = ("DoesNotExist", "Exists", "In", "NotIn")
_NODE_OPERATORS = (*_LABEL_OPERATORS, "Gt", "Lt")
_IN, _EXISTS, _ORDER = ("In", "NotIn"), ("Exists", "DoesNotExist"), ("Gt", "Lt")


def label_selector_faults(at: str, selector: Json | None) -> Iterator[Fault]:
    """Yields what is wrong with a label selector."""
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
    """Yields what is wrong with a node selector."""
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


def selector_text(selector: Json | None) -> str:
    """Formats a label selector as requests write it."""
    if not selector:
        return ""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    pairs = part(selector, "matchLabels")
    terms = [f"{key}={value}" for key, value in sorted(pairs.items())]
    return ",".join([*terms, *(_term(each) for each in selector.get("matchExpressions") or ())])


def _term(expression: Json) -> str:
    key, values = expression.get("key", ""), ",".join(expression.get("values") or ())
    match expression.get("operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return str(key)
        case _:
            return f"!{key}"


def read_selector(selector: Json | None) -> Selector | None:
    """Compiles a label selector; returns None if there is none or it cannot be read."""
    try:
        return compile_selector(msgspec.convert(selector, LabelSelector | None))
    except (msgspec.ValidationError, SelectorError):
        return None
