"""Devices as drivers publish them, the classes by which claims ask for them, and taint rules."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from .meta import ObjectMeta, Wire, seconds
from .node_selector import Malformed, NodeSelector, NodeTerm, compile_term
from .quantity import Quantity

#: The annotation of a class whose devices are GPUs.
GPU_CLASS = "scheduling.moorage.dev/gpu"

#: An amount with the text that it was written in, which expressions read.
AmountText = str | int | float


class DeviceAttribute(Wire, frozen=True, gc=False):
    """One value; exactly one of the four is set, unless a newer API server knows more of them."""

    string: str | None = None
    int_value: int | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    version: str | None = None


class CapacityRange(Wire, frozen=True, gc=False):
    """The amounts that may be taken of a capacity: from min to max, in steps."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityPolicy(Wire, frozen=True, gc=False):
    """How much of a capacity a request takes."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] | None = None
    valid_range: CapacityRange | None = None


class DeviceCapacity(Wire, frozen=True, gc=False):
    """How much a device has of something."""

    value: AmountText
    request_policy: CapacityPolicy | None = None


class CounterValue(Wire, frozen=True, gc=False):
    """How much there is of a counter, or how much a device takes of it."""

    value: Quantity


class CounterConsumption(Wire, frozen=True, gc=False):
    """What a device takes of one set of counters."""

    counter_set: str = ""
    counters: dict[str, CounterValue] | None = None
    compatibility_groups: tuple[str, ...] | None = None


class CounterSet(Wire, frozen=True, gc=False):
    """Counters that devices of a pool share."""

    name: str = ""
    counters: dict[str, CounterValue] | None = None


class DeviceTaint(Wire, frozen=True, gc=False):
    """What keeps claims away from a device unless they tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


#: The effects of taints that keep claims away; taints with others reject no claim.
REPELLING = ("NoSchedule", "NoExecute")


class SliceDevice(Wire, frozen=True, gc=False):
    """A device in a slice."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: tuple[CounterConsumption, ...] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] | None = None
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    allow_multiple_allocations: bool | None = None


class _Pool(Wire, frozen=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class _SliceSpec(Wire, frozen=True):
    driver: str = ""
    pool: _Pool = _Pool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[SliceDevice, ...] | None = None
    shared_counters: tuple[CounterSet, ...] | None = None


class _WireSlice(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _SliceSpec = _SliceSpec()


#: Which nodes something is for: a name, all of them (True), terms of labels, or none (None).
NodeChoice = str | bool | tuple[NodeTerm | Malformed | None, ...] | None


def choose_nodes(
    node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None
) -> NodeChoice:
    """Returns which nodes the three fields select together."""
    if node_name:
        return node_name
    if all_nodes:
        return True
    if selector is None:
        return None
    return tuple(compile_term(each) for each in selector.node_selector_terms)


class ResourceSlice(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A part of a pool of devices."""

    wire: ClassVar = _WireSlice

    name: str
    driver: str = ""
    pool: str = ""
    generation: int = 0
    slice_count: int = 0
    nodes: NodeChoice = None
    node_selector: NodeSelector | None = None
    is_per_device: bool = False
    devices: tuple[SliceDevice, ...] = ()
    counters: tuple[CounterSet, ...] = ()

    @classmethod
    def of(cls, wire: _WireSlice) -> ResourceSlice:
        spec = wire.spec
        for device in spec.devices or ():
            for capacity in (device.capacity or {}).values():
                Quantity.parse(capacity.value)
        return cls(
            name=wire.metadata.name,
            driver=spec.driver,
            pool=spec.pool.name,
            generation=spec.pool.generation,
            slice_count=spec.pool.resource_slice_count,
            nodes=choose_nodes(spec.node_name, spec.all_nodes, spec.node_selector),
            node_selector=spec.node_selector,
            is_per_device=bool(spec.per_device_node_selection),
            devices=spec.devices or (),
            counters=spec.shared_counters or (),
        )


class CelSelector(Wire, frozen=True):
    """An expression over a device."""

    expression: str = ""


class DeviceSelector(Wire, frozen=True):
    """What a device must be like; a newer API server may know other ways to say it."""

    cel: CelSelector | None = None


class OpaqueConfig(Wire, frozen=True):
    """Parameters that only their driver understands."""

    driver: str = ""
    parameters: Any = None


class ClassConfig(Wire, frozen=True):
    """How devices are to be set up for all who use a class."""

    opaque: OpaqueConfig | None = None


class _ClassSpec(Wire, frozen=True):
    selectors: tuple[DeviceSelector, ...] | None = None
    config: tuple[ClassConfig, ...] | None = None
    extended_resource_name: str | None = None


class _WireClass(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _ClassSpec = _ClassSpec()


class DeviceClass(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of device that claims can ask for."""

    wire: ClassVar = _WireClass

    name: str
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[ClassConfig, ...] = ()
    #: The resource that containers may ask for instead of a claim.
    extended_resource_name: str = ""
    created: float | None = None
    #: Whether an annotation says that its devices are GPUs.
    is_for_gpus: bool = False

    @classmethod
    def of(cls, wire: _WireClass) -> DeviceClass:
        spec = wire.spec
        return cls(
            name=wire.metadata.name,
            selectors=spec.selectors or (),
            config=spec.config or (),
            extended_resource_name=spec.extended_resource_name or "",
            created=seconds(wire.metadata.creation_timestamp),
            is_for_gpus=(wire.metadata.annotations or {}).get(GPU_CLASS) == "true",
        )


#: The driver, the pool and the name of devices; None stands for all.
TaintSelector = tuple[str | None, str | None, str | None]


class _Selector(Wire, frozen=True):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class _RuleSpec(Wire, frozen=True):
    device_selector: _Selector | None = None
    taint: DeviceTaint = DeviceTaint()


class _WireRule(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _RuleSpec = _RuleSpec()


class DeviceTaintRule(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A taint, and the devices that get it."""

    wire: ClassVar = _WireRule

    name: str
    selector: TaintSelector = (None, None, None)
    taint: DeviceTaint = DeviceTaint()

    @classmethod
    def of(cls, wire: _WireRule, api_version: str = "") -> DeviceTaintRule:
        # It is the same in every version.
        # The API documents that a rule without a selector taints no device. kube-scheduler takes
        # it for one that selects all of them.
        chosen = wire.spec.device_selector or _Selector()
        return cls(
            name=wire.metadata.name,
            selector=(chosen.driver, chosen.pool, chosen.device),
            taint=wire.spec.taint,
        )
