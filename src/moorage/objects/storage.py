"""Volumes, claims and their classes: what scheduling reads of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import msgspec

from . import volume
from .csi import CSIDriver, CSINode, CSIStorageCapacity, VolumeAttachment
from .in_tree import Attachable, Sources, Terms, migrated_terms
from .lazy_property import lazy_property
from .meta import ObjectMeta, OwnerReference, Wire
from .node_selector import (
    Malformed,
    NodeRequirement,
    NodeSelector,
    NodeTerm,
    compile_term,
)
from .quantity import Quantity
from .selector import LabelSelector, Selector, compile_selector

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
NO_PROVISIONER = "kubernetes.io/no-provisioner"

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"

# Classes were annotations once, and such an annotation still has precedence.
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_STORAGE = "storage"
_FILESYSTEM = "Filesystem"


class ClaimRef(Wire, frozen=True):
    """The claim that a volume is bound to or kept for; without a uid it is any of that name."""

    namespace: str = ""
    name: str = ""
    uid: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class _CSIVolumeSource(Wire, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class _VolumeNodeAffinity(Wire, frozen=True):
    required: NodeSelector | None = None


class _VolumeSpec(Wire, frozen=True):
    capacity: dict[str, Quantity] | None = None
    access_modes: tuple[str, ...] | None = None
    claim_ref: ClaimRef | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: _VolumeNodeAffinity | None = None
    csi: _CSIVolumeSource | None = None
    aws_elastic_block_store: volume.EBSSource | None = None
    gce_persistent_disk: volume.GCEDiskSource | None = None
    azure_disk: volume.AzureDiskSource | None = None
    cinder: volume.CinderSource | None = None
    portworx_volume: volume.PortworxSource | None = None


class _PhaseStatus(Wire, frozen=True):
    phase: str = ""


class _WireVolume(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _VolumeSpec = _VolumeSpec()
    status: _PhaseStatus = _PhaseStatus()


class PersistentVolume(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A volume. Node terms of None are met everywhere; `capacity` is exact, in nano-units."""

    wire: ClassVar = _WireVolume

    name: str
    labels: Mapping[str, str] = {}
    capacity: int = 0
    access_modes: frozenset[str] = frozenset()
    claim_ref: ClaimRef | None = None
    class_name: str = ""
    volume_mode: str = _FILESYSTEM
    attributes_class: str = ""
    node_terms: Terms | None = None
    source: Attachable | None = None
    phase: str = ""
    terminating: bool = False
    resource_version: str = ""

    @classmethod
    def of(cls, wire: _WireVolume) -> PersistentVolume:
        meta, spec = wire.metadata, wire.spec
        labels = meta.labels or {}
        rule = spec.node_affinity.required if spec.node_affinity else None
        return cls(
            name=meta.name,
            labels=labels,
            capacity=(spec.capacity or {}).get(_STORAGE, 0),
            access_modes=frozenset(spec.access_modes or ()),
            claim_ref=spec.claim_ref,
            class_name=(meta.annotations or {}).get(_BETA_CLASS, spec.storage_class_name),
            volume_mode=spec.volume_mode or _FILESYSTEM,
            attributes_class=spec.volume_attributes_class_name or "",
            node_terms=None if rule is None else _volume_terms(rule),
            source=_source(spec, labels),
            phase=wire.status.phase,
            terminating=meta.deletion_timestamp is not None,
            resource_version=meta.resource_version,
        )

    @lazy_property
    def migrated_terms(self) -> Terms | None:
        """The node terms on nodes that use the CSI driver in place of the in-tree plugin."""
        plugin = self.source.plugin if self.source else ""
        return migrated_terms(plugin, self.node_terms, self.labels) if plugin else self.node_terms

    def is_for(self, claim: PersistentVolumeClaim) -> bool:
        """Whether it is bound to that claim or kept for it."""
        ref = self.claim_ref
        return (
            ref is not None
            and (ref.namespace, ref.name) == (claim.namespace, claim.name)
            and ref.uid in ("", claim.uid)
        )


class _Resources(Wire, frozen=True):
    requests: dict[str, Quantity] | None = None


class _ClaimSpec(Wire, frozen=True):
    access_modes: tuple[str, ...] | None = None
    resources: _Resources = _Resources()
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str = ""


