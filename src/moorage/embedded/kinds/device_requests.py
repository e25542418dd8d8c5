"""What claims, their templates and device classes ask for: defaults and validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from moorage.cel import compile_device_expression
from moorage.embedded.api.decoding import fill, part
from moorage.embedded.api.names import (
    label_key_faults,
    label_name_faults,
    label_value_faults,
    subdomain_faults,
)
from moorage.embedded.request_refusals import (
    Fault,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    too_long,
    too_many,
    unsupported,
)
from moorage.embedded.store.object_store import Json

_MOST_REQUESTS = _MOST_SELECTORS = _MOST_CONSTRAINTS = _MOST_CONFIGURATIONS = 32
_MOST_ALTERNATIVES = 8
_MOST_TOLERATIONS = 16
_LONGEST_EXPRESSION = _LONGEST_PARAMETERS = 10 * 1024
_LONGEST_DRIVER = 63

_ONE_WAY = "exactly one of `exactly` or `firstAvailable` is required"
_ONE_ATTRIBUTE = (
    'exactly one of "matchAttribute" or "distinctAttribute" is required, '
    "but multiple fields are set"
)
_REQUEST_NAME = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)
_IDENTIFIER_TEXT = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of "
    "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for "
    "validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
_MODES = ("All", "ExactCount")
_OPERATORS = ("Equal", "Exists")
_EFFECTS = ("NoExecute", "NoSchedule", "None")

#: Yields what is wrong with an item of a list, at a place such as spec.devices.requests[0].
ItemFaults = Callable[[str, Any], Iterable[Fault]]


def list_faults(
    at: str, items: list[Any], most: int, faults_of: ItemFaults, key: str = ""
) -> Iterator[Fault]:
    """Yields what is wrong with a list: its length, its items, and keys that occur twice."""
    if len(items) > most:
        yield too_many(at, len(items), most)
    seen = set()
    for index, item in enumerate(items):
        yield from faults_of(f"{at}[{index}]", item)
        if key:
            name = item.get(key, "")
            if name in seen:
                yield duplicate(f"{at}[{index}]", name)
            seen.add(name)


def driver_faults(at: str, name: str) -> Iterator[Fault]:
    yield from subdomain_faults(at, name)
    if len(name) > _LONGEST_DRIVER:
        yield too_long(at, _LONGEST_DRIVER)


def default_requests(spec: Json) -> None:
    """Fills in the requests of a claim."""
    for request in part(spec, "devices").get("requests") or ():
        ways = [request.get("exactly"), *(request.get("firstAvailable") or ())]
        for way in ways:
            if way is not None:
                _default_request(way)


def _default_request(way: Json) -> None:
    fill(way, allocationMode="ExactCount")
    if way["allocationMode"] == "ExactCount" and not way.get("count"):
        way["count"] = 1
    for toleration in way.get("tolerations") or ():
        fill(toleration, operator="Equal")


def requests_for_admins(spec: Json) -> Iterator[str]:
    """Yields the places of requests that ask for admin access."""
    for index, request in enumerate(part(spec, "devices").get("requests") or ()):
        if part(request, "exactly").get("adminAccess"):
            yield f"devices.requests[{index}].adminAccess"


def claim_faults(at: str, spec: Json) -> Iterator[Fault]:
    """Yields what is wrong with the spec of a claim."""
    devices = part(spec, "devices")
    names = request_names(spec)
    yield from list_faults(
        f"{at}.devices.requests",
        devices.get("requests") or [],
        _MOST_REQUESTS,
        _request_faults,
        key="name",
    )
    yield from list_faults(
        f"{at}.devices.constraints",
        devices.get("constraints") or [],
        _MOST_CONSTRAINTS,
        lambda where, constraint: _constraint_faults(where, constraint, names),
    )
    yield from list_faults(
        f"{at}.devices.config",
        devices.get("config") or [],
        _MOST_CONFIGURATIONS,
        lambda where, config: _claim_configuration_faults(where, config, names),
    )


def request_names(spec: Json) -> set[str]:
    """Returns the names by which the requests of a claim can be referred to."""
    names = set()
    for request in part(spec, "devices").get("requests") or ():
        name = request.get("name", "")
        names.add(name)
        names |= {f"{name}/{each.get('name', '')}" for each in request.get("firstAvailable") or ()}
    return names


def reference_faults(at: str, references: list[str], names: set[str]) -> Iterator[Fault]:
    """Yields the references to requests that there are none of."""
    if len(references) > _MOST_REQUESTS:
        yield too_many(at, len(references), _MOST_REQUESTS)
    for index, reference in enumerate(references):
        if reference not in names:
            yield invalid_value(f"{at}[{index}]", reference, _REQUEST_NAME)
        if reference in references[:index]:
            yield duplicate(f"{at}[{index}]", reference)


def selector_faults(at: str, selectors: list[Json]) -> Iterator[Fault]:
    """Yields what is wrong with the selectors of a request or a class."""
    yield from list_faults(at, selectors, _MOST_SELECTORS, _selector_faults)


def configuration_faults(at: str, config: Json) -> Iterator[Fault]:
    """Yields what is wrong with the configuration of a class or a claim."""
    opaque = config.get("opaque")
    if opaque is None:
        yield required(f"{at}.opaque")
        return
    yield from driver_faults(f"{at}.opaque.driver", opaque.get("driver", ""))
    parameters = opaque.get("parameters")
    if parameters is None:
        yield required(f"{at}.opaque.parameters")
    elif len(msgspec.json.encode(parameters)) > _LONGEST_PARAMETERS:
        yield too_long(f"{at}.opaque.parameters", _LONGEST_PARAMETERS)


def _request_faults(at: str, request: Json) -> Iterator[Fault]:
    yield from label_name_faults(f"{at}.name", request.get("name", ""))
    exactly, first = request.get("exactly"), request.get("firstAvailable") or []
    if exactly is None and not first:
        yield required(at, _ONE_WAY)
    elif exactly is not None and first:
        yield invalid_value(at, None, f"{_ONE_WAY}, but multiple fields are set")
    elif exactly is not None:
        yield from _way_faults(f"{at}.exactly", exactly)
    else:
        where = f"{at}.firstAvailable"
        yield from list_faults(where, first, _MOST_ALTERNATIVES, _alternative_faults, key="name")


def _alternative_faults(at: str, way: Json) -> Iterator[Fault]:
    yield from label_name_faults(f"{at}.name", way.get("name", ""))
    yield from _way_faults(at, way)


def _way_faults(at: str, way: Json) -> Iterator[Fault]:
    """Yields what is wrong with one way to satisfy a request."""
    yield from subdomain_faults(f"{at}.deviceClassName", way.get("deviceClassName", ""))
    yield from selector_faults(f"{at}.selectors", way.get("selectors") or [])
    mode, count = way.get("allocationMode", ""), way.get("count", 0)
    if mode not in _MODES:
        yield unsupported(f"{at}.allocationMode", mode, _MODES)
    elif mode == "All" and count:
        yield invalid_value(
            f"{at}.count", count, "must not be specified when allocationMode is 'All'"
        )
    elif mode == "ExactCount" and count <= 0:
        yield invalid_value(f"{at}.count", count, "must be greater than zero")
    tolerations = way.get("tolerations") or []
    yield from list_faults(f"{at}.tolerations", tolerations, _MOST_TOLERATIONS, _toleration_faults)


def _selector_faults(at: str, selector: Json) -> Iterator[Fault]:
    cel = selector.get("cel")
    if cel is None:
        yield required(f"{at}.cel")
        return
    where, expression = f"{at}.cel.expression", cel.get("expression", "")
    if not expression:
        yield required(where)
    elif len(expression.encode("utf-8", "replace")) > _LONGEST_EXPRESSION:
        yield too_long(where, _LONGEST_EXPRESSION)
    elif problem := compile_device_expression(expression).problem:
        yield invalid_value(where, expression, problem)


def _toleration_faults(at: str, toleration: Json) -> Iterator[Fault]:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    if key:
        yield from label_key_faults(f"{at}.key", key)
    if operator not in _OPERATORS:
        yield unsupported(f"{at}.operator", operator, _OPERATORS)
    elif operator == "Exists" and toleration.get("value"):
        yield invalid_value(
            f"{at}.value", toleration["value"], "must be empty for operator `Exists`"
        )
    elif operator == "Equal":
        if not key:
            yield required(f"{at}.key", "must be set for operator `Equal`")
        yield from label_value_faults(f"{at}.value", toleration.get("value", ""))
    effect = toleration.get("effect", "")
    if effect and effect not in _EFFECTS:
        yield unsupported(f"{at}.effect", effect, _EFFECTS)


def _constraint_faults(at: str, constraint: Json, names: set[str]) -> Iterator[Fault]:
    yield from reference_faults(f"{at}.requests", constraint.get("requests") or [], names)
    given = [each for each in ("matchAttribute", "distinctAttribute") if constraint.get(each)]
    if not given:
        yield required(at, _ONE_ATTRIBUTE)
    elif len(given) > 1:
        yield forbidden_field(at, _ONE_ATTRIBUTE)
    for field in given:
        yield from qualified_name_faults(f"{at}.{field}", constraint[field])
        if "/" not in constraint[field]:
            yield invalid_value(f"{at}.{field}", constraint[field], "must include a domain")


def qualified_name_faults(at: str, name: str) -> Iterator[Fault]:
    """Yields what is wrong with the name of an attribute or a capacity."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        domain, identifier = "", name
    if slash:
        yield from driver_faults(at, domain)
    plain = identifier.replace("_", "a")
    if not identifier:
        yield required(at, "the name must not be empty")
    elif len(identifier) > 32:
        yield too_long(at, 32)
    elif not (plain.isascii() and plain.isalnum()) or identifier[0].isdigit():
        yield invalid_value(at, identifier, _IDENTIFIER_TEXT)


def _claim_configuration_faults(at: str, config: Json, names: set[str]) -> Iterator[Fault]:
    yield from reference_faults(f"{at}.requests", config.get("requests") or [], names)
    yield from configuration_faults(at, config)
