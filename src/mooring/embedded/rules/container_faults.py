"""Containers: names, images, ports and what they ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mooring.embedded.errors import Fault, duplicate, invalid_value, required, unsupported
from mooring.embedded.names import label_key_faults, label_name_faults
from mooring.objects.quantity import NANOS_PER_UNIT, Quantity

from .plain import Json, part

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_STANDARD = ("cpu", "ephemeral-storage", "memory")
_HUGE_PAGES = "hugepages-"
_NEGATIVE = "must be greater than or equal to 0"
_HOST_PORT = "must match `containerPort` when `hostNetwork` is true"
PORT_RANGE = "must be between 1 and 65535, inclusive"


def container_faults(at: str, container: Json, names: set[str]) -> Iterator[Fault]:
    """What is wrong with a container; `names` are those of the containers before it."""
    name = container.get("name", "")
    yield from label_name_faults(f"{at}.name", name)
    if name and name in names:
        yield duplicate(f"{at}.name", name)
    names.add(name)
    if not container.get("image"):
        yield required(f"{at}.image")
    policy = container.get("imagePullPolicy", "Always")
    if policy not in _PULL_POLICIES:
        yield unsupported(f"{at}.imagePullPolicy", policy, _PULL_POLICIES)
    for index, port in enumerate(container.get("ports") or ()):
        yield from _port_faults(f"{at}.ports[{index}]", port)
    yield from resource_faults(f"{at}.resources", part(container, "resources"))


def resource_faults(at: str, resources: Json) -> Iterator[Fault]:
    """What is wrong with requests and limits."""
    requests, limits = part(resources, "requests"), part(resources, "limits")
    # Limits first: a request that was not written comes from its limit.
    yield from amount_faults(f"{at}.limits", limits, named=True)
    yield from amount_faults(f"{at}.requests", requests, named=True)
    for name, written in requests.items():
        limit = limits.get(name)
        if limit is None:
            if not _is_overcommitted(name):
                detail = "Limit must be set for non overcommitable resources"
                yield required(f"{at}.limits", detail)
            continue
        asked, most = Quantity.parse(written), Quantity.parse(limit)
        if asked > most:
            detail = f"must be less than or equal to {name} limit of {limit}"
            yield invalid_value(f"{at}.requests", written, detail)
        elif asked != most and not _is_overcommitted(name):
            detail = f"must be equal to {name} limit of {limit}"
            yield invalid_value(f"{at}.requests", written, detail)


def amount_faults(at: str, amounts: Mapping[str, str], *, named: bool) -> Iterator[Fault]:
    """What is wrong with amounts of resources."""
    for name, written in amounts.items():
        where = f"{at}[{name}]"
        amount = Quantity.parse(written)
        if amount < 0:
            yield invalid_value(where, written, _NEGATIVE)
        elif amount % NANOS_PER_UNIT and not _is_overcommitted(name) and named:
            yield invalid_value(where, written, "must be an integer")
        if named:
            yield from _resource_name_faults(where, name)


def _resource_name_faults(at: str, name: str) -> Iterator[Fault]:
    yield from label_key_faults(at, name)
    if "/" not in name and name not in _STANDARD and not name.startswith(_HUGE_PAGES):
        yield invalid_value(at, name, "must be a standard resource type or fully qualified")


def _is_overcommitted(name: str) -> bool:
    """Whether more of a resource may be promised than there is."""
    return name in _STANDARD or "kubernetes.io/" in name


def _port_faults(at: str, port: Json) -> Iterator[Fault]:
    inside, outside = port.get("containerPort", 0), port.get("hostPort", 0)
    if not inside:
        yield required(f"{at}.containerPort")
    elif not 1 <= inside <= 65535:
        yield invalid_value(f"{at}.containerPort", inside, PORT_RANGE)
    if outside and not 1 <= outside <= 65535:
        yield invalid_value(f"{at}.hostPort", outside, PORT_RANGE)
    protocol = port.get("protocol", "TCP")
    if protocol not in _PROTOCOLS:
        yield unsupported(f"{at}.protocol", protocol, _PROTOCOLS)


def host_port_faults(spec: Json, at: str) -> Iterator[Fault]:
    """A pod of the host's network shows its ports there; no two containers share one."""
    taken = set()
    for place, container in enumerate(spec.get("containers") or ()):
        for index, port in enumerate(container.get("ports") or ()):
            where = f"{at}.containers[{place}].ports[{index}]"
            outside, inside = port.get("hostPort", 0), port.get("containerPort", 0)
            if spec.get("hostNetwork") and outside != inside:
                yield invalid_value(f"{where}.hostPort", outside, _HOST_PORT)
            claimed = (port.get("protocol", "TCP"), port.get("hostIP", ""), outside)
            if outside and claimed in taken:
                text = "/".join(str(part) for part in claimed)
                yield duplicate(f"{where}.hostPort", text)
            taken.add(claimed)
