"""The controller of StatefulSets: pods with lasting names and claims, handled in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass

from moorage.embedded.controllers.items import next_availability, without_zeros
from moorage.embedded.store.object_store import Json

from .cache import CLAIMS, PODS
from .controller import Concerns, Controller, ControllerApi
from .event_recorder import EventRecorder, PodKeeper
from .items import ENDED, ItemOwner, PodItem
from .ownership import Adoption, owner_json, pod_of, reference
from .replica_sets import ROUND
from .revisions import REVISION_HASH_LABEL, REVISION_LABEL, Revisions, pod_template

_POD = {"apiVersion": "v1", "kind": "Pod"}


@dataclass(frozen=True, slots=True)
class ClaimKeeper:
    """Makes the claims of stateful sets, and sets their owners."""

    cluster: ControllerApi
    recorder: EventRecorder

    def are_stale(self, item: Json, pod: str) -> bool:
        """Whether claims of an earlier pod of this name are still being deleted."""
        known = self.cluster.cache.items(CLAIMS)
        found = (known.get(key) for key, _ in _claims(item, pod))
        return any(
            each.terminating or any(owner.kind == "Pod" for owner in each.owners)
            for each in found
            if each is not None
        )

    def give_claims(self, item: Json, pod: Json) -> None:
        """Gives a pod its claims, and makes those that are missing."""
        metadata, name = item["metadata"], pod["metadata"]["name"]
        volumes = {}
        for key, template in _claims(item, name):
            volume, claim = template["metadata"]["name"], key.rpartition("/")[2]
            volumes[volume] = {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
            if self.cluster.read(CLAIMS, key) is None:
                made = _claim(item, template, claim)
                self.cluster.create(CLAIMS, metadata["namespace"], made)
                message = f"Create Claim {claim} Pod {name} in StatefulSet {metadata['name']}"
                self.recorder.record(item, "SuccessfulCreate", f"{message} success")
        if volumes:
            others = pod["spec"].get("volumes") or []
            kept = [each for each in others if each["name"] not in volumes]
            pod["spec"]["volumes"] = [*kept, *volumes.values()]

    def set_owners(self, item: Json, pod: PodItem, *, condemned: bool) -> None:
        """Sets the owners of a pod's claims by the retention policy."""
        known, uid = self.cluster.cache.items(CLAIMS), item["metadata"]["uid"]
        for key, _ in _claims(item, pod.name):
            claim = known.get(key)
            if claim is None or claim.terminating:
                continue
            ours = [each for each in claim.owners if each.uid in (uid, pod.uid)]
            others = [each for each in claim.owners if each not in ours]
            wanted = _owner(item, pod, condemned=condemned) if _is_free(others) else None
            if [each.uid for each in ours] != ([wanted["uid"]] if wanted else []):
                owners = [owner_json(each) for each in others]
                self.cluster.rewrite_owners(claim, [*owners, wanted] if wanted else owners)


def _claims(item: Json, pod: str) -> Iterator[tuple[str, Json]]:
    """Yields the keys and templates of a pod's claims."""
    for each in item["spec"].get("volumeClaimTemplates") or ():
        yield f"{item['metadata']['namespace']}/{each['metadata']['name']}-{pod}", each


def _claim(item: Json, template: Json, name: str) -> Json:
    chosen = item["spec"]["selector"].get("matchLabels") or {}
    labels = {**(template["metadata"].get("labels") or {}), **chosen}
    made: Json = {
        "metadata": {**template["metadata"], "name": name, "labels": labels},
        "spec": deepcopy(template["spec"]),
    }
    if _policy(item, "whenDeleted") == "Delete":
        made["metadata"]["ownerReferences"] = [reference(item)]
    return made


def _owner(item: Json, pod: PodItem, *, condemned: bool) -> Json | None:
    """Returns the owner with which a claim is deleted; None if it stays."""
    if condemned and _policy(item, "whenScaled") == "Delete":
        return reference({**_POD, "metadata": {"name": pod.name, "uid": pod.uid}})
    return reference(item) if _policy(item, "whenDeleted") == "Delete" else None


