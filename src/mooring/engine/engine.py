"""The engine: takes in events, makes decisions, asks for actions."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from zlib import crc32

from mooring.cluster import Cluster, HandleRegistry
from mooring.config import Configuration
from mooring.framework.attempt import Failed
from mooring.framework.calls import ask_pre_enqueue, ask_wakeups, attach, broken
from mooring.framework.events import Wakeup
from mooring.framework.observe import PRE_ENQUEUE, SUCCESS, UNOBSERVED, Observer
from mooring.framework.plugin import Registry
from mooring.framework.profile import Profile
from mooring.framework.status import Code, PluginError, Rejected, unresolvable
from mooring.objects.pod import Pod
from mooring.queue import Backoff, FailedAttempt, Queue, QueuedPod

from . import actions, budget, diagnosis
from .actions import Action, Report
from .classes.classes import Classes, ClassSettings
from .cycle import Found, Window, looked_at
from .events import (
    Applied,
    BindingFailed,
    Bound,
    Event,
    Evicted,
    EvictionFailed,
    PermitRefused,
    Permitted,
    PodEnded,
    Removed,
    Unbound,
)
from .evictions import IN_PROGRESS, Evictions
from .failures import SCHEDULER_ERROR, UNSCHEDULABLE, Failure, patch
from .fence import Fence, describe
from .intake import Intake
from .placements import Placement, Placements, WaitingForPermit
from .remedies import seek_remedy

# After so many placements per node, ties begin at the next node: pods that ask for nothing, which
# all nodes of a full cluster suit equally well, do not all go to one. Rarely, because whatever is
# ranked for like pods is then ranked anew.
_PLACEMENTS_PER_TURN = 16

# Who holds a pod back while its victims are being evicted, in kube-scheduler's words.
_PREEMPTION = "DefaultPreemption"

# What metrics call an attempt that failed for a reason.
_RESULTS = {
    UNSCHEDULABLE: "unschedulable",
    SCHEDULER_ERROR: "error",
    budget.TOO_COSTLY: "unschedulable",
}

# How long what was worked out is kept at least when nobody asks for it, in seconds.
_SWEEP_EVERY = 60.0


class Engine:
    """A scheduler without a clock or a connection: `handle` events, `step` for actions."""

    def __init__(
        self,
        configuration: Configuration,
        registry: Registry,
        settings: ClassSettings | None = None,
        observer: Observer = UNOBSERVED,
    ) -> None:
        self.configuration = configuration
        self._observer = observer
        self._is_observed = observer.is_there
        #: The extended resources that plugins register, and the custom resources to watch for them.
        self.handles = HandleRegistry()
        self.profiles = {
            each.scheduler_name: Profile.build(
                each, registry, configuration.gates, self.handles, observer
            )
            for each in configuration.profiles
        }
        self.cluster = Cluster(self.handles)
        self.cluster.extended.run()
        self._outbox: list[Action] = list(_unowned(self.handles))
        settings = settings or class_settings(configuration)
        self.classes = {
            name: Classes(profile, self.cluster, settings, self._emit)
            for name, profile in self.profiles.items()
        }
        first = next(iter(self.profiles.values()))
        self.queue = Queue(
            sort_key=first.queue_sort.key,
            admit=self._admit,
            wakeups={name: _wakeups(profile) for name, profile in self.profiles.items()},
            backoff=_backoff(configuration),
            observer=observer,
        )
        self._placements = Placements(self.cluster, self.queue, self._emit, self._fail, observer)
        #: What plugins said to pods that wait for their permit, until it is taken in.
        self._answers: deque[Event] = deque()
        #: Where to send that instead, as events to be told to `handle`.
        self.on_answer: Callable[[Event], None] = self._answers.append
        self._attach_permits()
        self._evictions = Evictions(self.cluster, self.queue, self._placements, self._emit)
        self._intake = Intake(self.cluster, self.queue, self.profiles, self._vanish)
        self._fence = Fence(
            self.cluster,
            self.queue,
            self._intake,
            self._placements,
            self._evictions,
            self.classes.values(),
            self._emit,
        )
        # Schedulers of different names start their search at different nodes, so that they do
        # not run after the same ones.
        self._start = crc32(first.name.encode())
        self._placed_in_turn = 0
        self._next_sweep = float("-inf")
        #: How often pods of each profile were too costly to be decided.
        self.too_costly: Counter[str] = Counter()

    def handle(self, event: Event, now: float) -> None:
        """Takes in what happened. An object that raises something is left out until it changes."""
        began = self._observer.clock() if self._is_observed else 0.0
        try:
            if isinstance(event, Applied):
                events = self._intake.apply(event.object, now)
            elif isinstance(event, Removed):
                events = self._intake.remove(event.object, now)
            else:
                self._handle_outcome(event, now)
                return
        except Exception as error:  # noqa: BLE001 - one object must not stop the scheduler
            self._fence.catch(event, error, now)
            return
        if self._is_observed:
            for each in events:
                self._observer.event_handled(each.label, began)

    @property
    def caught(self) -> Mapping[str, int]:
        """How many exceptions were caught, by what raised them: an object, an outcome, an attempt.

        What plugins raise while they are asked is not among them: it is an answer.
        """
        return self._fence.caught

    def _handle_outcome(self, event: Event, now: float) -> None:
        if isinstance(event, Bound):
            self._placements.bound(event.uid, now)
            return
        match event:
            case BindingFailed(uid, message):
                self._placements.binding_failed(uid, message, now)
            case PodEnded(uid) | Unbound(uid):
                self._undo_binding(uid, now, is_waiting=isinstance(event, Unbound))
            case Permitted(uid, plugin):
                self._placements.permitted(uid, plugin, now)
            case PermitRefused(uid, plugin, message):
                self._placements.refused(uid, plugin, message, now)
            case Evicted(uid, preemptor):
                self._evictions.evicted(uid, preemptor, now)
            case EvictionFailed(uid, preemptor):
                self._evictions.failed(uid, preemptor, now)

    def _undo_binding(self, uid: str, now: float, is_waiting: bool) -> None:
        # A pod that is on its way again will tell by itself what becomes of it.
        if self._placements.get(uid) is None:
            self._intake.take_back(uid, now, is_waiting)

    def step(self, now: float, budget: int = 1) -> list[Action]:
        """Makes up to `budget` decisions; returns what is to be done since the last step."""
        if self._placements.waiting:
            self._look_after(now)
        if now >= self._next_sweep:
            self._sweep(now)
        for _ in range(budget):
            queued = self.queue.pop(now)
            if queued is None:
                break
            try:
                self._attempt(queued, now)
            except Exception as error:  # noqa: BLE001 - one pod must not stop the scheduler
                self._give_up(queued, error, now)
        self._take_answers(now)
        if self._is_observed:
            self._observer.step_ended()
        self._report_order()
        reports = self.cluster.extended.reports
        if reports.are_waiting:
            self._outbox += [Report("", text) for text in reports.take()]
        taken, self._outbox = self._outbox, []
        return taken

    def _take_answers(self, now: float) -> None:
        while self._answers:
            self.handle(self._answers.popleft(), now)

    def _look_after(self, now: float) -> None:
        for placement in list(self._placements.waiting.values()):
            try:
                self._placements.look_after(placement, now)
            except Exception as error:  # noqa: BLE001 - one pod must not stop the others
                self._give_up(placement.queued, error, now)

    def _sweep(self, now: float) -> None:
        self._next_sweep = now + _SWEEP_EVERY
        self.cluster.sweep()
        for classes in self.classes.values():
            classes.sweep()

    def next_step(self, now: float) -> float | None:
        """The earliest time at which `step` has something to do without a further event."""
        if self._answers:
            return now
        moments = [self.queue.next_flush(now), self._placements.next_deadline()]
        known = [moment for moment in moments if moment is not None]
        return max(now, min(known)) if known else None

    @property
    def pending_pods(self) -> Mapping[str, Pod]:
        """The pods by uid that are ours to place and of whose place nobody else knows yet."""
        return self._intake.pending

    def placement(self, uid: str) -> Placement | None:
        """A pod's way to its node: from the decision until it is bound."""
        return self._placements.get(uid)

    # One attempt

    def _attempt(self, queued: QueuedPod, now: float) -> None:
        pod = queued.pod
        profile = self.profiles[pod.spec.scheduler_name]
        if pod.terminating:
            text = f"skip schedule deleting pod: {pod.key}"
            self._emit(actions.failed_scheduling(pod, text, profile.name))
            self.queue.done(pod.uid)
            return
        if self.cluster.pod(pod.uid) is not None:
            self.queue.done(pod.uid)
            return
        if self._is_observed:
            queued.began = self._observer.attempt_began()
        if not budget.is_ordinary(pod) and self._park(queued, profile, now):
            return
        try:
            outcome = self.decide(profile, pod)
        except PluginError as error:
            self._observer.attempt_failed(queued.began)
            self._fail(queued, profile, Failure(SCHEDULER_ERROR, str(error)), now)
            return
        if isinstance(outcome, Found):
            self._evictions.forget(pod.uid)
            self._placements.place(queued, profile, self.cluster.nodes.name(outcome.row), now)
        elif isinstance(outcome, Failed):
            self._reject(queued, profile, replace(outcome, attempt=queued.attempts), now)
        else:
            self._observer.attempt_failed(queued.began)
            self._fail(queued, profile, Failure(UNSCHEDULABLE, diagnosis.NO_NODES), now)

    def _park(self, queued: QueuedPod, profile: Profile, now: float) -> bool:
        """Leaves a pod alone if it is too costly, the longer the more often that was found."""
        why = budget.excess(queued.pod, self.cluster)
        if why is None:
            return False
        self.too_costly[profile.name] += 1
        self._observer.attempt_failed(queued.began)
        attempt = budget.attempts_told(queued.pod) + 1
        count = len(self.cluster.nodes)
        told = f"0/{count} nodes are available: {why}. It is tried again later (attempt {attempt})."
        failure = Failure(budget.TOO_COSTLY, told, delay=budget.delay(attempt))
        self._fail(queued, profile, failure, now)
        return True

    def decide(self, profile: Profile, pod: Pod) -> Found | Failed | None:
        """The decision about a pod as things are, without a consequence; None without nodes."""
        count = len(self.cluster.nodes)
        if not count:
            return None
        window = Window(self._start % count, profile.percentage_of_nodes_to_score)
        outcome = self.classes[profile.name].decide(pod, window)
        self._start += looked_at(outcome, window, profile)
        if isinstance(outcome, Found):
            self._placed_in_turn += 1
            if self._placed_in_turn >= _PLACEMENTS_PER_TURN * count:
                self._placed_in_turn = 0
                self._start += 1
        return outcome

    def _reject(self, queued: QueuedPod, profile: Profile, failed: Failed, now: float) -> None:
        pod = queued.pod
        importance = pod.priority, pod.spec.preemption_policy
        failure = failed.known.get(importance)
        if failure is None:
            remedied = seek_remedy(profile, pod, failed, self.cluster.nodes)
            failure = Failure(
                UNSCHEDULABLE,
                diagnosis.message(failed, remedied.text),
                diagnosis.rejectors(failed),
                nominate=remedied.nominate,
            )
            if remedied.remedy is not None:
                self._evictions.begin(pod, remedied.remedy, profile, now)
            else:
                # Where nobody can make way for one, nobody can for another like it.
                failed.known[importance] = failure
        if profile.post_filter:
            self._observer.remedy_sought()
        self._observer.attempt_failed(queued.began)
        self._fail(queued, profile, failure, now)

    def _fail(self, queued: QueuedPod, profile: Profile, failure: Failure, now: float) -> None:
        """Returns the pod to the queue and tells why, unless it is no longer ours to place."""
        self._observer.pod_failed(profile.name, _RESULTS[failure.reason], queued.began)
        pod = self._intake.pending.get(queued.pod.uid)
        if pod is None:
            self.queue.done(queued.pod.uid)
            return
        if failure.nominate is not None:
            self.cluster.nominate(pod, failure.nominate)
        attempt = FailedAttempt(
            failure.rejectors,
            failure.pending,
            failure.message,
            failure.delay or budget.delay_after(pod, self.cluster),
        )
        self.queue.give_back(queued, pod=pod, attempt=attempt, now=now)
        self._emit(actions.failed_scheduling(pod, failure.message, profile.name))
        written = patch(pod, failure)
        if written is not None:
            self._emit(written)

    def _give_up(self, queued: QueuedPod, error: Exception, now: float) -> None:
        """An attempt raised what no plugin is to blame for: the pod goes back to the queue."""
        self._fence.end_attempt(queued.pod.uid)
        profile = self.profiles[queued.pod.spec.scheduler_name]
        try:
            self._fail(queued, profile, Failure(SCHEDULER_ERROR, describe(error)), now)
        except Exception as again:  # noqa: BLE001 - it cannot even be queued
            self._fence.leave_out(queued.pod, again)

    def _vanish(self, pod: Pod, now: float) -> None:
        """A pod was deleted before it was bound."""
        self._evictions.forget(pod.uid)
        self._placements.withdraw(pod, now)

    def _admit(self, pod: Pod, last: str) -> tuple[str, Rejected] | None:
        """Asks the pre-enqueue plugins, first of all the one that said no last."""
        if not self._is_observed:
            return self._ask_to_admit(pod, last)
        began = self._observer.clock()
        answer = self._ask_to_admit(pod, last)
        status = SUCCESS if answer is None else answer[1].code.value
        self._observer.point_ran(PRE_ENQUEUE, status, pod.spec.scheduler_name, began)
        return answer

    def _ask_to_admit(self, pod: Pod, last: str) -> tuple[str, Rejected] | None:
        if self._evictions.is_in_progress(pod.uid):
            return _PREEMPTION, unresolvable(IN_PROGRESS)
        plugins = self.profiles[pod.spec.scheduler_name].pre_enqueue
        if last:
            plugins = tuple(sorted(plugins, key=lambda each: each.name != last))
        for plugin in plugins:
            refused = ask_pre_enqueue(plugin, pod)
            if refused is not None:
                if refused.code is Code.ERROR and plugin.name != last:
                    profile = pod.spec.scheduler_name
                    self._emit(actions.failed_scheduling(pod, refused.message, profile))
                return plugin.name, refused
        return None

    def _report_order(self) -> None:
        error = self.queue.take_order_error()
        if error is not None:
            plugin = next(iter(self.profiles.values())).queue_sort
            broke = broken(f'running QueueSort plugin "{plugin.name}"', error)
            self._emit(Report("", f"{broke}; pods are ordered by priority and age from now on"))

    def _attach_permits(self) -> None:
        for profile in self.profiles.values():
            for plugin in profile.permit:
                tell = WaitingForPermit(
                    plugin.name, self._placements, lambda event: self.on_answer(event)
                )
                attach(plugin, tell)

    def _emit(self, action: Action) -> None:
        self._outbox.append(action)


def _unowned(handles: HandleRegistry) -> Iterator[Report]:
    for resource_type, readers in handles.unowned:
        names = ", ".join(readers)
        yield Report("", f"no plugin registers extended resource {resource_type}, read by {names}")


def _wakeups(profile: Profile) -> dict[str, tuple[Wakeup, ...]]:
    return {name: ask_wakeups(plugin) for name, plugin in profile.plugins.items()}


def _backoff(configuration: Configuration) -> Backoff:
    return Backoff(
        configuration.pod_initial_backoff_seconds,
        configuration.pod_max_backoff_seconds,
        configuration.gates["SchedulerPopFromBackoffQ"],
    )


def class_settings(configuration: Configuration) -> ClassSettings:
    """What the feature gates let like pods share."""
    gates = configuration.gates
    return ClassSettings(classes=gates["EquivalenceCache"], batches=gates["OpportunisticBatching"])
