"""What the API server fills in: manifests written by hand leave it out, its own output has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mooring.objects.meta import ObjectMeta, Wire

from .storage_defaults import filled_claim, filled_class, filled_volume

Raw = Mapping[str, Any]


class PriorityClass(Wire, frozen=True):
    """A name for a priority."""

    metadata: ObjectMeta
    value: int
    global_default: bool = False
    preemption_policy: str | None = None


class UnknownPriorityClass(LookupError):
    """A pod names a priority class that nobody has defined."""


_SYSTEM = (
    PriorityClass(metadata=ObjectMeta(name="system-cluster-critical"), value=2_000_000_000),
    PriorityClass(metadata=ObjectMeta(name="system-node-critical"), value=2_000_001_000),
)

# Where users choose the keys; a null there is a mistake, not a field that was left out.
_FREE_KEYS = frozenset(("annotations", "labels", "matchLabels", "nodeSelector"))

_CONTAINERS = ("containers", "initContainers")
_POD_LEVEL, _HUGEPAGES = ("cpu", "memory"), "hugepages-"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class Defaults:
    """Fills in objects. Whatever has a wrong type is left alone: decoding will refuse it."""

    classes: Mapping[str, PriorityClass]
    #: The class of claims that name none.
    storage_class: str = ""

    @classmethod
    def given(cls, classes: Iterable[PriorityClass], storage_class: str = "") -> Defaults:
        return cls({each.metadata.name: each for each in (*_SYSTEM, *classes)}, storage_class)

    def fill(self, kind: str, raw: Raw) -> Raw:
        """The object as the API server would keep it; the given one stays as it is."""
        match kind:
            case "Pod":
                return self._pod(raw)
            case "Node":
                return _with(raw, "status", _allocatable)
            case "PersistentVolume":
                return filled_volume(raw)
            case "PersistentVolumeClaim":
                return filled_claim(raw, self.storage_class)
            case "StorageClass":
                return filled_class(raw)
            case _:
                return raw

    def _pod(self, raw: Raw) -> Raw:
        labels = _mapping(_mapping(raw.get("metadata")).get("labels"))
        return _with(raw, "spec", lambda spec: self._spec(spec, labels), even_empty=True)

    def _spec(self, spec: Raw, labels: Raw) -> Raw:
        for name in _CONTAINERS:
            spec = _with_each(spec, name, lambda each: _with(each, "resources", _requests))
        spec = _pod_requests(spec)
        if spec.get("hostNetwork") is True:
            for name in _CONTAINERS:
                spec = _with_each(spec, name, lambda each: _with_each(each, "ports", _host_port))
        spec = _with(spec, "affinity", lambda affinity: _affinity(affinity, labels))
        return self._prioritized(spec)

    def _prioritized(self, spec: Raw) -> Raw:
        name = spec.get("priorityClassName")
        if spec.get("priority") is not None or not isinstance(name, str | None):
            return spec
        chosen = self.classes.get(name) if name else self._global_default()
        if chosen is None:
            if name:
                raise UnknownPriorityClass(name)
            return spec
        policy = spec.get("preemptionPolicy") or chosen.preemption_policy
        return {
            **spec,
            "priorityClassName": chosen.metadata.name,
            "priority": chosen.value,
            **({"preemptionPolicy": policy} if policy else {}),
        }

    def _global_default(self) -> PriorityClass | None:
        marked = [each for each in self.classes.values() if each.global_default]
        return min(marked, key=lambda each: (each.value, each.metadata.name), default=None)


def without_nulls(raw: Any) -> Any:
    """The object without the fields that are null, which is to leave them out."""
    if isinstance(raw, list):
        return [without_nulls(each) for each in raw]
    if not isinstance(raw, Mapping):
        return raw
    return {
        key: value if key in _FREE_KEYS else without_nulls(value)
        for key, value in raw.items()
        if value is not None
    }


def _allocatable(status: Raw) -> Raw:
    if status.get("allocatable") is not None or status.get("capacity") is None:
        return status
    return {**status, "allocatable": status["capacity"]}


def _requests(resources: Raw) -> Raw:
    limits, requests = resources.get("limits"), resources.get("requests")
    if not isinstance(limits, Mapping) or not isinstance(requests, Mapping | None):
        return resources
    return {**resources, "requests": {**limits, **(requests or {})}}


def _pod_requests(spec: Raw) -> Raw:
    """Pod-level requests follow pod-level limits, unless a container asks for the resource."""
    asked = {
        resource
        for name in _CONTAINERS
        for container in _list(spec.get(name))
        for resource in _mapping(_mapping(_mapping(container).get("resources")).get("requests"))
    }

    def fill(resources: Raw) -> Raw:
        requests = resources.get("requests")
        limits = {
            resource: limit
            for resource, limit in _mapping(resources.get("limits")).items()
            if resource not in asked and (resource in _POD_LEVEL or resource.startswith(_HUGEPAGES))
        }
        if not limits or not isinstance(requests, Mapping | None):
            return resources
        return {**resources, "requests": {**limits, **(requests or {})}}

    return _with(spec, "resources", fill)


def _host_port(port: Raw) -> Raw:
    return port if port.get("hostPort") else {**port, "hostPort": port.get("containerPort", 0)}


def _affinity(affinity: Raw, labels: Raw) -> Raw:
    def merged(term: Raw) -> Raw:
        return _merged(term, labels)

    for name in ("podAffinity", "podAntiAffinity"):
        affinity = _with(affinity, name, lambda rule: _with_each(rule, _REQUIRED, merged))
        affinity = _with(
            affinity,
            name,
            lambda rule: _with_each(
                rule, _PREFERRED, lambda weighted: _with(weighted, "podAffinityTerm", merged)
            ),
        )
    return affinity


def _merged(term: Raw, labels: Raw) -> Raw:
    """The term with the pod's own labels, where it refers to them, as part of its selector."""
    selector = term.get("labelSelector")
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in _list(term.get(field))
        if isinstance(key, str) and key in labels
    ]
    if not added or not isinstance(selector, Mapping):
        return term
    expressions = selector.get("matchExpressions")
    if not isinstance(expressions, list | None):
        return term
    return {
        **term,
        "labelSelector": {**selector, "matchExpressions": [*(expressions or ()), *added]},
    }


def _with(raw: Raw, field: str, change: Callable[[Raw], Raw], *, even_empty: bool = False) -> Raw:
    """The mapping with a mapping in it changed."""
    value = raw.get(field)
    if value is None and even_empty:
        value = {}
    return {**raw, field: change(value)} if isinstance(value, Mapping) else raw


def _with_each(raw: Raw, field: str, change: Callable[[Raw], Raw]) -> Raw:
    """The mapping with every mapping in a list of it changed."""
    listed = raw.get(field)
    if not isinstance(listed, list) or not listed:
        return raw
    changed = [change(each) if isinstance(each, Mapping) else each for each in listed]
    return {**raw, field: changed}


def _mapping(value: Any) -> Raw:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
