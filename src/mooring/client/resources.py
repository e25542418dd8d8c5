"""Which path of the API serves which kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object and where the API keeps it. The core group is the empty one."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """As objects of this kind write it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """Where an object is, or all of them; without a namespace, those of every namespace."""
        parts = ["/apis" if self.group else "/api", self.api_version]
        if namespace is not None and self.namespaced:
            parts += "namespaces", _segment(namespace)
        parts.append(self.plural)
        if name is not None:
            parts.append(_segment(name))
        if subresource is not None:
            parts.append(subresource)
        return "/".join(parts)


def _segment(name: str) -> str:
    # A name from the cluster must not lead elsewhere: what is special in a path is escaped, and
    # Kubernetes forbids the two names that this would leave.
    if name in (".", "..", ""):
        raise ValueError(f"{name!r} is not a name")
    return quote(name, safe=":")


_TABLE = (
    Resource("", "v1", "pods", "Pod"),
    Resource("", "v1", "nodes", "Node", namespaced=False),
    Resource("", "v1", "namespaces", "Namespace", namespaced=False),
    Resource("", "v1", "services", "Service"),
    Resource("", "v1", "replicationcontrollers", "ReplicationController"),
    Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False),
    Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    Resource("", "v1", "bindings", "Binding"),
    Resource("apps", "v1", "replicasets", "ReplicaSet"),
    Resource("apps", "v1", "statefulsets", "StatefulSet"),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False),
    Resource("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False),
    Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", namespaced=False),
    Resource("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity"),
    Resource("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", namespaced=False),
    Resource("events.k8s.io", "v1", "events", "Event"),
    Resource("coordination.k8s.io", "v1", "leases", "Lease"),
)

#: The kinds that are read or written here. Others are made from group, version, plural and kind.
RESOURCES: Mapping[str, Resource] = {resource.kind: resource for resource in _TABLE}
