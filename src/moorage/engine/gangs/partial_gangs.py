"""Gangs that stay below their minimum after some members were bound."""

from __future__ import annotations

from collections.abc import Callable

from moorage.cluster import Cluster
from moorage.engine.actions import Action, EvictPod, PodRef, RecordEvent
from moorage.objects.pod import Pod
from moorage.objects.pod_group import GroupKey, PodGroup

from .group_decision import GroupDecision
from .group_result import GroupCode


class PartialGangs:
    """Gangs with too few members on nodes and without room for the others.

    A binding may have failed, the scheduler may have been stopped in between, or running members
    were lost. Missing members are tried again, ahead of others. If a profile says so, running
    members are evicted after a while, so that the gang can begin anew and its room is free.
    """

    def __init__(self, cluster: Cluster, emit: Callable[[Action], None]) -> None:
        self._cluster = cluster
        self._emit = emit
        #: When each of them is released, and by which scheduler.
        self._due: dict[GroupKey, tuple[float, str]] = {}

    def next_deadline(self) -> float | None:
        return min((due for due, _ in self._due.values()), default=None)

    def consider(self, decision: GroupDecision, now: float) -> None:
        """Notes whether a gang that was just decided stays below its minimum."""
        group, policy = decision.group, decision.trial.profile.gangs
        key = group.group_key
        if policy.partial != "release":
            self._due.pop(key, None)
            return
        is_refused = decision.status.code is GroupCode.UNSCHEDULABLE and not decision.is_waiting
        if not is_refused or not self._find_members(group):
            self._due.pop(key, None)
            return
        due = now + policy.partial_seconds, decision.trial.profile.name
        self._due.setdefault(key, due)

    def look_after(self, now: float) -> None:
        """Releases the gangs whose time is over."""
        if not self._due:
            return
        for key, (due, scheduler) in list(self._due.items()):
            group = self._cluster.groups.get(key)
            members = self._find_members(group) if group is not None else []
            if group is None or not members:
                del self._due[key]
            elif now >= due:
                # If it does not work out, the next refusal begins another term.
                del self._due[key]
                self._release(group, members, scheduler)

    def _find_members(self, group: PodGroup) -> list[Pod]:
        """Returns the running members if they are too few; none while one is on its way."""
        placed = self._cluster.groups.placed(group.group_key)
        if not group.is_gang or len(placed) >= group.min_count:
            return []
        if any(self._cluster.is_assumed(uid) for uid in placed):
            return []
        return [pod for pod in placed.values() if not pod.terminating]

    def _release(self, group: PodGroup, members: list[Pod], scheduler: str) -> None:
        about = PodRef.to_group(group)
        text = (
            f"{len(members)} of at least {group.min_count} pods run, and there is no room for more"
        )
        self._emit(
            RecordEvent(about, "Warning", "GangReleased", "Evicting", f"{text}: evicted", scheduler)
        )
        message = f"{scheduler}: its pod group stays below minCount"
        for pod in members:
            self._emit(EvictPod(PodRef.to(pod), about, message))
