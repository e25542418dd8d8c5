"""Amounts of resources: how they are told, and templates that ask for less or more."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mooring.objects.pod import Container, PodSpec, Resources
from mooring.objects.quantity import NANOS_PER_MILLI, NANOS_PER_UNIT, Quantity
from mooring.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY

replace = msgspec.structs.replace

_BINARY = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


def shown(resource: str, amount: int) -> str:
    """An amount in native units, as Kubernetes would write it: 1500m, 2, 512Mi."""
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        for suffix, size in _BINARY:
            if amount and amount % size == 0:
                return f"{amount // size}{suffix}"
    return str(amount)


def lowered(spec: PodSpec, resource: str, by: int) -> PodSpec:
    """A template like this that asks for less of a resource, in native units.

    The whole amount moves to the first container, whoever asked for it.
    """
    left = dict(spec.requests).get(resource, 0) - by
    nanos = Quantity(max(left, 0) * (NANOS_PER_MILLI if resource == CPU else NANOS_PER_UNIT))
    first, *others = (_without(each, resource) for each in spec.containers)
    init = spec.init_containers
    return replace(
        spec,
        containers=(_asking(first, resource, nanos), *others),
        init_containers=init and tuple(_without(each, resource) for each in init),
        resources=spec.resources and _less(spec.resources, resource),
        overhead=_dropped(spec.overhead, resource),
    )


def with_limit(spec: PodSpec, resource: str) -> PodSpec:
    """A template like this whose first container asks for one piece of a resource."""
    first, *others = spec.containers
    one = Quantity(NANOS_PER_UNIT)
    asking = _asking(first, resource, one)
    resources = asking.resources or Resources()
    limits = {**(resources.limits or {}), resource: one}
    limited = replace(asking, resources=replace(resources, limits=limits))
    return replace(spec, containers=(limited, *others))


def _asking(container: Container, resource: str, nanos: Quantity) -> Container:
    resources = container.resources or Resources()
    requests = {**(resources.requests or {}), resource: nanos}
    return replace(container, resources=replace(resources, requests=requests))


def _without(container: Container, resource: str) -> Container:
    if container.resources is None:
        return container
    return replace(container, resources=_less(container.resources, resource))


def _less(resources: Resources, resource: str) -> Resources:
    return replace(resources, requests=_dropped(resources.requests, resource))


def _dropped(asked: Mapping[str, Quantity] | None, resource: str) -> dict[str, Quantity] | None:
    return {name: amount for name, amount in (asked or {}).items() if name != resource} or None
