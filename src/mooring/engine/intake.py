"""Taking in objects: what a change of one means for the cluster and for the pods that wait."""

from __future__ import annotations

from collections.abc import Callable, Container

from mooring.cluster import Cluster
from mooring.framework.events import Action
from mooring.objects.decode import Object
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.storage import StorageObject
from mooring.queue import Queue
from mooring.queue.happenings import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    node_events,
    pod_events,
    storage_event,
)


class Intake:
    """Routes objects: placed pods and nodes to the cluster, pods that wait for us to the queue."""

    def __init__(
        self,
        cluster: Cluster,
        queue: Queue,
        profiles: Container[str],
        vanished: Callable[[Pod, float], None],
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._profiles = profiles
        #: Called when a pod that is assumed on a node is deleted before it is bound.
        self._vanished = vanished
        #: The newest form of every pod that has no node yet and is ours to schedule, by uid.
        self.pending: dict[str, Pod] = {}

    def apply(self, item: Object, now: float) -> None:
        if isinstance(item, Pod):
            self._apply_pod(item, now)
        elif isinstance(item, Node):
            self._apply_node(item, now)
        elif isinstance(item, StorageObject):
            before = self._cluster.put_storage(item)
            action = Action.ADD if before is None else Action.UPDATE
            self._queue.happened(storage_event(item, action), before, item, now)
        else:
            self._cluster.put_workload(item)

    def remove(self, item: Object, now: float) -> None:
        if isinstance(item, Pod):
            self._remove_pod(item, now)
        elif isinstance(item, Node):
            # Pods that wait hear of it before the node is gone, as in kube-scheduler.
            self._queue.happened(NODE_DELETE, item, None, now)
            self._cluster.remove_node(item.name)
        elif isinstance(item, StorageObject):
            self._cluster.remove_storage(item)
            self._queue.happened(storage_event(item, Action.DELETE), item, None, now)
        else:
            self._cluster.remove_workload(item)

    def _apply_node(self, node: Node, now: float) -> None:
        before = self._cluster.put_node(node)
        if before is None:
            self._queue.happened(NODE_ADD, None, node, now)
            return
        for event in node_events(before, node):
            self._queue.happened(event, before, node, now)

    def _apply_pod(self, pod: Pod, now: float) -> None:
        if pod.is_finished:
            # A pod that has run to its end takes no room, so it is as good as gone.
            self._remove_pod(pod, now)
        elif pod.node_name:
            self._apply_placed(pod, now)
        elif pod.spec.scheduler_name in self._profiles:
            self._apply_pending(pod, now)

    def _apply_placed(self, pod: Pod, now: float) -> None:
        waiting = self.pending.pop(pod.uid, None)
        if waiting is not None:
            self._queue.delete(waiting)
            self._cluster.nominate(pod, "")
        confirmed = not self._cluster.is_assumed(pod.uid)
        before = self._cluster.put_pod(pod)
        if before is None or not confirmed:
            self._queue.happened(ASSIGNED_POD_ADD, None, pod, now)
            return
        for event in pod_events(before, pod, assigned=True):
            self._queue.happened(event, before, pod, now)

    def _apply_pending(self, pod: Pod, now: float) -> None:
        before = self.pending.get(pod.uid)
        if before is not None and before.resource_version == pod.resource_version != "":
            return
        self.pending[pod.uid] = pod
        if self._cluster.pod(pod.uid) is not None:
            if pod.terminating and not (before is not None and before.terminating):
                self._vanished(pod, now)
        elif before is None:
            self._cluster.nominate(pod, pod.nominated_node_name)
            self._queue.add(pod, now)
        else:
            self._update_pending(before, pod, now)

    def _update_pending(self, before: Pod, pod: Pod, now: float) -> None:
        old, new = before.nominated_node_name, pod.nominated_node_name
        # Without a nomination in either object, the one that is only in memory stays.
        kept = new if old or new else self._cluster.nodes.nominations.node_of(pod)
        self._cluster.nominate(pod, kept)
        self._queue.update(before, pod, now)
        if old and old != new:
            self._room_for_lesser(before, now)

    def _remove_pod(self, pod: Pod, now: float) -> None:
        waiting = self.pending.pop(pod.uid, None)
        if waiting is None:
            gone = self._cluster.remove_pod(pod.uid)
            if gone is not None:
                self._queue.happened(ASSIGNED_POD_DELETE, gone, None, now)
            return
        self._queue.delete(waiting)
        self._cluster.nominate(waiting, "")
        if self._cluster.is_assumed(pod.uid):
            self._vanished(waiting, now)
        elif waiting.nominated_node_name:
            self._room_for_lesser(waiting, now)

    def _room_for_lesser(self, pod: Pod, now: float) -> None:
        """A nominated pod does not need its node any more: those it outranked may try."""
        self._queue.happened(
            ASSIGNED_POD_DELETE, pod, None, now, lambda other: other.priority <= pod.priority
        )
