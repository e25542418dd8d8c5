"""Devices and pools without their names, so that equal ones are checked once."""

from __future__ import annotations

from functools import cached_property
from weakref import WeakValueDictionary

import msgspec

from moorage.cel import is_version
from moorage.objects.device import (
    REPELLING,
    CapacityPolicy,
    DeviceAttribute,
    DeviceTaint,
    SliceDevice,
)
from moorage.objects.node_selector import NodeSelector
from moorage.objects.quantity import Quantity

from .taint_rules import TaintsOfRules

#: A counter of a pool: its set and its name.
CounterName = tuple[str, str]


class DeviceRest:
    """Stands for a device without its attributes; equal devices share one object."""

    __slots__ = ("__weakref__", "parts")

    def __init__(self, parts: object = None) -> None:
        #: What it keeps alive, so that nothing else gets the ids by which it is found.
        self.parts = parts


class DeviceContent:
    """The parts of a device that expressions can read."""

    __slots__ = ("__weakref__", "device", "driver", "is_readable", "rest")

    def __init__(self, driver: str, device: SliceDevice, rest: DeviceRest) -> None:
        self.driver = driver
        #: Only attributes, capacity and `allow_multiple_allocations` are set.
        self.device = device
        self.rest = rest
        #: Whether all of its attributes have values. If not, every expression fails.
        self.is_readable = all(map(_has_value, (device.attributes or {}).values()))


def _has_value(attribute: DeviceAttribute) -> bool:
    version = attribute.version
    values = (attribute.string, attribute.int_value, attribute.bool_value, version)
    return values.count(None) == len(values) - 1 and (version is None or is_version(version))


class Capacity(msgspec.Struct, frozen=True):
    """How much a device has of a capacity, in nano-units, and the policy for requests."""

    value: int
    policy: CapacityPolicy | None


class DeviceModel:
    """A device without its name, its pool and its users."""

    def __init__(
        self, content: DeviceContent, device: SliceDevice, place: DevicePlace, rest: DeviceRest
    ) -> None:
        self.content = content
        self.place = place
        self.rest = rest
        #: The device without its name and its choice of nodes.
        self.device = device
        self.is_shared = bool(device.allow_multiple_allocations)
        self.taints: tuple[DeviceTaint, ...] = tuple(
            taint for taint in device.taints or () if taint.effect in REPELLING
        )
        #: The taints that rules put on it.
        self.rule_taints: TaintsOfRules = ()
        self.counters: tuple[tuple[CounterName, int], ...] = tuple(
            ((each.counter_set, name), int(counter.value))
            for each in device.consumes_counters or ()
            for name, counter in (each.counters or {}).items()
        )
        self.capacities = {
            name: Capacity(int(Quantity.parse(each.value)), each.request_policy)
            for name, each in (device.capacity or {}).items()
        }

    @property
    def driver(self) -> str:
        return self.content.driver

    def with_taints(self, taints: TaintsOfRules, rest: DeviceRest) -> DeviceModel:
        """Returns the same device with the taints of some rules."""
        same = DeviceModel(self.content, self.device, self.place, rest)
        same.rule_taints = taints
        return same

    @cached_property
    def attributes(self) -> dict[str, tuple[str, object] | None]:
        """Returns the type and value of every attribute; None for an unknown type."""
        return {
            name: next(
                (
                    (kind, value)
                    for kind, value in (
                        ("string", each.string),
                        ("int", each.int_value),
                        ("bool", each.bool_value),
                        ("version", each.version),
                    )
                    if value is not None
                ),
                None,
            )
            for name, each in (self.device.attributes or {}).items()
        }


class DevicePlace(msgspec.Struct, frozen=True):
    """Where a device can be used, as a node sees it."""

    #: Whether the node can use it. It is False only for devices that choose their own nodes.
    is_here: bool = True
    #: Whether a claim that holds it can be used on one node only.
    is_local: bool = False
    selector: NodeSelector | None = None


