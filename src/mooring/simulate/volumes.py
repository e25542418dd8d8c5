"""What becomes of volumes and claims once a choice is written: controllers act at once here."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from mooring.cluster import Nodes
from mooring.engine.actions import WriteVolumes
from mooring.framework.plugin import ClaimWrite, VolumeWrite
from mooring.objects.in_tree import Attachable, Terms
from mooring.objects.node import Node
from mooring.objects.node_selector import NodeRequirement, NodeTerm
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

from .transcript import Claimed

_BOUND = "Bound"

Pair = tuple[PersistentVolume, PersistentVolumeClaim]


def written(action: WriteVolumes, nodes: Nodes) -> Iterator[Claimed]:
    """Each volume and claim as the volume controller and the provisioner leave them."""
    for volume in action.volumes:
        yield Claimed(*_bound(volume, nodes), provisioned=False, pod=action.pod.name)
    for claim in action.claims:
        made = _provisioned(claim, nodes)
        if made is not None:
            yield Claimed(*made, provisioned=True, pod=action.pod.name)


def _bound(write: VolumeWrite, nodes: Nodes) -> Pair:
    volume = nodes.storage.known_volume(write.name)
    claim = nodes.storage.known_claim(f"{write.claim_namespace}/{write.claim_name}")
    assert volume is not None, f"volume {write.name} is not known"
    assert claim is not None, f"the claim of volume {write.name} is not known"
    return replace(volume, claim_ref=claim.ref, phase=_BOUND), _having(claim, volume.name)


def _provisioned(write: ClaimWrite, nodes: Nodes) -> Pair | None:
    """A new volume for a claim; None if another pod's decision has brought it one already."""
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
        node_terms=_reach(nodes.storage.storage_class(claim.class_name), nodes.node(row)),
        source=None if driver is None else Attachable(driver.driver, name),
        phase=_BOUND,
    )
    return volume, replace(_having(claim, name), selected_node=write.node_name)


def _having(claim: PersistentVolumeClaim, volume_name: str) -> PersistentVolumeClaim:
    return replace(claim, volume_name=volume_name, bind_completed=True, phase=_BOUND)


def _reach(by_class: StorageClass | None, node: Node) -> Terms | None:
    """Where a volume made for a node can be used: in the node's part of what its class allows.

    A class that names no topology says nothing about it, so then it is everywhere.
    """
    for term in by_class.allowed_topologies if by_class is not None else ():
        if isinstance(term, NodeTerm) and term.matches(node.labels, node.name):
            here = (each.key for each in term.requirements)
            return (
                NodeTerm(tuple(NodeRequirement(key, "In", (node.labels[key],)) for key in here)),
            )
    return None
