"""The items in the cache of controllers: the few fields of each object that they need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from moorage.embedded.store.object_store import StoredObject
from moorage.objects.meta import Wire, seconds
from moorage.objects.quantity import Quantity

ENDED = ("Succeeded", "Failed")


class ItemOwner(Wire, frozen=True):
    """A reference to an owner."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]


class NodeTaint(Wire, frozen=True):
    """A taint, and when it was added."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An object in the cache: its identity, its owners, and whether it is being deleted."""

    table: str
    entry: StoredObject
    uid: str
    created: float
    terminating: bool
    owners: tuple[ItemOwner, ...]
    finalizers: tuple[str, ...]

    @property
    def key(self) -> str:
        return self.entry.key

    @property
    def namespace(self) -> str:
        return self.entry.namespace

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.entry.labels

    @property
    def controller(self) -> ItemOwner | None:
        """The owner that manages this object, if one does."""
        for each in self.owners:
            if each.controller:
                return each
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodItem(Item):
    """A pod in the cache: its node, phase and readiness."""

    node: str
    phase: str
    ready: bool
    #: When it became ready, or ceased to be; 0 if it never said.
    ready_changed: float
    #: Whether it refers to claims of devices.
    has_claims: bool

    @property
    def active(self) -> bool:
        """Whether it neither ended nor is being deleted."""
        return not self.terminating and self.phase not in ENDED

    @property
    def is_stopping(self) -> bool:
        """Whether it is being deleted and has not ended yet."""
        return self.terminating and self.phase not in ENDED

    def is_available(self, now: float, least_ready_seconds: int) -> bool:
        """Whether it has been ready for long enough."""
        return self.ready and self.ready_changed + least_ready_seconds <= now


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClaimItem(Item):
    """A claim of devices in the cache: the uids of the pods that it is reserved for."""

    users: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeItem(Item):
    """A node in the cache: its taints and conditions."""

    taints: tuple[NodeTaint, ...]
    unschedulable: bool
    #: The status of its Ready condition; empty if it has none.
    ready: str
    conditions: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageItem(Item):
    """A volume or a claim in the cache: its class, and the claim or volume it belongs to."""

    storage_class: str
    #: The claim of a volume, as namespace/name.
    claim: str
    volume: str
    phase: str
    #: What a volume offers, in nano-units of a byte.
    size: int


class _Metadata(Wire, frozen=True):
    uid: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: str | None = None
    owner_references: tuple[ItemOwner, ...] | None = None
    finalizers: tuple[str, ...] | None = None


class _Object(Wire, frozen=True):
    metadata: _Metadata


class _Condition(Wire, frozen=True):
    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None


class _PodSpec(Wire, frozen=True):
    node_name: str = ""
    resource_claims: tuple[msgspec.Raw, ...] | None = None


class _Status(Wire, frozen=True):
    phase: str = ""
    conditions: tuple[_Condition, ...] | None = None

    @property
    def ready(self) -> _Condition | None:
        return next((each for each in self.conditions or () if each.type == "Ready"), None)


class _PodObject(_Object, frozen=True):
    spec: _PodSpec
    status: _Status = _Status()


class _NodeSpec(Wire, frozen=True):
    taints: tuple[NodeTaint, ...] | None = None
    unschedulable: bool = False


class _NodeObject(_Object, frozen=True):
    spec: _NodeSpec = _NodeSpec()
    status: _Status = _Status()


