"""Claims to devices: what they ask for, and what they were given."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from .device import DeviceClass, DeviceSelector, DeviceTaintRule, OpaqueConfig, ResourceSlice
from .meta import Condition, ObjectMeta, OwnerReference, Wire, seconds
from .node_selector import NodeSelector
from .quantity import Quantity, format_quantity

#: Keeps a claim from being deleted while its devices are in use.
FINALIZER = "resource.kubernetes.io/delete-protection"
#: Marks the claim that the scheduler makes for the extended resources of a pod.
EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim"

# The API group of groups of pods.
_GROUPS = "scheduling.k8s.io"

#: The allocation modes that there are.
EXACT_COUNT, ALL_DEVICES = "ExactCount", "All"


class DeviceToleration(Wire, frozen=True):
    """A taint of devices that a request puts up with."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(Wire, frozen=True):
    """How much a request needs of the capacities of each device."""

    requests: dict[str, Quantity] | None = None


class DeviceAsk(Wire, frozen=True):
    """What kind of devices are asked for, and how many."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: CapacityRequirements | None = None


class DeviceAlternative(DeviceAsk, frozen=True):
    """One of several ways to satisfy a request."""

    name: str = ""


class DeviceRequest(Wire, frozen=True):
    """A request of a claim: one way to satisfy it, or several, the best first."""

    name: str = ""
    exactly: DeviceAsk | None = None
    first_available: tuple[DeviceAlternative, ...] | None = None


class DeviceConstraint(Wire, frozen=True):
    """What the devices of some requests must have in common, or must differ in."""

    requests: tuple[str, ...] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class ClaimConfig(Wire, frozen=True):
    """How the devices of some requests are to be set up."""

    requests: tuple[str, ...] | None = None
    opaque: OpaqueConfig | None = None


class _ClaimDevices(Wire, frozen=True):
    requests: tuple[DeviceRequest, ...] | None = None
    constraints: tuple[DeviceConstraint, ...] | None = None
    config: tuple[ClaimConfig, ...] | None = None


class ClaimSpec(Wire, frozen=True, dict=True, weakref=True, eq=False):
    """What a claim asks for. Claims of one template share one value."""

    devices: _ClaimDevices = _ClaimDevices()

    @property
    def requests(self) -> tuple[DeviceRequest, ...]:
        return self.devices.requests or ()

    @property
    def constraints(self) -> tuple[DeviceConstraint, ...]:
        return self.devices.constraints or ()

    @property
    def config(self) -> tuple[ClaimConfig, ...]:
        return self.devices.config or ()


class DeviceResult(Wire, frozen=True, gc=False):
    """A device that a request was given."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] | None = None


class ConfigResult(Wire, frozen=True, gc=False):
    """How the devices of some requests are set up, and who said so."""

    source: str = ""
    requests: tuple[str, ...] | None = None
    opaque: OpaqueConfig | None = None


class _DeviceResults(Wire, frozen=True, gc=False):
    results: tuple[DeviceResult, ...] | None = None
    config: tuple[ConfigResult, ...] | None = None


class Allocation(Wire, frozen=True, gc=False):
    """The devices of a claim, and the nodes on which they can be used."""

    devices: _DeviceResults = _DeviceResults()
    node_selector: NodeSelector | None = None
    allocation_timestamp: datetime | None = None

    @classmethod
    def made_of(
        cls,
        results: tuple[DeviceResult, ...],
        config: tuple[ConfigResult, ...],
        node_selector: NodeSelector | None,
    ) -> Allocation:
        devices = _DeviceResults(results=results or None, config=config or None)
        return cls(devices=devices, node_selector=node_selector)

    @property
    def results(self) -> tuple[DeviceResult, ...]:
        return self.devices.results or ()

    def has_same_devices(self, other: Allocation | None) -> bool:
        """Whether another gives the same devices to the same requests."""
        return other is not None and _devices(self) == _devices(other)

    def gives_as(self, other: Allocation | None) -> bool:
        """Whether another gives just the same devices, and as much of each."""
        return other is not None and self.results == other.results

    def written(self) -> dict[str, Any]:
        """As the API writes it."""
        text: dict[str, Any] = msgspec.to_builtins(self, enc_hook=_write_quantity)
        return text

    @property
    def allocated_at(self) -> float | None:
        """When it was made, in seconds since the epoch, if that is known."""
        return seconds(self.allocation_timestamp)


class ClaimUser(Wire, frozen=True, gc=False):
    """Who may use the devices of a claim."""

    resource: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""

    @classmethod
    def of_group(cls, name: str, uid: str) -> ClaimUser:
        """Returns a group of pods, whose members all may use the devices."""
        return cls(resource="podgroups", name=name, uid=uid, api_group=_GROUPS)

    @property
    def is_group(self) -> bool:
        return self.resource == "podgroups" and self.api_group == _GROUPS


