"""Devices and pools by what they are like, so that equal ones are looked at once."""

from __future__ import annotations

from functools import cached_property
from weakref import WeakValueDictionary

import msgspec

from mooring.cel import is_version
from mooring.objects.device import CapacityPolicy, DeviceAttribute, DeviceTaint, SliceDevice
from mooring.objects.node_selector import NodeSelector
from mooring.objects.quantity import Quantity

# Other effects of taints keep no claim away.
_REPELLING = ("NoSchedule", "NoExecute")

#: A counter of a pool: its set and its name.
CounterName = tuple[str, str]


class DeviceRest:
    """What is left of a device without its attributes; one value for all that are alike."""

    __slots__ = ("__weakref__",)


class DeviceContent:
    """All that expressions see of a device."""

    __slots__ = ("__weakref__", "device", "driver", "is_readable", "rest")

    def __init__(self, driver: str, device: SliceDevice, rest: DeviceRest) -> None:
        self.driver = driver
        #: Only attributes, capacity and whether it can be shared are set.
        self.device = device
        self.rest = rest
        #: Whether all of its attributes have values. If not, no expression has an answer.
        self.is_readable = all(map(_has_value, (device.attributes or {}).values()))


def _has_value(attribute: DeviceAttribute) -> bool:
    version = attribute.version
    values = (attribute.string, attribute.int_value, attribute.bool_value, version)
    return values.count(None) == len(values) - 1 and (version is None or is_version(version))


class Capacity(msgspec.Struct, frozen=True):
    """How much a device has of something, in nano-units, and how much requests take of it."""

    value: int
    policy: CapacityPolicy | None


class DeviceModel:
    """All of a device but its name, its pool and who uses it."""

    def __init__(
        self, content: DeviceContent, device: SliceDevice, place: DevicePlace, rest: DeviceRest
    ) -> None:
        self.content = content
        self.place = place
        self.rest = rest
        #: Without its name and without the nodes that it is for.
        self.device = device
        self.is_shared = bool(device.allow_multiple_allocations)
        self.taints: tuple[DeviceTaint, ...] = tuple(
            taint for taint in device.taints or () if taint.effect in _REPELLING
        )
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

    @cached_property
    def attributes(self) -> dict[str, tuple[str, object] | None]:
        """Every attribute's type and value; None is a type that is not known."""
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
    """Where a device is, seen from a node."""

    #: Whether the node can use it; only devices that choose nodes by themselves may say no.
    is_here: bool = True
    #: Whether a claim that has it is bound to one node.
    is_local: bool = False
    selector: NodeSelector | None = None


class PoolShape:
    """The devices of a pool in order, as a node sees them, without names."""

    def __init__(
        self, models: tuple[DeviceModel, ...], counters: tuple[tuple[CounterName, int], ...]
    ) -> None:
        self.models = models
        #: What is declared of each counter; devices of the pool share it.
        self.counters = counters
        self.counter_places = {name: at for at, (name, _) in enumerate(counters)}
        #: Whether a device is either free or in use, and nothing else matters.
        self.is_plain = not counters and not any(each.is_shared or each.counters for each in models)
        self.binds = any(each.device.binding_conditions for each in models)


_encode = msgspec.json.Encoder(order="sorted", enc_hook=repr).encode


class Models:
    """One value for all that are alike."""

    def __init__(self) -> None:
        self._contents: WeakValueDictionary[bytes, DeviceContent] = WeakValueDictionary()
        self._rests: WeakValueDictionary[bytes, DeviceRest] = WeakValueDictionary()
        self._models: WeakValueDictionary[bytes, DeviceModel] = WeakValueDictionary()
        self._shapes: WeakValueDictionary[object, PoolShape] = WeakValueDictionary()

    def model(self, driver: str, device: SliceDevice, place: DevicePlace) -> DeviceModel:
        """What a device is like."""
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

    def content(self, driver: str, device: SliceDevice) -> DeviceContent:
        """What expressions see of a device."""
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
        """What a pool is like."""
        key = tuple(map(id, models)), counters
        known = self._shapes.get(key)
        if known is None:
            # The shape holds the models, so that their identities stay theirs while it lives.
            known = self._shapes[key] = PoolShape(models, counters)
        return known
