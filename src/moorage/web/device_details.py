"""The devices of a node, and the claims and pods that have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice

import msgspec

from moorage.cluster.devices.devices import KnownDevices
from moorage.cluster.devices.taint_rules import TaintsOfRules
from moorage.objects.device import DeviceAttribute, NodeChoice, ResourceSlice, SliceDevice
from moorage.objects.node import Node
from moorage.objects.node_selector import Malformed
from moorage.objects.pod import Pod
from moorage.objects.resource_claim import ResourceClaim

from .messages import Detail

# Devices of a node that are shown; a large one has some dozens.
_MOST_DEVICES = 500

# Taints of a device that are shown.
_MOST_TAINTS = 16

#: Driver, pool and name of a device.
_Identity = tuple[str, str, str]


class DeviceOnNode(Detail, frozen=True):
    """A device that a node has or can use, and its holders."""

    driver: str
    pool: str
    name: str
    #: Its attributes and capacity, in a few words.
    about: str
    #: free, taken, or how many share it.
    state: str
    taints: list[str]
    #: Claims that have it, and the pods of this node that use them.
    claims: list[str]
    pods: list[str]


def describe_devices(known: KnownDevices, node: Node, pods: Iterable[Pod]) -> list[DeviceOnNode]:
    """Returns the devices that can be used on a node, those of its own pools first."""
    holders = _holders(known, pods)
    own: list[DeviceOnNode] = []
    shared: list[DeviceOnNode] = []
    for each in known.slices.values():
        if not _serves(each.nodes, node) and not each.is_per_device:
            continue
        chosen = own if each.nodes == node.name else shared
        chosen.extend(_devices(each, node, known, holders))
    own.sort(key=lambda device: (device.driver, device.pool))
    return [*own, *shared][:_MOST_DEVICES]


def _devices(
    item: ResourceSlice,
    node: Node,
    known: KnownDevices,
    holders: Mapping[_Identity, list[tuple[ResourceClaim, Pod]]],
) -> Iterator[DeviceOnNode]:
    held = known.use.held((item.driver, item.pool))
    of_rules = known.taint_rules.of(item.driver, item.pool, [each.name for each in item.devices])
    for at, device in enumerate(item.devices):
        if item.is_per_device and device.node_name not in (None, node.name):
            continue
        hold = held.get(device.name)
        users = holders.get((item.driver, item.pool, device.name), [])
        state = "free"
        if hold is not None and not hold.is_free:
            state = "taken" if hold.taken else f"shared by {hold.shares}"
        yield DeviceOnNode(
            driver=item.driver,
            pool=item.pool,
            name=device.name,
            about=_about(device),
            state=state,
            taints=_describe_taints(device, (of_rules or {}).get(at, ())),
            claims=list(dict.fromkeys(claim.key for claim, _ in users)),
            pods=[pod.key for _, pod in users],
        )


def _describe_taints(device: SliceDevice, of_rules: TaintsOfRules) -> list[str]:
    every = chain(device.taints or (), *(each.taints for each in of_rules))
    return [f"{each.key}={each.value}:{each.effect}" for each in islice(every, _MOST_TAINTS)]


def _holders(
    known: KnownDevices, pods: Iterable[Pod]
) -> dict[_Identity, list[tuple[ResourceClaim, Pod]]]:
    """Returns the claims of a node's pods, by the devices that they have."""
    holders: dict[_Identity, list[tuple[ResourceClaim, Pod]]] = {}
    for pod in pods:
        for name in _claim_names(pod):
            claim = known.claims.get(f"{pod.namespace}/{name}")
            if claim is None or claim.allocation is None:
                continue
            for result in claim.allocation.results:
                identity = (result.driver, result.pool, result.device)
                holders.setdefault(identity, []).append((claim, pod))
    return holders


def _claim_names(pod: Pod) -> Iterator[str]:
    generated = {
        each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses or ()
    }
    for reference in pod.spec.resource_claims or ():
        name = reference.resource_claim_name or generated.get(reference.name)
        if name:
            yield name
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        yield extended.resource_claim_name


def _serves(choice: NodeChoice, node: Node) -> bool:
    if isinstance(choice, str):
        return choice == node.name
    if choice is None or isinstance(choice, bool):
        return bool(choice)
    return any(
        term is not None
        and not isinstance(term, Malformed)
        and term.matches(node.labels, node.name)
        for term in choice
    )


def _about(device: SliceDevice) -> str:
    attributes = (device.attributes or {}).items()
    amounts = (device.capacity or {}).items()
    words = [f"{name} {_value(value)}" for name, value in sorted(attributes, key=_name)]
    words += [f"{name} {each.value}" for name, each in sorted(amounts, key=lambda pair: pair[0])]
    return ", ".join(words)


def _name(pair: tuple[str, DeviceAttribute]) -> str:
    return pair[0]


def _value(attribute: DeviceAttribute) -> str:
    values = msgspec.structs.asdict(attribute).values()
    found = next((each for each in values if each is not None), "")
    return str(found).lower() if isinstance(found, bool) else str(found)
