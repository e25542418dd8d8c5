"""What the API server fills in of a pod, as far as scheduling reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Raw = Mapping[str, Any]

_CONTAINERS = ("containers", "initContainers")
_POD_LEVEL, _HUGEPAGES = ("cpu", "memory"), "hugepages-"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def fill_spec(spec: Raw, labels: Raw) -> Raw:
    """Returns the spec of a pod with these labels as the API server keeps it; the given one stays.

    Whatever has a wrong type is left alone: the decoder refuses it.
    """
    for name in _CONTAINERS:
        spec = with_each(spec, name, lambda each: with_part(each, "resources", _requests))
    spec = _pod_requests(spec)
    if spec.get("hostNetwork") is True:
        for name in _CONTAINERS:
            spec = with_each(spec, name, lambda each: with_each(each, "ports", _host_port))
    return with_part(spec, "affinity", lambda affinity: _affinity(affinity, labels))


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
        for resource in mapping(mapping(mapping(container).get("resources")).get("requests"))
    }

    def fill(resources: Raw) -> Raw:
        requests = resources.get("requests")
        limits = {
            resource: limit
            for resource, limit in mapping(resources.get("limits")).items()
            if resource not in asked and (resource in _POD_LEVEL or resource.startswith(_HUGEPAGES))
        }
        if not limits or not isinstance(requests, Mapping | None):
            return resources
        return {**resources, "requests": {**limits, **(requests or {})}}

    return with_part(spec, "resources", fill)


def _host_port(port: Raw) -> Raw:
    return port if port.get("hostPort") else {**port, "hostPort": port.get("containerPort", 0)}


def _affinity(affinity: Raw, labels: Raw) -> Raw:
    def merge(term: Raw) -> Raw:
        return _merge_labels(term, labels)

    for name in ("podAffinity", "podAntiAffinity"):
        affinity = with_part(affinity, name, lambda rule: with_each(rule, _REQUIRED, merge))
        affinity = with_part(
            affinity,
            name,
            lambda rule: with_each(
                rule, _PREFERRED, lambda weighted: with_part(weighted, "podAffinityTerm", merge)
            ),
        )
    return affinity


def _merge_labels(term: Raw, labels: Raw) -> Raw:
    """Returns the term with the pod's own labels, where it refers to them, in its selector."""
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


def with_part(
    raw: Raw, field: str, change: Callable[[Raw], Raw], *, even_empty: bool = False
) -> Raw:
    """Returns the mapping with a mapping in it changed."""
    value = raw.get(field)
    if value is None and even_empty:
        value = {}
    return {**raw, field: change(value)} if isinstance(value, Mapping) else raw


def with_each(raw: Raw, field: str, change: Callable[[Raw], Raw]) -> Raw:
    """Returns the mapping with every mapping in a list of it changed."""
    listed = raw.get(field)
    if not isinstance(listed, list) or not listed:
        return raw
    changed = [change(each) if isinstance(each, Mapping) else each for each in listed]
    return {**raw, field: changed}


def mapping(value: Any) -> Raw:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