class DeviceStatus(Wire, frozen=True, gc=False):
    """What a driver reports about a device that was allocated."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[Condition, ...] | None = None


class _ClaimStatus(Wire, frozen=True):
    allocation: Allocation | None = None
    reserved_for: tuple[ClaimUser, ...] | None = None
    devices: tuple[DeviceStatus, ...] | None = None


class _ClaimMeta(ObjectMeta, frozen=True):
    finalizers: tuple[str, ...] | None = None


class _WireClaim(Wire, frozen=True):
    metadata: _ClaimMeta
    spec: ClaimSpec = ClaimSpec()
    status: _ClaimStatus = _ClaimStatus()


class ResourceClaim(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A claim to devices."""

    wire: ClassVar = _WireClaim

    namespace: str
    name: str
    uid: str
    spec: ClaimSpec
    allocation: Allocation | None = None
    reserved_for: tuple[ClaimUser, ...] = ()
    devices: tuple[DeviceStatus, ...] = ()
    owner: OwnerReference | None = None
    finalizers: tuple[str, ...] = ()
    #: Whether it is the one that the scheduler made for the extended resources of its owner.
    is_extended: bool = False
    terminating: bool = False
    resource_version: str = ""

    @classmethod
    def of(cls, wire: _WireClaim) -> ResourceClaim:
        meta, status = wire.metadata, wire.status
        namespace = meta.namespace or "default"
        return cls(
            namespace=namespace,
            name=meta.name,
            uid=meta.uid or f"{namespace}/{meta.name}",
            spec=share_claim_spec(wire.spec),
            allocation=status.allocation,
            reserved_for=status.reserved_for or (),
            devices=status.devices or (),
            owner=meta.controller,
            finalizers=meta.finalizers or (),
            is_extended=(meta.annotations or {}).get(EXTENDED_CLAIM) == "true",
            terminating=meta.deletion_timestamp is not None,
            resource_version=meta.resource_version,
        )

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def is_for(self, uid: str) -> bool:
        """Whether a pod may use it: it is reserved for that pod."""
        return uid in [user.uid for user in self.reserved_for]

    def is_for_group(self, name: str) -> bool:
        """Whether it is reserved for a group of pods of that name, which its members may use."""
        return any(user.is_group and user.name == name for user in self.reserved_for)

    def is_made_for_group(self, name: str) -> bool:
        """Whether it was made for a group of pods of that name."""
        owner = self.owner
        return (
            owner is not None
            and owner.kind == "PodGroup"
            and owner.name == name
            and owner.api_version.startswith(f"{_GROUPS}/")
        )

    def is_made_for(self, uid: str) -> bool:
        """Whether it was made for the pod of that uid and is deleted with it."""
        return self.owner is not None and self.owner.uid == uid

    def granted(self, allocation: Allocation | None, user: ClaimUser) -> ResourceClaim:
        """Returns the claim as written before a pod is bound: with devices, if new, and a user."""
        changed = self
        if allocation is not None:
            finalizers = self.finalizers
            if FINALIZER not in finalizers:
                finalizers = (*finalizers, FINALIZER)
            changed = replace(self, allocation=allocation, finalizers=finalizers)
        if changed.is_for(user.uid):
            return changed
        return replace(changed, reserved_for=(*changed.reserved_for, user))

    def deallocated(self) -> ResourceClaim:
        """Returns the claim without devices and users."""
        return replace(self, allocation=None, reserved_for=(), devices=())

    @property
    def state(self) -> tuple[Any, ...]:
        """All of its status that decisions read."""
        return self.allocation, self.reserved_for, self.devices


#: What scheduling reads to hand out devices.
DeviceObject = ResourceClaim | DeviceClass | ResourceSlice | DeviceTaintRule


def _devices(allocation: Allocation) -> list[tuple[str, str, str, str, str | None]]:
    return [
        (each.request, each.driver, each.pool, each.device, each.share_id)
        for each in allocation.results
    ]


def _write_quantity(value: Any) -> str:
    if not isinstance(value, Quantity):
        raise NotImplementedError(type(value))
    return format_quantity(value)


_SPECS: WeakValueDictionary[bytes, ClaimSpec] = WeakValueDictionary()
_ENCODE = msgspec.json.Encoder(order="sorted", enc_hook=repr).encode


def share_claim_spec(spec: ClaimSpec) -> ClaimSpec:
    """Returns one object per distinct spec, so that derived values are computed once."""
    return _SPECS.setdefault(_ENCODE(spec), spec)


def spec_of(requests: tuple[DeviceRequest, ...]) -> ClaimSpec:
    """Returns a spec with these requests and nothing else."""
    return ClaimSpec(devices=_ClaimDevices(requests=requests))
