"""Resource arithmetic: what a pod asks for and what it holds once it runs.

Amounts are summed exactly, in nano-units, and rounded up once at the end: milli-units for cpu,
whole units (bytes, devices) for everything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from .quantity import Quantity, clamp, millis, units

if TYPE_CHECKING:
    from .container import Container, Resources
    from .pod_spec import PodSpec
    from .pod_status import ContainerStatus, PodStatus

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"

# What a container that requests nothing is taken to use when nodes are scored.
DEFAULT_CPU = Quantity.parse("100m")
DEFAULT_MEMORY = Quantity.parse("200Mi")
_DEFAULTS = {CPU: DEFAULT_CPU, MEMORY: DEFAULT_MEMORY}

Nanos = dict[str, int]
#: Resource names and amounts in native units, sorted by name.
Amounts = tuple[tuple[str, int], ...]

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)

_BINARY = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


class Held(msgspec.Struct, frozen=True):
    """What a pod on a node counts for, in native units."""

    requests: Amounts
    nonzero_cpu_milli: int
    nonzero_memory_bytes: int


def format_amount(resource: str, amount: int) -> str:
    """Returns an amount in native units, as Kubernetes would write it: 1500m, 2, 512Mi."""
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        for suffix, size in _BINARY:
            if amount and amount % size == 0:
                return f"{amount // size}{suffix}"
    return str(amount)


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
    return _requests(spec, None, defaults, pod_level=pod_level)


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


def count_held(spec: PodSpec, status: PodStatus) -> Held:
    """Returns what a pod of this template and status takes on a node."""
    held = _held_requests(spec, status)
    nonzero = _held_nonzero(spec, status, held)
    return Held(
        amounts(held), native(CPU, nonzero.get(CPU, 0)), native(MEMORY, nonzero.get(MEMORY, 0))
    )


def _held_requests(spec: PodSpec, status: PodStatus) -> Nanos:
    """Returns what a running pod takes: the larger of what is requested and allocated."""
    return _requests(spec, status, {})


def _held_nonzero(spec: PodSpec, status: PodStatus | None, held: Nanos) -> Nanos:
    """Returns what a running pod counts in scoring: silent containers count the defaults."""
    missing = _DEFAULTS
    if spec.resources is not None and spec.resources.requests:
        missing = {name: amount for name, amount in _DEFAULTS.items() if name not in held}
    return _requests(spec, status, missing) if missing else held


def scoring_requests(spec: PodSpec) -> Nanos:
    """Returns what an incoming pod counts in scoring; pod-level requests are ignored."""
    return spec_requests(spec, _DEFAULTS, pod_level=False)


def _requests(
    spec: PodSpec, status: PodStatus | None, defaults: Mapping[str, int], *, pod_level: bool = True
) -> Nanos:
    total = _container_requests(spec, status, defaults)
    if pod_level and spec.resources is not None:
        total.update(_pod_level(spec, status))
    _add(total, spec.overhead or {})
    return total


def _container_requests(
    spec: PodSpec, status: PodStatus | None, defaults: Mapping[str, int]
) -> Nanos:
    running: Nanos = {}
    for container in spec.containers:
        _add(running, _with_defaults(_effective(container, status), defaults))
    sidecars: Nanos = {}
    peak: Nanos = {}
    for container in spec.init_containers or ():
        if container.is_sidecar:
            asked = _with_defaults(_effective(container, status), defaults)
            _add(running, asked)
            _add(sidecars, asked)
            use = sidecars
        else:
            use = dict(_with_defaults(container.requests, defaults))
            _add(use, sidecars)
        _raise_to(peak, use)
    _raise_to(running, peak)
    return running


def _pod_level(spec: PodSpec, status: PodStatus | None) -> Nanos:
    asked = (spec.resources.requests if spec.resources else None) or {}
    effective: Mapping[str, int] = asked
    if status is not None and status.resources is not None:
        effective = _largest(
            {} if status.resize_infeasible else asked,
            status.resources.requests or {},
            status.allocated_resources or {},
        )
    return {
        name: effective.get(name, 0)
        for name in asked
        if name in (CPU, MEMORY) or name.startswith("hugepages-")
    }


def _effective(container: Container, status: PodStatus | None) -> Mapping[str, int]:
    seen = None if status is None else status.of(container)
    if status is None or seen is None or seen.resources is None:
        return container.requests
    return _largest(
        {} if status.resize_infeasible else container.requests,
        seen.resources.requests or {},
        seen.allocated_resources or {},
    )


def _largest(*lists: Mapping[str, int]) -> Nanos:
    largest: Nanos = {}
    for each in lists:
        _raise_to(largest, each)
    return largest


def _with_defaults(asked: Mapping[str, int], defaults: Mapping[str, int]) -> Mapping[str, int]:
    return {**defaults, **asked} if defaults else asked


def _add(total: Nanos, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Nanos, floor: Mapping[str, int]) -> None:
    for name, amount in floor.items():
        if amount > total.get(name, -1):
            total[name] = amount


def has_sizes(statuses: Iterable[ContainerStatus]) -> bool:
    """Whether any container reports granted resources, which then count too."""
    return any(each.resources is not None for each in statuses)
