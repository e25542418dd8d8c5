"""Deployments: one set of pods per version of the template, and the way from one to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from moorage.embedded.request_refusals import RequestRefused
from moorage.embedded.store.object_store import Json

from .cache import PODS, ItemChange
from .controller import Concerns, Controller, ControllerApi
from .event_recorder import EventRecorder
from .ownership import Adoption, is_managed_by, reference
from .replica_sets import REPLICA_SETS
from .revisions import HASH_LABEL, hash_of, with_label, without_hash
from .rollouts import (
    RolloutPlan,
    SetVersion,
    Sizes,
    deployment_status,
    recreate,
    rescale,
    roll,
    seconds_to_deadline,
)

_PREFIX = "deployment.kubernetes.io/"
REVISION = f"{_PREFIX}revision"
_DESIRED, _MOST = f"{_PREFIX}desired-replicas", f"{_PREFIX}max-replicas"

# Of a number of 64 bits.
_MOST_DIGITS = 19

# These belong to the deployment alone.
_OWN_NOTES = frozenset(
    (
        REVISION,
        _DESIRED,
        _MOST,
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
    )
)


@dataclass(frozen=True, slots=True)
class DeploymentSets:
    """The sets of a deployment: the one of its present template, and the others."""

    new: Json | None
    old: list[Json]

    @property
    def all(self) -> list[Json]:
        return [*self.old, self.new] if self.new is not None else self.old

    @property
    def next_revision(self) -> int:
        """The number of the present version: it is the latest."""
        latest = max((revision_of(each) for each in self.old), default=0)
        return max(revision_of(self.new) if self.new is not None else 0, latest + 1)

    def had_other_size(self, size: int) -> bool:
        """Whether the size of the deployment has changed since its sets got theirs."""
        known = (_number(each, _DESIRED) for each in self.all if each["spec"]["replicas"])
        return any(each not in (None, size) for each in known)


def new_set(deployment: Json, named: str, size: int, revision: int) -> Json:
    """Makes the set for the present template of a deployment."""
    metadata, spec = deployment["metadata"], deployment["spec"]
    template = with_label(spec["template"], HASH_LABEL, named)
    chosen = spec["selector"]
    notes = {**notes_for_sets(deployment), REVISION: str(revision)}
    made: Json = {
        "metadata": {
            "name": f"{metadata['name']}-{named}",
            "labels": template["metadata"]["labels"],
            "annotations": {**notes, **size_notes(RolloutPlan.of(spec))},
            "ownerReferences": [reference(deployment)],
        },
        "spec": {
            "replicas": size,
            "selector": {
                **chosen,
                "matchLabels": {**(chosen.get("matchLabels") or {}), HASH_LABEL: named},
            },
            "template": template,
        },
    }
    if spec.get("minReadySeconds"):
        made["spec"]["minReadySeconds"] = spec["minReadySeconds"]
    return made


def size_notes(plan: RolloutPlan) -> dict[str, str]:
    """Returns the annotations that a set gets with its size."""
    return {_DESIRED: str(plan.size), _MOST: str(plan.size + plan.surge)}


def notes_for_sets(deployment: Json) -> dict[str, str]:
    """Returns the annotations of a deployment that its sets get, too."""
    notes = deployment["metadata"].get("annotations") or {}
    return {key: value for key, value in notes.items() if key not in _OWN_NOTES}


def version_of(each: Json) -> SetVersion:
    return SetVersion(
        name=each["metadata"]["name"],
        size=each["spec"]["replicas"],
        available=(each.get("status") or {}).get("availableReplicas", 0),
        most=_number(each, _MOST) or 0,
    )


def revision_of(item: Json) -> int:
    """Returns the revision number of a set; 0 if it has none."""
    return _number(item, REVISION) or 0


def is_idle(each: Json) -> bool:
    """Whether a set has no pods and is only kept for a rollback."""
    status = each.get("status") or {}
    observed = status.get("observedGeneration", 0) >= each["metadata"].get("generation", 0)
    return observed and not each["spec"]["replicas"] and not status.get("replicas", 0)


def _number(item: Json, note: str) -> int | None:
    text = (item["metadata"].get("annotations") or {}).get(note, "")
    if not text.isascii() or not text.isdecimal() or len(text) > _MOST_DIGITS:
        return None
    number = int(text)
    return number if number < 2**63 else None


DEPLOYMENTS = "deployments.apps"

_TAKEN = 409


class DeploymentController(Controller):
    name = "deployment"

    def __init__(self, cluster: ControllerApi) -> None:
        super().__init__(cluster)
        self._adoption = Adoption(cluster, DEPLOYMENTS, REPLICA_SETS)
        self._recorder = EventRecorder(cluster, "deployment-controller")

    def concerns(self) -> Mapping[str, Concerns]:
        return {
            DEPLOYMENTS: self._adoption.keys_of_owner,
            REPLICA_SETS: self._adoption.keys_of_dependent,
            PODS: self._keys_of_pod,
        }

    def reconcile(self, key: str) -> float | None:
        item = self.cluster.read(DEPLOYMENTS, key)
        if item is None:
            return None
        if "deletionTimestamp" in item["metadata"]:
            return self._report(item)
        self._adoption.adopt_and_release(item, key)
        if item["spec"].get("paused"):
            self._rescale(item, self._sets(item))
        else:
            self._advance(item)
        again = self._report(self.cluster.read(DEPLOYMENTS, key) or item)
        self._forget_versions(item)
        return again

    def _keys_of_pod(self, seen: ItemChange) -> Iterator[str]:
        """Yields the deployment of a pod that is gone: with Recreate it waits for that."""
        if seen.after is not None:
            return
        manager = seen.item.controller
        owner = self.cluster.cache.by_uid.get(manager.uid) if manager else None
        if owner is not None and owner.table == REPLICA_SETS and owner.controller is not None:
            deployment = self.cluster.cache.by_uid.get(owner.controller.uid)
            if deployment is not None and deployment.table == DEPLOYMENTS:
                yield deployment.key

    def _advance(self, item: Json) -> None:
        """Takes one step towards the present template."""
        sets, plan = self._sets(item), RolloutPlan.of(item["spec"])
        if not plan.recreates and sets.had_other_size(plan.size):
            self._rescale(item, sets)
            return
        old = [version_of(each) for each in sets.old]
        going = plan.recreates and any(self._has_pods(each) for each in sets.old)
        if sets.new is None:
            begun = 0 if going else roll(plan, SetVersion("", 0, 0), old)[""]
            sets = DeploymentSets(self._create(item, begun, sets.next_revision), sets.old)
        if sets.new is None:
            return
        self._revise(item, sets.new, sets.next_revision)
        new = version_of(sets.new)
        sizes = recreate(plan, new, old, going=going) if plan.recreates else roll(plan, new, old)
        self._resize_all(item, sets, sizes)

    def _rescale(self, item: Json, sets: DeploymentSets) -> None:
        """Changes the sizes of the sets in proportion."""
        new = version_of(sets.new) if sets.new is not None else None
        counted = (item.get("status") or {}).get("replicas", 0)
        old = [version_of(each) for each in sets.old]
        self._resize_all(item, sets, rescale(RolloutPlan.of(item["spec"]), new, old, counted))

    def _sets(self, item: Json) -> DeploymentSets:
        """Returns the sets by age; the oldest with the present template is the new one."""
        uid = item["metadata"]["uid"]
        owned = [
            each
            for each in self.cluster.cache.owned(uid, REPLICA_SETS)
            if is_managed_by(each, uid) and not each.terminating
        ]
        owned.sort(key=lambda each: (each.created, each.name))
        read = [self.cluster.read(REPLICA_SETS, each.key) for each in owned]
        sets = [each for each in read if each is not None]
        wanted = without_hash(item["spec"]["template"])
        same = [each for each in sets if without_hash(each["spec"]["template"]) == wanted]
        new = same[0] if same else None
        return DeploymentSets(new, [each for each in sets if each is not new])

    def _create(self, item: Json, size: int, revision: int) -> Json | None:
        """Creates the set for the present template; returns None if its name is taken."""
        metadata, status = item["metadata"], item.get("status") or {}
        named = hash_of(item["spec"]["template"], status.get("collisionCount", 0))
        made = new_set(item, named, size, revision)
        try:
            stored = self.cluster.create(REPLICA_SETS, metadata["namespace"], made).object
        except RequestRefused as refusal:
            if refusal.code != _TAKEN:
                message = f"Failed to create new replica set: {refusal.message}"
                self._recorder.record(item, "ReplicaSetCreateError", message, "Warning")
                raise
        else:
            if size:
                self._record_size(item, stored, 0)
            return stored
        # A set of another owner has the name: another count gives another name.
        collided = {**status, "collisionCount": status.get("collisionCount", 0) + 1}
        self.cluster.set_status(DEPLOYMENTS, item, collided)
        return None

    def _revise(self, item: Json, new: Json, number: int) -> None:
        """Gives the present version the latest revision number."""
        notes = {**notes_for_sets(item), REVISION: str(number)}
        annotations = {**(new["metadata"].get("annotations") or {}), **notes}
        least_ready = item["spec"].get("minReadySeconds", 0)
        same = new["spec"].get("minReadySeconds", 0) == least_ready
        if not same or new["metadata"].get("annotations") != annotations:
            new["metadata"]["annotations"] = annotations
            new["spec"]["minReadySeconds"] = least_ready
            new["metadata"] = self.cluster.update(REPLICA_SETS, new).object["metadata"]
        mine = item["metadata"].setdefault("annotations", {})
        if mine.get(REVISION) != str(number):
            mine[REVISION] = str(number)
            item["metadata"] = self.cluster.update(DEPLOYMENTS, item).object["metadata"]

    def _resize_all(self, item: Json, sets: DeploymentSets, sizes: Sizes) -> None:
        """Gives sets their sizes, and notes the size of the deployment on them."""
        notes = size_notes(RolloutPlan.of(item["spec"]))
        for each in sets.all:
            size, before = sizes.get(each["metadata"]["name"]), each["spec"]["replicas"]
            annotations = {**(each["metadata"].get("annotations") or {}), **notes}
            same = size == before and each["metadata"].get("annotations") == annotations
            if size is None or same or not (size or before):
                continue
            each["metadata"]["annotations"] = annotations
            each["spec"]["replicas"] = size
            self.cluster.update(REPLICA_SETS, each)
            if size != before:
                self._record_size(item, each, before)

    def _record_size(self, item: Json, each: Json, before: int) -> None:
        name, size = each["metadata"]["name"], each["spec"]["replicas"]
        course = "up" if size > before else "down"
        message = f"Scaled {course} replica set {name} from {before} to {size}"
        self._recorder.record(item, "ScalingReplicaSet", message)

    def _has_pods(self, each: Json) -> bool:
        pods = self.cluster.cache.pods_of(each["metadata"]["uid"])
        return any(pod.terminating or pod.active for pod in pods)

    def _report(self, item: Json) -> float | None:
        self.cluster.cache.catch_up()
        sets, now = self._sets(item), self.cluster.api.clock()
        status = deployment_status(item, sets.new, sets.all, now)
        self.cluster.set_status(DEPLOYMENTS, item, status)
        return seconds_to_deadline(item["spec"], status, now)

    def _forget_versions(self, item: Json) -> None:
        """Removes the oldest idle sets beyond the history limit."""
        limit = item["spec"].get("revisionHistoryLimit")
        if limit is None:
            return
        self.cluster.cache.catch_up()
        sets = self._sets(item)
        idle = [each for each in sets.old if is_idle(each)]
        for each in sorted(idle, key=revision_of)[: max(len(idle) - limit, 0)]:
            self.cluster.delete(self.cluster.cache.items(REPLICA_SETS)[_key(each)])


def _key(item: Json) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"
