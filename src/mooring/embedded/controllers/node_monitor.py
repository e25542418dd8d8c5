"""Nodes that nobody hears of any more: their leases have run out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mooring.embedded.wire import Json

from .cache import NODES, PODS, Seen
from .cluster import Cluster
from .controller import Concerns, Controller
from .items import PodItem
from .recording import Recorder
from .statuses import condition_of

LEASES = "leases.coordination.k8s.io"
_NAMESPACE = "kube-node-lease"

# How long a node may be silent, at least: as long as elsewhere.
_GRACE_SECONDS = 50.0

_TOLD_BY_KUBELETS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_SILENT = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}


class NodeMonitor(Controller):
    """Says of silent nodes that nobody knows how they are; a node without a lease is left alone.

    Nobody's clock but the own one counts, from when a lease was seen to change: what was written
    before this began may be old without anybody being silent.
    """

    name = "node-monitor"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._recorder = Recorder(cluster, "node-controller")
        #: When the leases of nodes changed last.
        self._heard: dict[str, float] = {}
        self._watched: set[str] = set()

    def concerns(self) -> Mapping[str, Concerns]:
        return {LEASES: self._lease_seen}

    def reconcile(self, key: str) -> float | None:
        node, heard = self.cluster.cache.node(key), self._heard.get(key)
        lease = self.cluster.read(LEASES, f"{_NAMESPACE}/{key}")
        if node is None or heard is None or lease is None:
            self._watched.discard(key)
            return None
        lasts = (lease.get("spec") or {}).get("leaseDurationSeconds") or 0
        left = heard + max(_GRACE_SECONDS, lasts) - self.cluster.now
        if left > 0:
            return left
        # The next renewal has it watched again.
        self._watched.discard(key)
        if node.ready and node.ready != "Unknown":
            self._report_silence(key)
        return None

    def _lease_seen(self, seen: Seen) -> Iterator[str]:
        item = seen.item
        if item.namespace != _NAMESPACE:
            return
        if seen.after is None:
            self._heard.pop(item.name, None)
            return
        self._heard[item.name] = self.cluster.now
        # Renewals are many; a node that is watched has its time already.
        if item.name not in self._watched:
            self._watched.add(item.name)
            yield item.name

    def _report_silence(self, name: str) -> None:
        item = self.cluster.read(NODES, name)
        if item is None:
            return
        status = item.setdefault("status", {})
        was_ready = condition_of(status, "Ready").get("status") == "True"
        told = [self._unknown(each) for each in status.get("conditions") or ()]
        self.cluster.set_status(NODES, item, {**status, "conditions": told})
        if was_ready:
            message = f"Node {name} status is now: NodeNotReady"
            self._recorder.tell(item, "NodeNotReady", message)
            for pod in self.cluster.cache.on_node(name):
                self._mark_not_ready(pod)

    def _unknown(self, condition: Json) -> Json:
        if condition["type"] not in _TOLD_BY_KUBELETS:
            return condition
        since = {"lastTransitionTime": self.cluster.now_text}
        return {**condition, **_SILENT, "status": "Unknown", **since}

    def _mark_not_ready(self, pod: PodItem) -> None:
        """A pod that nobody hears of serves nobody."""
        item = self.cluster.read(PODS, pod.key)
        ready = condition_of((item or {}).get("status") or {}, "Ready")
        if item is None or ready.get("status") != "True":
            return
        ready |= {"status": "False", "lastTransitionTime": self.cluster.now_text}
        # The condition is part of what was read, which is ours to change.
        kind = self.cluster.kind(PODS)
        self.cluster.api.update_status(kind, pod.namespace, pod.name, item)
        self._recorder.tell(item, "NodeNotReady", "Node is not ready", "Warning")
