"""Performs the actions of an engine at once: bindings, evictions and volumes always succeed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from moorage.cluster import Cluster, Nodes
from moorage.documents.conversion import to_struct
from moorage.engine import Engine
from moorage.engine.actions import (
    Action,
    BindPod,
    EvictPod,
    PodRef,
    ReleaseClaim,
    RevokeClaims,
    WriteClaims,
    WriteVolumes,
)
from moorage.engine.events import Applied, Bound, ClaimsRevoked, ClaimsWritten, Evicted, Removed
from moorage.framework.calls import ask_reserve, ask_unreserve
from moorage.framework.device_writes import ClaimCreation
from moorage.framework.plugin import ClaimWrite, VolumeWrite
from moorage.framework.profile import Profile
from moorage.framework.stamps import find_stamp
from moorage.framework.status import PluginError
from moorage.objects.in_tree import Attachable, Terms
from moorage.objects.kinds import Object
from moorage.objects.meta import OwnerReference
from moorage.objects.node import Node
from moorage.objects.node_selector import NodeRequirement, NodeTerm
from moorage.objects.pod import Pod
from moorage.objects.resource_claim import (
    Allocation,
    ClaimSpec,
    ClaimUser,
    ResourceClaim,
    share_claim_spec,
)
from moorage.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

from .claim_templates import without_user

_BOUND = "Bound"


@dataclass(frozen=True, slots=True)
class ClaimedVolume:
    """A claim and the volume that it got when its pod was placed: an existing or a new one."""

    volume: PersistentVolume
    claim: PersistentVolumeClaim
    provisioned: bool
    pod: str


class World:
    """The pods that an engine schedules, as an API server would store them."""

    def __init__(self, engine: Engine, pods: dict[str, Pod] | None = None) -> None:
        """Keeps pods by uid, in the caller's mapping if one is given."""
        self.engine = engine
        self.pods = {} if pods is None else pods

    def apply(self, item: Object, now: float) -> None:
        """Takes in a new or changed object."""
        if isinstance(item, Pod):
            self.pods[item.uid] = item
        self.engine.handle(Applied(item), now)

    def remove(self, item: Object, now: float) -> None:
        """Removes an object."""
        if isinstance(item, Pod):
            self.pods.pop(item.uid, None)
        self.engine.handle(Removed(item), now)
        if isinstance(item, Pod):
            self.free_claims(item, now)

    def free_claims(self, pod: Pod, now: float) -> None:
        """Frees the claims of a deleted pod: its own are deleted, others lose it as a user."""
        for claim in list(self.engine.cluster.nodes.devices.claims.used_by(pod)):
            left = without_user(claim, pod)
            if left is None:
                self.engine.handle(Removed(claim), now)
            elif left is not claim:
                self.engine.handle(Applied(left), now)

    def perform(self, actions: Iterable[Action], now: float) -> None:
        """Performs actions on pods and volumes; ignores events and conditions."""
        for action in actions:
            match action:
                case BindPod():
                    self.bind(action, now)
                case EvictPod():
                    self.evict(action, now)
                case WriteVolumes():
                    self.write_volumes(action, now)
                case WriteClaims():
                    self.write_claims(action, now)
                case RevokeClaims():
                    self.revoke_claims(action, now)
                case ReleaseClaim():
                    self.release_claim(action, now)

    def bind(self, action: BindPod, now: float) -> Pod:
        """Gives a pod its node; returns the pod as it is then."""
        uid = action.pod.uid
        pod = self.pods[uid] = self.pods[uid].on(action.node, action.annotations)
        self.engine.handle(Bound(uid), now)
        self.engine.handle(Applied(pod), now)
        return pod

    def evict(self, action: EvictPod, now: float) -> Pod | None:
        """Removes a victim and uses up its budgets; returns it, or None if it is gone already."""
        uid = action.pod.uid
        self.engine.handle(Evicted(uid, action.preemptor.uid), now)
        # Two pods may ask for the same victim before it is gone.
        victim = self.pods.get(uid)
        if victim is None:
            return None
        self.remove(victim, now)
        for budget in list(self.engine.cluster.nodes.workloads.budgets):
            if budget.covers(victim):
                left = max(0, budget.disruptions_allowed - 1)
                self.engine.handle(Applied(replace(budget, disruptions_allowed=left)), now)
        return victim

    def write_volumes(self, action: WriteVolumes, now: float) -> list[ClaimedVolume]:
        """Binds and makes volumes, as the volume controller and the provisioner do."""
        claimed = []
        # One after the other: a claim that is bound may be asked for twice.
        for each in _write(action, self.engine.cluster.nodes):
            self.engine.handle(Applied(each.volume), now)
            self.engine.handle(Applied(each.claim), now)
            claimed.append(each)
        return claimed

    def write_claims(self, action: WriteClaims, now: float) -> list[ResourceClaim]:
        """Gives claims their devices and users; returns the claims as they are then."""
        known = self.engine.cluster.nodes.devices.claims
        written = []
        for grant in action.writes.grants:
            claim = known.get(grant.claim.key)
            assert claim is not None, f"claim {grant.claim.key} is not known"
            written.append(_grant(claim, grant.allocation, action.pod, grant.user))
        creation = action.writes.creation
        if creation is not None:
            written.append(_grant(_make(creation, action.pod), creation.allocation, action.pod))
        for claim in written:
            self.engine.handle(Applied(claim), now)
        self.engine.handle(ClaimsWritten(action.pod.uid), now)
        return written

    def revoke_claims(self, action: RevokeClaims, now: float) -> None:
        """Takes a pod out of the claims that it was to use."""
        known = self.engine.cluster.nodes.devices.claims
        for ref in action.claims:
            claim = known.get(ref.key)
            if claim is not None and claim.is_for(action.pod.uid):
                left = tuple(user for user in claim.reserved_for if user.uid != action.pod.uid)
                self.engine.handle(Applied(replace(claim, reserved_for=left)), now)
        for special in known.extended_of(action.pod.uid) if action.deletes_special else ():
            self.engine.handle(Removed(special), now)
        self.engine.handle(ClaimsRevoked(action.pod.uid), now)

    def release_claim(self, action: ReleaseClaim, now: float) -> None:
        """Frees the devices of a claim, or deletes it."""
        claim = self.engine.cluster.nodes.devices.claims.get(action.release.claim.key)
        if claim is None:
            return
        if action.release.deletes:
            self.engine.handle(Removed(claim), now)
        else:
            self.engine.handle(Applied(claim.deallocated()), now)


