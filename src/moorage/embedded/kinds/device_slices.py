"""Resource slices, by which drivers publish devices: defaults and validation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from moorage.embedded.api.decoding import part
from moorage.embedded.api.kind import KindRules
from moorage.embedded.api.names import (
    label_key_faults,
    label_name_faults,
    label_value_faults,
    node_selector_faults,
    subdomain_faults,
)
from moorage.embedded.request_refusals import (
    Fault,
    forbidden_field,
    invalid_value,
    required,
    too_long,
    too_many,
    unsupported,
)
from moorage.embedded.store.object_store import Json
from moorage.objects.quantity import Quantity

from .device_requests import driver_faults, list_faults, qualified_name_faults

_MOST_DEVICES = 128
# Taints and counters make devices larger, so that fewer fit into an object.
_MOST_LARGE_DEVICES = 64
_MOST_ATTRIBUTES = 32
_MOST_COUNTER_SETS = 8
_MOST_COUNTERS = 32
_MOST_CONSUMPTIONS = 2
_MOST_TAINTS = 16
_MOST_CONDITIONS = 4
_LONGEST_POOL = 253
_LONGEST_VALUE = 64

_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_DEVICE_PLACES = ("nodeName", "nodeSelector", "allNodes")
_ONE_PLACE = f"exactly one of {', '.join(f'`{each}`' for each in _PLACES)} is required"
_ONE_DEVICE_PLACE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_NO_DEVICE_PLACE = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set "
    "to true in the ResourceSlice spec"
)
_VALUES = ("bool", "int", "string", "version")
_EFFECTS = ("NoExecute", "NoSchedule", "None")
_NUMBER, _WORD = r"(0|[1-9][0-9]*)", r"(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_WORD}(\.{_WORD})*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)


class SliceRules(KindRules):
    """The rules of slices: driver, pool and node stay."""

    generation = True

    def faults(self, item: Json) -> Iterator[Fault]:
        spec = part(item, "spec")
        yield from driver_faults("spec.driver", spec.get("driver", ""))
        yield from _pool_faults(part(spec, "pool"))
        yield from _place_faults("spec", spec, _PLACES, _ONE_PLACE)
        devices, counters = spec.get("devices") or [], spec.get("sharedCounters") or []
        if devices and counters:
            detail = "only one of `sharedCounters` or `devices` is allowed"
            yield invalid_value("spec", "", detail)
        large = any(each.get("taints") or each.get("consumesCounters") for each in devices)
        most = _MOST_LARGE_DEVICES if large else _MOST_DEVICES
        chosen = bool(spec.get("perDeviceNodeSelection"))
        yield from list_faults(
            "spec.devices",
            devices,
            most,
            lambda where, device: _device_faults(where, device, chosen=chosen),
            key="name",
        )
        yield from list_faults(
            "spec.sharedCounters", counters, _MOST_COUNTER_SETS, _counter_set_faults, key="name"
        )

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        now, before = part(item, "spec"), part(old, "spec")
        for field in ("driver", "nodeName"):
            if now.get(field) != before.get(field):
                yield invalid_value(f"spec.{field}", now.get(field), "field is immutable")
        name = part(now, "pool").get("name")
        if name != part(before, "pool").get("name"):
            yield invalid_value("spec.pool.name", name, "field is immutable")


def pool_name_faults(at: str, name: str) -> Iterator[Fault]:
    if not name:
        yield required(at)
        return
    if len(name) > _LONGEST_POOL:
        yield too_long(at, _LONGEST_POOL)
    for each in name.split("/"):
        yield from subdomain_faults(at, each)


def _pool_faults(pool: Json) -> Iterator[Fault]:
    yield from pool_name_faults("spec.pool.name", pool.get("name", ""))
    count, generation = pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    if count <= 0:
        yield invalid_value("spec.pool.resourceSliceCount", count, "must be greater than zero")
    if generation < 0:
        detail = "must be greater than or equal to zero"
        yield invalid_value("spec.pool.generation", generation, detail)


def _place_faults(at: str, item: Json, places: tuple[str, ...], detail: str) -> Iterator[Fault]:
    """Yields what is wrong with the nodes that a slice or a device is for."""
    given = [each for each in places if item.get(each)]
    if not given:
        yield required(at, detail)
    elif len(given) > 1:
        listed = ", ".join(f"`{each}`" for each in given)
        yield invalid_value(at, f"{{{listed}}}", f"{detail}, but multiple fields are set")
    if item.get("nodeName"):
        yield from subdomain_faults(f"{at}.nodeName", item["nodeName"])
    selector = item.get("nodeSelector")
    if selector:
        yield from node_selector_faults(f"{at}.nodeSelector", selector)
        terms = selector.get("nodeSelectorTerms") or []
        if len(terms) != 1:
            where = f"{at}.nodeSelector.nodeSelectorTerms"
            yield invalid_value(where, terms, "must have exactly one node selector term")


def _device_faults(at: str, device: Json, *, chosen: bool) -> Iterator[Fault]:
    yield from label_name_faults(f"{at}.name", device.get("name", ""))
    attributes, capacity = part(device, "attributes"), part(device, "capacity")
    count = len(attributes) + len(capacity)
    if count > _MOST_ATTRIBUTES:
        detail = f"the total number of attributes and capacities must not exceed {_MOST_ATTRIBUTES}"
        yield invalid_value(at, count, detail)
    for name, value in attributes.items():
        yield from qualified_name_faults(f"{at}.attributes", name)
        yield from _attribute_faults(f"{at}.attributes[{name}]", value)
    shared = bool(device.get("allowMultipleAllocations"))
    for name, value in capacity.items():
        yield from qualified_name_faults(f"{at}.capacity", name)
        yield from _capacity_faults(f"{at}.capacity[{name}]", value, shared=shared)
    yield from _device_place_faults(at, device, chosen=chosen)
    yield from _device_list_faults(at, device)


def _device_place_faults(at: str, device: Json, *, chosen: bool) -> Iterator[Fault]:
    if chosen:
        yield from _place_faults(at, device, _DEVICE_PLACES, _ONE_DEVICE_PLACE)
    elif any(each in device for each in _DEVICE_PLACES):
        yield invalid_value(at, None, _NO_DEVICE_PLACE)


def _device_list_faults(at: str, device: Json) -> Iterator[Fault]:
    yield from list_faults(f"{at}.taints", device.get("taints") or [], _MOST_TAINTS, taint_faults)
    yield from list_faults(
        f"{at}.consumesCounters",
        device.get("consumesCounters") or [],
        _MOST_CONSUMPTIONS,
        _consumption_faults,
        key="counterSet",
    )
    for field in ("bindingConditions", "bindingFailureConditions"):
        conditions = device.get(field) or []
        if len(conditions) > _MOST_CONDITIONS:
            yield too_many(f"{at}.{field}", len(conditions), _MOST_CONDITIONS)
        for index, name in enumerate(conditions):
            yield from label_key_faults(f"{at}.{field}[{index}]", name)
    if device.get("bindingConditions") and not device.get("bindingFailureConditions"):
        detail = "bindingFailureConditions are required to use bindingConditions"
        yield invalid_value(f"{at}.bindingFailureConditions", None, detail)
    elif device.get("bindingFailureConditions") and not device.get("bindingConditions"):
        detail = "bindingConditions are required to use bindingFailureConditions"
        yield invalid_value(f"{at}.bindingConditions", None, detail)


def _attribute_faults(at: str, attribute: Json) -> Iterator[Fault]:
    given = [each for each in _VALUES if each in attribute]
    if len(given) != 1:
        yield invalid_value(at, attribute if given else "", "exactly one value must be specified")
    for field in ("string", "version"):
        if len(attribute.get(field, "")) > _LONGEST_VALUE:
            yield too_long(f"{at}.{field}", _LONGEST_VALUE)
    version = attribute.get("version")
    if version is not None and not _SEMVER.fullmatch(version):
        detail = "must be a string compatible with semver.org spec 2.0.0"
        yield invalid_value(f"{at}.version", version, detail)


def _capacity_faults(at: str, capacity: Json, *, shared: bool) -> Iterator[Fault]:
    policy = capacity.get("requestPolicy")
    if policy is None:
        return
    where = f"{at}.requestPolicy"
    if not shared:
        yield forbidden_field(where, "allowMultipleAllocations must be true")
        return
    values, within = policy.get("validValues") or [], policy.get("validRange")
    if values and within:
        yield forbidden_field(
            where,
            'exactly one policy can be specified, cannot specify "validValues" and "validRange" '
            "at the same time",
        )
    elif (values or within) and policy.get("default") is None:
        field = "validValues" if values else "validRange"
        yield required(f"{where}.default", f"required when {field} is defined")
    elif values:
        yield from _valid_value_faults(f"{where}.validValues", policy, capacity)
    elif within:
        yield from _valid_range_faults(f"{where}.validRange", policy, capacity)


def _valid_value_faults(at: str, policy: Json, capacity: Json) -> Iterator[Fault]:
    values, most = policy["validValues"], capacity["value"]
    amounts = [Quantity.parse(each) for each in values]
    for index, value in enumerate(values):
        if index and amounts[index - 1] > amounts[index]:
            detail = "values must be sorted in ascending order"
            yield invalid_value(f"{at}[{index}]", value, detail)
        if amounts[index] > Quantity.parse(most):
            detail = f"option is larger than capacity value: {most}"
            yield invalid_value(f"{at}[{index}]", value, detail)
    if Quantity.parse(policy["default"]) not in amounts:
        detail = "default value is not valid according to the requestPolicy"
        yield invalid_value(at, policy["default"], detail)


def _valid_range_faults(at: str, policy: Json, capacity: Json) -> Iterator[Fault]:
    within, usual, most = policy["validRange"], policy["default"], capacity["value"]
    least, largest = within.get("min"), within.get("max")
    if least is None:
        yield required(f"{at}.min", "required when validRange is defined")
        return
    if Quantity.parse(least) > Quantity.parse(most):
        yield invalid_value(f"{at}.min", least, f"min is larger than capacity value: {most}")
    if Quantity.parse(usual) < Quantity.parse(least):
        yield invalid_value(f"{at}.min", usual, f"default is less than min: {least}")
    if largest is None:
        return
    if Quantity.parse(least) > Quantity.parse(largest):
        yield invalid_value(f"{at}.max", least, f"min is larger than max: {largest}")
    if Quantity.parse(largest) > Quantity.parse(most):
        yield invalid_value(f"{at}.max", largest, f"max is larger than capacity value: {most}")
    if Quantity.parse(usual) > Quantity.parse(largest):
        yield invalid_value(f"{at}.max", usual, f"default is more than max: {largest}")


def _counter_set_faults(at: str, counters: Json) -> Iterator[Fault]:
    yield from label_name_faults(f"{at}.name", counters.get("name", ""))
    yield from _counter_faults(f"{at}.counters", part(counters, "counters"))


def _consumption_faults(at: str, consumption: Json) -> Iterator[Fault]:
    yield from label_name_faults(f"{at}.counterSet", consumption.get("counterSet", ""))
    yield from _counter_faults(f"{at}.counters", part(consumption, "counters"))


def _counter_faults(at: str, counters: Json) -> Iterator[Fault]:
    if not counters:
        yield required(at)
    if len(counters) > _MOST_COUNTERS:
        yield too_many(at, len(counters), _MOST_COUNTERS)
    for name in counters:
        yield from label_name_faults(f"{at}[{name}]", name)


def taint_faults(at: str, taint: Json) -> Iterator[Fault]:
    yield from label_key_faults(f"{at}.key", taint.get("key", ""))
    yield from label_value_faults(f"{at}.value", taint.get("value", ""))
    effect = taint.get("effect", "")
    if not effect:
        yield required(f"{at}.effect")
    elif effect not in _EFFECTS:
        yield unsupported(f"{at}.effect", effect, _EFFECTS)
