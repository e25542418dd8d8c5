"""Verdicts about devices: what claims get on every node, and what is written about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from moorage.cluster import Cluster, Nodes
from moorage.documents.conversion import to_struct
from moorage.engine import Engine
from moorage.framework.attempt import Failed, Filtered
from moorage.framework.profile import Profile
from moorage.objects.pod import Pod
from moorage.objects.resource_claim import (
    FINALIZER,
    Allocation,
    ClaimSpec,
    ClaimUser,
    ResourceClaim,
    share_claim_spec,
)
from moorage.plugins.dynamic_resources.claim_rows import RowDecision
from moorage.plugins.dynamic_resources.device_binding import Readiness, readiness
from moorage.plugins.dynamic_resources.dynamic_resources import DynamicResources
from moorage.plugins.dynamic_resources.extended import SPECIAL_NAME
from moorage.plugins.dynamic_resources.preparation import PreparedClaims
from moorage.plugins.dynamic_resources.release import releasable

_SHARE = "share"


class RecordedClaimState(msgspec.Struct, frozen=True, rename="camel"):
    """The state of a claim in the API after a step."""

    finalizers: tuple[str, ...] | None = None
    reserved_for: tuple[str, ...] | None = None
    created: bool = False

    @property
    def plain(self) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
        return self.finalizers or (), self.reserved_for or (), self.created


class RecordedDevices(msgspec.Struct, frozen=True, rename="camel"):
    """What kube-scheduler found and wrote about the claims of one pod."""

    nodes: dict[str, dict[str, tuple[str, ...]]] = {}
    allocations: dict[str, dict[str, Any]] = {}
    extended_claim: dict[str, Any] | None = None
    written: dict[str, RecordedClaimState] = {}
    pod_status: dict[str, Any] | None = None
    held: bool = False
    waiting: bool = False
    bind_error: str | None = None
    deallocated: str | None = None
    deallocated_any: tuple[str, ...] = ()
    deleted: str | None = None

    @property
    def created(self) -> str | None:
        """The claim that was made for extended resources."""
        return next((name for name, each in self.written.items() if each.created), None)


@dataclass(frozen=True, slots=True)
class DeviceVerdict:
    """What Moorage finds and writes about the claims of one pod."""

    nodes: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    #: On the node that was chosen.
    allocations: Mapping[str, Allocation] = field(default_factory=dict)
    extended_claim: Any = None
    mappings: tuple[dict[str, str], ...] = ()
    claims: tuple[ResourceClaim, ...] = ()
    #: The claims of which one gives its devices back.
    deallocatable: tuple[str, ...] = ()
    deleted: str | None = None


NO_DEVICES = DeviceVerdict()


def find_devices(
    profile: Profile, pod: Pod, nodes: Nodes, filtered: Filtered | None, chosen: str | None
) -> DeviceVerdict:
    """Returns what the claims of a pod get on all nodes that the plugin accepts."""
    plugin = _plugin(profile)
    if plugin is None or plugin.prepare_claims(pod, nodes) is None:
        return DeviceVerdict()
    by_node = {}
    for row in [] if filtered is None else _find_accepted(profile, filtered):
        decided = plugin.decide(pod, nodes, row)
        devices = {} if decided is None else _name_devices(decided)
        if devices:
            by_node[nodes.name(row)] = devices
    place = None if chosen is None else nodes.row(chosen)
    decided = None if place is None else plugin.decide(pod, nodes, place)
    if decided is None:
        return DeviceVerdict(by_node)
    return _describe(DeviceVerdict(by_node), plugin, pod, nodes, decided)


def _plugin(profile: Profile) -> DynamicResources | None:
    found = profile.plugins.get(DynamicResources.name)
    return found if isinstance(found, DynamicResources) else None


def _describe(
    verdict: DeviceVerdict, plugin: DynamicResources, pod: Pod, nodes: Nodes, decided: RowDecision
) -> DeviceVerdict:
    special = decided.special
    mappings = () if special is None else special.mappings
    granted = plugin.granted(pod, nodes, decided)
    return replace(
        verdict,
        allocations=decided.allocations,
        extended_claim=None if special is None else special.spec.devices,
        mappings=tuple(msgspec.to_builtins(each) for each in mappings),
        claims=granted,
    )


def find_failed_devices(
    cluster: Cluster, profile: Profile, pod: Pod, failed: Failed, nominated: str | None
) -> DeviceVerdict:
    """Returns the same for a pod that fits nowhere, and which claims would free their devices."""
    plugin, nodes = _plugin(profile), cluster.nodes
    prepared = failed.pre_filtered.prepared.get(DynamicResources.name)
    if plugin is None or not isinstance(prepared, PreparedClaims):
        return find_devices(profile, pod, nodes, failed.filtered, nominated)
    claims = releasable(prepared, failed, nodes, plugin.name)
    stale = None if prepared.extended is None else prepared.extended.stale
    # By the time that a nominated pod is placed, the first of them has given its devices back.
    for claim in claims[:1]:
        cluster.put_device(claim.deallocated())
    found = find_devices(profile, pod, nodes, failed.filtered, nominated)
    for claim in claims[:1]:
        cluster.put_device(claim)
    return replace(
        found,
        deallocatable=tuple(claim.key for claim in claims),
        deleted=stale.key if stale is not None and not claims else None,
    )


def _find_accepted(profile: Profile, filtered: Filtered) -> list[int]:
    """Returns the rows that the plugin accepts, although later plugins may not."""
    names = [plugin.name for plugin in profile.filter]
    after = names[names.index(DynamicResources.name) + 1 :]
    refused = {row for row, why in filtered.refusals() if why.plugin not in after}
    return [row for row in filtered.rows.tolist() if row not in refused]


def _name_devices(decided: RowDecision) -> dict[str, tuple[str, ...]]:
    named = {
        key: tuple(
            f"{each.request} {each.driver}/{each.pool}/{each.device}" for each in found.results
        )
        for key, found in decided.allocations.items()
    }
    return {key: devices for key, devices in named.items() if devices}


def compare_devices(
    recorded: RecordedDevices, found: DeviceVerdict, pod: Pod, is_placed: bool
) -> Iterator[tuple[str, Any, Any]]:
    """Yields triples: the name of a value, the recorded one and the found one."""
    for name in sorted(recorded.nodes.keys() | found.nodes.keys()):
        named = {key: each for key, each in recorded.nodes.get(name, {}).items() if each}
        yield f"devices {name}", named, dict(found.nodes.get(name, {}))
    allowed = recorded.deallocated_any or (recorded.deallocated,)
    if found.deallocatable or recorded.deallocated:
        yield "deallocated", sorted(filter(None, allowed)), sorted(found.deallocatable)
    yield "deleted", recorded.deleted, found.deleted
    if not is_placed:
        return
    kept = {key: each for key, each in recorded.allocations.items() if each != {"devices": {}}}
    for key in sorted(kept.keys() | found.allocations.keys()):
        made = found.allocations.get(key)
        expected = to_struct(Allocation, kept[key]) if key in kept else None
        yield f"allocation {key}", expected, None if made is None else _drop_share_names(made)
    if recorded.bind_error is None:
        # That pod would never be bound; Moorage binds it.
        yield from _compare_written(recorded, found, pod)


def _drop_share_names(allocation: Allocation) -> Allocation:
    """Returns the allocation as it is recorded, without the names of shares."""
    results = tuple(
        each if each.share_id is None else msgspec.structs.replace(each, share_id=_SHARE)
        for each in allocation.results
    )
    devices = msgspec.structs.replace(allocation.devices, results=results or None)
    return msgspec.structs.replace(allocation, devices=devices)


def _compare_written(
    recorded: RecordedDevices, found: DeviceVerdict, pod: Pod
) -> Iterator[tuple[str, Any, Any]]:
    asked = None
    if recorded.extended_claim is not None:
        asked = to_struct(ClaimSpec, {"devices": recorded.extended_claim}).devices
    yield "extended claim", asked, found.extended_claim
    if recorded.held:
        return
    waiting = any(readiness(claim, None, 0.0) is not Readiness.READY for claim in found.claims)
    yield "waiting", recorded.waiting, waiting
    special = f"{pod.namespace}/{SPECIAL_NAME}"
    written = {
        (recorded.created or special) if claim.key == special else claim.key: (
            claim.finalizers,
            tuple(user.name for user in claim.reserved_for),
            claim.key == special,
        )
        for claim in found.claims
    }
    yield "written", {key: each.plain for key, each in recorded.written.items()}, written
    mapped = (recorded.pod_status or {}).get("requestMappings", [])
    yield "pod status", mapped, list(found.mappings)


def apply_devices(engine: Engine, pod: Pod, recorded: RecordedDevices) -> None:
    """Applies what was recorded, so that a difference does not spread."""
    known = engine.cluster.nodes.devices.claims
    for key in filter(None, (recorded.deallocated, recorded.deleted)):
        claim = known.get(key)
        if claim is not None and key == recorded.deleted:
            engine.cluster.remove_device(claim)
        elif claim is not None:
            engine.cluster.put_device(claim.deallocated())
    if recorded.held:
        return
    for key in recorded.written:
        created = key == recorded.created
        claim = _make_claim(pod, key, recorded) if created else known.get(key)
        if claim is not None:
            raw = recorded.allocations.get(_special(pod) if created else key)
            engine.cluster.put_device(_grant(claim, raw, pod, recorded))


def _special(pod: Pod) -> str:
    return f"{pod.namespace}/{SPECIAL_NAME}"


def _grant(
    claim: ResourceClaim, raw: dict[str, Any] | None, pod: Pod, recorded: RecordedDevices
) -> ResourceClaim:
    made = None
    if raw is not None:
        made = to_struct(Allocation, raw)
        results = tuple(
            each
            if each.share_id is None
            else msgspec.structs.replace(each, share_id=f"{claim.uid}-{at}")
            for at, each in enumerate(made.results)
        )
        devices = msgspec.structs.replace(made.devices, results=results or None)
        made = msgspec.structs.replace(made, devices=devices)
    if recorded.bind_error is None:
        return claim.granted(made, ClaimUser(resource="pods", name=pod.name, uid=pod.uid))
    finalizers = tuple(dict.fromkeys((*claim.finalizers, FINALIZER)))
    allocation = made or claim.allocation
    return msgspec.structs.replace(claim, allocation=allocation, finalizers=finalizers)


def _make_claim(pod: Pod, key: str, recorded: RecordedDevices) -> ResourceClaim:
    namespace, _, name = key.partition("/")
    wire = to_struct(
        ResourceClaim.wire,
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"made-{name}",
                "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
                "ownerReferences": [
                    {"kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
                ],
            },
            "spec": {"devices": recorded.extended_claim or {}},
        },
    )
    claim = ResourceClaim.of(wire)
    return msgspec.structs.replace(claim, spec=share_claim_spec(claim.spec))
