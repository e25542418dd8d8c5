"""Making room for a whole group: nobody is evicted unless the group then fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mooring.cluster import Nodes
from mooring.framework.nominated import filter_with_nominated, sees_only_counts
from mooring.framework.points import pre_filter
from mooring.framework.status import PluginError
from mooring.objects.pod import Pod
from mooring.objects.pod_group import PodGroup
from mooring.plugins.preemption.default_preemption import makes_way
from mooring.plugins.preemption.preemption_candidates import BudgetIndex
from mooring.plugins.preemption.victim_units import (
    VictimUnit,
    find_units,
    mark_violations,
    spare_order,
)

from .group_checks import preemption_policy
from .group_result import GroupCode, GroupResult, MemberResult
from .trial import Trial

_NEVER = "not eligible due to preemptionPolicy=Never."
_NO_VICTIMS = "No preemption victims found for incoming preemptor"
_ONGOING = "ongoing preemption on nominated nodes"
_PREFIX = "pod group preemption: "

# What DynamicResources, which comes before, says where no way was found; also without any claims.
_CLAIMS_DONE = "deallocation and deletion of ResourceClaims completed"


@dataclass(frozen=True, slots=True)
class GroupRemedy:
    """What would make room for a group, or why nothing does."""

    #: What is added to the message of the group.
    text: str
    is_found: bool = False
    #: Where each member is to go, by uid.
    nominations: Mapping[str, str] | None = None
    victims: tuple[Pod, ...] = ()
    #: What was found for the members without any pod of lower priority.
    trial: GroupResult | None = None


@dataclass(frozen=True, slots=True)
class GroupPreemption:
    """A group that found no place, and how to look for one again on other columns."""

    group: PodGroup
    members: Sequence[Pod]
    trial: Trial
    #: Tries to place the whole group, as at first.
    attempt: Callable[[], GroupResult]

    @property
    def _nodes(self) -> Nodes:
        return self.trial.cluster.nodes

    def seek(self) -> GroupRemedy:
        """Finds victims so that the whole group fits. Changes nothing."""
        if any(preemption_policy(pod) == "Never" for pod in self.members):
            return GroupRemedy(f"{_CLAIMS_DONE}, {_PREFIX}{_NEVER}")
        priority = self.group.priority_beside(self.members[0])
        if self._is_ongoing(priority):
            kept = {pod.uid: pod.nominated_node_name for pod in self.members}
            return GroupRemedy(f"{_PREFIX}{_ONGOING}", is_found=True, nominations=kept)
        units = find_units(self._nodes, priority)
        if not units:
            return GroupRemedy(f"{_PREFIX}{_NO_VICTIMS}")
        units = mark_violations(units, BudgetIndex(self._nodes.workloads.budgets))
        try:
            return self._choose(spare_order(units))
        finally:
            self.trial.roll_back()

    def _is_ongoing(self, priority: int) -> bool:
        """Whether victims are still leaving a node that a member waits for."""
        names = {pod.nominated_node_name for pod in self.members} - {""}
        rows = [row for name in names if (row := self._nodes.row(name)) is not None]
        return any(
            makes_way(other, priority) for row in rows for other in self._nodes.pods(row).values()
        )

    def _choose(self, units: Sequence[VictimUnit]) -> GroupRemedy:
        self.trial.lift_all(pod for unit in units for pod in unit.pods)
        mark = self.trial.mark()
        result = self.attempt()
        if not result.is_success:
            text = f"{_PREFIX}{result.status.message}"
            if result.status.code is GroupCode.UNSCHEDULABLE:
                text = f"{_CLAIMS_DONE}, {text}"
            return GroupRemedy(text, trial=result)
        self.trial.roll_back(mark)
        victims = self._spare(units, result.placed)
        return GroupRemedy(
            f"{_PREFIX}found a placement for podgroup, preempting {len(victims)} victims",
            is_found=True,
            nominations={each.pod.uid: each.node_name for each in result.placed},
            victims=victims,
            trial=result,
        )

    # Sparing

    def _spare(
        self, units: Sequence[VictimUnit], placed: Sequence[MemberResult]
    ) -> tuple[Pod, ...]:
        """Returns all units with which the group still fits where it was placed; the others go."""
        victims: list[Pod] = []
        near = self._sees_only_its_node(placed)
        if near and not self._fit(placed):
            # Nominations are in the way even so: nobody can be spared.
            return tuple(pod for unit in units for pod in unit.pods)
        for unit in units:
            mark = self.trial.mark()
            for pod in unit.pods:
                self.trial.put_back(pod)
            touched = {pod.node_name for pod in unit.pods}
            asked = [each for each in placed if not near or each.node_name in touched]
            if not self._fit(asked):
                self.trial.roll_back(mark)
                victims += unit.pods
        return tuple(victims)

    def _sees_only_its_node(self, placed: Sequence[MemberResult]) -> bool:
        """Whether no member minds what is on other nodes than its own."""
        profile, nodes = self.trial.profile, self._nodes
        specs = {id(each.pod.spec): each.pod for each in placed}
        return all(
            sees_only_counts(profile, pod, pre_filter(profile, pod, nodes), nodes)
            for pod in specs.values()
        )

    def _fit(self, members: Sequence[MemberResult]) -> bool:
        """Whether members fit on their nodes, one after the other."""
        mark = self.trial.mark()
        try:
            return all(self._fits(each) for each in members)
        finally:
            self.trial.roll_back(mark)

    def _fits(self, member: MemberResult) -> bool:
        nodes, profile = self._nodes, self.trial.profile
        row = nodes.row(member.node_name)
        try:
            prepared = pre_filter(profile, member.pod, nodes)
            if row is None or prepared.rejected is not None:
                return False
            rows = np.array([row], np.intp)
            answer = filter_with_nominated(profile, member.pod, prepared, nodes, rows)
        except PluginError:
            return False
        if not answer.feasible.all():
            return False
        # As in kube-scheduler, where a member that is nominated counts there too.
        self.trial.place_beside(member.pod, member.node_name)
        return True
