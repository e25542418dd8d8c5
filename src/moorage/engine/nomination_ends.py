"""What follows when a pod no longer waits for its nominated node."""

from __future__ import annotations

from msgspec import structs

from moorage.objects.pod import Pod
from moorage.queue import Queue
from moorage.queue.object_events import ASSIGNED_POD_DELETE


def tell_of_room(queue: Queue, pod: Pod, node_name: str, now: float) -> None:
    """Wakes the pods that saw room on a node as taken because this one was nominated to it."""
    status = structs.replace(pod.status, nominated_node_name=node_name)
    gone = structs.replace(pod, node_name="", status=status)

    def concerns(other: Pod) -> bool:
        return other.priority <= pod.priority and other.uid != pod.uid

    queue.wake(ASSIGNED_POD_DELETE, gone, None, now, concerns)
