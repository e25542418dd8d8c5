"""Nodes: what scheduling reads of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from .meta import Condition, ObjectMeta, Wire
from .placement_rules import Taint
from .quantity import Quantity, clamp, units
from .resources import PODS, Amounts, amounts

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"


class ContainerImage(Wire, frozen=True):
    """An image that is present on a node, under all of its names."""

    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class _NodeSpec(Wire, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None


class _NodeStatus(Wire, frozen=True):
    allocatable: dict[str, Quantity] | None = None
    conditions: tuple[Condition, ...] | None = None
    images: tuple[ContainerImage, ...] | None = None
    declared_features: tuple[str, ...] | None = None


class _WireNode(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()


class Node(msgspec.Struct, frozen=True, kw_only=True, weakref=True):
    """A node. `allocatable` holds the counted resources and `pods`, in native units."""

    wire: ClassVar = _WireNode

    name: str
    uid: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    allocatable: Amounts = ()
    conditions: tuple[Condition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: frozenset[str] = frozenset()
    resource_version: str = ""

    @classmethod
    def of(cls, wire: _WireNode) -> Node:
        meta, spec, status = wire.metadata, wire.spec, wire.status
        allocatable = status.allocatable or {}
        pods = clamp(units(allocatable.get(PODS, 0)))
        return cls(
            name=meta.name,
            uid=meta.uid,
            labels=meta.labels or {},
            annotations=meta.annotations or {},
            unschedulable=spec.unschedulable,
            taints=spec.taints or (),
            allocatable=tuple(sorted((*amounts(allocatable), (PODS, pods)))),
            conditions=status.conditions or (),
            images=status.images or (),
            declared_features=frozenset(status.declared_features or ()),
            resource_version=meta.resource_version,
        )

    @property
    def resources(self) -> frozenset[str]:
        """The names that `allocatable` lists, though there may be none to allocate."""
        return frozenset(name for name, _ in self.allocatable)

    @property
    def zone(self) -> tuple[str, str]:
        """Region and zone, the older label names first; both empty without such labels."""
        return (
            self.labels.get(BETA_REGION, self.labels.get(REGION, "")),
            self.labels.get(BETA_ZONE, self.labels.get(ZONE, "")),
        )
