"""ReplicaSets: as many pods as asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mooring.embedded.errors import Refused
from mooring.embedded.wire import Json

from .cache import PODS
from .claiming import Claiming
from .cluster import Cluster
from .controller import Concerns, Controller
from .items import PodItem
from .ownership import pod_of
from .pod_keeping import PodKeeper
from .ranking import least_missed
from .recording import Recorder
from .statuses import (
    condition_of,
    next_availability,
    pause_after_failures,
    soonest,
    with_condition,
    without_condition,
    without_zeros,
)

REPLICA_SETS = "replicasets.apps"
FAILURE = "ReplicaFailure"

# After so many writes others have their turn. The first refusal ends a round, so there is no need
# to begin with few.
ROUND = 250


class ReplicaSets(Controller):
    name = "replicaset"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._claiming = Claiming(cluster, REPLICA_SETS, PODS)
        self._keeper = PodKeeper(cluster, Recorder(cluster, "replicaset-controller"))

    def concerns(self) -> Mapping[str, Concerns]:
        return {REPLICA_SETS: self._claiming.owner_seen, PODS: self._claiming.dependent_seen}

    def reconcile(self, key: str) -> float | None:
        item = self.cluster.read(REPLICA_SETS, key)
        if item is None:
            return None
        if "deletionTimestamp" in item["metadata"]:
            return self._report(item)
        self._claiming.settle(item, key)
        try:
            wait = self._scale(item)
        except Refused as refusal:
            self._report(item, refusal)
            raise
        return soonest(wait, self._report(item))

    def _scale(self, item: Json) -> float | None:
        """Makes or removes pods; when there is more to do."""
        spec, owned = item["spec"], self.cluster.cache.pods_of(item["metadata"]["uid"])
        pods = [pod for pod in owned if pod.active]
        missing = spec["replicas"] - len(pods)
        pause = pause_after_failures(owned, self.cluster.now) if missing > 0 else 0.0
        if pause:
            return pause
        for _ in range(min(missing, ROUND)):
            self._keeper.create(item, pod_of(item, spec["template"]))
        if missing < 0:
            going = least_missed(pods, self.cluster.now, self._related(item))
            for pod in going[: min(-missing, ROUND)]:
                self._keeper.delete(item, pod)
        return 0.0 if abs(missing) > ROUND else None

    def _related(self, item: Json) -> Iterator[PodItem]:
        """The pods of all sets that have the same owner: its other versions crowd a node, too."""
        cache, uid = self.cluster.cache, item["metadata"]["uid"]
        known = cache.by_uid.get(uid)
        manager = known.controller if known is not None else None
        sets = {each.uid for each in cache.owned(manager.uid, REPLICA_SETS)} if manager else {uid}
        for each in sets:
            yield from cache.pods_of(each)

    def _report(self, item: Json, refusal: Refused | None = None) -> float | None:
        self.cluster.cache.catch_up()
        spec, now = item["spec"], self.cluster.now
        owned = self.cluster.cache.pods_of(item["metadata"]["uid"])
        pods = [pod for pod in owned if pod.active]
        least_ready: int = spec.get("minReadySeconds", 0)
        labels = (spec["template"].get("metadata") or {}).get("labels") or {}
        counts = {
            "fullyLabeledReplicas": sum(labels.items() <= pod.labels.items() for pod in pods),
            "readyReplicas": sum(pod.ready for pod in pods),
            "availableReplicas": sum(pod.is_available(now, least_ready) for pod in pods),
        }
        status: dict[str, Any] = {
            "replicas": len(pods),
            **without_zeros(counts),
            "terminatingReplicas": sum(pod.is_stopping for pod in owned),
            "observedGeneration": item["metadata"].get("generation", 0),
        }
        conditions = self._conditions(item, refusal)
        if conditions:
            status["conditions"] = conditions
        self.cluster.set_status(REPLICA_SETS, item, status)
        return next_availability(pods, now, least_ready)

    def _conditions(self, item: Json, refusal: Refused | None) -> list[Json]:
        old = item.get("status") or {}
        if refusal is None:
            return without_condition(old, FAILURE)
        if condition_of(old, FAILURE):
            # Each refusal names another pod. To tell them all would be a change each time, and a
            # change is a reason to try again at once.
            kept: list[Json] = old["conditions"]
            return kept
        told = {"reason": "FailedCreate", "message": refusal.message}
        condition = {"type": FAILURE, "status": "True", **told}
        return with_condition(old, condition, self.cluster.now_text)