class PoolShape:
    """The devices of a pool in order, without their names, as a node sees them."""

    def __init__(
        self, models: tuple[DeviceModel, ...], counters: tuple[tuple[CounterName, int], ...]
    ) -> None:
        self.models = models
        #: The declared value of each counter, which the devices of the pool share.
        self.counters = counters
        self.counter_places = {name: at for at, (name, _) in enumerate(counters)}
        #: Whether each device is either free or taken: there are no counters and no shared devices.
        self.is_plain = not counters and not any(each.is_shared or each.counters for each in models)
        self.binds = any(each.device.binding_conditions for each in models)


_encode = msgspec.json.Encoder(order="sorted", enc_hook=repr).encode


class Models:
    """Keeps one object for all devices, and one for all pools, that are equal."""

    def __init__(self) -> None:
        self._contents: WeakValueDictionary[bytes, DeviceContent] = WeakValueDictionary()
        self._rests: WeakValueDictionary[bytes, DeviceRest] = WeakValueDictionary()
        self._models: WeakValueDictionary[bytes, DeviceModel] = WeakValueDictionary()
        self._shapes: WeakValueDictionary[object, PoolShape] = WeakValueDictionary()
        self._tainted: WeakValueDictionary[object, DeviceModel] = WeakValueDictionary()
        self._tainted_rests: WeakValueDictionary[object, DeviceRest] = WeakValueDictionary()

    def model(self, driver: str, device: SliceDevice, place: DevicePlace) -> DeviceModel:
        """Returns the model of a device."""
        plain = msgspec.structs.replace(
            device, name="", node_name=None, node_selector=None, all_nodes=None
        )
        key = _encode((driver, plain, place))
        known = self._models.get(key)
        if known is None:
            rest = self._rest((driver, msgspec.structs.replace(plain, attributes=None), place))
            known = DeviceModel(self.content(driver, plain), plain, place, rest)
            self._models[key] = known
        return known

    def taint(self, model: DeviceModel, taints: TaintsOfRules) -> DeviceModel:
        """Returns the model of the same device with the taints of some rules."""
        rules = tuple(map(id, taints))
        # A rest stays what it is while a model has it, and so do the taints.
        key = id(model.rest), rules
        rest = self._tainted_rests.get(key)
        if rest is None:
            rest = self._tainted_rests[key] = DeviceRest((model.rest, taints))
        known = self._tainted.get((id(model.content), id(rest)))
        if known is None:
            known = model.with_taints(taints, rest)
            self._tainted[id(model.content), id(rest)] = known
        return known

    def content(self, driver: str, device: SliceDevice) -> DeviceContent:
        """Returns the parts of a device that expressions can read."""
        seen = SliceDevice(
            attributes=device.attributes,
            capacity={
                name: msgspec.structs.replace(each, request_policy=None)
                for name, each in (device.capacity or {}).items()
            },
            allow_multiple_allocations=bool(device.allow_multiple_allocations),
        )
        key = _encode((driver, seen))
        known = self._contents.get(key)
        if known is None:
            rest = self._rest((driver, msgspec.structs.replace(seen, attributes=None)))
            known = self._contents[key] = DeviceContent(driver, seen, rest)
        return known

    def _rest(self, what: object) -> DeviceRest:
        key = _encode(what)
        known = self._rests.get(key)
        if known is None:
            known = self._rests[key] = DeviceRest()
        return known

    def shape(
        self, models: tuple[DeviceModel, ...], counters: tuple[tuple[CounterName, int], ...]
    ) -> PoolShape:
        """Returns the shape of a pool."""
        key = tuple(map(id, models)), counters
        known = self._shapes.get(key)
        if known is None:
            # The shape keeps the models alive, so that no other model gets one of their ids.
            known = self._shapes[key] = PoolShape(models, counters)
        return known