class _WireClaim(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _ClaimSpec = _ClaimSpec()
    status: _PhaseStatus = _PhaseStatus()


class PersistentVolumeClaim(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A claim. `request` is exact, in nano-units; None when no size is asked for."""

    wire: ClassVar = _WireClaim

    namespace: str
    name: str
    uid: str = ""
    owner: OwnerReference | None = None
    #: The node for which a volume is to be provisioned.
    selected_node: str | None = None
    bind_completed: bool = False
    access_modes: frozenset[str] = frozenset()
    request: int | None = None
    selector: Selector | None = None
    class_name: str = ""
    attributes_class: str = ""
    volume_mode: str = _FILESYSTEM
    volume_name: str = ""
    phase: str = ""
    terminating: bool = False
    resource_version: str = ""

    @classmethod
    def of(cls, wire: _WireClaim) -> PersistentVolumeClaim:
        meta, spec = wire.metadata, wire.spec
        notes = meta.annotations or {}
        return cls(
            namespace=meta.namespace or "default",
            name=meta.name,
            uid=meta.uid,
            owner=meta.controller,
            selected_node=notes.get(SELECTED_NODE),
            bind_completed=BIND_COMPLETED in notes,
            access_modes=frozenset(spec.access_modes or ()),
            request=(spec.resources.requests or {}).get(_STORAGE),
            selector=compile_selector(spec.selector),
            class_name=notes.get(_BETA_CLASS, spec.storage_class_name or ""),
            attributes_class=spec.volume_attributes_class_name or "",
            volume_mode=spec.volume_mode or _FILESYSTEM,
            volume_name=spec.volume_name,
            phase=wire.status.phase,
            terminating=meta.deletion_timestamp is not None,
            resource_version=meta.resource_version,
        )

    @lazy_property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def is_bound(self) -> bool:
        """Whether the binding is complete, on both sides."""
        return bool(self.volume_name) and self.bind_completed

    @property
    def ref(self) -> ClaimRef:
        return ClaimRef(namespace=self.namespace, name=self.name, uid=self.uid)

    def is_made_for(self, uid: str) -> bool:
        """Whether it was made for the pod of that uid and is deleted with it."""
        return self.owner is not None and self.owner.uid == uid


class _TopologyExpression(Wire, frozen=True):
    key: str = ""
    values: tuple[str, ...] | None = None


class _TopologyTerm(Wire, frozen=True):
    match_label_expressions: tuple[_TopologyExpression, ...] | None = None


class _WireClass(Wire, frozen=True):
    metadata: ObjectMeta
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[_TopologyTerm, ...] | None = None


class StorageClass(msgspec.Struct, frozen=True, kw_only=True):
    """A class of volumes. Without allowed topologies it is available everywhere."""

    wire: ClassVar = _WireClass

    name: str
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: Terms = ()

    @classmethod
    def of(cls, wire: _WireClass) -> StorageClass:
        return cls(
            name=wire.metadata.name,
            provisioner=wire.provisioner,
            volume_binding_mode=wire.volume_binding_mode,
            allowed_topologies=tuple(_topology(term) for term in wire.allowed_topologies or ()),
        )

    @property
    def waits(self) -> bool:
        """Whether volumes are bound only when a pod that needs them is placed."""
        return self.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    @property
    def provisions(self) -> bool:
        return self.provisioner not in ("", NO_PROVISIONER)


StorageObject = (
    PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
)


def _volume_terms(rule: NodeSelector) -> Terms:
    return tuple(_drop_names(compile_term(term)) for term in rule.node_selector_terms)


def _drop_names(term: NodeTerm | Malformed | None) -> NodeTerm | Malformed | None:
    # Volumes are matched with the labels of a node alone: what a term says of names is ignored.
    return NodeTerm(term.requirements) if isinstance(term, NodeTerm) else term


def _source(spec: _VolumeSpec, labels: Mapping[str, str]) -> Attachable | None:
    if spec.csi is not None:
        return Attachable(spec.csi.driver, spec.csi.volume_handle)
    sources = Sources(
        spec.aws_elastic_block_store,
        spec.gce_persistent_disk,
        spec.azure_disk,
        spec.cinder,
        spec.portworx_volume,
    )
    return sources.attachable(labels)


def _topology(written: _TopologyTerm) -> NodeTerm | None:
    expressions = written.match_label_expressions or ()
    if not expressions or not all(each.values for each in expressions):
        return None
    return NodeTerm(tuple(_requirement(each.key, each.values or ()) for each in expressions))


def _requirement(key: str, values: Iterable[str]) -> NodeRequirement:
    return NodeRequirement(key, "In", tuple(sorted(set(values))))
