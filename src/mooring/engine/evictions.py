"""Carrying out a preemption: victims are evicted, and the pod waits until all calls are made."""

from __future__ import annotations

from collections.abc import Callable

from mooring.cluster import Cluster
from mooring.framework.plugin import Remedy
from mooring.framework.profile import Profile
from mooring.objects.pod import Pod
from mooring.queue import Place, Queue

from . import actions
from .actions import Action, EvictPod, PatchPodStatus, PodRef
from .placements import Placements

IN_PROGRESS = "waiting for the preemption for this pod to be finished"

_IN_MEMORY = "preempted by DefaultPreemption"


class Evictions:
    """The preemptions under way: which victims each pod still waits to be called off."""

    def __init__(
        self,
        cluster: Cluster,
        queue: Queue,
        placements: Placements,
        emit: Callable[[Action], None],
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._placements = placements
        self._emit = emit
        self._outstanding: dict[str, dict[str, Callable[[], None]]] = {}

    def is_in_progress(self, uid: str) -> bool:
        """Whether a pod must not be tried yet, because its victims are still being evicted."""
        return uid in self._outstanding

    def begin(self, pod: Pod, remedy: Remedy, profile: Profile, now: float) -> None:
        """Asks for the eviction of all victims that are not on their way out already."""
        victims = [victim for victim in remedy.victims if not victim.terminating]
        if not victims:
            return
        self._outrank(pod, remedy.node_name)
        profile.observer.victims_found(len(remedy.victims))
        for victim in victims:
            if self._placements.evict(victim, _IN_MEMORY, now):
                self._tell(pod, victim, remedy.node_name, profile, " (in kube-scheduler memory).")
                continue
            message = f"{profile.name}: preempting to accommodate a higher priority pod"
            self._emit(EvictPod(PodRef.to(victim), PodRef.to(pod), message))
            telling = self._telling(pod, victim, remedy.node_name, profile)
            self._outstanding.setdefault(pod.uid, {})[victim.uid] = telling

    def evicted(self, victim_uid: str, pod_uid: str, now: float) -> None:
        """A victim was evicted."""
        telling = self._outstanding.get(pod_uid, {}).pop(victim_uid, None)
        if telling is not None:
            telling()
            self._finish(pod_uid, now)

    def failed(self, victim_uid: str, pod_uid: str, now: float) -> None:
        """A victim could not be evicted: the pod may look for another way at once."""
        self._outstanding.get(pod_uid, {}).pop(victim_uid, None)
        self._finish(pod_uid, now)
        queued = self._queue.get(pod_uid)
        if queued is not None:
            self._queue.activate([queued.pod], now)

    def forget(self, pod_uid: str) -> None:
        """The pod is gone, or placed."""
        self._outstanding.pop(pod_uid, None)

    def _finish(self, pod_uid: str, now: float) -> None:
        if self._outstanding.get(pod_uid):
            return
        self._outstanding.pop(pod_uid, None)
        queued = self._queue.get(pod_uid)
        if queued is not None and queued.place is Place.GATED:
            # What woke it came while its victims were still being evicted.
            self._queue.activate([queued.pod], now)

    def _outrank(self, pod: Pod, node_name: str) -> None:
        """Less important pods lose their nomination to the node."""
        for other in list(self._cluster.nodes.nominations.on(node_name).values()):
            if other.priority < pod.priority:
                self._cluster.nominate(other, "")
                self._emit(PatchPodStatus(PodRef.to(other), nominated_node_name=""))

    def _telling(
        self, pod: Pod, victim: Pod, node_name: str, profile: Profile
    ) -> Callable[[], None]:
        return lambda: self._tell(pod, victim, node_name, profile)

    def _tell(
        self, pod: Pod, victim: Pod, node_name: str, profile: Profile, suffix: str = ""
    ) -> None:
        self._emit(actions.preempted(victim, pod, node_name, profile.name, suffix))
