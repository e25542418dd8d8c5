"""Attempts to place groups of pods, from the queue until all members are bound or back in it.

A group is decided in one step. No member is assumed for good before enough of them have a node, so
that a group holds nothing while it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from moorage.cluster import Cluster
from moorage.framework.observe import PODGROUP, Observer
from moorage.framework.profile import Profile
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.queue import Entity, FailedAttempt, Gang, Queue

from . import actions, budget
from .attempts import Attempts
from .diagnosis import UNSCHEDULABLE, Failure
from .evictions import PlannedPreemption
from .gangs.gang_room import diagnose
from .gangs.group_cycle import Decide
from .gangs.group_decision import GroupDecider, GroupDecision
from .placement import Placement

_FAILED, _REJECTED = FailedAttempt(), FailedAttempt(is_rejection=True)

# What metrics call an attempt that ended with a code.
_RESULTS = {"Success": "scheduled", "Unschedulable": "unschedulable", "Error": "error"}


@dataclass(frozen=True, slots=True)
class GroupAttempts:
    """Decides groups and carries out the decisions."""

    _cluster: Cluster
    _observer: Observer
    _queue: Queue
    _attempts: Attempts
    _decider: GroupDecider
    _pending: Mapping[str, Pod]
    _emit: Callable[[actions.Action], None]

    def attempt(
        self, entry: Gang, profiles: Mapping[str, Profile], decide: Decide, now: float
    ) -> None:
        """Tries to place all members of a group that have no node."""
        group = self._cluster.groups.get(entry.group)
        members = self._begin(entry)
        if group is None or not members:
            self._queue.give_back(entry, attempt=_FAILED, now=now)
            return
        profile = profiles[members[0].pod.spec.scheduler_name]
        pods = [member.pod for member in members]
        why = self._find_excess(pods)
        if why is not None:
            self._attempts.too_costly[profile.name] += 1
            text = f"0/{len(self._cluster.nodes)} nodes are available: {why}."
            failure = Failure(budget.TOO_COSTLY, f"{text} It is tried again later.")
            self._attempts.fail(entry, failure, now)
            return
        decision = self._decider.decide(group, pods, profile, decide)
        self._conclude(entry, members, decision, now)

    def _begin(self, entry: Gang) -> list[Entity]:
        """Begins with the members in their present form, in order.

        Those that are being deleted or have a node are left out.
        """
        began, pending, placed = self._observer.attempt_began(), self._pending, self._cluster.pods
        members = []
        for member in entry.in_order:
            uid = member.pod.uid
            pod = pending.get(uid)
            if pod is not None and not pod.terminating and uid not in placed:
                member.began, member.pod = began, pod
                members.append(member)
                continue
            if pod is not None and pod.terminating:
                text = f"skip schedule deleting pod: {pod.key}"
                self._emit(actions.make_failure_event(pod, text, pod.spec.scheduler_name))
            self._queue.members_placed(entry, (uid,))
        return members

    def _find_excess(self, pods: Sequence[Pod]) -> str | None:
        """Returns why a group or one of its members is too costly to be decided; else None."""
        like: Pod | None = None
        for pod in pods:
            if like is not None and pod.spec is like.spec and len(pod.labels) == len(like.labels):
                continue
            if budget.is_ordinary(pod):
                # That follows from its template and the number of its labels.
                like = pod
                continue
            why = budget.excess(pod, self._cluster)
            if why is not None:
                return why
        return budget.group_excess(pods, self._cluster)

    # Concluding

    def _conclude(
        self,
        entry: Gang,
        members: list[Entity],
        decision: GroupDecision,
        now: float,
    ) -> None:
        name = decision.trial.profile.name
        by_uid = {member.pod.uid: member for member in members}
        refused: list[tuple[Entity, Failure]] = []
        code = decision.status.code
        if code == "Success":
            refused = self._keep(entry, by_uid, decision, now)
        else:
            decision.trial.roll_back()
        if decision.remedy is None or not decision.remedy.is_ongoing:
            self._tell_members(decision, by_uid)
            self._write_condition(decision)
        for member, failure in refused:
            self._attempts.fail_member(member, failure)
        if code != "Success":
            self._tell_group(decision)
        result = "waiting_on_preemption" if decision.is_waiting else _RESULTS[code]
        self._observer.group_tried(name, result, members[0].began)
        self._help(decision, now)
        if code == "Success" and not refused:
            # Members that are left over are tried at once.
            self._queue.put_back(entry, now=now)
            return
        needs_room = code == "Unschedulable" and decision.needs_room()
        attempt = FailedAttempt(is_rejection=code != "Error", needs_room=needs_room)
        self._queue.give_back(entry, attempt=attempt, now=now)

    def _tell_members(self, decision: GroupDecision, members: Mapping[str, Entity]) -> None:
        """Says why members were not placed."""
        if len(decision.trial.placements) < len(members):
            for pod, failure in decision.failures():
                self._attempts.fail_member(members[pod.uid], failure)

    def _help(self, decision: GroupDecision, now: float) -> None:
        """Asks for what may make room for a group that was refused."""
        for pod, release in decision.releases():
            self._emit(actions.ReleaseClaim(actions.PodRef.to(pod), release))
        if decision.remedy is not None:
            self._evict(decision, now)

    def _keep(
        self,
        entry: Gang,
        members: Mapping[str, Entity],
        decision: GroupDecision,
        now: float,
    ) -> list[tuple[Entity, Failure]]:
        """Binds the members that were placed in the trial; returns those that a permit refused.

        Permits are asked for all members before any is bound. If too many are refused, none is
        bound.
        """
        trial = decision.trial
        self._attempts.evictions.forget(decision.group.group_key)
        trial.keep()
        refused: list[tuple[Entity, Failure]] = []
        going: list[Placement] = []
        for uid, each in trial.placements.items():
            each.queued = members[uid]
            failure = self._attempts.take_over(each, now)
            if failure is None:
                going.append(each)
            else:
                self._attempts.take_back(each)
                refused.append((each.queued, failure))
        if refused and self._are_too_few(decision.group):
            text = f"another pod of the group was refused: {refused[0][1].message}"
            why = Failure(UNSCHEDULABLE, text)
            for each in going:
                self._attempts.take_back(each)
                refused.append((each.queued, why))
            return refused
        self._queue.members_placed(entry, [each.pod.uid for each in going])
        for each in going:
            self._attempts.go_on(each, now)
        return refused

    def _are_too_few(self, group: PodGroup) -> bool:
        return len(self._cluster.groups.placed(group.group_key)) < group.min_count

    def _write_condition(self, decision: GroupDecision) -> None:
        wanted = decision.condition()
        if wanted is None:
            return
        group = decision.group
        told = wanted.type, wanted.status, wanted.reason or "", wanted.message or ""
        condition = actions.PodGroupCondition(*told, group.generation)
        self._emit(actions.PatchPodGroupStatus(actions.PodRef.to_group(group), condition))
        if decision.status.code == "Success":
            # Members that are left over are tried before the API server shows it.
            self._cluster.put_group(replace(group, conditions=(wanted,)))

    def _tell_group(self, decision: GroupDecision) -> None:
        """Records an event on a refused group: what it lacks."""
        note = None if decision.is_waiting else diagnose(decision)
        if note is not None:
            about, name = actions.PodRef.to_group(decision.group), decision.trial.profile.name
            text = actions.truncate(note)
            self._emit(
                actions.RecordEvent(about, "Warning", "GangDiagnosis", "Scheduling", text, name)
            )

    # Making room

    def _evict(self, decision: GroupDecision, now: float) -> None:
        remedy, group = decision.remedy, decision.group
        victims = [each for each in remedy.victims if not each.terminating] if remedy else []
        if remedy is None or not victims:
            return
        self._observer.victims_found(
            PODGROUP, len(remedy.victims), remedy.disruptions, remedy.violations
        )
        name = decision.trial.profile.name
        preemption = PlannedPreemption(group, victims, remedy.plugin, name)
        self._attempts.evictions.begin(preemption, self._attempts.take_back_victim, now)
