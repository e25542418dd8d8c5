"""Pods between decision and binding: assumed on a node, perhaps waiting, not bound yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from mooring.cluster import Cluster
from mooring.framework.calls import (
    PluginFence,
    ask_is_prepared,
    ask_permit,
    ask_prepare,
    ask_reserve,
)
from mooring.framework.observe import (
    ERROR,
    PERMIT,
    RESERVE,
    SUCCESS,
    UNRESERVE,
    Observer,
    PointTimer,
    make_caller,
)
from mooring.framework.plugin import (
    PreBind,
    Preparation,
    Reserve,
    Wait,
    WaitingPod,
    WaitingPods,
)
from mooring.framework.profile import Profile
from mooring.framework.status import Code, PluginError, Rejected, check_text
from mooring.objects.pod import PLACED, Pod
from mooring.queue import Queue, QueuedPod
from mooring.queue.cluster_events import ASSIGNED_POD_DELETE

from . import actions
from .actions import Action, BindPod, PatchPodStatus, PodRef, WriteVolumes
from .events import Event, PermitRefused, Permitted
from .failures import SCHEDULER_ERROR, UNSCHEDULABLE, Failure, refusal

# A permit may not be waited for longer than this, whatever its plugin says.
_LONGEST_PERMIT_WAIT = 15 * 60.0

# The status of a point whose plugins refused a pod for a reason.
_STATUSES = {UNSCHEDULABLE: Code.UNSCHEDULABLE.value, SCHEDULER_ERROR: ERROR}


class Placement(msgspec.Struct, eq=False, gc=False):
    """A pod on its way to a node."""

    queued: QueuedPod
    pod: Pod
    node_name: str
    profile: Profile
    #: Until when which permit is waited for, and how long that is.
    permits: dict[str, tuple[float, float]] = {}
    #: Since when a permit is waited for.
    waits_since: float = 0.0
    #: Who waits for what was written to come true, and until when.
    preparing: dict[PreBind, float] = {}

    @property
    def deadlines(self) -> Iterator[float]:
        yield from (until for until, _ in self.permits.values())
        yield from self.preparing.values()


class WaitingForPermit(WaitingPods):
    """What a permit plugin sees of the placements, and says to them by events."""

    def __init__(self, plugin: str, placements: Placements, tell: Callable[[Event], None]) -> None:
        self._plugin = plugin
        self._placements = placements
        self._tell = tell

    def __iter__(self) -> Iterator[WaitingPod]:
        # A copy, since other threads may ask while pods come and go.
        for placement in list(self._placements.waiting.values()):
            if self._plugin in placement.permits:
                yield WaitingPod(placement.pod, placement.node_name)

    def allow(self, uid: str) -> None:
        check_text("uid", uid)
        self._tell(Permitted(uid, self._plugin))

    def refuse(self, uid: str, message: str) -> None:
        check_text("uid", uid)
        check_text("message", message)
        self._tell(PermitRefused(uid, self._plugin, message))


Fail = Callable[[QueuedPod, Profile, Failure, float], None]
Emit = Callable[[Action], None]


class Placements:
    """Carries pods from their chosen node to their binding, or back into the queue."""

    def __init__(
        self, cluster: Cluster, queue: Queue, emit: Emit, fail: Fail, observer: Observer
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._emit = emit
        self._fail = fail
        self._observer = observer
        self._is_observed = observer.is_there
        self._placements: dict[str, Placement] = {}
        #: Those that wait for a permit or for their volumes.
        self._waiting: dict[str, Placement] = {}

    def get(self, uid: str) -> Placement | None:
        return self._placements.get(uid)

    def next_deadline(self) -> float | None:
        return min((at for each in self._waiting.values() for at in each.deadlines), default=None)

    def place(self, queued: QueuedPod, profile: Profile, node_name: str, now: float) -> None:
        """Assumes a pod on its node, and binds it unless somebody refuses or must wait."""
        pod = queued.pod
        self._cluster.nominate(pod, "")
        placement = Placement(queued, self._cluster.assume(pod, node_name), node_name, profile)
        self._placements[pod.uid] = placement
        refused = self._reserve(placement) or self._ask_permits(placement, now)
        if refused is not None:
            self._take_back(placement)
            self._fail(queued, profile, refused, now)
        elif placement.permits:
            self._waiting[pod.uid] = placement
            placement.waits_since = now
            self._keep_node(placement)
        else:
            self._prepare(placement, now)

    def bound(self, uid: str, now: float) -> None:
        placement = self._placements.pop(uid, None)
        if placement is not None:
            if self._is_observed:
                self._count(placement, now)
            name = placement.profile.name
            self._emit(actions.scheduled(placement.pod, placement.node_name, name))

    def _count(self, placement: Placement, now: float) -> None:
        queued = placement.queued
        since = queued.initial_attempt
        waited = None if since is None else now - since
        name = placement.profile.name
        self._observer.pod_scheduled(name, queued.began, queued.attempts, waited)
        if queued.was_flushed:
            self._observer.flush_helped()

    def binding_failed(self, uid: str, message: str, now: float) -> None:
        placement = self._placements.get(uid)
        if placement is not None:
            self._give_up(placement, Failure(SCHEDULER_ERROR, message), now)

    def permitted(self, uid: str, plugin: str, now: float) -> None:
        placement = self._waiting.get(uid)
        if placement is None or placement.permits.pop(plugin, None) is None:
            return
        if not placement.permits:
            del self._waiting[uid]
            self._observer.permit_waited(SUCCESS, now - placement.waits_since)
            self._prepare(placement, now)

    def refused(self, uid: str, plugin: str, message: str, now: float) -> None:
        placement = self._waiting.get(uid)
        if placement is not None and plugin in placement.permits:
            waited = now - placement.waits_since
            self._observer.permit_waited(Code.UNSCHEDULABLE.value, waited)
            self._take_back(placement)
            why = refusal(plugin, Rejected(Code.UNSCHEDULABLE, (message,)))
            self._fail(placement.queued, placement.profile, why, now)
            self._room_again(placement, now)

    def drop(self, uid: str) -> None:
        """Forgets a placement, whatever became of it."""
        self._placements.pop(uid, None)
        self._waiting.pop(uid, None)

    def withdraw(self, pod: Pod, now: float) -> bool:
        """Takes back a pod that was deleted or evicted while it waited; False if it did not."""
        placement = self._placements.get(pod.uid)
        if placement is None:
            return False
        self._take_back(placement)
        self._queue.done(pod.uid)
        self._room_again(placement, now)
        return True

    def evict(self, pod: Pod, message: str, now: float) -> bool:
        """Ends the wait of a pod that has to make way; False if it does not wait."""
        placement = self._waiting.get(pod.uid)
        if placement is None:
            return False
        self._give_up(placement, Failure(SCHEDULER_ERROR, message), now)
        return True

    @property
    def waiting(self) -> Mapping[str, Placement]:
        """Those that wait for a permit or for their volumes, by the uid of the pod."""
        return self._waiting

    def look_after(self, placement: Placement, now: float) -> None:
        """Binds a pod whose wait is over, and gives up one whose time is."""
        if placement.permits:
            self._expire_permit(placement, now)
        else:
            self._watch(placement, now)

    def _expire_permit(self, placement: Placement, now: float) -> None:
        for plugin, (until, seconds) in placement.permits.items():
            if until <= now:
                waited = f"rejected due to timeout after waiting {seconds:g}s at plugin {plugin}"
                self.refused(placement.pod.uid, plugin, waited, now)
                return

    def _watch(self, placement: Placement, now: float) -> None:
        nodes = self._cluster.nodes
        for plugin, until in list(placement.preparing.items()):
            answer: bool | Rejected = False
            try:
                answer = ask_is_prepared(plugin, placement.pod, nodes, placement.node_name)
            except PluginError as error:
                answer = Rejected(Code.ERROR, (str(error),))
            if isinstance(answer, Rejected):
                self._give_up(placement, Failure(SCHEDULER_ERROR, answer.message), now)
                return
            if answer:
                del placement.preparing[plugin]
            elif until <= now:
                what = f'running PreBind plugin "{plugin.name}": binding volumes: timed out'
                self._give_up(placement, Failure(SCHEDULER_ERROR, what), now)
                return
        if not placement.preparing:
            del self._waiting[placement.pod.uid]
            self._bind(placement)

    def _reserve(self, placement: Placement) -> Failure | None:
        # Every pod comes by here, and the time that it takes is mostly that of taking it.
        if not self._observer.is_sampling:
            return self._ask_to_reserve(placement)
        with PointTimer(self._observer, RESERVE, placement.profile.name) as running:
            refused = self._ask_to_reserve(placement)
            if refused is not None:
                running.status = _STATUSES[refused.reason]
        return refused

    def _ask_to_reserve(self, placement: Placement) -> Failure | None:
        nodes = self._cluster.nodes
        ask = make_caller(self._observer, RESERVE) if self._observer.is_sampling else None
        row = nodes.row(placement.node_name)
        assert row is not None, "a pod is assumed on a node that is not there"
        for plugin in placement.profile.reserve:
            try:
                answer = ask_reserve(plugin, ask, placement.pod, nodes, row)
            except PluginError as error:
                return Failure(SCHEDULER_ERROR, str(error))
            if answer is not None:
                return refusal(plugin.name, answer)
        return None

    def _ask_permits(self, placement: Placement, now: float) -> Failure | None:
        if not placement.profile.permit:
            return None
        with PointTimer(self._observer, PERMIT, placement.profile.name) as running:
            refused = self._ask_each_permit(placement, now)
            if refused is not None:
                running.status = _STATUSES[refused.reason]
            elif placement.permits:
                running.status = "Wait"
        return refused

    def _ask_each_permit(self, placement: Placement, now: float) -> Failure | None:
        ask = make_caller(self._observer, PERMIT)
        for plugin in placement.profile.permit:
            try:
                answer = ask_permit(plugin, ask, placement.pod, placement.node_name)
            except PluginError as error:
                return Failure(SCHEDULER_ERROR, str(error))
            if isinstance(answer, Wait):
                seconds = min(answer.seconds, _LONGEST_PERMIT_WAIT)
                placement.permits[plugin.name] = now + seconds, seconds
            elif answer is not None:
                return refusal(plugin.name, answer)
        return None

    def _prepare(self, placement: Placement, now: float) -> None:
        # From here on, a failure is nobody's verdict on the pod.
        self._queue.done(placement.pod.uid)
        for plugin in placement.profile.pre_bind:
            try:
                nodes = self._cluster.nodes
                work = ask_prepare(plugin, placement.pod, nodes, placement.node_name)
            except PluginError as error:
                self._give_up(placement, Failure(SCHEDULER_ERROR, str(error)), now)
                return
            if work is not None:
                placement.preparing[plugin] = now + work.timeout_seconds
                self._write(placement, work)
        if placement.preparing:
            self._waiting[placement.pod.uid] = placement
            self._keep_node(placement)
        else:
            self._bind(placement)

    def _write(self, placement: Placement, work: Preparation) -> None:
        ref = PodRef.to(placement.pod)
        self._emit(WriteVolumes(ref, placement.node_name, work.volumes, work.claims))

    def _keep_node(self, placement: Placement) -> None:
        """Tells others which node a pod that must wait is going to."""
        ref = PodRef.to(placement.pod)
        self._emit(PatchPodStatus(ref, nominated_node_name=placement.node_name))

    def _bind(self, placement: Placement) -> None:
        ref = PodRef.to(placement.pod)
        bind = BindPod(ref, placement.node_name, placement.profile.name)
        if PLACED in placement.pod.annotations:
            bind = msgspec.structs.replace(bind, annotations={PLACED: ref.uid})
        self._emit(bind)

    def _give_up(self, placement: Placement, failure: Failure, now: float) -> None:
        """Undoes a placement; those who wait hear of the room before the pod itself returns."""
        self._take_back(placement)
        self._queue.wake(ASSIGNED_POD_DELETE, placement.pod, None, now)
        self._fail(placement.queued, placement.profile, failure, now)

    def _take_back(self, placement: Placement) -> None:
        uid = placement.pod.uid
        del self._placements[uid]
        self._waiting.pop(uid, None)
        with PointTimer(self._observer, UNRESERVE, placement.profile.name):
            for plugin in reversed(placement.profile.reserve):
                self._unreserve(placement, plugin)
        self._cluster.forget(uid)

    def _unreserve(self, placement: Placement, plugin: Reserve) -> None:
        pod, profile = placement.pod, placement.profile
        try:
            with PluginFence('running Unreserve plugin "{}"', plugin):
                plugin.unreserve(pod, self._cluster.nodes, placement.node_name)
        except PluginError as error:
            # The others must give back what they hold.
            self._emit(actions.failed_scheduling(pod, str(error), profile.name))

    def _room_again(self, placement: Placement, now: float) -> None:
        """Other pods may try for what an assumed pod has given back."""
        uid = placement.pod.uid
        self._queue.wake(
            ASSIGNED_POD_DELETE, placement.pod, None, now, lambda other: other.uid != uid
        )
