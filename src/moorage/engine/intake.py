"""Takes in objects: what a change means for the cluster and for waiting pods."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from moorage.cluster import Cluster
from moorage.config.kubernetes_versions import KubernetesVersion
from moorage.framework.profile import Profile
from moorage.framework.stamps import ask_counts_as, ask_stamp, find_stamping, has_stamp
from moorage.framework.wakeups import Action, ClusterEvent
from moorage.objects.custom import CustomObject
from moorage.objects.kinds import Object
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.objects.pod_status import FINISHED
from moorage.objects.resource_claim import ClaimSpec, DeviceObject, ResourceClaim
from moorage.objects.storage import StorageObject
from moorage.objects.workload import Namespace, SelectingObject
from moorage.queue import Queue, object_events

from .nomination_ends import tell_of_room

# Made once: `|` of two unions takes longer than to look at the object.
_STORED = StorageObject | DeviceObject

#: The events that a change amounts to; empty if no plugin needs to know.
Events = tuple[ClusterEvent, ...]


def count_by(version: KubernetesVersion, pod: Pod) -> Pod:
    """Returns the pod as a version counts what it takes on a node."""
    if version.counts_sizes_by_sums and pod.status.sizes:
        return replace(pod, counts_by_sums=True)
    return pod


class Intake:
    """Routes objects: placed pods and nodes to the cluster, pods that wait for us to the queue."""

    def __init__(
        self,
        cluster: Cluster,
        queue: Queue,
        profiles: Mapping[str, Profile],
        pending: dict[str, Pod],
        end_assumed: Callable[[Pod, float], None],
        version: KubernetesVersion,
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._profiles = profiles
        #: Called when a pod that is assumed on a node is deleted before it is bound.
        self._end_assumed = end_assumed
        self._version = version
        #: The newest form of every pod that has no node yet and is ours to schedule, by uid.
        self.pending = pending
        #: The plugins that say how placed pods count, by how these were bound.
        self._stamping = find_stamping(profiles.values())
        #: Pods by uid that were bound without a plugin's stamp, as their objects are.
        self._around: dict[str, Pod] = {}

    def apply(self, item: Object, now: float) -> Events:
        """Takes in an object as it is now; returns what that amounts to."""
        if isinstance(item, Pod):
            return self._apply_pod(item, now)
        if isinstance(item, Node):
            return self._apply_node(item, now)
        if isinstance(item, _STORED):
            return self._apply_object(item, now)
        if isinstance(item, CustomObject):
            return self._apply_custom(item, now)
        if isinstance(item, PodGroup):
            return self._apply_group(item, now)
        self._put_workload(item, now)
        return ()

    def _apply_object(self, item: StorageObject | DeviceObject, now: float) -> Events:
        before: StorageObject | DeviceObject | None
        if isinstance(item, ResourceClaim):
            known = self._cluster.nodes.devices.claims.get(item.key)
            if known is not None and known.uid != item.uid:
                # A list shows the new one; that the other is gone was missed.
                self.remove(known, now)
        if isinstance(item, DeviceObject):
            before = self._cluster.put_device(item)
        else:
            before = self._cluster.put_storage(item)
        event = object_events.object_event(item, Action.ADD if before is None else Action.UPDATE)
        if before is None or not object_events.says_the_same(before, item):
            self._queue.wake(event, before, item, now)
        self._tell_of_free_devices(now)
        return (event,)

    def _put_workload(self, item: Namespace | SelectingObject, now: float) -> None:
        before = self._cluster.put_workload(item)
        if isinstance(item, Namespace):
            self._count_anew(item.name, now)
            if before != item:
                self._queue.wake(object_events.NAMESPACE_UPDATE, before, item, now)

    def remove(self, item: Object, now: float) -> Events:
        """Takes in that an object is gone; returns what that amounts to."""
        if isinstance(item, Pod):
            return self._remove_pod(item, now)
        if isinstance(item, Node):
            # Pods that wait hear of it before the node is gone, as in kube-scheduler.
            self._queue.wake(object_events.NODE_DELETE, item, None, now)
            self._cluster.remove_node(item.name)
            return (object_events.NODE_DELETE,)
        if isinstance(item, _STORED):
            if isinstance(item, DeviceObject):
                self._cluster.remove_device(item)
            else:
                self._cluster.remove_storage(item)
            event = object_events.object_event(item, Action.DELETE)
            self._queue.wake(event, item, None, now)
            self._tell_of_free_devices(now)
            return (event,)
        if isinstance(item, CustomObject):
            return self._remove_custom(item, now)
        if isinstance(item, PodGroup):
            self._cluster.remove_group(item)
            self._queue.remove_group(item.group_key, now)
            return (object_events.GROUP_DELETE,)
        self._cluster.remove_workload(item)
        if isinstance(item, Namespace):
            self._count_anew(item.name, now)
        return ()

    def _apply_node(self, node: Node, now: float) -> Events:
        before = self._cluster.put_node(node)
        events = (
            (object_events.NODE_ADD,) if before is None else object_events.node_events(before, node)
        )
        for event in events:
            self._queue.wake(event, before, node, now)
        return events

    def _apply_custom(self, item: CustomObject, now: float) -> Events:
        custom = self._cluster.extended.custom
        kind = custom.kind_of(item)
        if kind is None:
            return ()
        was_old = custom.is_old(item)
        before = custom.put(item, now)
        event = object_events.custom_event(kind, Action.ADD if before is None else Action.UPDATE)
        if before is None or was_old or not object_events.says_the_same(before, item):
            self._queue.wake(event, before, item, now)
        return (event,)

    def _remove_custom(self, item: CustomObject, now: float) -> Events:
        custom = self._cluster.extended.custom
        kind = custom.kind_of(item)
        if kind is None:
            return ()
        before = custom.remove(item)
        event = object_events.custom_event(kind, Action.DELETE)
        self._queue.wake(event, before or item, None, now)
        return (event,)

    def _apply_group(self, group: PodGroup, now: float) -> Events:
        before = self._cluster.put_group(group)
        known = self._cluster.groups.get(group.group_key)
        if known is not None:
            self._queue.put_group(before, known, now)
        return (object_events.GROUP_ADD if before is None else object_events.GROUP_UPDATE,)

    def _apply_pod(self, pod: Pod, now: float) -> Events:
        if pod.status.phase in FINISHED:
            # A pod that has run to its end takes no room, so it is as good as gone.
            return self._remove_pod(pod, now)
        pod = count_by(self._version, pod)
        if pod.node_name:
            return self._apply_placed(self._see(pod) if self._stamping else pod, now)
        if pod.spec.scheduler_name in self._profiles:
            return self._apply_pending(pod, now)
        return ()

    def _see(self, pod: Pod) -> Pod:
        """Returns a placed pod as other pods must see it, by the stamps that it has."""
        seen = pod
        if self._around:
            self._around.pop(pod.uid, None)
        for plugin in self._stamping:
            stamp = ask_stamp(plugin, pod)
            if not stamp or has_stamp(pod, stamp):
                continue
            known = self._cluster.pod(pod.uid)
            if known is not None and known.node_name == pod.node_name and has_stamp(known, stamp):
                # We bound it, whatever became of the annotations that say so.
                seen = seen.on(pod.node_name, stamp)
                continue
            self._around[pod.uid] = pod
            labels = self._cluster.nodes.workloads.namespace_labels(pod.namespace)
            seen = ask_counts_as(plugin, seen, labels)
        return seen

    def _count_anew(self, namespace: str, now: float) -> None:
        """Counts pods of a namespace again that its labels let count otherwise."""
        for pod in list(self._around.values()):
            if pod.namespace == namespace:
                seen = self._see(pod)
                if seen != self._cluster.pod(pod.uid):
                    self._apply_placed(seen, now)

    def _apply_placed(self, pod: Pod, now: float) -> Events:
        waiting = self.pending.pop(pod.uid, None)
        if waiting is not None:
            self._queue.delete(waiting)
            self._cluster.dismiss(waiting)
            if self._cluster.nodes.nominations.are_there:
                self._nominate(waiting, "", now, pod.node_name)
        confirmed = not self._cluster.is_assumed(pod.uid)
        before = self._cluster.put_pod(pod)
        if before is None or not confirmed:
            key = self._cluster.groups.key_of(pod)
            if key is not None:
                # Its group may be complete now.
                self._queue.look_again(key, object_events.GROUP_CHANGE, now)
            self._queue.wake(object_events.ASSIGNED_POD_ADD, None, pod, now)
            return (object_events.ASSIGNED_POD_ADD,)
        events = object_events.pod_events(before, pod, assigned=True)
        for event in events:
            self._queue.wake(event, before, pod, now)
        return events

    def _apply_pending(self, pod: Pod, now: float) -> Events:
        before = self.pending.get(pod.uid)
        if before is not None and before.resource_version == pod.resource_version != "":
            return ()
        if before is not None:
            self._cluster.dismiss(before)
        self.pending[pod.uid] = pod
        self._cluster.expect(pod)
        if self._cluster.pod(pod.uid) is not None:
            if pod.terminating and not (before is not None and before.terminating):
                self._end_assumed(pod, now)
        elif before is None:
            nominated = pod.status.nominated_node_name
            if nominated or self._cluster.nodes.nominations.are_there:
                self._cluster.nominate(pod, nominated)
            self._queue.add(pod, now)
        else:
            self._update_pending(before, pod, now)
        return (
            (object_events.UNSCHEDULED_POD_ADD,)
            if before is None
            else (object_events.UNSCHEDULED_POD_UPDATE,)
        )

    def _update_pending(self, before: Pod, pod: Pod, now: float) -> None:
        old, new = before.nominated_node_name, pod.nominated_node_name
        # Without a nomination in either object, the one that is only in memory stays.
        kept = new if old or new else self._cluster.nodes.nominations.node_of(pod)
        self._queue.update(before, pod, now)
        self._nominate(pod, kept, now)

    def _remove_pod(self, pod: Pod, now: float) -> Events:
        self._around.pop(pod.uid, None)
        waiting = self.pending.pop(pod.uid, None)
        if waiting is None:
            gone = self._cluster.remove_pod(pod.uid)
            if gone is not None:
                self._queue.wake(object_events.ASSIGNED_POD_DELETE, gone, None, now)
            return (object_events.ASSIGNED_POD_DELETE,)
        self._queue.delete(waiting)
        self._cluster.dismiss(waiting)
        self._nominate(waiting, "", now)
        if self._cluster.is_assumed(pod.uid):
            self._end_assumed(waiting, now)
            # One that is bound already is on its way no more, and no watch will tell of its node.
            self.take_back(pod.uid, now)
        return (object_events.UNSCHEDULED_POD_DELETE,)

    def end_doubt(self, uid: str, held: Mapping[str, str], now: float) -> None:
        """Takes in what became of the writes for a pod that was taken back."""
        self._cluster.end_doubt(uid, held)
        self._tell_of_free_devices(now)

    def _tell_of_free_devices(self, now: float) -> None:
        """Wakes pods for devices that only a decision has freed."""
        for allocation in self._cluster.take_freed_devices():
            held = ResourceClaim(
                namespace="", name="", uid="", spec=ClaimSpec(), allocation=allocation
            )
            event = object_events.object_event(held, Action.UPDATE)
            self._queue.wake(event, held, replace(held, allocation=None), now)

    def take_back(self, uid: str, now: float, is_waiting: bool = False) -> None:
        """Takes a pod that was bound off its node; it may wait for another one."""
        gone = self._cluster.forget(uid)
        if gone is None:
            return
        self._queue.wake(object_events.ASSIGNED_POD_DELETE, gone, None, now)
        pod = self.pending.get(uid)
        if is_waiting and pod is not None:
            self._queue.add(pod, now)

    def _nominate(self, pod: Pod, node_name: str, now: float, goes_to: str = "") -> None:
        """Notes the nomination of a pod; less important pods hear of the room that it gives up."""
        before = self._cluster.nodes.nominations.node_of(pod)
        self._cluster.nominate(pod, node_name)
        if before and before != (goes_to or node_name):
            tell_of_room(self._queue, pod, before, now)
