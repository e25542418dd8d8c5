"""The engine takes in events, makes decisions, and returns actions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf

import numpy as np

from moorage.cluster import Cluster, HandleRegistry
from moorage.cluster.changes import unite
from moorage.config import Configuration
from moorage.documents.errors import STOPPED
from moorage.framework.attempt import Failed
from moorage.framework.gang_points import CountRoom
from moorage.framework.observe import UNOBSERVED, Observer
from moorage.framework.plugin import Registry
from moorage.framework.plugin_fence import make_error
from moorage.framework.plugin_start import attach, show_cluster
from moorage.framework.profile import Profile
from moorage.framework.status import PluginError
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.queue import Entity, Gang, Queue
from moorage.queue.object_events import FORCE_ACTIVATE

from . import actions, events
from .actions import Action, Report
from .admission import Admission
from .attempts import Attempts
from .budget import is_ordinary
from .classes.answer_cache import AnswerCache
from .classes.classes import Classes, ClassSettings
from .cycle import Found
from .decider import Decider
from .diagnosis import SCHEDULER_ERROR, Failure
from .evictions import Evictions
from .extenders.consultations import Consultations
from .fence import Fence, describe
from .gangs.group_decision import GroupDecider, GroupDecision, GroupSettings
from .gangs.group_result import Domain
from .group_attempts import GroupAttempts
from .intake import Intake
from .placement import Placement, PluginPermits
from .settings import (
    class_settings,
    collect_remarks,
    find_unowned,
    find_wakeups,
    group_links,
    make_backoff,
    slice_reading,
)

# How many seconds derived values are kept at least when they are not asked for.
_SWEEP_EVERY = 60.0


class Engine:
    """A scheduler without clock or connection: `handle` takes events, `step` returns actions."""

    def __init__(
        self,
        configuration: Configuration,
        registry: Registry,
        settings: ClassSettings | None = None,
        observer: Observer = UNOBSERVED,
    ) -> None:
        self.configuration = configuration
        self._observer = observer
        #: The extended resources that plugins register, and the custom resources to watch for them.
        self.handles = HandleRegistry()
        self.profiles = {
            each.scheduler_name: Profile.build(
                each, registry, configuration.gates, self.handles, observer
            )
            for each in configuration.profiles
        }
        self.cluster = self._make_cluster()
        self._outbox: list[Action] = [
            *find_unowned(self.handles),
            *(each for profile in self.profiles.values() for each in collect_remarks(profile)),
        ]
        self._emit: Callable[[Action], None] = self._outbox.append
        settings = settings or class_settings(configuration)
        #: What is kept for like pods of all profiles.
        self.answers = AnswerCache(settings.most_bytes)
        self.classes = {
            name: Classes(profile, self.cluster, settings, self._emit, self.answers)
            for name, profile in self.profiles.items()
        }
        choosing = (each.filter_verb or each.prioritize_verb for each in configuration.extenders)
        self.decider = Decider(self.profiles, self.cluster, self.classes, any(choosing))
        #: The decision about a pod as things are, without a consequence. Extenders are not asked.
        self.decide, self.decide_member = self.decider.decide, self.decider.decide_member
        #: The preemptions that are under way, and the latest ones.
        self.evictions = Evictions(self._emit, observer)
        self.queue = self._make_queue()
        self.gangs = self._make_group_decider()
        version = configuration.gates.version
        #: The newest form of every pod that is ours to place and not known to be bound, by uid.
        self.pending_pods: dict[str, Pod] = {}
        pending = self.pending_pods
        binders = tuple(each for each in configuration.extenders if each.bind_verb)
        self._attempts = Attempts(
            self.profiles,
            self.cluster,
            self.queue,
            pending,
            self._emit,
            observer,
            self.evictions,
            self._find_alike,
            binders,
        )
        self._intake = Intake(
            self.cluster, self.queue, self.profiles, pending, self._attempts.withdraw, version
        )
        self._consultations = Consultations(
            configuration, self.queue, self._attempts, pending, self._emit, self._give_up
        )
        self._groups = GroupAttempts(
            self.cluster, observer, self.queue, self._attempts, self.gangs, pending, self._emit
        )
        #: Answers of plugins to pods that wait for their permit, until they are taken in.
        self._answers: deque[events.Event] = deque()
        #: Receives these answers instead, as events for `handle`.
        self.on_answer: Callable[[events.Event], None] = self._answers.append
        self._attach_permits()
        self._fence = Fence(
            self.cluster,
            self.queue,
            self._intake,
            self._attempts,
            self.classes.values(),
            self._emit,
        )
        #: How often what nobody asks for is dropped. Where time passes in leaps, that is rarer.
        self.sweep_seconds = _SWEEP_EVERY
        self._next_sweep = float("-inf")

    # Its parts

    def _make_cluster(self) -> Cluster:
        """Makes an empty cluster, and shows it to the plugins."""
        cluster = Cluster(
            self.handles, group_links(self.configuration), slice_reading(self.configuration)
        )
        cluster.extended.run()
        for profile in self.profiles.values():
            for plugin in profile.plugins.values():
                show_cluster(plugin, cluster.nodes)
                if isinstance(plugin, CountRoom):
                    cluster.nodes.device_decisions.add_scored_resources(plugin.scored_resources)
        cluster.changes.limit_to(unite(each.reads for each in self.profiles.values()))
        return cluster

    def _make_queue(self) -> Queue:
        first = next(iter(self.profiles.values()))
        extenders = self.configuration.extenders
        admission = Admission(
            self.profiles, self.cluster.groups, self.evictions, self._emit, self._observer
        )
        return Queue(
            sort_key=first.queue_sort.key,
            on_broken_order=self._report_order,
            admit=admission.admit,
            admit_group=admission.admit_group,
            wakeups={
                name: find_wakeups(profile, is_extended=bool(extenders))
                for name, profile in self.profiles.items()
            },
            backoff=make_backoff(self.configuration),
            groups=self.cluster.groups,
            observer=self._observer,
            can_be_held_back=self._is_extended if extenders else None,
        )

    def _make_group_decider(self) -> GroupDecider:
        gates = self.configuration.gates
        settings = GroupSettings(
            gates["TopologyAwareWorkloadScheduling"], self.profiles.keys(), gates.version
        )
        return GroupDecider(self.cluster, settings, self._observer, self.decider.find_class)

    # Events and steps

    def handle(self, event: events.Event, now: float) -> None:
        """Takes in an event. An object that raises an exception is left out until it changes."""
        began = self._observer.clock()
        try:
            if isinstance(event, events.Applied):
                happened = self._intake.apply(event.object, now)
            elif isinstance(event, events.Bound):
                self._attempts.bound(event.uid, now)
                return
            elif isinstance(event, events.Removed):
                happened = self._intake.remove(event.object, now)
            elif isinstance(event, events.ExtenderAnswered):
                self._consultations.answer(event, now)
                return
            else:
                self._handle_outcome(event, now)
                return
        except STOPPED as error:  # one object must not stop the scheduler
            self._fence.catch(event, error, now)
            return
        for each in happened:
            self._observer.event_handled(each.label, began)

    @property
    def caught(self) -> Mapping[str, int]:
        """How many exceptions were caught, by their origin: an object, an outcome, an attempt.

        Exceptions of plugins at extension points are not among them: they are answers.
        """
        return self._fence.caught

    @property
    def too_costly(self) -> Mapping[str, int]:
        """How many pods of each profile were too costly to be decided."""
        return self._attempts.too_costly

    def _handle_outcome(self, event: events.Event, now: float) -> None:
        match event:
            case events.Evicted() | events.EvictionFailed():
                # First, because there are the most of these.
                self._handle_eviction(event, now)
            case events.BindingFailed() | events.ClaimsWritten():
                self._attempts.end_write(event, now)
            case events.ClaimsRevoked(uid, held):
                self._intake.end_doubt(
                    uid, {claim.uid: claim.resource_version for claim in held}, now
                )
            case events.ReleaseFailed(uid):
                self.queue.retry(uid, now)
            case events.PodEnded(uid) | events.Unbound(uid):
                self._undo_binding(uid, now, is_waiting=isinstance(event, events.Unbound))
            case events.Permitted(uid, plugin):
                self._attempts.permitted(uid, plugin, now)
            case events.PermitRefused(uid, plugin, message):
                self._attempts.permit_refused(uid, plugin, message, now)

    def _handle_eviction(self, event: events.Evicted | events.EvictionFailed, now: float) -> None:
        uid, preemptor = event.uid, event.preemptor_uid
        if isinstance(event, events.EvictionFailed):
            self.queue.activate(self.evictions.failed(uid, preemptor, now), now)
        elif (ready := self.evictions.evicted(uid, preemptor, now)) is not None:
            # What woke it came while its victims were still being evicted.
            self.queue.look_again(ready, FORCE_ACTIVATE.label, now)

    def _undo_binding(self, uid: str, now: float, is_waiting: bool) -> None:
        # A pod that is on its way again will tell by itself what becomes of it.
        if self._attempts.get(uid) is None:
            self._intake.take_back(uid, now, is_waiting)

    def step(self, now: float, budget: int = 1) -> list[Action]:
        """Makes up to `budget` decisions; returns the actions since the last step."""
        self._do_what_is_due(now)
        for _ in range(budget):
            queued = self.queue.pop(now)
            if queued is None:
                break
            try:
                self._attempt(queued, now)
            except STOPPED as error:  # one pod must not stop the scheduler
                self._give_up(queued, error, now)
        while self._answers:
            self.handle(self._answers.popleft(), now)
        self._observer.step_ended()
        reports = self.cluster.extended.reports
        if reports.waiting:
            self._outbox += [Report("", text) for text in reports.take()]
        taken = self._outbox.copy()
        self._outbox.clear()
        return taken

    def _do_what_is_due(self, now: float) -> None:
        """Does what is due by time, without an event."""
        if self._attempts.waiting or self._consultations.waiting:
            self._look_after(now)
        if now >= self._next_sweep:
            self._sweep(now)
        extended = self.cluster.extended
        if extended.is_used and now >= extended.next_expiry:
            # What was told of extended resources too long ago no longer counts.
            extended.expire(now)

    def _look_after(self, now: float) -> None:
        for placement in list(self._attempts.waiting.values()):
            try:
                self._attempts.look_after(placement, now)
            except STOPPED as error:  # one pod must not stop the others
                self._give_up(placement.queued, error, now)
        self._consultations.look_after(now)

    def _sweep(self, now: float) -> None:
        self._next_sweep = now + self.sweep_seconds
        self.cluster.sweep()
        for classes in self.classes.values():
            classes.sweep()

    def next_step(self, now: float) -> float | None:
        """Returns the earliest time at which `step` has work to do without a further event."""
        if self._answers:
            return now
        moments = (
            self.queue.next_flush(now),
            self._attempts.next_deadline(),
            self._consultations.next_deadline(),
            self.cluster.extended.next_expiry,
        )
        earliest = min([moment for moment in moments if moment is not None])
        return None if earliest == inf else max(now, earliest)

    def placement(self, uid: str) -> Placement | None:
        """Returns the placement of a pod: from the decision until it is bound."""
        return self._attempts.get(uid)

    # One attempt

    def _attempt(self, queued: Entity, now: float) -> None:
        if isinstance(queued, Gang):
            self._attempt_group(queued, now)
            return
        pod = queued.pod
        profile = self.profiles[pod.spec.scheduler_name]
        if pod.terminating:
            text = f"skip schedule deleting pod: {pod.key}"
            self._emit(actions.make_failure_event(pod, text, profile.name))
            self.queue.done(pod.uid)
            return
        if self.cluster.pod(pod.uid) is not None:
            self.queue.done(pod.uid)
            return
        queued.began = self._observer.attempt_began()
        if not is_ordinary(pod) and self._attempts.refuse_costly(queued, now):
            return
        if self._is_extended(pod) and len(self.cluster.nodes):
            self._consult(queued, profile, now)
            return
        outcome: Found | Failed | PluginError | None
        try:
            outcome = self.decide(profile, pod)
        except PluginError as error:
            outcome = error
        self._attempts.conclude(queued, outcome, now)

    def _consult(self, queued: Entity, profile: Profile, now: float) -> None:
        """Begins a decision in which extenders take part."""
        survey = self.decider.survey(queued.pod)
        self._consultations.begin(queued, survey, now)
        self.decider.count_survey(profile, survey)

    def _attempt_group(self, entry: Gang, now: float) -> None:
        """Decides a group; extenders are asked about its members beforehand."""
        filters, pending = self._consultations.filters, self.pending_pods
        members = entry.in_order if self._consultations.is_choosing else ()
        asked = [each.pod for each in members if filters(each.pod)]
        if not asked or not len(self.cluster.nodes):
            self._groups.attempt(entry, self.profiles, self.decide_member, now)
            return
        surveys = [self.decider.survey(pending.get(pod.uid, pod)) for pod in asked]
        conclude = partial(self._conclude_group, entry)
        self._consultations.begin_group(entry, surveys, conclude, now)

    def _conclude_group(
        self, entry: Gang, result: Mapping[str, tuple[str, ...]] | PluginError, now: float
    ) -> None:
        if isinstance(result, PluginError):
            self._attempts.fail(entry, Failure(SCHEDULER_ERROR, str(result)), now)
            return
        find_rows = self.cluster.nodes.find_rows
        allowed = {uid: find_rows(names) for uid, names in result.items()}

        def decide(pod: Pod, domain: Domain) -> Found | Failed | None:
            rows = allowed.get(pod.uid)
            if rows is None:
                return self.decide_member(pod, domain)
            rows = np.sort(rows[rows >= 0])
            if domain.rows is not None:
                rows = np.intersect1d(rows, domain.rows)
            return self.decide(self.profiles[pod.spec.scheduler_name], pod, rows)

        self._groups.attempt(entry, self.profiles, decide, now)

    def decide_group(self, group: PodGroup, members: Sequence[Pod]) -> GroupDecision:
        """Decides about a group as things are; the caller keeps or undoes its trial."""
        profile = self.profiles[members[0].spec.scheduler_name]
        return self.gangs.decide(group, members, profile, self.decide_member)

    def consider_group(self, group: PodGroup, members: Sequence[Pod]) -> GroupDecision:
        """Decides the same without consequences: it does not influence later decisions."""
        profile = self.profiles[members[0].spec.scheduler_name]
        decider = replace(self.gangs, observer=UNOBSERVED)
        with self.decider.hold():
            try:
                return decider.decide(group, members, profile, self.decide_member)
            except STOPPED:
                self._fence.end_group_attempt([pod.uid for pod in members])
                raise

    def _is_extended(self, pod: Pod) -> bool:
        """Whether some extender takes part in decisions about a pod."""
        extenders = self.configuration.extenders
        return bool(extenders) and any(each.concerns(pod.spec) for each in extenders)

    def _find_alike(self, pod: Pod) -> Hashable | None:
        """Returns what a pod that fits nowhere shares with like pods; None if nothing."""
        if self._is_extended(pod):
            # Nobody knows what an extender reads.
            return None
        return self.classes[pod.spec.scheduler_name].find_alike(pod)

    def _give_up(self, queued: Entity, error: BaseException, now: float) -> None:
        """Returns a pod to the queue whose attempt raised an exception of no plugin."""
        if isinstance(queued, Gang):
            self._fence.end_group_attempt(queued.members)
        else:
            self._consultations.drop(queued.pod.uid)
            self._fence.end_attempt(queued.pod.uid)
        try:
            self._attempts.fail(queued, Failure(SCHEDULER_ERROR, describe(error)), now)
        except STOPPED as again:  # it cannot even be queued
            self._fence.leave_out(queued.pod, again)

    def _report_order(self, error: BaseException) -> None:
        """Reports that the queue cannot use the order of its plugin."""
        plugin = next(iter(self.profiles.values())).queue_sort
        broke = make_error(f'running QueueSort plugin "{plugin.name}"', error)
        self._emit(Report("", f"{broke}; pods are ordered by priority and age from now on"))

    def _attach_permits(self) -> None:
        """Lets plugins give permits."""
        for profile in self.profiles.values():
            for plugin in profile.permit:
                tell = PluginPermits(
                    plugin.name, self._attempts.waiting, lambda event: self.on_answer(event)
                )
                attach(plugin, tell)
