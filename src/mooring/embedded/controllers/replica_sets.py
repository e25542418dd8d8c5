"""ReplicaSets: as many pods as asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from mooring.embedded.wire import Json

from .cache import PODS
from .claiming import Claiming
from .cluster import Cluster
from .controller import Concerns, Controller
from .items import PodItem
from .ownership import pod_of
from .statuses import next_availability, without_zeros

REPLICA_SETS = "replicasets.apps"

# After so many writes others have their turn. The first refusal ends a round, so there is no need
# to begin with few.
ROUND = 250

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSets(Controller):
    name = "replicaset"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._claiming = Claiming(cluster, REPLICA_SETS, PODS)

    def concerns(self) -> Mapping[str, Concerns]:
        return {REPLICA_SETS: self._claiming.owner_seen, PODS: self._claiming.dependent_seen}

    def reconcile(self, key: str) -> float | None:
        item = self.cluster.read(REPLICA_SETS, key)
        if item is None:
            return None
        more = False
        if "deletionTimestamp" not in item["metadata"]:
            self._claiming.settle(item, key)
            more = self._scale(item)
            self.cluster.cache.catch_up()
        pods = self.cluster.cache.pods_of(item["metadata"]["uid"])
        again = self._report(item, [pod for pod in pods if pod.active])
        return 0.0 if more else again

    def _scale(self, item: Json) -> bool:
        """Makes or removes pods; whether there is more to do."""
        metadata, spec = item["metadata"], item["spec"]
        pods = [pod for pod in self.cluster.cache.pods_of(metadata["uid"]) if pod.active]
        missing = spec["replicas"] - len(pods)
        for _ in range(min(missing, ROUND)):
            self.cluster.create(PODS, metadata["namespace"], pod_of(item, spec["template"]))
        if missing < 0:
            for pod in least_missed(pods)[: min(-missing, ROUND)]:
                self.cluster.delete(pod)
        return abs(missing) > ROUND

    def _report(self, item: Json, pods: list[PodItem]) -> float | None:
        spec, now = item["spec"], self.cluster.now
        least_ready: int = spec.get("minReadySeconds", 0)
        labels = (spec["template"].get("metadata") or {}).get("labels") or {}
        counts = {
            "fullyLabeledReplicas": sum(labels.items() <= pod.labels.items() for pod in pods),
            "readyReplicas": sum(pod.ready for pod in pods),
            "availableReplicas": sum(pod.is_available(now, least_ready) for pod in pods),
        }
        status = {
            "replicas": len(pods),
            **without_zeros(counts),
            "observedGeneration": item["metadata"].get("generation", 0),
        }
        self.cluster.set_status(REPLICA_SETS, item, status)
        return next_availability(pods, now, least_ready)


def least_missed(pods: list[PodItem]) -> list[PodItem]:
    """The order in which pods go: those that do least first, then from crowded nodes, then new."""
    crowd = Counter(pod.node for pod in pods)
    return sorted(
        pods,
        key=lambda pod: (
            bool(pod.node),
            _PHASES.get(pod.phase, 0),
            pod.ready,
            -crowd[pod.node],
            -pod.ready_changed if pod.ready else 0.0,
            -pod.created,
            pod.key,
        ),
    )
