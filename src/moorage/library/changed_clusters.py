"""The objects of a cluster after a drain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from moorage.documents.errors import InputError
from moorage.objects.kinds import Object
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.pod_status import PodStatus
from moorage.objects.resource_claim import ResourceClaim
from moorage.simulate.drain import describe_delays, describe_refusals, study_drain
from moorage.world import DrainError, Scene
from moorage.world.claim_templates import without_user


def drain_nodes(
    objects: Sequence[Object], names: Sequence[str]
) -> tuple[tuple[Object, ...], tuple[str, ...]]:
    """Returns the objects once nodes are drained, and what to know before the drain.

    The nodes are cordoned, and their pods wait without devices. Pods of DaemonSets and static pods
    stay. Raises InputError if a node does not exist.
    """
    try:
        scene = Scene.of(objects).drain(names)
    except DrainError as error:
        raise InputError(f"node {error}", "there is no such node") from None
    leaving = {pod.uid: pod for pod, _ in scene.leaving}
    nodes = {node.name: node for node in scene.nodes}

    def change(item: Object) -> Object:
        if isinstance(item, Node):
            return nodes[item.name]
        if isinstance(item, Pod):
            return _take_off(item) if item.uid in leaving else item
        return _free(item, leaving) if isinstance(item, ResourceClaim) else item

    found = study_drain(scene)
    notes = () if found is None else (*describe_refusals(found), *describe_delays(found))
    return tuple(map(change, objects)), notes


def _take_off(pod: Pod) -> Pod:
    """Returns a pod as if it had never been placed; the claims that were made for it are kept."""
    status = PodStatus(
        phase="Pending",
        resource_claim_statuses=pod.status.resource_claim_statuses,
        extended_resource_claim_status=pod.status.extended_resource_claim_status,
    )
    return replace(pod, node_name="", status=status)


def _free(claim: ResourceClaim, leaving: Mapping[str, Pod]) -> ResourceClaim:
    """Returns a claim without the pods that leave, and without devices if it has no user left."""
    for user in claim.reserved_for:
        if user.uid in leaving:
            left = without_user(claim, leaving[user.uid])
            claim = claim.deallocated() if left is None else left
    return claim
