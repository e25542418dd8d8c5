"""DaemonSets: one pod on every node that takes it. The scheduler places them, each on its node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mooring.embedded.wire import Json

from .cache import NODES, PODS, Seen
from .claiming import Claiming
from .cluster import Cluster
from .controller import Concerns, Controller
from .daemons import Daemon, target_of
from .items import ENDED, NodeItem, PodItem
from .ownership import pod_of
from .replica_sets import ROUND
from .revisions import REVISION_LABEL, Revisions, pod_template
from .statuses import next_availability, share, without_zeros
from .templates import with_label

DAEMON_SETS = "daemonsets.apps"


@dataclass(slots=True)
class Round:
    """The pods of a set by node, and what is to be done about them."""

    #: The nodes that should have a pod, in order.
    wanted: list[str]
    #: The nodes that keep a pod which they would not get today.
    tolerant: set[str]
    pods: dict[str, list[PodItem]]
    create: list[str] = field(default_factory=list)
    remove: list[PodItem] = field(default_factory=list)


class DaemonSets(Controller):
    name = "daemonset"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._claiming = Claiming(cluster, DAEMON_SETS, PODS)

    def concerns(self) -> Mapping[str, Concerns]:
        return {
            DAEMON_SETS: self._claiming.owner_seen,
            PODS: self._claiming.dependent_seen,
            NODES: self._node_seen,
        }

    def reconcile(self, key: str) -> float | None:
        item = self.cluster.read(DAEMON_SETS, key)
        if item is None or "deletionTimestamp" in item["metadata"]:
            return None
        self._claiming.settle(item, key)
        revisions = Revisions.of(self.cluster, item)
        at = self._round(item)
        self._find_missing(at)
        if not at.create and not at.remove:
            self._find_outdated(item, at, revisions.present_hash)
        self._perform(item, at, revisions)
        self.cluster.cache.catch_up()
        again = self._report(item, revisions.present_hash)
        pods = self.cluster.cache.pods_of(item["metadata"]["uid"])
        in_use = {pod.labels.get(REVISION_LABEL, "") for pod in pods}
        revisions.forget(in_use, item["spec"].get("revisionHistoryLimit", 10))
        return 0.0 if max(len(at.create), len(at.remove)) > ROUND else again

    def _node_seen(self, seen: Seen) -> Iterator[str]:
        """All sets, if the node takes other pods than before."""
        before, after = seen.before, seen.after
        if isinstance(before, NodeItem) and isinstance(after, NodeItem):
            same = (before.labels, before.taints) == (after.labels, after.taints)
            if same and before.terminating == after.terminating:
                return
        yield from list(self.cluster.cache.items(DAEMON_SETS))

    def _round(self, item: Json) -> Round:
        daemon = Daemon.of(item["spec"]["template"]["spec"])
        known = sorted(self.cluster.cache.items(NODES).items())
        nodes = [node for _, node in known if isinstance(node, NodeItem)]
        wanted = [node.name for node in nodes if daemon.runs_on(node)]
        tolerant = {node.name for node in nodes if daemon.stays_on(node)}
        pods: dict[str, list[PodItem]] = {}
        for pod in self.cluster.cache.pods_of(item["metadata"]["uid"]):
            pods.setdefault(pod.node or target_of(pod), []).append(pod)
        return Round(wanted, tolerant, pods)

    def _find_missing(self, at: Round) -> None:
        for node in at.wanted:
            pods = at.pods.get(node, [])
            at.remove += [pod for pod in pods if pod.phase in ENDED and not pod.terminating]
            alive = sorted((pod for pod in pods if pod.active), key=lambda pod: pod.created)
            at.remove += alive[1:]
            if not pods:
                at.create.append(node)
        for node, pods in at.pods.items():
            if node not in at.tolerant:
                at.remove += [pod for pod in pods if not pod.terminating]

    def _find_outdated(self, item: Json, at: Round, present: str) -> None:
        """Pods of an older version go, those that do nothing first, as many as may miss."""
        strategy = item["spec"]["updateStrategy"]
        if strategy["type"] != "RollingUpdate":
            return
        rolling, size = strategy.get("rollingUpdate") or {}, len(at.wanted)
        allowed = share(rolling.get("maxUnavailable"), size, up=True)
        surging = share(rolling.get("maxSurge"), size, up=True)
        now, least = self.cluster.now, item["spec"].get("minReadySeconds", 0)
        outdated, missing = [], 0
        for node in at.wanted:
            pods = at.pods.get(node, [])
            fine = [pod for pod in pods if pod.active and pod.is_available(now, least)]
            missing += not fine
            outdated += [
                pod for pod in pods if pod.active and pod.labels.get(REVISION_LABEL) != present
            ]
        idle = [pod for pod in outdated if not pod.is_available(now, least)]
        rest = [pod for pod in outdated if pod.is_available(now, least)]
        spare = max(allowed, surging, 1) - missing
        at.remove += [*idle, *rest[: max(spare, 0)]]

    def _perform(self, item: Json, at: Round, revisions: Revisions) -> None:
        for pod in at.remove[:ROUND]:
            self.cluster.delete(pod)
        template = pod_template(item["spec"]["template"])
        labelled = with_label(template, REVISION_LABEL, revisions.present_hash)
        for node in at.create[:ROUND]:
            made = pod_of(item, labelled)
            Daemon.place(made["spec"], node)
            self.cluster.create(PODS, item["metadata"]["namespace"], made)

    def _report(self, item: Json, present: str) -> float | None:
        at, now = self._round(item), self.cluster.now
        least: int = item["spec"].get("minReadySeconds", 0)
        wanted = set(at.wanted)
        placed = {
            node: next((pod for pod in at.pods.get(node, ()) if pod.active), None)
            for node in at.wanted
        }
        running = [pod for pod in placed.values() if pod is not None]
        available = sum(pod.is_available(now, least) for pod in running)
        counts = {
            "updatedNumberScheduled": sum(
                pod.labels.get(REVISION_LABEL) == present for pod in running
            ),
            "numberAvailable": available,
            "numberUnavailable": len(wanted) - available,
        }
        status: dict[str, Any] = {
            "currentNumberScheduled": len(running),
            "numberMisscheduled": sum(
                any(pod.active for pod in pods)
                for node, pods in at.pods.items()
                if node not in wanted
            ),
            "desiredNumberScheduled": len(wanted),
            "numberReady": sum(pod.ready for pod in running),
            "observedGeneration": item["metadata"].get("generation", 0),
            **without_zeros(counts),
        }
        self.cluster.set_status(DAEMON_SETS, item, status)
        return next_availability(running, now, least)
