"""What the API server would refuse although every type is right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mooring.documents.errors import path_of
from mooring.objects.kinds import Object
from mooring.objects.node import Node
from mooring.objects.pod import Pod, Resources
from mooring.objects.quantity import Quantity
from mooring.objects.storage import StorageObject
from mooring.objects.workload import PodDisruptionBudget
from mooring.world.defaults import PriorityClass

from .storage_checks import Fault, storage_faults


def faults(item: Object | PriorityClass, raw: Mapping[str, Any]) -> Iterator[Fault]:
    """What is wrong with an object, the most telling first; `raw` is how it is written."""
    name = item.metadata.name if isinstance(item, PriorityClass) else item.name
    if not name:
        yield "metadata.name", "is required"
    if isinstance(item, Pod):
        yield from _pod(item)
    elif isinstance(item, Node):
        yield from _negative(["status", "allocatable"], _written_amounts(raw.get("status") or {}))
    elif isinstance(item, PodDisruptionBudget):
        if item.disruptions_allowed < 0:
            yield "status.disruptionsAllowed", "must not be negative"
    elif isinstance(item, StorageObject):
        yield from storage_faults(item, raw)


def _pod(pod: Pod) -> Iterator[Fault]:
    spec = pod.spec
    if not spec.containers:
        yield "spec.containers", "is required"
    for field, containers in (
        ("containers", spec.containers),
        ("initContainers", spec.init_containers or ()),
    ):
        for index, container in enumerate(containers):
            yield from _resources(["spec", field, index, "resources"], container.resources)
    yield from _resources(["spec", "resources"], spec.resources)
    yield from _negative(["spec", "overhead"], spec.overhead or {})


def _resources(steps: list[str | int], resources: Resources | None) -> Iterator[Fault]:
    if resources is None:
        return
    requests, limits = resources.requests or {}, resources.limits or {}
    # Limits first: a request that was not written comes from its limit.
    yield from _negative([*steps, "limits"], limits)
    yield from _negative([*steps, "requests"], requests)
    for name, amount in requests.items():
        if name in limits and amount > limits[name]:
            yield path_of([*steps, "requests", name]), "must not be more than the limit"


def _negative(steps: list[str | int], amounts: Mapping[str, int]) -> Iterator[Fault]:
    for name, amount in amounts.items():
        if amount < 0:
            yield path_of([*steps, name]), "must not be negative"


def _written_amounts(status: Mapping[str, Any]) -> dict[str, int]:
    """What a node has as it is written: a node that was read has nothing negative."""
    written = status.get("allocatable") or status.get("capacity") or {}
    return {name: Quantity.parse(amount) for name, amount in written.items() if amount is not None}