class _ClaimRef(Wire, frozen=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _StorageSpec(Wire, frozen=True):
    storage_class_name: str = ""
    claim_ref: _ClaimRef | None = None
    capacity: dict[str, str] | None = None
    volume_name: str = ""


class _StorageObject(_Object, frozen=True):
    spec: _StorageSpec
    status: _Status = _Status()


class _User(Wire, frozen=True):
    uid: str = ""


class _DeviceClaimStatus(Wire, frozen=True):
    reserved_for: tuple[_User, ...] | None = None


class _DeviceClaimObject(_Object, frozen=True):
    status: _DeviceClaimStatus = _DeviceClaimStatus()


def _decoder(kind: type[Any]) -> Callable[[bytes], Any]:
    return msgspec.json.Decoder(kind).decode


_object = _decoder(_Object)
_pod_object = _decoder(_PodObject)
_node_object = _decoder(_NodeObject)
_storage_object = _decoder(_StorageObject)
_device_claim_object = _decoder(_DeviceClaimObject)


def item_of(table: str, entry: StoredObject) -> Item:
    """Reads the item of an object."""
    match table:
        case "pods":
            return _pod(table, entry)
        case "nodes":
            return _node(table, entry)
        case "persistentvolumes" | "persistentvolumeclaims":
            return _storage(table, entry)
        case "resourceclaims.resource.k8s.io":
            return _device_claim(table, entry)
        case _:
            return Item(**_identity(table, entry, _object(entry.body)))


def _pod(table: str, entry: StoredObject) -> PodItem:
    read = _pod_object(entry.body)
    ready = read.status.ready
    return PodItem(
        **_identity(table, entry, read),
        node=read.spec.node_name,
        phase=read.status.phase,
        ready=ready is not None and ready.status == "True",
        ready_changed=seconds(ready.last_transition_time) or 0.0 if ready else 0.0,
        has_claims=bool(read.spec.resource_claims),
    )


def _device_claim(table: str, entry: StoredObject) -> DeviceClaimItem:
    read = _device_claim_object(entry.body)
    users = frozenset(each.uid for each in read.status.reserved_for or ())
    return DeviceClaimItem(**_identity(table, entry, read), users=users)


def _node(table: str, entry: StoredObject) -> NodeItem:
    read = _node_object(entry.body)
    ready = read.status.ready
    conditions = read.status.conditions or ()
    return NodeItem(
        **_identity(table, entry, read),
        taints=read.spec.taints or (),
        unschedulable=read.spec.unschedulable,
        ready=ready.status if ready else "",
        conditions=frozenset(each.type for each in conditions if each.status == "True"),
    )


def _storage(table: str, entry: StoredObject) -> StorageItem:
    read = _storage_object(entry.body)
    claim = read.spec.claim_ref
    return StorageItem(
        **_identity(table, entry, read),
        storage_class=read.spec.storage_class_name,
        claim=f"{claim.namespace}/{claim.name}" if claim else "",
        volume=read.spec.volume_name,
        phase=read.status.phase,
        size=Quantity.parse((read.spec.capacity or {}).get("storage", 0)),
    )


def _identity(table: str, entry: StoredObject, read: _Object) -> dict[str, Any]:
    metadata = read.metadata
    return {
        "table": table,
        "entry": entry,
        "uid": metadata.uid,
        "created": seconds(metadata.creation_timestamp) or 0.0,
        "terminating": metadata.deletion_timestamp is not None,
        "owners": metadata.owner_references or (),
        "finalizers": metadata.finalizers or (),
    }


def without_zeros(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns counts without those that are zero, as the API writes them."""
    return {name: count for name, count in counts.items() if count}


def next_availability(pods: Iterable[PodItem], now: float, least_ready: int) -> float | None:
    """Returns the seconds until the next ready pod counts as available."""
    if not least_ready:
        return None
    waits = [pod.ready_changed + least_ready - now for pod in pods if pod.ready]
    return min((wait for wait in waits if wait > 0), default=None)


# Times are whole seconds, so that this is at least one of them.
_PAUSE_SECONDS = 2.0


def pause_after_failures(pods: Iterable[PodItem], now: float) -> float:
    """Returns how long to wait before pods are replaced that failed right after their creation.

    Without a pause, pods on a node that rejects them would be replaced without end.
    """
    failed = (pod.created for pod in pods if pod.phase == "Failed" and not pod.terminating)
    return max(max(failed, default=0.0) + _PAUSE_SECONDS - now, 0.0)
