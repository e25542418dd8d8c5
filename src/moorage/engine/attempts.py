r"""Attempts to place pods, from the decision until the pod is bound or back in the queue.

One state machine, with a method per transition:

    decided ─▶ failed ─▶ queue, perhaps while victims are evicted
       └─▶ assumed ─▶ waits for permits ─▶ prepared (writes come true) ─▶ binding ─▶ bound

From each state before `bound`, a placement may be taken back: it failed, or its pod is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from moorage.cluster import Cluster
from moorage.config import Extender
from moorage.framework.attempt import Failed
from moorage.framework.observe import POD, SUCCESS, Observer
from moorage.framework.profile import Profile
from moorage.framework.stamps import find_stamp
from moorage.framework.status import Code, PluginError, Rejected
from moorage.framework.victim_units import count_disruptions
from moorage.objects.pod import NO_STAMP, Pod
from moorage.queue import Entity, FailedAttempt, Gang, Queue
from moorage.queue.object_events import ASSIGNED_POD_DELETE

from . import actions, budget, diagnosis, placement
from .cycle import Found
from .diagnosis import SCHEDULER_ERROR, UNSCHEDULABLE, Failure
from .events import BindingFailed, ClaimsWritten
from .evictions import Evictions, PlannedPreemption
from .nomination_ends import tell_of_room
from .placement import Placement, PlacementState
from .remedies import RemedyResult, seek_remedy, sign_for_remedy

# What metrics call an attempt that failed for a reason.
_RESULTS = {
    UNSCHEDULABLE: "unschedulable",
    SCHEDULER_ERROR: "error",
    budget.TOO_COSTLY: "unschedulable",
}


@dataclass(eq=False)
class Attempts:
    """All attempts that are under way, and the preemptions that failed ones began."""

    _profiles: Mapping[str, Profile]
    _cluster: Cluster
    _queue: Queue
    _pending: Mapping[str, Pod]
    _emit: Callable[[actions.Action], None]
    _observer: Observer
    #: The ledger of what is evicted for whom.
    evictions: Evictions
    #: Returns what a pod that fits nowhere shares with others that do not either.
    _find_alike: Callable[[Pod], Hashable | None]
    #: The extenders that bind pods, as far as they are interested.
    _binders: Sequence[Extender]

    def __post_init__(self) -> None:
        self._placements: dict[str, Placement] = {}
        #: Those that wait for a permit or for what was written, by the uid of the pod.
        self.waiting: dict[str, Placement] = {}
        #: How often pods of each profile were too costly to be decided.
        self.too_costly: Counter[str] = Counter()

    def get(self, uid: str) -> Placement | None:
        return self._placements.get(uid)

    def next_deadline(self) -> float | None:
        if not self.waiting:
            return None
        return min((at for each in self.waiting.values() for at in each.deadlines), default=None)

    # Decided

    def conclude(
        self,
        queued: Entity,
        outcome: Found | Failed | PluginError | None,
        now: float,
        remedied: RemedyResult | None = None,
    ) -> None:
        """Carries out a decision: the pod is placed, or it failed. None means no nodes at all.

        For a failed pod, `remedied` is what the post-filters said; None if they were not asked.
        """
        if isinstance(outcome, Found):
            self.evictions.forget(queued.pod.uid)
            self._place(queued, self._cluster.nodes.name(outcome.row), now)
            return
        if isinstance(outcome, Failed):
            failure = self._seek_remedy(queued, outcome, now, remedied)
        elif isinstance(outcome, PluginError):
            failure = Failure(SCHEDULER_ERROR, str(outcome))
        else:
            failure = Failure(UNSCHEDULABLE, diagnosis.NO_NODES)
        self._observer.attempt_failed(queued.began)
        self.fail(queued, failure, now)

    def refuse_costly(self, queued: Entity, now: float) -> bool:
        """Delays a pod that is too costly, longer each time that it is found to be."""
        why = budget.excess(queued.pod, self._cluster)
        if why is None:
            return False
        self.too_costly[queued.pod.spec.scheduler_name] += 1
        text = f"0/{len(self._cluster.nodes)} nodes are available: {why}. It is tried again later."
        self._observer.attempt_failed(queued.began)
        failure = Failure(budget.TOO_COSTLY, text, delay=budget.delay(queued.attempts))
        self.fail(queued, failure, now)
        return True

    # Failed

    def _seek_remedy(
        self, queued: Entity, failed: Failed, now: float, remedied: RemedyResult | None
    ) -> Failure:
        """Asks the post-filters; if they find victims, evicts these."""
        pod = queued.pod
        profile = self._profiles[pod.spec.scheduler_name]
        signed, failure = None, None
        if remedied is None and failed.known:
            signed = sign_for_remedy(profile, pod, self._cluster.nodes)
            failure = failed.known.get(signed)
        if failure is None:
            failed = msgspec.structs.replace(failed, attempt=queued.attempts)
            began = self._observer.clock()
            found = remedied or seek_remedy(profile, pod, failed, self._cluster.nodes)
            self._observer.victims_sought(POD, found.status, began)
            if remedied is None and found.is_final:
                signed = sign_for_remedy(profile, pod, self._cluster.nodes)
            # Where nobody can make way for one, nobody can for another like it.
            is_shared = remedied is None and signed is not None and found.is_final
            failure = Failure(
                UNSCHEDULABLE,
                diagnosis.message(failed, found.text),
                diagnosis.rejectors(failed),
                nominate=found.nominate,
                is_shared=is_shared,
            )
            for release in found.releases:
                self._emit(actions.ReleaseClaim(actions.PodRef.to(pod), release))
            if found.remedy is not None:
                self._evict(pod, found, now)
            if is_shared:
                failed.known[signed] = failure
        if profile.post_filter:
            self._observer.remedy_sought()
        return failure

    def _evict(self, pod: Pod, remedied: RemedyResult, now: float) -> None:
        """Asks for the eviction of all victims that are not leaving already."""
        remedy = remedied.remedy
        victims = [each for each in remedy.victims if not each.terminating] if remedy else []
        if remedy is None or not victims:
            return
        self._outrank(pod, remedy.node_name)
        disruptions = count_disruptions(remedy.victims, self._cluster.nodes)
        self._observer.victims_found(POD, len(remedy.victims), disruptions, remedy.violations)
        preemption = PlannedPreemption(
            pod, victims, remedied.plugin, pod.spec.scheduler_name, remedy.node_name
        )
        self.evictions.begin(preemption, self.take_back_victim, now)

    def _outrank(self, pod: Pod, node_name: str) -> None:
        """Removes the nominations of less important pods to the node."""
        for other in list(self._cluster.nodes.nominations.on(node_name).values()):
            if other.priority < pod.priority:
                self._cluster.nominate(other, "")
                self._emit(actions.PatchPodStatus(actions.PodRef.to(other), nominated_node_name=""))

    def fail(self, queued: Entity, failure: Failure, now: float) -> None:
        """Returns the entity to the queue and says why, unless it is no longer ours to place."""
        if isinstance(queued, Gang):
            for member in queued.in_order:
                self.fail_member(member, failure)
            attempt = FailedAttempt(is_rejection=failure.reason != SCHEDULER_ERROR)
            self._queue.give_back(queued, attempt=attempt, now=now)
            return
        pod = self._pending.get(queued.pod.uid)
        if pod is None:
            name = queued.pod.spec.scheduler_name
            self._observer.pod_failed(name, _RESULTS[failure.reason], queued.began)
            self._queue.done(queued.key)
            return
        before = self._cluster.nodes.nominations.node_of(pod)
        self._nominate(pod, failure)
        nominated = before or self._cluster.nodes.nominations.node_of(pod)
        alike = self._find_alike(pod) if failure.is_shared and not nominated else None
        attempt = FailedAttempt(
            failure.rejectors,
            failure.pending,
            failure.message,
            failure.delay or budget.delay_after(pod, self._cluster),
            alike,
        )
        self._queue.give_back(queued, pod=pod, attempt=attempt, now=now)
        if before and before != self._cluster.nodes.nominations.node_of(pod):
            tell_of_room(self._queue, pod, before, now)
        self._tell(queued, pod, failure)

    def fail_member(self, queued: Entity, failure: Failure) -> None:
        """Says why a member was not placed; its group returns to the queue as a whole."""
        pod = self._pending.get(queued.pod.uid)
        if pod is not None:
            self._nominate(pod, failure)
            self._tell(queued, pod, failure)

    def _nominate(self, pod: Pod, failure: Failure) -> None:
        if failure.nominate is not None:
            self._cluster.nominate(pod, failure.nominate)

    def _tell(self, queued: Entity, pod: Pod, failure: Failure) -> None:
        name = pod.spec.scheduler_name
        self._observer.pod_failed(name, _RESULTS[failure.reason], queued.began)
        self._emit(actions.make_failure_event(pod, failure.message, name))
        patch = diagnosis.patch(pod, failure)
        if patch is not None:
            self._emit(patch)

    # Placed

    def _place(self, queued: Entity, node_name: str, now: float) -> None:
        """Assumes a pod on its node, and binds it unless a plugin refuses or makes it wait."""
        pod = queued.pod
        profile = self._profiles[pod.spec.scheduler_name]
        nominated = ""
        if self._cluster.nodes.nominations.are_there:
            nominated = self._cluster.nodes.nominations.node_of(pod)
            self._cluster.nominate(pod, "")
        assumed = self._cluster.assume(pod, node_name, find_stamp(profile, pod))
        placed = Placement(queued, assumed, node_name, profile)
        if nominated and nominated != node_name:
            tell_of_room(self._queue, pod, nominated, now)
        self._placements[pod.uid] = placed
        refused = placement.reserve(placed, self._cluster.nodes, self._observer)
        if refused is None and profile.permit:
            refused = placement.ask_permits(placed, self._observer, now)
        if refused is not None:
            self.take_back(placed)
            self.fail(queued, refused, now)
        else:
            self.go_on(placed, now)

    def take_over(self, placed: Placement, now: float) -> Failure | None:
        """Continues with an assumed and reserved pod: asks permits, but does not bind it yet."""
        self._placements[placed.pod.uid] = placed
        return placement.ask_permits(placed, self._observer, now)

    def go_on(self, placed: Placement, now: float) -> None:
        """Binds a pod that was taken over, or lets it wait for its permits."""
        if placed.permits:
            placed.waits_since = now
            self._wait(placed, "permit")
        else:
            self._prepare(placed, now)

    def take_back_victim(self, victim: Pod, plugin: str, now: float) -> bool:
        """Takes back a victim that waits for its binding; returns whether it was one."""
        waiting = self.waiting.get(victim.uid)
        if waiting is not None:
            # It is bound nowhere yet, so that taking it back is enough.
            self._give_up(waiting, Failure(SCHEDULER_ERROR, f"preempted by {plugin}"), now)
        return waiting is not None

    def permitted(self, uid: str, plugin: str, now: float) -> None:
        """Handles a permit that was given."""
        waiting = self.waiting.get(uid)
        if waiting is None or waiting.permits.pop(plugin, None) is None:
            return
        if not waiting.permits:
            del self.waiting[uid]
            self._observer.permit_waited(SUCCESS, now - waiting.waits_since)
            self._prepare(waiting, now)

    def permit_refused(self, uid: str, plugin: str, message: str, now: float) -> None:
        """Handles a permit that was refused or took too long."""
        waiting = self.waiting.get(uid)
        if waiting is not None and plugin in waiting.permits:
            waited = now - waiting.waits_since
            self._observer.permit_waited(Code.UNSCHEDULABLE.value, waited)
            self.take_back(waiting)
            why = diagnosis.refusal(plugin, Rejected(Code.UNSCHEDULABLE, (message,)))
            self.fail(waiting.queued, why, now)
            self._room_again(waiting, now)

    def look_after(self, waiting: Placement, now: float) -> None:
        """Binds a pod whose wait is over, and gives up one whose time is over."""
        if waiting.state == "permit":
            for plugin, (until, seconds) in waiting.permits.items():
                if until <= now:
                    text = f"rejected due to timeout after waiting {seconds:g}s at plugin {plugin}"
                    self.permit_refused(waiting.pod.uid, plugin, text, now)
                    return
            return
        failure = placement.check_preparations(waiting, self._cluster.nodes, now)
        if failure is not None or not waiting.preparing:
            placement.tell_of_devices(waiting, self._observer, failure, now)
        if failure is not None:
            self._give_up(waiting, failure, now)
        elif not waiting.preparing:
            del self.waiting[waiting.pod.uid]
            self._bind(waiting)

    def _prepare(self, placed: Placement, now: float) -> None:
        # From here on, a failure is nobody's verdict on the pod.
        self._queue.done(placed.pod.uid)
        work = placement.prepare(placed, self._cluster.nodes, now)
        if not work:
            self._bind(placed)
            return
        if isinstance(work, Failure):
            self._give_up(placed, work, now)
            return
        for each in work:
            ref = actions.PodRef.to(placed.pod)
            if each.volumes or each.claims:
                self._emit(actions.WriteVolumes(ref, placed.node_name, each.volumes, each.claims))
            if each.devices is not None:
                self._emit(actions.WriteClaims(ref, placed.node_name, each.devices))
        if placed.preparing:
            self._wait(placed, "preparing")
        else:
            self._bind(placed)

    def end_write(self, event: BindingFailed | ClaimsWritten, now: float) -> None:
        """Handles the end of a write before a binding: claims were written, or something failed."""
        if isinstance(event, BindingFailed):
            self.binding_failed(event.uid, event.message, now)
            return
        placed = self._placements.get(event.uid)
        # From now on it is waited for until it is seen.
        if placed is not None and placed.is_writing:
            placed.is_writing = False
            placed.devices_since = now
            if placed.device_writes is not None and placed.device_writes.slow_drivers:
                name = placed.profile.name
                self._emit(actions.make_device_wait_event(placed.pod, placed.node_name, name))

    def _wait(self, placed: Placement, state: PlacementState) -> None:
        """Lets a pod wait, and tells other pods which node it is going to."""
        placed.state = state
        self.waiting[placed.pod.uid] = placed
        ref = actions.PodRef.to(placed.pod)
        self._emit(actions.PatchPodStatus(ref, nominated_node_name=placed.node_name))

    def _bind(self, placed: Placement) -> None:
        placed.state = "binding"
        ref = actions.PodRef.to(placed.pod)
        stamp = find_stamp(placed.profile, placed.pod) if placed.pod.annotations else NO_STAMP
        bind = actions.BindPod(ref, placed.node_name, placed.profile.name, stamp)
        for each in self._binders:
            if each.concerns(placed.pod.spec):
                bind = msgspec.structs.replace(bind, extender=each.url_prefix)
        self._emit(bind)

    def bound(self, uid: str, now: float) -> None:
        """Handles a successful binding: the attempt is over."""
        placed = self._placements.pop(uid, None)
        if placed is None:
            return
        queued, name = placed.queued, placed.profile.name
        since = queued.initial_attempt
        waited = None if since is None else now - since
        self._observer.pod_scheduled(name, queued.began, queued.attempts, waited)
        if queued.was_flushed:
            self._observer.flush_helped()
        self._emit(actions.make_scheduled_event(placed.pod, placed.node_name, name))

    # Taken back

    def binding_failed(self, uid: str, message: str, now: float) -> None:
        """Handles a failed binding, or a failed write before it."""
        placed = self._placements.get(uid)
        if placed is not None:
            self._give_up(placed, Failure(SCHEDULER_ERROR, message), now)

    def withdraw(self, pod: Pod, now: float) -> None:
        """Ends the attempt of a pod that was deleted before it was bound."""
        self.evictions.forget(pod.uid)
        placed = self._placements.get(pod.uid)
        if placed is not None:
            self.take_back(placed)
            self._queue.done(pod.uid)
            self._room_again(placed, now)

    def drop(self, uid: str) -> None:
        """Forgets a placement, whatever became of it."""
        self._placements.pop(uid, None)
        self.waiting.pop(uid, None)

    def _give_up(self, placed: Placement, failure: Failure, now: float) -> None:
        """Undoes a placement; waiting pods hear of the room before the pod itself returns."""
        self.take_back(placed)
        self._queue.wake(ASSIGNED_POD_DELETE, placed.pod, None, now)
        self.fail(placed.queued, failure, now)

    def take_back(self, placed: Placement) -> None:
        """Undoes a placement."""
        self.drop(placed.pod.uid)
        for problem in placement.unreserve(placed, self._cluster.nodes, self._observer):
            self._emit(actions.make_failure_event(placed.pod, problem, placed.profile.name))
        writes = placed.device_writes
        if writes is not None:
            special = writes.creation is not None
            self._cluster.revoke_claims(placed.pod.uid)
            self._emit(actions.RevokeClaims(actions.PodRef.to(placed.pod), writes.claims, special))
        self._cluster.forget(placed.pod.uid)

    def _room_again(self, placed: Placement, now: float) -> None:
        """Wakes pods that may use the room of an assumed pod that gave it back."""
        uid = placed.pod.uid
        self._queue.wake(ASSIGNED_POD_DELETE, placed.pod, None, now, lambda other: other.uid != uid)
