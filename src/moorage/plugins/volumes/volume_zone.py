"""VolumeZone: a volume with zone labels can only be used by nodes of its zones."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from moorage.cluster import Change, Mask, Rows, Scope, View
from moorage.cluster.storage.objects import KnownStorage
from moorage.framework.plugin import Filter, PreFilter, Sign
from moorage.framework.status import Code, Reason, Rejected, unresolvable
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, Resource, Wakeup, on
from moorage.objects.in_tree import ZONE_DELIMITER
from moorage.objects.node import BETA_REGION, BETA_ZONE, REGION, ZONE
from moorage.objects.node_selector import NodeRequirement
from moorage.objects.pod import Pod
from moorage.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

from .volume_claims import (
    OWN_CLAIMS,
    AdviseOnVolumes,
    claim_names,
    claim_not_found,
    names_claim,
)

_WRONG_ZONE = Reason("node(s) had no available volume zone", Code.UNRESOLVABLE)

# The older names have precedence; a node may have the newer one only.
_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_NEWER = {BETA_ZONE: ZONE, BETA_REGION: REGION}

#: Label keys with the values that suit, without repetitions.
Topologies = tuple[NodeRequirement, ...]


class VolumeZone(PreFilter[Topologies], Filter[Topologies], Sign, AdviseOnVolumes):
    """Compares zone and region labels of bound volumes with those of nodes."""

    name = "VolumeZone"
    # It compares labels of volumes and nodes. Which pods use the volumes does not matter.
    reads = Change.LABELS | Change.STORAGE
    scope = Scope.CLUSTER

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return self.pre_filter(pod, nodes)

    def watch(self, pod: Pod, nodes: View) -> Change:
        return self.reads if pod.spec.claiming else Change.NONE

    def pre_filter(self, pod: Pod, nodes: View) -> Topologies | Rejected | None:
        return nodes.storage.facts.find(pod, _find_topologies) if pod.spec.claiming else None

    def filter(self, prepared: Topologies, nodes: View, rows: Rows) -> Verdict:
        wrong = nodes.nothing(rows)
        for topology in prepared:
            wrong |= ~_within(topology, nodes, rows)
        return Verdict.rejecting(wrong & _find_zoned(nodes, rows), _WRONG_ZONE)

    def wakeups(self) -> tuple[Wakeup, ...]:
        return (
            on(Resource.STORAGE_CLASS, Action.ADD, self._after_class_is_added, alike=True),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            on(
                Resource.PERSISTENT_VOLUME_CLAIM,
                Action.ADD | Action.UPDATE,
                names_claim,
                reads=claim_names,
                topics=OWN_CLAIMS,
            ),
            on(
                Resource.PERSISTENT_VOLUME,
                Action.ADD | Action.UPDATE,
                self._after_volume_change,
                alike=True,
            ),
        )

    def _after_class_is_added(self, pod: Pod, old: None, new: StorageClass) -> bool:
        return new.waits

    def _after_volume_change(
        self, pod: Pod, old: PersistentVolume | None, new: PersistentVolume
    ) -> bool:
        return old is None or tuple(_topologies(old)) != tuple(_topologies(new))


def _find_topologies(pod: Pod, storage: KnownStorage) -> Topologies | Rejected | None:
    """Returns the zones and regions of the volumes of a pod; None if they have none."""
    found: dict[NodeRequirement, None] = {}
    for use, _, claim in storage.uses_of(pod):
        if use.ephemeral:
            continue
        if not use.name:
            return unresolvable("PersistentVolumeClaim had no name")
        if claim is None:
            return unresolvable(claim_not_found(use.name))
        volume = _volume(claim, storage)
        if isinstance(volume, Rejected):
            return volume
        if volume is not None and volume.labels:
            found.update(dict.fromkeys(_topologies(volume)))
    return tuple(found) or None


def _volume(
    claim: PersistentVolumeClaim, storage: KnownStorage
) -> PersistentVolume | Rejected | None:
    """Returns the volume of a claim; None if it gets one only after its pod is placed."""
    if claim.volume_name:
        volume = storage.known_volume(claim.volume_name)
        if volume is None:
            return unresolvable(f'persistentvolume "{claim.volume_name}" not found')
        return volume
    name = claim.class_name
    if not name:
        return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
    by_class = storage.storage_class(name)
    if by_class is None:
        return unresolvable(f'storageclass.storage.k8s.io "{name}" not found')
    if by_class.volume_binding_mode is None:
        return unresolvable(f'VolumeBindingMode not set for StorageClass "{name}"')
    return None if by_class.waits else unresolvable("PersistentVolume had no name")


def _topologies(volume: PersistentVolume) -> Iterator[NodeRequirement]:
    for key in _LABELS:
        if key not in volume.labels:
            continue
        values = {each.strip() for each in volume.labels.get(key, "").split(ZONE_DELIMITER)}
        # A label with an empty zone does not count.
        if "" not in values:
            yield NodeRequirement(key, "In", tuple(sorted(values)))


def _within(topology: NodeRequirement, nodes: View, rows: Rows) -> Mask:
    within = nodes.matching(topology, rows)
    newer = _NEWER.get(topology.key)
    if newer is None:
        return within
    lacking = nodes.matching(NodeRequirement(topology.key, "DoesNotExist"), rows)
    return within | (lacking & nodes.matching(NodeRequirement(newer, "In", topology.values), rows))


def _find_zoned(nodes: View, rows: Rows) -> Mask:
    """Returns where a node has any of the labels. A node without them counts as in every zone."""
    zoned = nodes.nothing(rows)
    for key in _LABELS:
        zoned |= nodes.matching(NodeRequirement(key, "Exists"), rows)
    return zoned
