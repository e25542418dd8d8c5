"""What a pod takes once it is on a node: what it asks for, was granted, and has in effect.

These differ while a pod is being resized, and the largest counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from .resources import (
    CPU,
    DEFAULTS,
    MEMORY,
    Amounts,
    Nanos,
    add_to,
    add_up,
    amounts,
    for_whole_pod,
    native,
    raise_to,
    read_spec,
)

if TYPE_CHECKING:
    from .container import Container
    from .pod_spec import PodSpec
    from .pod_status import ContainerStatus, PodStatus

_Some = Mapping[str, int]


class Held(msgspec.Struct, frozen=True):
    """What a pod on a node counts for, in native units."""

    requests: Amounts
    nonzero_cpu_milli: int
    nonzero_memory_bytes: int


def count_held(spec: PodSpec, status: PodStatus, *, by_sums: bool = False) -> Held:
    """Returns what a pod of this template and status takes on a node.

    The largest is taken for each container, or, with `by_sums`, of what all of them add up to.
    """
    count = _count_by_sums if by_sums else _count_by_container
    asked = (spec.resources.requests if spec.resources else None) or {}
    is_whole = bool(for_whole_pod(asked))
    held = count(spec, status, asked, {})
    missing = {name: n for name, n in DEFAULTS.items() if not is_whole or name not in held}
    # When nodes are scored, containers that request nothing count the defaults.
    nonzero = count(spec, status, asked, missing) if missing else held
    return Held(
        amounts(held), native(CPU, nonzero.get(CPU, 0)), native(MEMORY, nonzero.get(MEMORY, 0))
    )


def _count_by_container(spec: PodSpec, status: PodStatus, asked: _Some, missing: _Some) -> Nanos:
    """Counts as kube-scheduler does until 1.36; `asked` is what the pod requests as a whole."""
    total = add_up(spec, partial(_find_largest, status), missing)
    effective = for_whole_pod(_find_largest_whole(asked, status))
    total.update({name: effective.get(name, 0) for name in for_whole_pod(asked)})
    add_to(total, spec.overhead or {})
    return total


def _find_largest(status: PodStatus, container: Container, is_init: bool) -> _Some:
    if is_init and not container.is_sidecar:
        return container.requests
    seen = status.of(container)
    if seen is None or seen.resources is None:
        return container.requests
    return _largest(
        {} if status.resize_infeasible else container.requests,
        seen.resources.requests or {},
        seen.allocated_resources or {},
    )


def _count_by_sums(spec: PodSpec, status: PodStatus, asked: _Some, missing: _Some) -> Nanos:
    """Counts as kube-scheduler does since 1.37."""
    sums = [*_add_up_reported(spec, status, missing)]
    if not status.resize_infeasible:
        sums.append(add_up(spec, read_spec, missing))
    total = _largest(*sums)
    if for_whole_pod(asked):
        total.update(for_whole_pod(_find_largest_whole(asked, status)))
    add_to(total, spec.overhead or {})
    return total


def _add_up_reported(spec: PodSpec, status: PodStatus, missing: _Some) -> tuple[_Some, _Some]:
    """Returns what a pod was granted, and what is in effect."""
    granted = status.allocated_resources
    in_effect = None if status.resources is None else status.resources.requests
    if granted is not None and in_effect is not None:
        return granted, in_effect
    reports = _Reports(status)
    return (
        add_up(spec, reports.find_granted, missing),
        add_up(spec, reports.find_in_effect, missing),
    )


class _Reports:
    """What is reported of the containers of a pod. What is not reported is what is asked for."""

    def __init__(self, status: PodStatus) -> None:
        reports = (status.init_container_statuses or ()) + (status.container_statuses or ())
        self._by_name = {each.name: each for each in reports}
        self._is_infeasible = status.resize_infeasible

    def find_granted(self, container: Container, _is_init: bool) -> _Some:
        seen = self._by_name.get(container.name)
        if seen is not None and seen.allocated_resources is not None:
            return seen.allocated_resources
        return {} if self._is_infeasible else container.requests

    def find_in_effect(self, container: Container, is_init: bool) -> _Some:
        seen = self._by_name.get(container.name)
        if seen is None or seen.resources is None or seen.resources.requests is None:
            return self.find_granted(container, is_init)
        return seen.resources.requests


def _find_largest_whole(asked: _Some, status: PodStatus) -> _Some:
    """Returns what counts of what a pod requests as a whole, beside its containers."""
    if status.resources is None:
        return asked
    return _largest(
        {} if status.resize_infeasible else asked,
        status.resources.requests or {},
        status.allocated_resources or {},
    )


def _largest(*lists: _Some) -> Nanos:
    largest: Nanos = {}
    for each in lists:
        raise_to(largest, each)
    return largest


def has_sizes(statuses: Iterable[ContainerStatus]) -> bool:
    """Whether any container reports what it was granted, which then may count too."""
    return any(
        each.resources is not None or each.allocated_resources is not None for each in statuses
    )