def _policy(item: Json, when: str) -> str:
    policy = item["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return str(policy.get(when, "Retain"))


def _is_free(others: list[ItemOwner]) -> bool:
    """Whether no other controller manages a claim."""
    return not any(each.controller for each in others)


STATEFUL_SETS = "statefulsets.apps"
_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
_INDEX_LABEL = "apps.kubernetes.io/pod-index"

_CREATED = "Create Pod {pod} in StatefulSet {owner} successful"
_DELETED = "Delete Pod {pod} in StatefulSet {owner} successful"
# Claims that are about to go are waited for.
_SECONDS_FOR_CLAIMS = 1.0


@dataclass(frozen=True, slots=True)
class StatefulSetState:
    """A stateful set with its pods and versions, as of one look."""

    item: Json
    revisions: Revisions
    #: By ordinal; those that should not be there included.
    pods: dict[int, PodItem]
    now: float

    @property
    def ordinals(self) -> range:
        spec = self.item["spec"]
        start = (spec.get("ordinals") or {}).get("start", 0)
        return range(start, start + spec["replicas"])

    @property
    def in_order(self) -> bool:
        return self.item["spec"]["podManagementPolicy"] == "OrderedReady"

    @property
    def condemned(self) -> list[PodItem]:
        """The pods that are too many, the last first."""
        beyond = sorted(self.pods.keys() - set(self.ordinals), reverse=True)
        return [self.pods[each] for each in beyond]

    @property
    def first_unavailable(self) -> PodItem | None:
        """The pod with the lowest ordinal that is not available."""
        in_order = (self.pods[each] for each in sorted(self.pods))
        return next((pod for pod in in_order if not self.is_fine(pod)), None)

    @property
    def missing(self) -> list[str]:
        """The names of the pods that are missing."""
        name = self.item["metadata"]["name"]
        return [f"{name}-{each}" for each in self.ordinals if each not in self.pods]

    @property
    def partition(self) -> int:
        """The first ordinal that a rolling update changes."""
        strategy = self.item["spec"]["updateStrategy"]
        kept: int = (strategy.get("rollingUpdate") or {}).get("partition", 0)
        return self.ordinals.start + kept

    @property
    def rolls(self) -> bool:
        return self.item["spec"]["updateStrategy"]["type"] == "RollingUpdate"

    def is_fine(self, pod: PodItem) -> bool:
        least: int = self.item["spec"].get("minReadySeconds", 0)
        return pod.active and pod.phase == "Running" and pod.is_available(self.now, least)

    def is_present(self, pod: PodItem) -> bool:
        return pod.labels.get(REVISION_LABEL) == self.revisions.present["metadata"]["name"]

    def version_for(self, ordinal: int) -> str:
        """Returns the name of the version that a new pod gets."""
        current: str = (self.item.get("status") or {}).get("currentRevision", "")
        if self.rolls and current and ordinal < self.partition:
            return current
        return self.revisions.present["metadata"]["name"]


class StatefulSetController(Controller):
    name = "statefulset"

    def __init__(self, cluster: ControllerApi) -> None:
        super().__init__(cluster)
        self._adoption = Adoption(cluster, STATEFUL_SETS, PODS, _is_member)
        recorder = EventRecorder(cluster, "statefulset-controller")
        self._keeper = PodKeeper(cluster, recorder, _CREATED, _DELETED)
        self._claims = ClaimKeeper(cluster, recorder)

    def concerns(self) -> Mapping[str, Concerns]:
        return {STATEFUL_SETS: self._adoption.keys_of_owner, PODS: self._adoption.keys_of_dependent}

    def reconcile(self, key: str) -> float | None:
        item = self.cluster.read(STATEFUL_SETS, key)
        if item is None or "deletionTimestamp" in item["metadata"]:
            return None
        self._adoption.adopt_and_release(item, key)
        revisions = Revisions.of(self.cluster, item, REVISION_HASH_LABEL)
        before = self._round(item, revisions)
        self._settle_claims(before)
        done = self._advance(before)
        self.cluster.cache.catch_up()
        after = self._round(item, revisions)
        again = self._report(after)
        labels = (pod.labels.get(REVISION_LABEL, "") for pod in after.pods.values())
        in_use = {each.rpartition("-")[2] for each in labels}
        revisions.forget(in_use, item["spec"].get("revisionHistoryLimit", 10))
        if self._waits_for_claims(after):
            return _SECONDS_FOR_CLAIMS
        return 0.0 if done >= ROUND else again

    def _round(self, item: Json, revisions: Revisions) -> StatefulSetState:
        pods = {}
        for pod in self.cluster.cache.pods_of(item["metadata"]["uid"]):
            if _is_member(item["metadata"]["name"], pod.name):
                pods[int(pod.name.rpartition("-")[2])] = pod
        return StatefulSetState(item, revisions, pods, self.cluster.now)

    def _advance(self, at: StatefulSetState) -> int:
        """Takes the next steps; returns how many pods were made or removed."""
        made, waits = self._fill(at)
        if waits:
            return made
        removed, waits = self._shrink(at)
        if not waits and not made and not removed:
            self._update(at)
        return made + removed

    def _fill(self, at: StatefulSetState) -> tuple[int, bool]:
        """Makes missing pods in order; returns how many, and whether the rest has to wait."""
        made = 0
        for ordinal in at.ordinals:
            pod = at.pods.get(ordinal)
            if made == ROUND:
                return made, True
            if pod is None:
                made += self._create(at, ordinal)
            elif pod.phase in ENDED and not pod.terminating:
                self._keeper.delete(at.item, pod)
                made += 1
            if at.in_order and (pod is None or not at.is_fine(pod)):
                return made, True
        return made, False

    def _shrink(self, at: StatefulSetState) -> tuple[int, bool]:
        """Removes surplus pods, the last first; returns how many, and whether the rest waits."""
        removed, first = 0, at.first_unavailable
        for pod in at.condemned:
            if at.in_order and not pod.terminating and not at.is_fine(pod) and pod is not first:
                return removed, True
            if not pod.terminating:
                self._keeper.delete(at.item, pod)
                removed += 1
            if at.in_order or removed == ROUND:
                return removed, True
        return removed, False

    def _update(self, at: StatefulSetState) -> None:
        """Removes the last pod of an older version, once all pods after it are available."""
        if not at.rolls:
            return
        for ordinal in reversed(at.ordinals):
            pod = at.pods.get(ordinal)
            if ordinal < at.partition or pod is None:
                return
            if not at.is_present(pod) and not pod.terminating:
                self._keeper.delete(at.item, pod)
                return
            if not at.is_fine(pod):
                return

    def _create(self, at: StatefulSetState, ordinal: int) -> bool:
        """Makes a pod, unless claims of an earlier pod of its name are still being deleted."""
        item = at.item
        metadata, version = item["metadata"], at.version_for(ordinal)
        name = f"{metadata['name']}-{ordinal}"
        if self._claims.are_stale(item, name):
            return False
        pod = pod_of(item, pod_template(at.revisions.template(version)))
        pod["metadata"].pop("generateName")
        pod["metadata"]["name"] = name
        pod["metadata"]["labels"] = {
            **(pod["metadata"].get("labels") or {}),
            REVISION_LABEL: version,
            _NAME_LABEL: name,
            _INDEX_LABEL: str(ordinal),
        }
        pod["spec"]["hostname"] = name
        if item["spec"].get("serviceName"):
            pod["spec"]["subdomain"] = item["spec"]["serviceName"]
        self._claims.give_claims(item, pod)
        self._keeper.create(item, pod)
        return True

    def _waits_for_claims(self, at: StatefulSetState) -> bool:
        if not at.item["spec"].get("volumeClaimTemplates"):
            return False
        return any(self._claims.are_stale(at.item, name) for name in at.missing)

    def _settle_claims(self, at: StatefulSetState) -> None:
        if at.item["spec"].get("volumeClaimTemplates"):
            for ordinal, pod in at.pods.items():
                self._claims.set_owners(at.item, pod, condemned=ordinal not in at.ordinals)

    def _report(self, at: StatefulSetState) -> float | None:
        item, least = at.item, at.item["spec"].get("minReadySeconds", 0)
        present = at.revisions.present["metadata"]["name"]
        pods = [pod for pod in at.pods.values() if pod.phase not in ENDED]
        updated = [pod for pod in pods if at.is_present(pod)]
        old = item.get("status") or {}
        current = old.get("currentRevision") or present
        settled = len(updated) == len(pods) == len(at.ordinals)
        if at.rolls and settled and all(at.is_fine(pod) for pod in pods):
            current = present
        counts = {
            "readyReplicas": sum(pod.ready for pod in pods),
            "currentReplicas": sum(pod.labels.get(REVISION_LABEL) == current for pod in pods),
            "updatedReplicas": len(updated),
        }
        status = {
            "observedGeneration": item["metadata"].get("generation", 0),
            "replicas": len(pods),
            **without_zeros(counts),
            "currentRevision": current,
            "updateRevision": present,
            "collisionCount": 0,
            "availableReplicas": sum(pod.is_available(at.now, least) for pod in pods),
        }
        self.cluster.set_status(STATEFUL_SETS, item, status)
        return next_availability(pods, at.now, least)


def _is_member(owner: str, pod: str) -> bool:
    """Whether the name of a pod is one that a set gives."""
    prefix, _, ordinal = pod.rpartition("-")
    return prefix == owner and ordinal.isdecimal()
