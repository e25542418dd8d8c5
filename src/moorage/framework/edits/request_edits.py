"""Edits of how much a pod asks for."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from moorage.objects.container import Container, Resources
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodSpec
from moorage.objects.quantity import NANOS_PER_MILLI, NANOS_PER_UNIT, Quantity
from moorage.objects.resources import CPU, describe_amount

from .edit import Edit


class LowerRequest(Edit, frozen=True):
    """Lowers the request of a resource, in millicores, bytes or pieces."""

    resource: str
    by: int

    @property
    def text(self) -> str:
        amount = describe_amount(self.resource, self.by, up=True)
        return f"it asked for {amount} less {self.resource}"

    def apply(self, pod: Pod) -> Pod:
        return replace(pod, spec=_lower_request(pod.spec, self.resource, self.by))


class AskForDevice(Edit, frozen=True):
    """Requests one device."""

    resource: str

    @property
    def text(self) -> str:
        return f"it had a limit of 1 {self.resource}"

    def apply(self, pod: Pod) -> Pod:
        return replace(pod, spec=_ask_for_one(pod.spec, self.resource))


def _lower_request(spec: PodSpec, resource: str, by: int) -> PodSpec:
    """Returns a template like this with a lower request of a resource, in native units.

    The whole amount moves to the first container.
    """
    left = dict(spec.requests).get(resource, 0) - by
    nanos = Quantity(max(left, 0) * (NANOS_PER_MILLI if resource == CPU else NANOS_PER_UNIT))
    first, *others = (_drop_from(each, resource) for each in spec.containers)
    init = spec.init_containers
    return replace(
        spec,
        containers=(_ask(first, resource, nanos), *others),
        init_containers=init and tuple(_drop_from(each, resource) for each in init),
        resources=spec.resources and _drop_request(spec.resources, resource),
        overhead=_drop(spec.overhead, resource),
    )


def _ask_for_one(spec: PodSpec, resource: str) -> PodSpec:
    """Returns a template like this whose first container requests one piece of a resource."""
    first, *others = spec.containers
    one = Quantity(NANOS_PER_UNIT)
    asking = _ask(first, resource, one)
    resources = asking.resources or Resources()
    limits = {**(resources.limits or {}), resource: one}
    limited = replace(asking, resources=replace(resources, limits=limits))
    return replace(spec, containers=(limited, *others))


def _ask(container: Container, resource: str, nanos: Quantity) -> Container:
    resources = container.resources or Resources()
    requests = {**(resources.requests or {}), resource: nanos}
    return replace(container, resources=replace(resources, requests=requests))


def _drop_from(container: Container, resource: str) -> Container:
    if container.resources is None:
        return container
    return replace(container, resources=_drop_request(container.resources, resource))


def _drop_request(resources: Resources, resource: str) -> Resources:
    return replace(resources, requests=_drop(resources.requests, resource))


def _drop(asked: Mapping[str, Quantity] | None, resource: str) -> dict[str, Quantity] | None:
    return {name: amount for name, amount in (asked or {}).items() if name != resource} or None
