"""Deployments: one set of pods per version of the template, and the way from one to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mooring.embedded.errors import Refused
from mooring.embedded.wire import Json

from .cache import PODS, Seen
from .claiming import Claiming
from .cluster import Cluster
from .controller import Concerns, Controller
from .deployment_sets import (
    REVISION,
    Sets,
    is_idle,
    new_set,
    notes_for_sets,
    revision_of,
    size_notes,
    version_of,
)
from .deployment_status import new_status, seconds_to_deadline
from .ownership import is_managed_by
from .proportions import rescaled
from .recording import Recorder
from .replica_sets import REPLICA_SETS
from .rollouts import Plan, Sizes, Version, recreate, roll
from .templates import hash_of, without_hash

DEPLOYMENTS = "deployments.apps"

_TAKEN = 409


class Deployments(Controller):
    name = "deployment"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._claiming = Claiming(cluster, DEPLOYMENTS, REPLICA_SETS)
        self._recorder = Recorder(cluster, "deployment-controller")

    def concerns(self) -> Mapping[str, Concerns]:
        return {
            DEPLOYMENTS: self._claiming.owner_seen,
            REPLICA_SETS: self._claiming.dependent_seen,
            PODS: self._freed,
        }

    def reconcile(self, key: str) -> float | None:
        item = self.cluster.read(DEPLOYMENTS, key)
        if item is None:
            return None
        if "deletionTimestamp" in item["metadata"]:
            return self._report(item)
        self._claiming.settle(item, key)
        if item["spec"].get("paused"):
            self._rescale(item, self._sets(item))
        else:
            self._advance(item)
        again = self._report(self.cluster.read(DEPLOYMENTS, key) or item)
        self._forget_versions(item)
        return again

    def _freed(self, seen: Seen) -> Iterator[str]:
        """A deployment that recreates waits for pods that are going to be gone."""
        if seen.after is not None:
            return
        manager = seen.item.controller
        owner = self.cluster.cache.by_uid.get(manager.uid) if manager else None
        if owner is not None and owner.table == REPLICA_SETS and owner.controller is not None:
            deployment = self.cluster.cache.by_uid.get(owner.controller.uid)
            if deployment is not None and deployment.table == DEPLOYMENTS:
                yield deployment.key

    def _advance(self, item: Json) -> None:
        """One step on the way to the present template."""
        sets, plan = self._sets(item), Plan.of(item["spec"])
        if not plan.recreates and sets.were_meant_for_another(plan.size):
            self._rescale(item, sets)
            return
        old = [version_of(each) for each in sets.old]
        going = plan.recreates and any(self._has_pods(each) for each in sets.old)
        if sets.new is None:
            begun = 0 if going else roll(plan, Version("", 0, 0), old)[""]
            sets = Sets(self._create(item, begun, sets.next_revision), sets.old)
        if sets.new is None:
            return
        self._revise(item, sets.new, sets.next_revision)
        new = version_of(sets.new)
        sizes = recreate(plan, new, old, going=going) if plan.recreates else roll(plan, new, old)
        self._resize_all(item, sets, sizes)

    def _rescale(self, item: Json, sets: Sets) -> None:
        """Only the size changes; a rollout that is under way goes on from there."""
        new = version_of(sets.new) if sets.new is not None else None
        counted = (item.get("status") or {}).get("replicas", 0)
        old = [version_of(each) for each in sets.old]
        self._resize_all(item, sets, rescaled(Plan.of(item["spec"]), new, old, counted))

    def _sets(self, item: Json) -> Sets:
        """By age; of several sets with the present template the oldest is meant."""
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
        return Sets(new, [each for each in sets if each is not new])

    def _create(self, item: Json, size: int, revision: int) -> Json | None:
        """The set for the present template."""
        metadata, status = item["metadata"], item.get("status") or {}
        named = hash_of(item["spec"]["template"], status.get("collisionCount", 0))
        made = new_set(item, named, size, revision)
        try:
            stored = self.cluster.create(REPLICA_SETS, metadata["namespace"], made).object
        except Refused as refusal:
            if refusal.code != _TAKEN:
                message = f"Failed to create new replica set: {refusal.message}"
                self._recorder.tell(item, "ReplicaSetCreateError", message, "Warning")
                raise
        else:
            if size:
                self._tell_size(item, stored, 0)
            return stored
        # Somebody else's set has the name: another count gives another name.
        collided = {**status, "collisionCount": status.get("collisionCount", 0) + 1}
        self.cluster.set_status(DEPLOYMENTS, item, collided)
        return None

    def _revise(self, item: Json, new: Json, number: int) -> None:
        """Numbers the present version as the latest."""
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

    def _resize_all(self, item: Json, sets: Sets, sizes: Sizes) -> None:
        """Gives sets their sizes, and notes what they were meant for."""
        notes = size_notes(Plan.of(item["spec"]))
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
                self._tell_size(item, each, before)

    def _tell_size(self, item: Json, each: Json, before: int) -> None:
        name, size = each["metadata"]["name"], each["spec"]["replicas"]
        course = "up" if size > before else "down"
        message = f"Scaled {course} replica set {name} from {before} to {size}"
        self._recorder.tell(item, "ScalingReplicaSet", message)

    def _has_pods(self, each: Json) -> bool:
        pods = self.cluster.cache.pods_of(each["metadata"]["uid"])
        return any(pod.terminating or pod.active for pod in pods)

    def _report(self, item: Json) -> float | None:
        self.cluster.cache.catch_up()
        sets, now = self._sets(item), self.cluster.api.clock()
        status = new_status(item, sets.new, sets.all, now)
        self.cluster.set_status(DEPLOYMENTS, item, status)
        return seconds_to_deadline(item["spec"], status, now)

    def _forget_versions(self, item: Json) -> None:
        """Removes the oldest of the sets that are only kept for going back."""
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
