"""Deployments: one set of pods per version of the template, and the way from one to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mooring.embedded.errors import Refused
from mooring.embedded.wire import Json

from .cache import PODS, Seen
from .claiming import Claiming
from .cluster import Cluster
from .controller import Concerns, Controller
from .deployment_status import new_status, seconds_to_deadline
from .ownership import is_managed_by, reference
from .replica_sets import REPLICA_SETS
from .rollouts import Plan, Version, recreate, roll
from .templates import HASH_LABEL, hash_of, with_label, without_hash

DEPLOYMENTS = "deployments.apps"
REVISION = "deployment.kubernetes.io/revision"

# These belong to the deployment alone.
_OWN_NOTES = frozenset(
    (
        REVISION,
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
    )
)
_TAKEN = 409


@dataclass(frozen=True, slots=True)
class Sets:
    """The sets of a deployment: that of its present template, if there is one, and the others."""

    new: Json | None
    old: list[Json]

    @property
    def all(self) -> list[Json]:
        return [*self.old, self.new] if self.new is not None else self.old


class Deployments(Controller):
    name = "deployment"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._claiming = Claiming(cluster, DEPLOYMENTS, REPLICA_SETS)

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
            self._scale_paused(item)
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
        sets = self._sets(item)
        new = sets.new or self._create(item)
        if new is None:
            return
        self._revise(item, new, sets.old)
        plan = Plan.of(item["spec"])
        fresh, old = self._version(new), [self._version(each) for each in sets.old]
        going = plan.recreates and any(self._has_pods(each) for each in sets.old)
        sizes = (
            recreate(plan, fresh, old, going=going) if plan.recreates else roll(plan, fresh, old)
        )
        for each in (*sets.old, self.cluster.read(REPLICA_SETS, _key(new)) or new):
            self._resize(each, sizes.get(each["metadata"]["name"]))

    def _scale_paused(self, item: Json) -> None:
        """While it is paused only its size changes: the newest set that has pods takes it."""
        sets = self._sets(item)
        used = [each for each in sets.all if each["spec"]["replicas"]] or sets.all[-1:]
        if len(used) == 1:
            self._resize(used[0], item["spec"]["replicas"])

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

    def _create(self, item: Json) -> Json | None:
        """The set for the present template, empty at first."""
        metadata, spec = item["metadata"], item["spec"]
        status = item.get("status") or {}
        named = hash_of(spec["template"], status.get("collisionCount", 0))
        template = with_label(spec["template"], HASH_LABEL, named)
        chosen = spec["selector"]
        labels = {**(chosen.get("matchLabels") or {}), HASH_LABEL: named}
        made = {
            "metadata": {
                "name": f"{metadata['name']}-{named}",
                "labels": template["metadata"]["labels"],
                "annotations": _notes(item),
                "ownerReferences": [reference(item)],
            },
            "spec": {
                "replicas": 0,
                "selector": {**chosen, "matchLabels": labels},
                "template": template,
                "minReadySeconds": spec.get("minReadySeconds", 0),
            },
        }
        try:
            return self.cluster.create(REPLICA_SETS, metadata["namespace"], made).object
        except Refused as refusal:
            if refusal.code != _TAKEN:
                raise
        # Somebody else's set has the name: another count gives another name.
        collided = {**status, "collisionCount": status.get("collisionCount", 0) + 1}
        self.cluster.set_status(DEPLOYMENTS, item, collided)
        return None

    def _revise(self, item: Json, new: Json, old: list[Json]) -> None:
        """Numbers the present version as the latest."""
        latest = max((revision_of(each) for each in old), default=0)
        number = max(revision_of(new), latest + 1)
        notes = {**_notes(item), REVISION: str(number)}
        spec = {**new["spec"], "minReadySeconds": item["spec"].get("minReadySeconds", 0)}
        annotations = {**(new["metadata"].get("annotations") or {}), **notes}
        if (new["metadata"].get("annotations"), new["spec"]) != (annotations, spec):
            new["metadata"]["annotations"] = annotations
            self.cluster.update(REPLICA_SETS, {**new, "spec": spec})
        mine = item["metadata"].setdefault("annotations", {})
        if mine.get(REVISION) != str(number):
            mine[REVISION] = str(number)
            self.cluster.update(DEPLOYMENTS, item)

    def _version(self, each: Json) -> Version:
        status = each.get("status") or {}
        return Version(
            name=each["metadata"]["name"],
            size=each["spec"]["replicas"],
            available=status.get("availableReplicas", 0),
        )

    def _has_pods(self, each: Json) -> bool:
        pods = self.cluster.cache.pods_of(each["metadata"]["uid"])
        return any(pod.terminating or pod.active for pod in pods)

    def _resize(self, each: Json, size: int | None) -> None:
        if size is not None and each["spec"]["replicas"] != size:
            each["spec"]["replicas"] = size
            self.cluster.update(REPLICA_SETS, each)

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
        idle = [each for each in sets.old if _is_idle(each)]
        for each in sorted(idle, key=revision_of)[: max(len(idle) - limit, 0)]:
            self.cluster.delete(self.cluster.cache.items(REPLICA_SETS)[_key(each)])


def revision_of(item: Json) -> int:
    """The number of a version; 0 if it has none."""
    text = (item["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0


def _notes(item: Json) -> dict[str, str]:
    notes = item["metadata"].get("annotations") or {}
    return {key: value for key, value in notes.items() if key not in _OWN_NOTES}


def _is_idle(each: Json) -> bool:
    status = each.get("status") or {}
    observed = status.get("observedGeneration", 0) >= each["metadata"].get("generation", 0)
    return observed and not each["spec"]["replicas"] and not status.get("replicas", 0)


def _key(item: Json) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"
