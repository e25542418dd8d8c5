"""Resource arithmetic: what a pod asks for.

Amounts are summed exactly, in nano-units, and rounded up once at the end: milli-units for cpu,
whole units (bytes, devices) for everything else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from .quantity import Quantity, clamp, millis, units

if TYPE_CHECKING:
    from .container import Container, Resources
    from .pod_spec import PodSpec

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"

# What a container that requests nothing is taken to use when nodes are scored.
DEFAULT_CPU = Quantity.parse("100m")
DEFAULT_MEMORY = Quantity.parse("200Mi")
DEFAULTS = {CPU: DEFAULT_CPU, MEMORY: DEFAULT_MEMORY}

Nanos = dict[str, int]
#: Resource names and amounts in native units, sorted by name.
Amounts = tuple[tuple[str, int], ...]

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)

_BINARY = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


_DECIMAL = (("T", 10**12), ("G", 10**9), ("M", 10**6))


def format_amount(resource: str, amount: int) -> str:
    """Returns an amount exactly, as Kubernetes would write it: 1500m, 2, 512Mi."""
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if is_size(resource):
        for suffix, size in _BINARY:
            if amount and amount % size == 0:
                return f"{amount // size}{suffix}"
    return str(amount)


def describe_amount(resource: str, amount: int, *, up: bool = False) -> str:
    """Returns an amount for people: 500m, 10.75, 441.2Gi, 7.1G.

    Sizes and large numbers are rounded to a tenth of their unit, or rounded up to it.
    """
    if resource == CPU:
        return f"{amount}m" if 0 < amount < 1000 else f"{amount / 1000:.3f}".rstrip("0").rstrip(".")
    units = _BINARY if is_size(resource) else _DECIMAL
    for suffix, size in units:
        if amount >= size:
            tenths = -(-10 * amount // size) if up else (20 * amount + size) // (2 * size)
            return f"{tenths / 10:.1f}".removesuffix(".0") + suffix
    return str(amount)


def is_size(resource: str) -> bool:
    """Whether a resource is counted in bytes."""
    return resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-")


@lru_cache(maxsize=4_096)
def is_extended(name: str) -> bool:
    """Whether this is a resource outside Kubernetes' own domains, such as a device."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    domain, _, rest = ("requests." + name).partition("/")
    return (
        len(domain) <= 253
        and _SUBDOMAIN.fullmatch(domain) is not None
        and _NAME.fullmatch(rest) is not None
    )


@lru_cache(maxsize=4_096)
def is_counted(name: str) -> bool:
    """Whether the scheduler counts this resource at all."""
    return (
        name in (CPU, MEMORY, EPHEMERAL_STORAGE)
        or name.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in name
        or is_extended(name)
    )


def native(name: str, nanos: int) -> int:
    """Returns an amount in the unit of its column, within the countable range."""
    return clamp(millis(nanos) if name == CPU else units(nanos))


def amounts(nanos: Mapping[str, int]) -> Amounts:
    """Returns the counted resources in native units."""
    return tuple(sorted((name, native(name, n)) for name, n in nanos.items() if is_counted(name)))


def spec_requests(spec: PodSpec, defaults: Mapping[str, int], *, pod_level: bool = True) -> Nanos:
    """Returns the requests of a spec; `defaults` replace a resource that a container omits."""
    total = add_up(spec, read_spec, defaults)
    if pod_level and spec.resources is not None:
        total.update(for_whole_pod(spec.resources.requests or {}))
    add_to(total, spec.overhead or {})
    return total


def spec_limits(spec: PodSpec) -> Nanos:
    """Returns what the pod is limited to: the sums of `spec_requests`, made of limits.

    Overhead counts only where there is a limit.
    """
    total = spec_requests(
        msgspec.structs.replace(
            spec,
            containers=tuple(map(_fill_requests, spec.containers)),
            init_containers=tuple(map(_fill_requests, spec.init_containers or ())),
            resources=spec.resources and _as_requests(spec.resources),
            overhead=None,
        ),
        {},
    )
    overhead = spec.overhead or {}
    return {name: nanos and nanos + overhead.get(name, 0) for name, nanos in total.items()}


def _fill_requests(container: Container) -> Container:
    if container.resources is None:
        return container
    return msgspec.structs.replace(container, resources=_as_requests(container.resources))


def _as_requests(resources: Resources) -> Resources:
    return msgspec.structs.replace(resources, requests=resources.limits)


def scoring_requests(spec: PodSpec) -> Nanos:
    """Returns what an incoming pod counts in scoring; pod-level requests are ignored."""
    return spec_requests(spec, DEFAULTS, pod_level=False)


#: Returns what a container counts for; the flag says that it is an init container.
Count = Callable[["Container", bool], Mapping[str, int]]


def read_spec(container: Container, _is_init: bool) -> Mapping[str, int]:
    return container.requests


def add_up(spec: PodSpec, count: Count, defaults: Mapping[str, int]) -> Nanos:
    """Returns what containers count for together, or an init container before them if more."""
    running: Nanos = {}
    for container in spec.containers:
        add_to(running, _with_defaults(count(container, False), defaults))
    sidecars: Nanos = {}
    peak: Nanos = {}
    for container in spec.init_containers or ():
        use = dict(_with_defaults(count(container, True), defaults))
        if container.is_sidecar:
            add_to(running, use)
            add_to(sidecars, use)
            use = sidecars
        else:
            add_to(use, sidecars)
        raise_to(peak, use)
    raise_to(running, peak)
    return running


def for_whole_pod(asked: Mapping[str, int]) -> Nanos:
    """Returns those of some requests that a pod may make as a whole."""
    return {
        name: amount
        for name, amount in asked.items()
        if name in (CPU, MEMORY) or name.startswith("hugepages-")
    }


def _with_defaults(asked: Mapping[str, int], defaults: Mapping[str, int]) -> Mapping[str, int]:
    return {**defaults, **asked} if defaults else asked


def add_to(total: Nanos, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def raise_to(total: Nanos, floor: Mapping[str, int]) -> None:
    for name, amount in floor.items():
        if amount > total.get(name, -1):
            total[name] = amount
