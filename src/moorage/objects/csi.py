"""CSI drivers: what they can attach to a node, and how much storage they have left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from .lazy_property import lazy_property
from .meta import ObjectMeta, Wire
from .node_selector import NodeRequirement, NodeTerm
from .quantity import Quantity, clamp, units
from .selector import LabelSelector, Selector, compile_selector

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"


class _Allocatable(Wire, frozen=True):
    count: int | None = None


class _NodeDriver(Wire, frozen=True):
    name: str = ""
    allocatable: _Allocatable | None = None


class _CSINodeSpec(Wire, frozen=True):
    drivers: tuple[_NodeDriver, ...] | None = None


class _WireCSINode(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _CSINodeSpec = _CSINodeSpec()


class CSINode(msgspec.Struct, frozen=True, kw_only=True):
    """The CSI drivers of a node: how many volumes each can attach, and the plugins they replace."""

    wire: ClassVar = _WireCSINode

    name: str
    drivers: frozenset[str] = frozenset()
    limits: Mapping[str, int] = {}
    migrated_plugins: frozenset[str] = frozenset()

    @classmethod
    def of(cls, wire: _WireCSINode) -> CSINode:
        listed = (wire.metadata.annotations or {}).get(MIGRATED_PLUGINS, "")
        return cls(
            name=wire.metadata.name,
            drivers=frozenset(driver.name for driver in wire.spec.drivers or ()),
            limits={
                driver.name: clamp(driver.allocatable.count)
                for driver in wire.spec.drivers or ()
                if driver.allocatable is not None and driver.allocatable.count is not None
            },
            migrated_plugins=frozenset(listed.split(",")) if listed else frozenset(),
        )


class _CSIDriverSpec(Wire, frozen=True):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class _WireCSIDriver(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _CSIDriverSpec = _CSIDriverSpec()


class CSIDriver(msgspec.Struct, frozen=True, kw_only=True):
    """A CSI driver: whether it tells how much storage is left, and nodes have to have it."""

    wire: ClassVar = _WireCSIDriver

    name: str
    storage_capacity: bool = False
    #: Whether pods with its volumes stay off nodes that do not have it.
    is_required: bool = False

    @classmethod
    def of(cls, wire: _WireCSIDriver) -> CSIDriver:
        return cls(
            name=wire.metadata.name,
            storage_capacity=bool(wire.spec.storage_capacity),
            is_required=bool(wire.spec.prevent_pod_scheduling_if_missing),
        )


class _WireCapacity(Wire, frozen=True):
    metadata: ObjectMeta
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class CSIStorageCapacity(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """How much storage of a class the nodes of a topology can reach; a term of None is none."""

    wire: ClassVar = _WireCapacity

    namespace: str
    name: str
    class_name: str = ""
    node_term: NodeTerm | None = None
    capacity_bytes: int | None = None
    largest_bytes: int | None = None

    @classmethod
    def of(cls, wire: _WireCapacity) -> CSIStorageCapacity:
        selector = compile_selector(wire.node_topology)
        return cls(
            namespace=wire.metadata.namespace or "default",
            name=wire.metadata.name,
            class_name=wire.storage_class_name,
            node_term=None if selector is None else _node_term(selector),
            capacity_bytes=None if wire.capacity is None else units(wire.capacity),
            largest_bytes=(
                None if wire.maximum_volume_size is None else units(wire.maximum_volume_size)
            ),
        )

    @lazy_property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def limit_bytes(self) -> int | None:
        """How large a new volume can be, as far as is known."""
        return self.capacity_bytes if self.largest_bytes is None else self.largest_bytes


class _AttachmentSource(Wire, frozen=True):
    persistent_volume_name: str | None = None


class _AttachmentSpec(Wire, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: _AttachmentSource = _AttachmentSource()


class _WireAttachment(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _AttachmentSpec = _AttachmentSpec()


class VolumeAttachment(msgspec.Struct, frozen=True, kw_only=True):
    """A volume that a driver attaches to a node."""

    wire: ClassVar = _WireAttachment

    name: str
    attacher: str = ""
    node_name: str = ""
    volume_name: str = ""

    @classmethod
    def of(cls, wire: _WireAttachment) -> VolumeAttachment:
        return cls(
            name=wire.metadata.name,
            attacher=wire.spec.attacher,
            node_name=wire.spec.node_name,
            volume_name=wire.spec.source.persistent_volume_name or "",
        )


def _node_term(selector: Selector) -> NodeTerm:
    return NodeTerm(
        tuple(
            NodeRequirement(each.key, each.operator, each.values) for each in selector.requirements
        )
    )
