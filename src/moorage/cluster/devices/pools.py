"""Pools of devices: the slices of a pool, and the devices that a node sees of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from itertools import repeat

from moorage.objects.device import NodeChoice, ResourceSlice, SliceDevice, choose_nodes

from .models import CounterName, DeviceModel, DevicePlace, Models, PoolShape
from .taint_rules import TaintRules


@dataclass(frozen=True, slots=True)
class SliceReading:
    """What counts of slices, and what is added to them."""

    #: Whether DeviceTaintRules put taints on devices.
    follows_taint_rules: bool = False
    #: Whether every node sees the slices that have counters, whichever node they are for.
    shows_counters_to_all: bool = True
    #: Whether slices count although their devices have compatibility groups.
    ignores_compatibility_groups: bool = True


DEFAULT_READING = SliceReading()


#: The driver and the name of a pool.
PoolKey = tuple[str, str]
#: Returns whether a choice of nodes includes a certain node.
IsMeant = Callable[[NodeChoice], bool]


class PoolStatus(Enum):
    """Says whether devices may be taken from a pool."""

    USABLE = auto()
    #: Some of its slices are missing.
    INCOMPLETE = auto()
    #: Its slices contradict each other.
    INVALID = auto()


class PoolView:
    """The devices that some nodes see of a pool."""

    def __init__(
        self, key: PoolKey, status: PoolStatus, shape: PoolShape, names: tuple[str, ...], pool: Pool
    ) -> None:
        self.key = key
        self.status = status
        self.shape = shape
        #: The names of the devices, in the order of the shape.
        self.names = names
        self.pool = pool
        #: Equal for views that differ only in names. The view keeps the shape alive, so that no
        #: other shape gets its id.
        self.look = id(shape), status.name

    @cached_property
    def places(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.names)}

    @property
    def matters(self) -> bool:
        """Returns whether the view can affect a decision: it has devices or is not usable."""
        return bool(self.names) or self.status is not PoolStatus.USABLE


_DERIVED = (
    "ordered",
    "_counting",
    "nodes",
    "choices",
    "is_wide",
    "nodes_of_device",
    "_choices_of_devices",
    "_newest_devices",
)


class Pool:
    """The slices of one pool, of all generations."""

    def __init__(self, key: PoolKey, rules: TaintRules, reading: SliceReading) -> None:
        self.key = key
        self._reading = reading
        self._rules = rules
        #: The version of the rules with which the views were made.
        self._rules_version = rules.version
        self.slices: dict[str, ResourceSlice] = {}
        #: The node, if the pool is one slice for one node, as most are; else empty.
        self.only_node = ""
        self._views: dict[object, PoolView | None] = {}
        #: The models of devices, by the name of the slice, for slices that name one node.
        self._models: dict[str, tuple[DeviceModel, ...]] = {}

    def put(self, item: ResourceSlice, models: Models) -> None:
        self.slices[item.name] = item
        self._models.pop(item.name, None)
        self.forget()
        # Models are made when a slice arrives: the first decision would take long to make all.
        if isinstance(item.nodes, str):
            self._models[item.name] = _make_models(item, models)

    def drop(self, name: str) -> None:
        del self.slices[name]
        self._models.pop(name, None)
        self.forget()

    def forget(self) -> None:
        """Forgets derived values, because slices have changed."""
        self.only_node = _find_only_node(self.slices)
        self._views.clear()
        for name in _DERIVED:
            self.__dict__.pop(name, None)

    def known_models(self, name: str) -> tuple[DeviceModel, ...] | None:
        """Returns the models of a slice's devices; None if they were not made when it arrived."""
        return self._models.get(name)

    @cached_property
    def ordered(self) -> tuple[ResourceSlice, ...]:
        """Returns the slices in the order of their names."""
        return tuple(self.slices[name] for name in sorted(self.slices))

    @cached_property
    def _counting(self) -> tuple[ResourceSlice, ...]:
        """Returns the slices that devices may be taken from, in the order of their names."""
        if self._reading.ignores_compatibility_groups:
            return self.ordered
        return tuple(each for each in self.ordered if not _has_compatibility_groups(each))

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Returns the nodes that its slices name."""
        if self.only_node:
            return (self.only_node,)
        named = (each.nodes for each in self.slices.values())
        return tuple(dict.fromkeys(name for name in named if isinstance(name, str)))

    @cached_property
    def choices(self) -> tuple[NodeChoice, ...]:
        """Returns all choices of nodes of its slices and devices."""
        found = [each.nodes for each in self.slices.values()]
        for choices in self._choices_of_devices.values():
            found += choices
        return tuple(dict.fromkeys(choice for choice in found if choice is not None))

    @cached_property
    def _choices_of_devices(self) -> dict[str, tuple[NodeChoice, ...]]:
        """Returns the choices of devices, by slice, for slices whose devices choose their nodes."""
        return {
            name: tuple(map(_device_choice, each.devices))
            for name, each in self.slices.items()
            if each.is_per_device
        }

    @property
    def look_size(self) -> int:
        """Returns the number of slices, plus that of devices that choose their own nodes.

        The time to make a view grows with it.
        """
        return len(self.slices) + sum(map(len, self._choices_of_devices.values()))

    @cached_property
    def is_wide(self) -> bool:
        """Returns whether nodes can see the pool that its slices do not name."""
        if self.only_node:
            return False
        if any(not isinstance(each.nodes, str) for each in self.slices.values()):
            return True
        if not any(each.counters for each in self.slices.values()):
            return False
        # All nodes see counters. Nodes without devices are affected only if the pool is not usable.
        elsewhere = self.view(lambda choice: False, Models())
        return elsewhere is not None and elsewhere.matters

    @cached_property
    def nodes_of_device(self) -> dict[str, tuple[str, ...]] | None:
        """Returns the nodes that see each device.

        None if the use of any device concerns all nodes of the pool, as with counters.
        """
        if self.is_wide or any(each.counters for each in self.slices.values()):
            return None
        found: dict[str, dict[str, None]] = {}
        for each in self.slices.values():
            assert isinstance(each.nodes, str), "a pool that is not wide names its nodes"
            for device in each.devices:
                found.setdefault(device.name, {})[each.nodes] = None
        return {name: tuple(nodes) for name, nodes in found.items()}

    def view(self, is_meant: IsMeant, models: Models) -> PoolView | None:
        """Returns what a node sees of the pool; None for nothing, or only outdated slices."""
        of_devices = self._choices_of_devices
        meant = [
            each
            for each in self._counting
            if self._is_seen(each, of_devices.get(each.name, ()), is_meant)
        ]
        if not meant:
            return None
        # By slice: for each device that chooses its own nodes, whether the node can use it.
        here = [tuple(map(is_meant, of_devices.get(each.name, ()))) for each in meant]
        key = tuple([(each.name, flags) for each, flags in zip(meant, here, strict=True)])
        if self._rules_version != self._rules.version:
            self._rules_version = self._rules.version
            self._views.clear()
        if key not in self._views:
            self._views[key] = self._make_view(meant, here, models)
        return self._views[key]

    def _is_seen(
        self, item: ResourceSlice, of_devices: Sequence[NodeChoice], is_meant: IsMeant
    ) -> bool:
        """Returns whether a slice is for a node that these choices of nodes include."""
        if item.counters and self._reading.shows_counters_to_all:
            return True
        if item.nodes is not None and is_meant(item.nodes):
            return True
        return any(map(is_meant, of_devices))

    def _make_view(
        self,
        meant: Sequence[ResourceSlice],
        here: Sequence[tuple[bool, ...]],
        models: Models,
    ) -> PoolView | None:
        newest = max(each.generation for each in meant)
        current = [each for each in meant if each.generation == newest]
        wanted = current[0].slice_count
        others: tuple[ResourceSlice, ...] = ()
        if len(current) != wanted:
            if any(each.generation > newest for each in self.ordered):
                return None
            everywhere = [each for each in self._counting if each.generation == newest]
            if len(everywhere) != wanted:
                return PoolView(self.key, PoolStatus.INCOMPLETE, models.shape((), ()), (), self)
            others = tuple(each for each in everywhere if each not in current)
        if _is_invalid(current, others):
            return PoolView(self.key, PoolStatus.INVALID, models.shape((), ()), (), self)
        found: list[DeviceModel] = []
        for each, flags in zip(meant, here, strict=True):
            if each.generation == newest:
                own = flags or repeat(True)
                found += self._models.get(each.name) or _make_models(each, models, own)
        names = tuple([device.name for each in current for device in each.devices])
        for at, taints in (self._rules.of(*self.key, names) or {}).items():
            found[at] = models.taint(found[at], taints)
        shape = models.shape(tuple(found), _list_counters((*current, *others)))
        return PoolView(self.key, PoolStatus.USABLE, shape, names, self)

    def consumption(self, device_name: str) -> Iterable[tuple[CounterName, int]]:
        """Yields what a device takes of each counter, as its newest slice says."""
        found = self._newest_devices.get(device_name)
        for taken in (found.consumes_counters if found else None) or ():
            for name, counter in (taken.counters or {}).items():
                yield (taken.counter_set, name), int(counter.value)

    @cached_property
    def _newest_devices(self) -> dict[str, SliceDevice]:
        """Returns the devices by name, each from the newest slice that has it."""
        found: dict[str, SliceDevice] = {}
        generations: dict[str, int] = {}
        for each in self._counting:
            for device in each.devices:
                known = generations.get(device.name, -1)
                # Of equal names, the last in a slice counts, and the first of slices of one
                # generation.
                if each.generation > known:
                    found[device.name] = device
            generations.update(
                (device.name, each.generation)
                for device in each.devices
                if each.generation > generations.get(device.name, -1)
            )
        return found


def _find_only_node(slices: Mapping[str, ResourceSlice]) -> str:
    """Returns the node of a pool with one slice for one node; else an empty name."""
    if len(slices) != 1:
        return ""
    (only,) = slices.values()
    return only.nodes if isinstance(only.nodes, str) and not only.counters else ""


def _has_compatibility_groups(item: ResourceSlice) -> bool:
    return any(
        taken.compatibility_groups
        for device in item.devices
        for taken in device.consumes_counters or ()
    )


def _device_choice(device: SliceDevice) -> NodeChoice:
    return choose_nodes(device.node_name, device.all_nodes, device.node_selector)


_LOCAL = DevicePlace(is_local=True)


def _place(item: ResourceSlice, device: SliceDevice, is_here: bool) -> DevicePlace:
    binds = bool(device.binds_to_node)
    if item.is_per_device:
        local = binds or device.node_name is not None
        return DevicePlace(is_here, local, None if local else device.node_selector)
    local = binds or isinstance(item.nodes, str)
    return DevicePlace(is_here, local, None if local else item.node_selector)


def _make_models(
    item: ResourceSlice, models: Models, here: Iterable[bool] = repeat(True)
) -> tuple[DeviceModel, ...]:
    """Returns the models of a slice's devices; `here` says which of them the node can use."""
    model, driver = models.model, item.driver
    if isinstance(item.nodes, str) and not item.is_per_device:
        return tuple([model(driver, device, _LOCAL) for device in item.devices])
    return tuple(
        model(driver, device, _place(item, device, flag))
        for device, flag in zip(item.devices, here, strict=False)
    )


def _list_counters(slices: Iterable[ResourceSlice]) -> tuple[tuple[CounterName, int], ...]:
    return tuple(
        ((each.name, name), int(counter.value))
        for item in slices
        for each in item.counters
        for name, counter in (each.counters or {}).items()
    )


def _is_invalid(current: Sequence[ResourceSlice], others: Sequence[ResourceSlice]) -> bool:
    names = [device.name for each in current for device in each.devices]
    if len(names) != len(set(names)):
        return True
    every = (*current, *others)
    sets = [each.name for item in every for each in item.counters]
    if len(sets) != len(set(sets)):
        return True
    if not any(device.consumes_counters for item in every for device in item.devices):
        return False
    declared = {name for name, _ in _list_counters((*current, *others))}
    return any(
        taken.counter_set not in sets
        or any((taken.counter_set, name) not in declared for name in taken.counters or {})
        for item in (*current, *others)
        for device in item.devices
        for taken in device.consumes_counters or ()
    )
