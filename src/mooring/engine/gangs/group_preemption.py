"""Making room for a whole group: nobody is evicted unless the group then fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mooring.cluster import Nodes
from mooring.framework.disruption_budgets import BudgetIndex
from mooring.framework.nominated import filter_with_nominated, sees_only_counts
from mooring.framework.observe import SUCCESS
from mooring.framework.points import pre_filter
from mooring.framework.status import Code, PluginError
from mooring.framework.victim_units import (
    VictimUnit,
    find_units,
    makes_way,
    mark_violations,
    spare_order,
)
from mooring.objects.pod import Pod
from mooring.objects.pod_group import PodGroup

from . import topology
from .eviction_costs import cost_of
from .fewest_victims import FewestVictims, Rows
from .group_checks import preemption_policy
from .group_cycle import EVERYWHERE, GroupCycle
from .group_result import Domain, GroupCode, GroupResult, GroupStatus, MemberResult
from .trial import Trial

_NEVER = "not eligible due to preemptionPolicy=Never."
_NO_VICTIMS = "No preemption victims found for incoming preemptor"
_ONGOING = "ongoing preemption on nominated nodes"
_ABOVE_MINIMUM = "members above minCount evict nobody"
_PREFIX = "pod group preemption: "

# What DynamicResources, which comes before, says where no way was found; also without any claims.
_CLAIMS_DONE = "deallocation and deletion of ResourceClaims completed"


# Who breaks no budget and evicts fewer can do no better.
_TWO_PODS = (0, 2)


@dataclass(frozen=True, slots=True)
class GroupRemedy:
    """What would make room for a group, or why nothing does."""

    #: What is added to the message of the group.
    text: str
    is_found: bool = False
    #: The plugin that evicts for others.
    plugin: str = ""
    #: Where each member is to go, by uid.
    nominations: Mapping[str, str] | None = None
    #: Who has to go.
    units: tuple[VictimUnit, ...] = ()
    #: What was found for the members without any pod of lower priority.
    trial: GroupResult | None = None
    #: The code of kube-scheduler's status.
    code: str = Code.UNSCHEDULABLE.value

    @property
    def victims(self) -> tuple[Pod, ...]:
        return tuple(pod for unit in self.units for pod in unit.pods)

    @property
    def disruptions(self) -> int:
        """How many of the units are groups, or pods of groups."""
        return sum(unit.is_group for unit in self.units)

    @property
    def violations(self) -> int:
        return sum(unit.violations for unit in self.units)


@dataclass(frozen=True, slots=True)
class GroupPreemption:
    """A group that found no place, and a way to make room for it."""

    #: How the group was tried at first.
    cycle: GroupCycle
    #: Whether as few pods as possible are evicted, instead of those that kube-scheduler evicts.
    is_sparing: bool = False
    #: The plugin that evicts for others.
    plugin: str = ""

    @property
    def group(self) -> PodGroup:
        return self.cycle.group

    @property
    def members(self) -> Sequence[Pod]:
        return self.cycle.members

    @property
    def trial(self) -> Trial:
        return self.cycle.trial

    @property
    def _nodes(self) -> Nodes:
        return self.trial.cluster.nodes

    @property
    def _needed(self) -> int:
        """How many more members must have a node."""
        return self.group.min_count - len(self._nodes.groups.placed(self.group.group_key))

    def seek(self) -> GroupRemedy:
        """Finds victims so that the whole group fits. Changes nothing."""
        if any(preemption_policy(pod) == "Never" for pod in self.members):
            return GroupRemedy(f"{_CLAIMS_DONE}, {_PREFIX}{_NEVER}")
        priority = self.group.priority_beside(self.members[0])
        if self.is_sparing and self.group.is_gang and self._needed <= 0:
            return GroupRemedy(f"{_PREFIX}{_ABOVE_MINIMUM}")
        if self._is_ongoing(priority):
            kept = {pod.uid: pod.nominated_node_name for pod in self.members}
            return GroupRemedy(
                f"{_PREFIX}{_ONGOING}", is_found=True, nominations=kept, code=SUCCESS
            )
        units = find_units(self._nodes, priority)
        if not units:
            return GroupRemedy(f"{_PREFIX}{_NO_VICTIMS}", code=Code.UNRESOLVABLE.value)
        units = mark_violations(units, BudgetIndex(self._nodes.workloads.budgets))
        units = spare_order(units)
        remedy, victims = self._try_victims(units, self.cycle)
        if not self.is_sparing or cost_of(victims) < _TWO_PODS:
            return remedy
        return self._find_better(units, remedy, victims) or remedy

    def _is_ongoing(self, priority: int) -> bool:
        """Whether victims are still leaving a node that a member waits for."""
        names = {pod.nominated_node_name for pod in self.members} - {""}
        rows = [row for name in names if (row := self._nodes.row(name)) is not None]
        return any(
            makes_way(other, priority) for row in rows for other in self._nodes.pods(row).values()
        )

    def _try_victims(
        self, units: Sequence[VictimUnit], cycle: GroupCycle
    ) -> tuple[GroupRemedy, Sequence[VictimUnit]]:
        """Places the group without some units; returns those of them that have to go for it."""
        try:
            self.trial.lift_all(pod for unit in units for pod in unit.pods)
            mark = self.trial.mark()
            result = cycle.run()
            if not result.is_success:
                text = f"{_PREFIX}{result.status.message}"
                if result.status.code is GroupCode.UNSCHEDULABLE:
                    text = f"{_CLAIMS_DONE}, {text}"
                return GroupRemedy(text, trial=result), ()
            self.trial.roll_back(mark)
            victims = self._spare(units, result.placed)
        finally:
            self.trial.roll_back()
        count = sum(len(unit.pods) for unit in victims)
        remedy = GroupRemedy(
            f"{_PREFIX}found a placement for podgroup, preempting {count} victims",
            is_found=True,
            plugin=self.plugin,
            nominations={each.pod.uid: each.node_name for each in result.placed},
            units=tuple(victims),
            trial=result,
            code=SUCCESS,
        )
        return remedy, victims

    def _find_better(
        self, units: Sequence[VictimUnit], known: GroupRemedy, victims: Sequence[VictimUnit]
    ) -> GroupRemedy | None:
        """A way to place those whom the group needs at a lower cost; None if none is found."""
        placed = [each.pod for each in known.trial.placed] if known.trial is not None else []
        domains: Sequence[Domain] = [EVERYWHERE]
        if self.cycle.with_topology:
            listed = topology.find_domains(self.group, self._nodes)
            domains = [] if isinstance(listed, GroupStatus) else listed
        found: list[tuple[Sequence[VictimUnit], GroupRemedy]] = []

        def attempt(
            proposal: Sequence[VictimUnit], members: Sequence[Pod], rows: Rows | None
        ) -> Sequence[VictimUnit] | None:
            # In the order of `units`, so that the most important are spared first.
            chosen = {id(unit) for unit in proposal}
            cycle = replace(self.cycle, members=members)
            cycle = cycle if rows is None else cycle.confine(rows)
            remedy, gone = self._try_victims([each for each in units if id(each) in chosen], cycle)
            if not remedy.is_found or len(remedy.nominations or ()) < len(members):
                return None
            found.append((gone, remedy))
            return gone

        needed = self._needed if self.group.is_gang else len(placed)
        fewest = FewestVictims(placed, needed, units, domains, self.trial, attempt)
        better = fewest.find(victims)
        return next((remedy for gone, remedy in found if gone is better), None)

    # Sparing

    def _spare(
        self, units: Sequence[VictimUnit], placed: Sequence[MemberResult]
    ) -> Sequence[VictimUnit]:
        """Puts back all units with which the group still fits where it is; the others must go."""
        victims: list[VictimUnit] = []
        near = self._sees_only_its_node(placed)
        if near and not self._fit(placed):
            # Nominations are in the way even so: nobody can be spared.
            return units
        for unit in units:
            mark = self.trial.mark()
            for pod in unit.pods:
                self.trial.put_back(pod)
            touched = {pod.node_name for pod in unit.pods}
            asked = [each for each in placed if not near or each.node_name in touched]
            if not self._fit(asked):
                self.trial.roll_back(mark)
                victims.append(unit)
        return victims

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
