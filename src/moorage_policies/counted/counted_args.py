"""The arguments of CountedResources and CountedPools: what is counted, and where it is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from moorage.plugin import CustomKind, Duration, Wire, child, item

Scoring = Literal["LeastAllocated", "MostAllocated", "None"]

#: The path of an object's own name.
OWN_NAME = "metadata.name"

_Problems = Iterator[tuple[str, str]]


class ObjectCapacity(Wire, frozen=True):
    """Custom objects that contain amounts, and the paths of their fields."""

    api_version: str = ""
    kind: str = ""
    plural: str = ""
    namespaced: bool = False
    #: Where an object names its node.
    node: str = "spec.nodeName"
    #: Where it tells how much there is.
    amount: str = ""
    #: What was written longer ago no longer counts; 0 is never.
    max_age: Duration = Duration(0)
    #: Of a pool, the only object that counts: its namespace and name.
    namespace: str = ""
    name: str = ""

    def problems(self) -> _Problems:
        for field in ("apiVersion", "kind", "plural", "node", "amount"):
            name = {"apiVersion": "api_version"}.get(field, field)
            if not getattr(self, name):
                yield field, "is required"
        if self.api_version.count("/") != 1:
            yield "apiVersion", "must be a group and a version, such as example.com/v1"
        for field in ("node", "amount"):
            if any(not step for step in getattr(self, field).split(".")):
                yield field, "must be names with dots between them, such as spec.nodeName"
        if self.max_age < 0:
            yield "maxAge", "must not be negative"

    @property
    def custom_kind(self) -> CustomKind:
        group, _, version = self.api_version.partition("/")
        only = (self.namespace, self.name) if self.name else None
        return CustomKind(group, version, self.kind, self.plural, self.namespaced, only)

    @property
    def max_seconds(self) -> float | None:
        return self.max_age.seconds or None


class ConfigMapCapacity(Wire, frozen=True):
    """One ConfigMap that contains amounts: by node name, or of a pool under one key."""

    namespace: str = ""
    name: str = ""
    key: str = ""

    def problems(self) -> _Problems:
        for field in ("namespace", "name"):
            if not getattr(self, field):
                yield field, "is required"

    @property
    def custom_kind(self) -> CustomKind:
        only = self.namespace, self.name
        return CustomKind(
            "",
            "v1",
            "ConfigMap",
            "configmaps",
            namespaced=True,
            only=only,
            manifest="deploy/counted-resources",
        )


class CountedCapacity(Wire, frozen=True):
    """Where the capacity is written; exactly one of these."""

    node_label: str = ""
    node_annotation: str = ""
    config_map: ConfigMapCapacity | None = None
    object: ObjectCapacity | None = None

    def problems(self) -> _Problems:
        given = (self.node_label, self.node_annotation, self.config_map, self.object)
        if sum(map(bool, given)) != 1:
            yield "", "must have one of nodeLabel, nodeAnnotation, configMap and object"
        for field, source in (("configMap", self.config_map), ("object", self.object)):
            for where, message in source.problems() if source else ():
                yield child(field, where), message


class CountedResource(Wire, frozen=True):
    """Something that nodes have and pods use: where both are written, and how to score it."""

    name: str = ""
    capacity: CountedCapacity = CountedCapacity()
    #: Where a pod says how much it uses: an annotation, or a resource that its containers request.
    pod_annotation: str = ""
    pod_resource: str = ""
    filter: bool = True
    scoring: Scoring = "LeastAllocated"

    def problems(self) -> _Problems:
        yield from use_problems(self.name, self.pod_annotation, self.pod_resource)
        for where, message in self.capacity.problems():
            yield child("capacity", where), message
        if self.capacity.config_map is not None and self.capacity.config_map.key:
            yield "capacity.configMap.key", "the keys are the names of nodes"
        if self.capacity.object is not None and self.capacity.object.name:
            yield "capacity.object.name", "the objects of all nodes are read"
        if not self.filter and self.scoring == "None":
            yield "filter", "one that neither filters nor scores does nothing"


class CountedPool(Wire, frozen=True):
    """Something that the cluster has as a whole, such as floating licences."""

    name: str = ""
    capacity: CountedCapacity = CountedCapacity()
    pod_annotation: str = ""
    pod_resource: str = ""

    def problems(self) -> _Problems:
        yield from use_problems(self.name, self.pod_annotation, self.pod_resource)
        for where, message in self.capacity.problems():
            yield child("capacity", where), message
        if self.capacity.node_label or self.capacity.node_annotation:
            yield "capacity", "a pool is described by a configMap or an object, not by nodes"
        if self.capacity.config_map is not None and not self.capacity.config_map.key:
            yield "capacity.configMap.key", "is required"
        source = self.capacity.object
        if source is not None and not source.name:
            yield "capacity.object.name", "is required"
        if source is not None and source.namespaced and not source.namespace:
            yield "capacity.object.namespace", "is required"


class CountedResourcesArgs(Wire, frozen=True):
    """What nodes have."""

    resources: tuple[CountedResource, ...] = ()

    def problems(self) -> _Problems:
        return list_problems("resources", self.resources)


class CountedPoolsArgs(Wire, frozen=True):
    """What the cluster has as a whole."""

    pools: tuple[CountedPool, ...] = ()

    def problems(self) -> _Problems:
        return list_problems("pools", self.pools)


def use_problems(name: str, annotation: str, resource: str) -> _Problems:
    """Returns what is wrong with the name of a resource, or with how pods ask for it."""
    if not name:
        yield "name", "is required"
    if bool(annotation) == bool(resource):
        yield "podAnnotation", "one of podAnnotation and podResource is required"


def list_problems(field: str, listed: tuple[CountedResource | CountedPool, ...]) -> _Problems:
    """Returns what is wrong with the entries of a list; two must not have one name."""
    seen: set[str] = set()
    for at, each in enumerate(listed):
        for where, message in each.problems():
            yield child(item(field, at), where), message
        if each.name in seen:
            yield child(item(field, at), "name"), f"{each.name} is counted already"
        seen.add(each.name)
