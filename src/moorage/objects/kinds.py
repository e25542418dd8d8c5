"""The table of kinds: what each is called, where the API keeps it, and what reads it.

A new kind is one entry here and its struct, which has `wire`, the form in which the API writes it,
and `of`, which makes the object from that. The client, manifests, the benchmark, recordings and the
events of the queue all read this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from . import workload
from .csi import CSIDriver, CSINode, CSIStorageCapacity, VolumeAttachment
from .custom import CustomObject
from .device import DeviceClass, DeviceTaintRule, ResourceSlice
from .meta import ObjectKind
from .node import Node
from .pod import Pod
from .pod_group import COSCHEDULING, V1ALPHA2, PodGroup
from .resource_claim import DeviceObject, ResourceClaim
from .storage import PersistentVolume, PersistentVolumeClaim, StorageClass, StorageObject

Object = (
    Pod
    | Node
    | workload.Namespace
    | workload.Service
    | workload.ReplicationController
    | workload.ReplicaSet
    | workload.StatefulSet
    | workload.PodDisruptionBudget
    | PodGroup
    | StorageObject
    | DeviceObject
    | CustomObject
)


class KnownKind(ObjectKind, frozen=True, kw_only=True):
    """One of Kubernetes' own kinds."""

    #: The class of its objects; None if scheduling reads none of them.
    item: type[Any] | None = None
    #: Whether a pod could be placed or evicted where it must not be if its objects were not known.
    #: Others count as empty while an API server does not have them or refuses them: then pods that
    #: need them wait, or are spread less well.
    essential: bool = False
    #: API groups, and the feature gate that must be on for its objects of each to be read.
    gates: tuple[tuple[str, str], ...] = ()
    #: The API versions besides its own in which API servers may have it.
    other_versions: tuple[str, ...] = ()

    def read_forms(self, gates: Mapping[str, bool]) -> list[KnownKind]:
        """Returns the forms that are read while some feature gates are on."""
        off = {group for group, gate in self.gates if not gates[gate]}
        return [form for form in self.forms if form.group not in off]

    @property
    def forms(self) -> tuple[KnownKind, ...]:
        """The kind in each API version in which API servers may have it."""
        return (self, *map(self._in_version, self.other_versions))

    def _in_version(self, api_version: str) -> KnownKind:
        group, _, version = api_version.rpartition("/")
        return msgspec.structs.replace(self, group=group, version=version)

    @property
    def event_resource(self) -> str:
        """The name under which plugins listen to its events, as kube-scheduler has it."""
        return f"{self.group}/{self.kind}" if self.group else self.kind


def _read(  # one column of the table each
    group: str,
    version: str,
    plural: str,
    item: type[Any],
    *,
    namespaced: bool = True,
    essential: bool = False,
) -> KnownKind:
    """Returns a kind whose objects scheduling reads."""
    kind = item.__name__
    return KnownKind(group, version, kind, plural, namespaced, item=item, essential=essential)


_STORAGE, _DEVICES = "storage.k8s.io", "resource.k8s.io"

_TABLE = (
    _read("", "v1", "pods", Pod, essential=True),
    _read("", "v1", "nodes", Node, namespaced=False, essential=True),
    _read("", "v1", "namespaces", workload.Namespace, namespaced=False, essential=True),
    _read("", "v1", "services", workload.Service),
    _read("", "v1", "replicationcontrollers", workload.ReplicationController),
    _read("", "v1", "persistentvolumes", PersistentVolume, namespaced=False),
    _read("", "v1", "persistentvolumeclaims", PersistentVolumeClaim),
    _read("apps", "v1", "replicasets", workload.ReplicaSet),
    _read("apps", "v1", "statefulsets", workload.StatefulSet),
    _read("policy", "v1", "poddisruptionbudgets", workload.PodDisruptionBudget, essential=True),
    _read(_STORAGE, "v1", "storageclasses", StorageClass, namespaced=False),
    _read(_STORAGE, "v1", "csinodes", CSINode, namespaced=False, essential=True),
    _read(_STORAGE, "v1", "csidrivers", CSIDriver, namespaced=False, essential=True),
    _read(_STORAGE, "v1", "csistoragecapacities", CSIStorageCapacity),
    _read(_STORAGE, "v1", "volumeattachments", VolumeAttachment, namespaced=False, essential=True),
    _read(_DEVICES, "v1", "resourceclaims", ResourceClaim),
    _read(_DEVICES, "v1", "deviceclasses", DeviceClass, namespaced=False),
    _read(_DEVICES, "v1", "resourceslices", ResourceSlice, namespaced=False),
    KnownKind(
        _DEVICES,
        "v1",
        "DeviceTaintRule",
        "devicetaintrules",
        namespaced=False,
        item=DeviceTaintRule,
        gates=((_DEVICES, "DRADeviceTaintRules"),),
        # That of 1.36, where an API server has it.
        other_versions=(f"{_DEVICES}/v1beta2",),
    ),
    KnownKind(
        "scheduling.k8s.io",
        "v1beta1",
        "PodGroup",
        "podgroups",
        item=PodGroup,
        gates=(
            ("scheduling.k8s.io", "GenericWorkload"),
            (COSCHEDULING.partition("/")[0], "Coscheduling"),
        ),
        other_versions=(V1ALPHA2, COSCHEDULING),
    ),
    # What is written, and what manifests and workloads name.
    KnownKind("", "v1", "Binding", "bindings"),
    KnownKind("events.k8s.io", "v1", "Event", "events"),
    KnownKind("coordination.k8s.io", "v1", "Lease", "leases"),
    KnownKind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False),
    KnownKind("apps", "v1", "Deployment", "deployments"),
    KnownKind("apps", "v1", "DaemonSet", "daemonsets"),
    KnownKind("batch", "v1", "Job", "jobs"),
    KnownKind(_DEVICES, "v1", "ResourceClaimTemplate", "resourceclaimtemplates"),
)

#: Kubernetes' own kinds by name.
KINDS: Mapping[str, KnownKind] = {each.kind: each for each in _TABLE}

#: The names of those that scheduling reads; plugins may ask for custom ones.
READ_KINDS = frozenset(each.kind for each in _TABLE if each.item is not None)
