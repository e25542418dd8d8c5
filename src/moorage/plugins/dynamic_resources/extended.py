"""Extended resources that device classes serve: containers request devices without a claim.

If a node offers such a resource itself, its device plugin serves it. On other nodes the scheduler
makes a claim for the pod, the *special* claim.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask, Rows, View
from moorage.cluster.devices.device_classes import IMPLICIT, DeviceClasses
from moorage.objects.container import Container
from moorage.objects.per_template import once_per_template, once_per_template_for
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodSpec
from moorage.objects.quantity import units
from moorage.objects.resource_claim import (
    EXACT_COUNT,
    ClaimSpec,
    DeviceAsk,
    DeviceRequest,
    ResourceClaim,
    share_claim_spec,
    spec_of,
)
from moorage.objects.resources import is_extended

#: Stands for the name of the special claim before it has one.
SPECIAL_NAME = "<extended-resources>"

# The number of a row and one bit for each of so many masks fit together into 64 bits.
_MASKS_PER_NUMBER = 40


class RequestMapping(msgspec.Struct, frozen=True, rename="camel"):
    """Which request of the special claim serves a container's resource."""

    container_name: str
    resource_name: str
    request_name: str


class SpecialClaim(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The claim for extended resources of a pod, and which request serves which container."""

    spec: ClaimSpec
    mappings: tuple[RequestMapping, ...]

    @cached_property
    def written(self) -> dict[str, Any]:
        """Returns what it asks for, as the API writes it. Pods of a template share it."""
        devices: dict[str, Any] = msgspec.to_builtins(self.spec.devices)
        return devices

    @cached_property
    def written_mappings(self) -> tuple[dict[str, str], ...]:
        return tuple(msgspec.to_builtins(each) for each in self.mappings)


@dataclass(frozen=True, eq=False)
class ExtendedAsk:
    """What a pod requests by extended resources."""

    spec: PodSpec
    #: The name of the class that serves a resource, by the name of the resource.
    classes: Mapping[str, str]
    #: The extended resources that no class serves.
    others: tuple[str, ...]
    #: The special claim that an earlier attempt has left.
    stale: ResourceClaim | None
    _specials: dict[frozenset[str], SpecialClaim] = field(default_factory=dict)

    @cached_property
    def _names(self) -> frozenset[str]:
        """Returns the resources that classes serve."""
        return frozenset(self.classes)

    @property
    def is_stale(self) -> bool:
        return self.stale is not None and bool(self.stale.spec.requests)

    def combinations(self, nodes: View, rows: Rows) -> Iterator[tuple[frozenset[str], Mask | None]]:
        """Yields sets of resources that devices have to serve, each with the rows where they do.

        None means all rows.
        """
        if self._names.isdisjoint(nodes.resources):
            yield self._names, None
            return
        names = tuple(self.classes)
        missing = [self._is_missing(name, nodes, rows) for name in names]
        codes = _number_combinations(missing, nodes.count(rows))
        for code, place in zip(*np.unique(codes, return_index=True), strict=True):
            absent = (name for name, each in zip(names, missing, strict=True) if each[place])
            yield frozenset(absent), codes == code

    def _is_missing(self, name: str, nodes: View, rows: Rows) -> Mask:
        at = nodes.resource(name)
        if at is None:
            return np.ones(nodes.count(rows), np.bool_)
        missing: Mask = nodes.allocatable[at][rows] == 0
        return missing

    def unfit(self, nodes: View, rows: Rows) -> Mask:
        """Returns where a node does not list a resource that no class serves."""
        lacking = nodes.nothing(rows)
        codes = nodes.resource_sets[rows]
        values = nodes.resource_names.values
        for name in self.others:
            listed = np.array([value is not None and name in value for value in values], np.bool_)
            lacking |= ~listed[codes]
        return lacking

    def special_on(self, nodes: View, row: int) -> SpecialClaim | None:
        """Returns the special claim for a row; None if devices have to serve nothing there."""
        names = self.names_on(nodes, row)
        return self.special(names) if names else None

    def names_on(self, nodes: View, row: int) -> frozenset[str]:
        """Returns the resources that devices have to serve on a row."""
        if self._names.isdisjoint(nodes.resources):
            # No node offers any of them itself. This is the usual case.
            return self._names
        columns = ((name, nodes.resource(name)) for name in self.classes)
        return frozenset(
            name for name, at in columns if at is None or not nodes.allocatable.item(at, row)
        )

    def special(self, names: frozenset[str]) -> SpecialClaim:
        """Returns the special claim if devices have to serve these resources."""
        known = self._specials.get(names)
        if known is None:
            known = make_special(self.spec, {name: self.classes[name] for name in names})
            self._specials[names] = known
        return known

    @cached_property
    def look(self) -> Hashable:
        """Returns all that is read of pods that request devices only by extended resources."""
        special = self.special(frozenset(self.classes))
        return special.spec, special.mappings, self.others, tuple(self.classes.items())


def find_extended(pod: Pod, nodes: View) -> ExtendedAsk | None:
    """Returns what a pod requests by extended resources; None if no class serves any of them."""
    devices = nodes.devices
    ask = _make_ask(pod, devices.classes)
    left = devices.claims.extended_of(pod.uid) if ask is not None else ()
    if not left or ask is None:
        return ask
    return replace(ask, stale=max(left, key=lambda claim: bool(claim.spec.requests)))


def _mark(classes: DeviceClasses) -> tuple[DeviceClasses, int]:
    return classes, classes.version


@once_per_template_for(_mark)
def _make_ask(pod: Pod, classes: DeviceClasses) -> ExtendedAsk | None:
    behind = mapped_resources(pod, classes)
    if not behind:
        return None
    asked = (name for name, amount in pod.requests if amount and is_extended(name))
    others = tuple(name for name in asked if name not in behind)
    return ExtendedAsk(pod.spec, behind, others, None)


def mapped_resources(pod: Pod, classes: DeviceClasses) -> dict[str, str]:
    """Returns the resources of a pod that classes serve, with the names of these classes."""
    names = _extended_names(pod.spec)
    if not names:
        return {}
    behind = ((name, classes.for_resource(name)) for name in names)
    return {name: found.name for name, found in behind if found is not None}


def may_claim(pod: Pod) -> bool:
    """Whether pods of this template may have claims, of their own or by extended resources."""
    return bool(pod.spec.resource_claims) or may_use_devices(pod)


def may_use_devices(pod: Pod) -> bool:
    """Whether devices may serve extended resources of pods of this template."""
    return bool(_extended_names(pod.spec))


@once_per_template
def _extended_names(spec: PodSpec) -> tuple[str, ...]:
    """Returns the resources that a class may serve."""
    return tuple(
        name
        for name, amount in spec.requests
        if amount and (is_extended(name) or name.startswith(IMPLICIT))
    )


def make_special(spec: PodSpec, classes: Mapping[str, str]) -> SpecialClaim:
    """Returns the special claim of a pod, if these classes serve these resources."""
    known = _known_claims(spec)
    key = tuple(sorted(classes.items()))
    if key not in known:
        known[key] = _make_special(spec, key)
    return known[key]


@once_per_template
def _known_claims(spec: PodSpec) -> dict[tuple[tuple[str, str], ...], SpecialClaim]:
    """Returns the special claims of a template that are known so far, by resources and classes."""
    return {}


def _make_special(spec: PodSpec, classes: tuple[tuple[str, str], ...]) -> SpecialClaim:
    requests: list[DeviceRequest] = []
    mappings: list[RequestMapping] = []
    for resource, class_name in classes:
        asked, mapped = _DeviceShares(spec, resource).share()
        mappings += mapped
        requests += (_request(name, class_name, count) for name, count in asked)
    # They are sorted by name as text: container-10 comes before container-2.
    requests.sort(key=lambda each: each.name)
    return SpecialClaim(share_claim_spec(spec_of(tuple(requests))), tuple(mappings))


def _request(name: str, class_name: str, count: int) -> DeviceRequest:
    ask = DeviceAsk(device_class_name=class_name, allocation_mode=EXACT_COUNT, count=count)
    return DeviceRequest(name=name, exactly=ask)


class _DeviceShares:
    """How the containers of a pod share devices of one resource."""

    def __init__(self, spec: PodSpec, resource: str) -> None:
        self._resource = resource
        init = spec.init_containers or ()
        every = (*init, *spec.containers)
        self._lasting: list[tuple[int, Container, int]] = []
        self._passing: list[tuple[int, Container, int]] = []
        for at, container in enumerate(every):
            amount = units(container.requests.get(resource, 0))
            if amount:
                lasts = at >= len(init) or container.is_sidecar
                (self._lasting if lasts else self._passing).append((at, container, amount))

    def share(self) -> tuple[list[tuple[str, int]], list[RequestMapping]]:
        """Returns the requests with their counts, and which containers they serve."""
        requests = [(self._name(at, each), amount) for at, each, amount in self._lasting]
        mappings = [self._map(each, self._name(at, each)) for at, each, _ in self._lasting]
        largest = max((self._rest(at, amount)[1] for at, _, amount in self._passing), default=0)
        shared = ""
        for at, container, amount in self._passing:
            if self._rest(at, amount)[1] == largest > 0 and not shared:
                shared = self._name(at, container)
        for at, container, amount in self._passing:
            # An init container that ends uses the devices that later containers will use.
            names, rest = self._rest(at, amount)
            mappings += (self._map(container, name) for name in names)
            if rest:
                mappings.append(self._map(container, shared))
        return requests + ([(shared, largest)] if shared else []), mappings

    def _rest(self, at: int, amount: int) -> tuple[list[str], int]:
        """Returns the requests that a container can use before others do, and what it lacks."""
        names = []
        for other, container, count in self._lasting:
            if other >= at and amount > 0:
                names.append(self._name(other, container))
                amount -= count
        return names, max(amount, 0)

    def _name(self, at: int, container: Container) -> str:
        place = sorted(container.requests).index(self._resource)
        return f"container-{at}-request-{place}"

    def _map(self, container: Container, name: str) -> RequestMapping:
        return RequestMapping(container.name, self._resource, name)


def _number_combinations(masks: Sequence[Mask], count: int) -> NDArray[np.int64]:
    """Returns a number per row. Two rows have one number exactly if all masks agree on them."""
    codes: NDArray[np.int64] = np.zeros(count, np.int64)
    for at, mask in enumerate(masks, 1):
        codes = codes * 2 + mask
        if at % _MASKS_PER_NUMBER == 0:
            # Now there are no more numbers than rows, so that further masks fit.
            codes = np.unique(codes, return_inverse=True)[1]
    return codes
