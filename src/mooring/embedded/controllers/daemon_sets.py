"""DaemonSets: one pod on every node that takes it. The scheduler places them, each on its node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mooring.embedded.wire import Json

from .cache import NODES, PODS, Seen
from .claiming import Claiming
from .cluster import Cluster
from .controller import Concerns, Controller
from .daemon_rolling import Measure, Round, plan
from .daemons import Daemon, target_of
from .items import NodeItem, PodItem
from .ownership import pod_of
from .pod_keeping import PodKeeper
from .recording import Recorder
from .replica_sets import ROUND
from .revisions import REVISION_LABEL, Revisions, pod_template
from .statuses import next_availability, soonest, without_zeros
from .templates import with_label

DAEMON_SETS = "daemonsets.apps"


class DaemonSets(Controller):
    name = "daemonset"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._claiming = Claiming(cluster, DAEMON_SETS, PODS)
        self._keeper = PodKeeper(cluster, Recorder(cluster, "daemonset-controller"))

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
        at, present = self._round(item), revisions.present_hash
        plan(at, Measure.of(item["spec"], present, len(at.wanted), self.cluster.now))
        self._perform(item, at, revisions)
        self.cluster.cache.catch_up()
        again = self._report(item, present)
        pods = self.cluster.cache.pods_of(item["metadata"]["uid"])
        in_use = {pod.labels.get(REVISION_LABEL, "") for pod in pods}
        revisions.forget(in_use, item["spec"].get("revisionHistoryLimit", 10))
        return 0.0 if max(len(at.create), len(at.remove)) > ROUND else soonest(again, at.pause)

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

    def _perform(self, item: Json, at: Round, revisions: Revisions) -> None:
        for pod in at.remove[:ROUND]:
            self._keeper.delete(item, pod)
        template = pod_template(item["spec"]["template"])
        labelled = with_label(template, REVISION_LABEL, revisions.present_hash)
        for node in at.create[:ROUND]:
            made = pod_of(item, labelled)
            Daemon.place(made["spec"], node)
            self._keeper.create(item, made)

    def _report(self, item: Json, present: str) -> float | None:
        at, now = self._round(item), self.cluster.now
        least: int = item["spec"].get("minReadySeconds", 0)
        wanted = set(at.wanted)
        # Of two pods on a node the one that was there first counts.
        placed = [at.active(node) for node in at.wanted]
        running = [active[0] for active in placed if active]
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
