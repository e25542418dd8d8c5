"""Reading what controllers remember out of objects."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from mooring.embedded.tables import Entry
from mooring.objects.meta import Wire, seconds
from mooring.objects.quantity import Quantity

from .items import Item, NodeItem, NodeTaint, Owner, PodItem, StorageItem


class _Metadata(Wire, frozen=True):
    uid: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: str | None = None
    owner_references: tuple[Owner, ...] | None = None
    finalizers: tuple[str, ...] | None = None


class _Object(Wire, frozen=True):
    metadata: _Metadata


class _Condition(Wire, frozen=True):
    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None


class _PodSpec(Wire, frozen=True):
    node_name: str = ""


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


def _decoder(kind: type[Any]) -> Callable[[bytes], Any]:
    return msgspec.json.Decoder(kind).decode


_object = _decoder(_Object)
_pod_object = _decoder(_PodObject)
_node_object = _decoder(_NodeObject)
_storage_object = _decoder(_StorageObject)


def item_of(table: str, entry: Entry) -> Item:
    """What is remembered of an object."""
    match table:
        case "pods":
            return _pod(table, entry)
        case "nodes":
            return _node(table, entry)
        case "persistentvolumes" | "persistentvolumeclaims":
            return _storage(table, entry)
        case _:
            return Item(**_identity(table, entry, _object(entry.body)))


def _pod(table: str, entry: Entry) -> PodItem:
    read = _pod_object(entry.body)
    ready = read.status.ready
    return PodItem(
        **_identity(table, entry, read),
        node=read.spec.node_name,
        phase=read.status.phase,
        ready=ready is not None and ready.status == "True",
        ready_changed=seconds(ready.last_transition_time) or 0.0 if ready else 0.0,
    )


def _node(table: str, entry: Entry) -> NodeItem:
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


def _storage(table: str, entry: Entry) -> StorageItem:
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


def _identity(table: str, entry: Entry, read: _Object) -> dict[str, Any]:
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
