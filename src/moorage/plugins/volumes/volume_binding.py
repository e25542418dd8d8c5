"""VolumeBinding: a pod goes where its volumes are, can be bound, or can be made."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, Mask, RowFacts, Rows, Scope, View
from moorage.cluster.storage.objects import KnownStorage
from moorage.documents.errors import describe
from moorage.framework.plugin import (
    UNSIGNABLE,
    UPDATED,
    ClaimWrite,
    Filter,
    PreBind,
    PreFilter,
    Preparation,
    PreScore,
    Reduction,
    Rescore,
    Reserve,
    Score,
    Scores,
    Sign,
    VolumeWrite,
)
from moorage.framework.status import Code, PluginError, Reason, Rejected
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, Resource, Wakeup, on
from moorage.objects.csi import CSIDriver, CSINode, CSIStorageCapacity
from moorage.objects.meta import Wire
from moorage.objects.pod import Pod
from moorage.objects.storage import PersistentVolume, StorageClass
from moorage.plugins.allocation import Ratio, ShapePoint

from .volume_capacity_score import CapacityScore
from .volume_claims import OWN_CLAIMS, AdviseOnVolumes, Claims, claim_names, claims_of, uses_claim
from .volume_progress import progress
from .volume_search import find_fault, is_faulty, is_usable_everywhere, search, usable

_UNUSABLE = Reason("node(s) didn't match PersistentVolume's node affinity", Code.UNRESOLVABLE)
_NO_VOLUME = Reason("node(s) didn't find available persistent volumes to bind", Code.UNRESOLVABLE)
_NO_SPACE = Reason("node(s) did not have enough free storage", Code.UNRESOLVABLE)
_NO_SUCH_VOLUME = Reason(
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
    Code.UNRESOLVABLE,
)

# By default, a node scores higher the less of its storage the pod would use.
SHAPE = (ShapePoint(utilization=0, score=10), ShapePoint(utilization=100, score=0))


class VolumeBindingArgs(Wire, frozen=True):
    """How long to wait for bindings, and how the use of storage scores nodes."""

    bind_timeout_seconds: int = 600
    shape: tuple[ShapePoint, ...] | None = None

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.bind_timeout_seconds < 0:
            got = describe(self.bind_timeout_seconds)
            yield "bindTimeoutSeconds", f"must not be negative, got {got}"
        if self.shape:
            yield from Ratio(shape=self.shape).problems()


class VolumeBinding(
    PreFilter[Claims],
    Filter[Claims],
    PreScore[Claims],
    Score[Claims],
    Reserve,
    PreBind,
    Sign,
    AdviseOnVolumes,
):
    """Checks bound volumes, finds volumes for unbound claims, and has them bound."""

    name = "VolumeBinding"
    Args = VolumeBindingArgs
    # Volumes belong to claims. Which pods use a claim does not matter.
    reads = Change.LABELS | Change.STORAGE | Change.MEMBERSHIP
    writes = Change.STORAGE
    scope = Scope.CLUSTER
    reduces = Reduction.NOTHING

    def __init__(self, args: VolumeBindingArgs | None = None, *, scores: bool = False) -> None:
        self._args = args or VolumeBindingArgs()
        self._scoring = CapacityScore(self._args.shape or SHAPE) if scores else None

    @classmethod
    def create(cls, args: Any, gates: Mapping[str, bool]) -> Self:
        return cls(args, scores=gates["StorageCapacityScoring"])

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return nodes.storage.facts.find(pod, _sign) if pod.spec.claiming else None

    def watch(self, pod: Pod, nodes: View) -> Change:
        return self.reads if pod.spec.claiming else Change.NONE

    # Filtering

    def pre_filter(self, pod: Pod, nodes: View) -> Claims | Rejected | None:
        return self._find_claims(pod, nodes)

    def _find_claims(self, pod: Pod, nodes: View) -> Claims | Rejected | None:
        return claims_of(pod, nodes.storage) if pod.spec.claiming else None

    def filter(self, prepared: Claims, nodes: View, rows: Rows) -> Verdict:
        if _fits_everywhere(prepared):
            return Verdict.accepting(nodes.count(rows))
        unusable, missing = _find_unusable(prepared.volumes, nodes, rows)
        if not prepared.unbound:
            verdict = Verdict((_UNUSABLE, _NO_SUCH_VOLUME), np.stack((unusable, missing)))
        else:
            found = search(prepared.unbound, nodes, rows)
            verdict = Verdict(
                (_UNUSABLE, _NO_VOLUME, _NO_SPACE, _NO_SUCH_VOLUME),
                np.stack((unusable, found.no_volume, found.no_space, missing)),
            )
        if any(volume is not None and find_fault(volume) for volume in prepared.volumes):
            _note_faults(verdict, prepared.volumes, nodes, rows)
        return verdict

    def recheck(self, prepared: Claims, nodes: View, row: RowFacts) -> Rescore:
        return UPDATED if _fits_everywhere(prepared) else Rescore.UNKNOWN

    # Scoring

    def pre_score(self, pod: Pod, nodes: View, rows: NDArray[np.intp]) -> Claims | None:
        if self._scoring is None:
            return None
        claims = self._find_claims(pod, nodes)
        return claims if isinstance(claims, Claims) else Claims()

    def score(self, prepared: Claims, nodes: View, rows: Rows) -> Scores:
        if self._scoring is None or not prepared.unbound:
            return np.zeros(nodes.count(rows), np.int64)
        return self._scoring.score(search(prepared.unbound, nodes, rows), nodes.count(rows))

    # Binding

    def reserves_for(self, pod: Pod, nodes: View) -> bool:
        return bool(pod.spec.claiming)

    def reserve(self, pod: Pod, nodes: View, row: int) -> Rejected | None:
        claims = self._find_claims(pod, nodes)
        if claims is None or isinstance(claims, Rejected):
            return claims
        if not claims.unbound:
            return None
        found = search(claims.unbound, nodes, np.array([row], np.intp))
        for failed, reason in ((found.no_volume, _NO_VOLUME), (found.no_space, _NO_SPACE)):
            if failed[0]:
                return Rejected(reason.code, (reason.text,))
        nodes.reservations.reserve(pod.uid, found.reservation(nodes.name(row)))
        return None

    def unreserve(self, pod: Pod, nodes: View, node_name: str) -> None:
        nodes.reservations.release(pod.uid)

    def prepare(self, pod: Pod, nodes: View, node_name: str) -> Preparation | None:
        reserved = nodes.storage.reservation(pod.uid)
        if not reserved:
            return None
        return Preparation(
            tuple(
                VolumeWrite(each.volume_name, each.claim.namespace, each.claim.name, each.claim.uid)
                for each in reserved.bindings
            ),
            tuple(_claim_write(key, node_name) for key in reserved.provisions),
            float(self._args.bind_timeout_seconds),
        )

    def is_prepared(self, pod: Pod, nodes: View, node_name: str) -> bool | Rejected:
        reserved = nodes.storage.reservation(pod.uid)
        return progress(reserved, nodes) if reserved else True

    # Waking up

    def wakeups(self) -> tuple[Wakeup, ...]:
        add_or_update = Action.ADD | Action.UPDATE
        return (
            on(Resource.STORAGE_CLASS, add_or_update, self._after_class_change, alike=True),
            on(
                Resource.PERSISTENT_VOLUME_CLAIM,
                add_or_update,
                uses_claim,
                reads=claim_names,
                topics=OWN_CLAIMS,
            ),
            on(Resource.PERSISTENT_VOLUME, add_or_update),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            on(Resource.CSI_NODE, add_or_update, self._after_csi_node_change, alike=True),
            on(Resource.CSI_DRIVER, Action.UPDATE, self._after_driver_change, alike=True),
            on(
                Resource.CSI_STORAGE_CAPACITY,
                add_or_update,
                self._after_capacity_change,
                alike=True,
            ),
        )

    def _after_class_change(self, pod: Pod, old: StorageClass | None, new: StorageClass) -> bool:
        return old is None or old.allowed_topologies != new.allowed_topologies

    def _after_csi_node_change(self, pod: Pod, old: CSINode | None, new: CSINode) -> bool:
        return old is None or old.migrated_plugins != new.migrated_plugins

    def _after_driver_change(self, pod: Pod, old: CSIDriver, new: CSIDriver) -> bool:
        inline = (volume.csi for volume in pod.spec.volumes or () if volume.csi is not None)
        opted_out = old.storage_capacity and not new.storage_capacity
        return opted_out and any(source.driver == new.name for source in inline)

    def _after_capacity_change(
        self, pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity
    ) -> bool:
        if old is None:
            return True
        before, after = old.limit_bytes, new.limit_bytes
        return after is not None and (before is None or after > before)


def _sign(pod: Pod, storage: KnownStorage) -> Hashable:
    """Returns what decides where the bound volumes of a pod can be used, or why it is rejected."""
    try:
        claims = claims_of(pod, storage)
    except PluginError:
        return UNSIGNABLE
    if not isinstance(claims, Claims):
        return claims
    # Each placement takes a volume, or the storage for one, which the next pod cannot have.
    if claims.unbound:
        return UNSIGNABLE
    return tuple([volume and _affinity(volume) for volume in claims.volumes])


def _fits_everywhere(claims: Claims) -> bool:
    """Returns whether every claim has a volume that can be used everywhere."""
    if claims.unbound:
        return False
    for volume in claims.volumes:
        if volume is None or not is_usable_everywhere(volume):
            return False
    return True


def _find_unusable(
    volumes: Sequence[PersistentVolume | None], nodes: View, rows: Rows
) -> tuple[Mask, Mask]:
    """Returns where a volume is unusable, and where one is missing; the first failure decides."""
    unusable, missing = nodes.nothing(rows), nodes.nothing(rows)
    for volume in volumes:
        if volume is None:
            missing = ~unusable
            break
        unusable |= ~usable(volume, nodes, rows)
    return unusable, missing


def _note_faults(
    verdict: Verdict, volumes: Sequence[PersistentVolume | None], nodes: View, rows: Rows
) -> None:
    """Notes the rows on which the first volume that fails is one that no driver can know."""
    failed, broken = nodes.nothing(rows), nodes.nothing(rows)
    numbers = np.array(nodes.numbers(rows))
    texts: dict[int, str] = {}
    for volume in volumes:
        if volume is None:
            break
        faulty = is_faulty(volume, nodes, rows) & ~failed & ~broken
        texts.update(dict.fromkeys(numbers[faulty].tolist(), find_fault(volume)))
        broken |= faulty
        failed |= ~usable(volume, nodes, rows)
    verdict.broken, verdict.describe = broken, texts.__getitem__


def _affinity(volume: PersistentVolume) -> Hashable:
    """Returns all that decides where a bound volume can be used."""
    plugin = volume.source.plugin if volume.source else ""
    return volume.node_terms, plugin, volume.migrated_terms, find_fault(volume)


def _claim_write(key: str, node_name: str) -> ClaimWrite:
    namespace, _, name = key.partition("/")
    return ClaimWrite(namespace, name, node_name)
