"""Controllers of nodes: silent nodes become Unknown, troubled ones get taints and lose pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

import msgspec

from moorage.embedded.api.metadata import condition_of
from moorage.embedded.store.object_store import Json
from moorage.objects.placement_rules import Taint, Toleration

from .cache import NODES, PODS, ItemChange
from .controller import Concerns, Controller, ControllerApi, own_key
from .event_recorder import EventRecorder
from .items import ENDED, NodeItem, PodItem

LEASES = "leases.coordination.k8s.io"
_NAMESPACE = "kube-node-lease"

# How long a node may be silent, at least: as long as elsewhere.
_GRACE_SECONDS = 50.0

_TOLD_BY_KUBELETS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_SILENT = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}


class NodeMonitorController(Controller):
    """Sets the conditions of silent nodes to Unknown; a node without a lease is left alone.

    A node is silent if its lease did not change for a while on the clock of this process: leases
    from before its start may be old although their nodes are well.
    """

    name = "node-monitor"

    def __init__(self, cluster: ControllerApi) -> None:
        super().__init__(cluster)
        self._recorder = EventRecorder(cluster, "node-controller")
        #: When the leases of nodes changed last.
        self._heard: dict[str, float] = {}
        self._watched: set[str] = set()

    def concerns(self) -> Mapping[str, Concerns]:
        return {LEASES: self._keys_of_lease}

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

    def _keys_of_lease(self, seen: ItemChange) -> Iterator[str]:
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
        conditions = [self._unknown(each) for each in status.get("conditions") or ()]
        self.cluster.set_status(NODES, item, {**status, "conditions": conditions})
        if was_ready:
            message = f"Node {name} status is now: NodeNotReady"
            self._recorder.record(item, "NodeNotReady", message)
            for pod in self.cluster.cache.on_node(name):
                self._mark_not_ready(pod)

    def _unknown(self, condition: Json) -> Json:
        if condition["type"] not in _TOLD_BY_KUBELETS:
            return condition
        since = {"lastTransitionTime": self.cluster.now_text}
        return {**condition, **_SILENT, "status": "Unknown", **since}

    def _mark_not_ready(self, pod: PodItem) -> None:
        """Marks a pod on a silent node as not ready."""
        item = self.cluster.read(PODS, pod.key)
        ready = condition_of((item or {}).get("status") or {}, "Ready")
        if item is None or ready.get("status") != "True":
            return
        ready |= {"status": "False", "lastTransitionTime": self.cluster.now_text}
        # The condition is part of what was read, which is ours to change.
        kind = self.cluster.kind(PODS)
        self.cluster.api.update_status(kind, pod.namespace, pod.name, item)
        self._recorder.record(item, "NodeNotReady", "Node is not ready", "Warning")


# How long pods of a node that is not there are left alone: it may be about to come.
_QUARANTINE_SECONDS = 40

_PREFIX = "node.kubernetes.io/"
_NOT_READY, _UNREACHABLE = f"{_PREFIX}not-ready", f"{_PREFIX}unreachable"
_PRESSURES = {
    "DiskPressure": f"{_PREFIX}disk-pressure",
    "MemoryPressure": f"{_PREFIX}memory-pressure",
    "NetworkUnavailable": f"{_PREFIX}network-unavailable",
    "PIDPressure": f"{_PREFIX}pid-pressure",
}
_UNSCHEDULABLE = f"{_PREFIX}unschedulable"


class _TimedToleration(Toleration, frozen=True):
    """A toleration and how long it lasts; without a time it lasts for ever."""

    toleration_seconds: int | None = None


class NodeController(Controller):
    name = "node"

    def __init__(self, cluster: ControllerApi) -> None:
        super().__init__(cluster)
        self._recorder = EventRecorder(cluster, "taint-eviction-controller")
        self._missing_since: dict[str, float] = {}

    def concerns(self) -> Mapping[str, Concerns]:
        return {NODES: own_key, PODS: self._keys_of_pod}

    def reconcile(self, key: str) -> float | None:
        item = self.cluster.read(NODES, key)
        node = self.cluster.cache.node(key)
        if item is None or node is None:
            return self._clear(key)
        self._missing_since.pop(key, None)
        taints = [*_others(item, node), *self._due(item, node)]
        if taints != (item["spec"].get("taints") or []):
            item["spec"]["taints"] = taints
            if not taints:
                del item["spec"]["taints"]
            self.cluster.update(NODES, item)
        return self._evict(key, [each for each in taints if each["effect"] == "NoExecute"])

    def _keys_of_pod(self, seen: ItemChange) -> Iterator[str]:
        """Yields the node that a pod is bound to, if the node is tainted or absent."""
        before, after = seen.before, seen.after
        if not isinstance(after, PodItem) or not after.node:
            return
        if isinstance(before, PodItem) and before.node == after.node:
            return
        node = self.cluster.cache.node(after.node)
        if node is None or any(taint.effect == "NoExecute" for taint in node.taints):
            yield after.node

    def _due(self, item: Json, node: NodeItem) -> Iterator[Json]:
        """Yields the taints that the state of a node asks for; present ones keep their time."""
        had = {(each["key"], each["effect"]): each for each in item["spec"].get("taints") or ()}
        for key, effect in _asked_for(node):
            taint = {"key": key, "effect": effect, "timeAdded": self.cluster.now_text}
            yield had.get((key, effect), taint)

    def _evict(self, node: str, taints: list[Json]) -> float | None:
        """Removes pods whose toleration has run out; returns the seconds until the next one."""
        if not taints:
            return None
        now, next_goes = self.cluster.now, None
        for pod in self.cluster.cache.on_node(node):
            if pod.terminating or pod.phase in ENDED:
                continue
            stays = _seconds_borne(pod, taints)
            if stays is None:
                continue
            left = max(_tainted_since(taints, now), pod.created) + stays - now
            if left <= 0:
                self._remove(pod)
            elif next_goes is None or left < next_goes:
                next_goes = left
        return next_goes

    def _remove(self, pod: PodItem) -> None:
        message = f"Marking for deletion Pod {pod.key}"
        self._recorder.record(pod.entry.object, "TaintManagerEviction", message)
        message = "Taint manager: deleting due to NoExecute taint"
        self.cluster.disrupt(pod, "DeletionByTaintManager", message)

    def _clear(self, node: str) -> float | None:
        """Removes the pods of an absent node after a while."""
        pods = self.cluster.cache.on_node(node)
        if not pods:
            self._missing_since.pop(node, None)
            return None
        now = self.cluster.now
        left = self._missing_since.setdefault(node, now) + _QUARANTINE_SECONDS - now
        if left > 0:
            return left
        for pod in pods:
            message = "PodGC: node no longer exists"
            self.cluster.disrupt(pod, "DeletionByPodGC", message, grace=0)
        return None


def _asked_for(node: NodeItem) -> Iterator[tuple[str, str]]:
    trouble = {"False": _NOT_READY, "Unknown": _UNREACHABLE}.get(node.ready)
    if trouble:
        yield trouble, "NoSchedule"
        yield trouble, "NoExecute"
    if node.unschedulable:
        yield _UNSCHEDULABLE, "NoSchedule"
    for condition, key in _PRESSURES.items():
        if condition in node.conditions:
            yield key, "NoSchedule"


def _others(item: Json, node: NodeItem) -> list[Json]:
    """Returns the taints that this controller does not set."""
    ours = {_UNSCHEDULABLE, *_PRESSURES.values()}
    if node.ready:
        ours |= {_NOT_READY, _UNREACHABLE}
    return [each for each in item["spec"].get("taints") or () if each["key"] not in ours]


def _seconds_borne(pod: PodItem, taints: list[Json]) -> float | None:
    """Returns how many seconds a pod tolerates the taints of a node; None means for ever."""
    raw = pod.entry.object["spec"].get("tolerations") or []
    tolerations = msgspec.convert(raw, list[_TimedToleration])
    lasting = []
    for taint in msgspec.convert(taints, list[Taint]):
        bearing = [each for each in tolerations if each.tolerates(taint)]
        if not bearing:
            return 0.0
        lasting += [each.toleration_seconds for each in bearing]
    limits = [max(each, 0) for each in lasting if each is not None]
    return min(limits, default=None)


def _tainted_since(taints: list[Json], now: float) -> float:
    times = [each["timeAdded"] for each in taints if "timeAdded" in each]
    return max((datetime.fromisoformat(each).timestamp() for each in times), default=now)