def _grant(
    claim: ResourceClaim,
    allocation: dict[str, Any] | None,
    pod: PodRef,
    user: dict[str, Any] | None = None,
) -> ResourceClaim:
    made = None if allocation is None else to_struct(Allocation, allocation)
    own = {"resource": "pods", "name": pod.name, "uid": pod.uid}
    return claim.granted(made, to_struct(ClaimUser, user or own))


def _make(creation: ClaimCreation, pod: PodRef) -> ResourceClaim:
    """Makes the claim for the extended resources of a pod."""
    spec = to_struct(ClaimSpec, {"devices": creation.devices})
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True
    )
    return ResourceClaim(
        namespace=pod.namespace,
        name=f"{pod.name}-extended-resources",
        uid=f"{pod.uid}-extended-resources",
        spec=share_claim_spec(spec),
        owner=owner,
        is_extended=True,
    )


def place_pod(cluster: Cluster, profile: Profile, pod: Pod, node_name: str) -> str | None:
    """Counts a pod on a node and lets plugins reserve; takes all back if one refuses.

    It serves what-if questions, which bind nothing. Returns why a plugin refused.
    """
    placed = cluster.assume(pod, node_name, find_stamp(profile, pod))
    row = cluster.nodes.row(node_name)
    assert row is not None, "a pod was assumed there"
    refusal = _reserve(profile, placed, cluster.nodes, row)
    if refusal is not None:
        for plugin in reversed(profile.reserve):
            ask_unreserve(plugin, placed, cluster.nodes, node_name)
        cluster.forget(pod.uid)
    return refusal


def _reserve(profile: Profile, pod: Pod, nodes: Nodes, row: int) -> str | None:
    try:
        for plugin in profile.reserve:
            refused = ask_reserve(plugin, None, pod, nodes, row)
            if refused is not None:
                return refused.message
    except PluginError as error:
        return str(error)
    return None


def _write(action: WriteVolumes, nodes: Nodes) -> Iterator[ClaimedVolume]:
    for volume in action.volumes:
        yield ClaimedVolume(*_bind_volume(volume, nodes), provisioned=False, pod=action.pod.name)
    for claim in action.claims:
        made = _provision(claim, nodes)
        if made is not None:
            yield ClaimedVolume(*made, provisioned=True, pod=action.pod.name)


_Pair = tuple[PersistentVolume, PersistentVolumeClaim]


def _bind_volume(write: VolumeWrite, nodes: Nodes) -> _Pair:
    volume = nodes.storage.known_volume(write.name)
    claim = nodes.storage.known_claim(f"{write.claim_namespace}/{write.claim_name}")
    assert volume is not None, f"volume {write.name} is not known"
    assert claim is not None, f"the claim of volume {write.name} is not known"
    return replace(volume, claim_ref=claim.ref, phase=_BOUND), _bind_claim(claim, volume.name)


def _provision(write: ClaimWrite, nodes: Nodes) -> _Pair | None:
    """Makes a volume for a claim; None if the decision for another pod already made one."""
    claim = nodes.storage.known_claim(f"{write.namespace}/{write.name}")
    row = nodes.row(write.node_name)
    assert claim is not None, f"claim {write.name} is not known"
    assert row is not None, f"node {write.node_name} is not known"
    if claim.volume_name:
        return None
    # The provisioner names it so, too. What is written by hand has no uid.
    name = f"pvc-{claim.uid or claim.key}"
    driver = nodes.storage.attachable(claim)
    volume = PersistentVolume(
        name=name,
        capacity=claim.request or 0,
        access_modes=claim.access_modes,
        claim_ref=claim.ref,
        class_name=claim.class_name,
        volume_mode=claim.volume_mode,
        attributes_class=claim.attributes_class,
        node_terms=_topology(nodes.storage.storage_class(claim.class_name), nodes.node(row)),
        source=None if driver is None else Attachable(driver.driver, name),
        phase=_BOUND,
    )
    return volume, replace(_bind_claim(claim, name), selected_node=write.node_name)


def _bind_claim(claim: PersistentVolumeClaim, volume_name: str) -> PersistentVolumeClaim:
    return replace(claim, volume_name=volume_name, bind_completed=True, phase=_BOUND)


def _topology(by_class: StorageClass | None, node: Node) -> Terms | None:
    """Returns where a volume for a node can be used: within what its class allows.

    If the class names no topology, the volume can be used everywhere.
    """
    for term in by_class.allowed_topologies if by_class is not None else ():
        if isinstance(term, NodeTerm) and term.matches(node.labels, node.name):
            here = (each.key for each in term.requirements)
            return (
                NodeTerm(tuple(NodeRequirement(key, "In", (node.labels[key],)) for key in here)),
            )
    return None
