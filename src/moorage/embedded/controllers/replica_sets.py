"""The controller of ReplicaSets, and the order in which pods are removed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import log2
from typing import Any

import msgspec

from moorage.embedded.api.metadata import condition_of, with_condition, without_condition
from moorage.embedded.controllers.controller import soonest
from moorage.embedded.controllers.items import (
    next_availability,
    pause_after_failures,
    without_zeros,
)
from moorage.embedded.request_refusals import RequestRefused
from moorage.embedded.store.object_store import Json
from moorage.objects.meta import Wire

from .cache import PODS
from .controller import Concerns, Controller, ControllerApi
from .event_recorder import EventRecorder, PodKeeper
from .items import PodItem
from .ownership import Adoption, pod_of

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_COST = re.compile(r"0|-[0-9]{1,20}|[1-9][0-9]{0,19}", re.ASCII)
_COSTS = range(-(2**31), 2**31)
_NANOSECONDS = 1e9


class _Metadata(Wire, frozen=True):
    annotations: dict[str, str] | None = None


class _Container(Wire, frozen=True):
    restart_count: int = 0


class _Status(Wire, frozen=True):
    container_statuses: tuple[_Container, ...] | None = None
    init_container_statuses: tuple[_Container, ...] | None = None


class _Pod(Wire, frozen=True):
    metadata: _Metadata
    status: _Status = _Status()


_read = msgspec.json.Decoder(_Pod).decode


def rank_for_removal(
    pods: list[PodItem], now: float, related: Iterable[PodItem] | None = None
) -> list[PodItem]:
    """Sorts pods for removal: idle ones, cheap ones, those of crowded nodes and new ones first.

    The related pods on a node make it crowded; by default these pods themselves.
    """
    beside = pods if related is None else related
    crowd = Counter(pod.node for pod in beside if pod.active)
    return sorted(pods, key=lambda pod: _rank(pod, crowd[pod.node], now))


def restarts_of(pod: PodItem) -> int:
    """Returns how often containers of a pod were restarted in all."""
    status = _read(pod.entry.body).status
    containers = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    return sum(each.restart_count for each in containers)


def _rank(pod: PodItem, beside: int, now: float) -> tuple[Any, ...]:
    # Read only now: most pods are never ranked.
    read = _read(pod.entry.body)
    restarts = (each.restart_count for each in read.status.container_statuses or ())
    return (
        bool(pod.node),
        _PHASES.get(pod.phase, 0),
        pod.ready,
        _cost((read.metadata.annotations or {}).get(DELETION_COST, "0")),
        -beside,
        _age(pod.ready_changed, now) if pod.ready else 0,
        -max(restarts, default=0),
        _age(pod.created, now),
        pod.uid,
    )


def _cost(text: str) -> int:
    """Reads the deletion cost of a pod; 0 if it cannot be read."""
    cost = int(text) if _COST.fullmatch(text) else 0
    return cost if cost in _COSTS else 0


def _age(since: float, now: float) -> int:
    """Returns the logarithm of an age, so that similar ages are equal."""
    return int(log2((now - since) * _NANOSECONDS)) if now > since else -1


REPLICA_SETS = "replicasets.apps"
FAILURE = "ReplicaFailure"

# After so many writes others have their turn. The first refusal ends a round, so there is no need
# to begin with few.
ROUND = 250


class ReplicaSetController(Controller):
    """Keeps as many pods as each ReplicaSet asks for."""

    name = "replicaset"
    table = REPLICA_SETS
    component = "replicaset-controller"
    #: Whether the status of the kind has a count of pods that are being deleted.
    counts_terminating = True

    def __init__(self, cluster: ControllerApi) -> None:
        super().__init__(cluster)
        self._adoption = Adoption(cluster, self.table, PODS)
        self._keeper = PodKeeper(cluster, EventRecorder(cluster, self.component))

    def concerns(self) -> Mapping[str, Concerns]:
        return {self.table: self._adoption.keys_of_owner, PODS: self._adoption.keys_of_dependent}

    def reconcile(self, key: str) -> float | None:
        item = self.cluster.read(self.table, key)
        if item is None:
            return None
        if "deletionTimestamp" in item["metadata"]:
            return self._report(item)
        self._adoption.adopt_and_release(item, key)
        try:
            wait = self._scale(item)
        except RequestRefused as refusal:
            self._report(item, refusal)
            raise
        return soonest(wait, self._report(item))

    def _scale(self, item: Json) -> float | None:
        """Makes or removes pods; returns when there is more to do."""
        spec, owned = item["spec"], self.cluster.cache.pods_of(item["metadata"]["uid"])
        pods = [pod for pod in owned if pod.active]
        missing = spec["replicas"] - len(pods)
        pause = pause_after_failures(owned, self.cluster.now) if missing > 0 else 0.0
        if pause:
            return pause
        for _ in range(min(missing, ROUND)):
            self._keeper.create(item, pod_of(item, spec["template"]))
        if missing < 0:
            going = rank_for_removal(pods, self.cluster.now, self._pods_of_owner(item))
            for pod in going[: min(-missing, ROUND)]:
                self._keeper.delete(item, pod)
        return 0.0 if abs(missing) > ROUND else None

    def _pods_of_owner(self, item: Json) -> Iterator[PodItem]:
        """Yields the pods of all sets of the same owner."""
        cache, uid = self.cluster.cache, item["metadata"]["uid"]
        known = cache.by_uid.get(uid)
        manager = known.controller if known is not None else None
        sets = {each.uid for each in cache.owned(manager.uid, self.table)} if manager else {uid}
        for each in sets:
            yield from cache.pods_of(each)

    def _report(self, item: Json, refusal: RequestRefused | None = None) -> float | None:
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
            "observedGeneration": item["metadata"].get("generation", 0),
        }
        if self.counts_terminating:
            status["terminatingReplicas"] = sum(pod.is_stopping for pod in owned)
        conditions = self._conditions(item, refusal)
        if conditions:
            status["conditions"] = conditions
        self.cluster.set_status(self.table, item, status)
        return next_availability(pods, now, least_ready)

    def _conditions(self, item: Json, refusal: RequestRefused | None) -> list[Json]:
        old = item.get("status") or {}
        if refusal is None:
            return without_condition(old, FAILURE)
        if condition_of(old, FAILURE):
            # Each refusal names another pod. Writing them all would be a change each time, and a
            # change is a reason to try again at once.
            kept: list[Json] = old["conditions"]
            return kept
        reason = {"reason": "FailedCreate", "message": refusal.message}
        condition = {"type": FAILURE, "status": "True", **reason}
        return with_condition(old, condition, self.cluster.now_text)


class ReplicationManager(ReplicaSetController):
    """Keeps as many pods as each ReplicationController asks for."""

    name = "replicationcontroller"
    table = "replicationcontrollers"
    component = "replication-controller"
    counts_terminating = False
