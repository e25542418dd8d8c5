"""Pods: what scheduling reads of them. Pods of one template share one `PodSpec` value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar
from weakref import WeakValueDictionary

import msgspec

from .held import Held, count_held
from .meta import ObjectMeta, OwnerReference, Wire, seconds
from .placement_rules import Terms
from .pod_spec import PodSpec, encode_spec
from .pod_status import FINISHED, NO_STATUS, PodStatus
from .resources import Amounts
from .volume import ClaimUse

#: The annotations that a binding adds, if no plugin stamps the pod.
NO_STAMP: Mapping[str, str] = {}


class SchedulingGroup(Wire, frozen=True):
    """The group of pods that a pod is placed with."""

    pod_group_name: str = ""


class _WireSpec(PodSpec, frozen=True):
    node_name: str = ""
    scheduling_group: SchedulingGroup | None = None


class _WirePod(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _WireSpec = _WireSpec()
    status: PodStatus = NO_STATUS


class Pod(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pod. `node_name` is where it runs or was asked to run; `spec` is its template.

    There are very many of them, and nothing that a pod holds leads back to it: so the garbage
    collector need not look at them.
    """

    wire: ClassVar = _WirePod

    namespace: str
    name: str
    uid: str
    spec: PodSpec
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner: OwnerReference | None = None
    node_name: str = ""
    #: The group of pods that it is placed with, in its namespace; empty if there is none.
    group_name: str = ""
    status: PodStatus = NO_STATUS
    created: float | None = None
    terminating: bool = False
    generation: int = 0
    resource_version: str = ""
    #: What is granted to it counts by sums: see `objects.held`. The engine says so.
    counts_by_sums: bool = False

    @classmethod
    def of(cls, wire: _WirePod) -> Pod:
        meta = wire.metadata
        namespace = meta.namespace or "default"
        return cls(
            namespace=namespace,
            name=meta.name,
            uid=meta.uid or f"{namespace}/{meta.name}",
            spec=_share(wire.spec),
            labels=meta.labels or {},
            annotations=meta.annotations or {},
            owner=meta.controller,
            node_name=wire.spec.node_name,
            group_name=wire.spec.scheduling_group.pod_group_name
            if wire.spec.scheduling_group is not None
            else "",
            status=wire.status,
            created=seconds(meta.creation_timestamp),
            terminating=meta.deletion_timestamp is not None,
            generation=meta.generation,
            resource_version=meta.resource_version,
        )

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def nominated_node_name(self) -> str:
        return self.status.nominated_node_name

    @property
    def has_place(self) -> bool:
        """Whether it takes room on a node, or room is kept for it there."""
        return bool(self.node_name or self.nominated_node_name)

    @property
    def started(self) -> float | None:
        """When it started to run, in seconds since the epoch."""
        return seconds(self.status.start_time)

    @property
    def requests(self) -> Amounts:
        return self.spec.requests

    @property
    def terms(self) -> Terms:
        """The inter-pod affinity terms of this pod."""
        return self.spec.terms_in(self.namespace)

    @property
    def claims(self) -> tuple[ClaimUse, ...]:
        """The claims that this pod uses, in the order of its volumes."""
        named = self.spec.named_claims
        if named is not None:
            return named
        return tuple([volume.claim_of(self.name) for volume in self.spec.claiming])

    @property
    def is_finished(self) -> bool:
        """Whether it has run to its end, and so takes no room any more."""
        return self.status.phase in FINISHED

    @property
    def held(self) -> Held:
        """What it counts for on a node: granted resources too, where they are reported."""
        status = self.status
        if not status.sizes:
            return self.spec.held
        return count_held(self.spec, status, by_sums=self.counts_by_sums)

    def on(self, node_name: str, stamp: Mapping[str, str] = NO_STAMP) -> Pod:
        """Returns the same pod, bound to that node by a scheduler that adds annotations."""
        if stamp:
            annotations = {**self.annotations, **stamp}
            return msgspec.structs.replace(self, node_name=node_name, annotations=annotations)
        return msgspec.structs.replace(self, node_name=node_name)


_SPECS: WeakValueDictionary[bytes, PodSpec] = WeakValueDictionary()
_SPEC_FIELDS = PodSpec.__struct_fields__


def _share(wire: _WireSpec) -> PodSpec:
    """Returns one object per distinct template, so that derived values are computed once."""
    volumes = tuple(volume for volume in wire.volumes or () if volume.decides)
    # Pods of different groups are alike in all else.
    key = encode_spec(
        msgspec.structs.replace(wire, node_name="", scheduling_group=None, volumes=volumes or None)
    )
    spec = _SPECS.get(key)
    if spec is None:
        fields = {name: getattr(wire, name) for name in _SPEC_FIELDS}
        spec = _SPECS[key] = PodSpec(**{**fields, "volumes": volumes or None})
        if volumes:
            spec.__dict__["_template"] = _share(msgspec.structs.replace(wire, volumes=None))
    return spec
