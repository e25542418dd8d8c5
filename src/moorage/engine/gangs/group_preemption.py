"""Makes room for a whole group: no pod is evicted unless the group then fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from moorage.cluster import Nodes
from moorage.config.kubernetes_versions import KubernetesVersion
from moorage.engine.budget import MOST_GROUP_WORK, MOST_LIFTED
from moorage.framework import victim_units
from moorage.framework.disruption_budgets import BudgetIndex
from moorage.framework.observe import SUCCESS
from moorage.framework.status import Code
from moorage.objects.pod import Pod
from moorage.objects.pod_group import NEVER_EVICTS, PodGroup

from .group_cycle import GroupCycle
from .group_result import GroupCode, GroupResult
from .trial import Trial
from .victim_choice import VictimChoice

_NOT_IN_DOMAINS = (
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)
_NEVER = "not eligible due to preemptionPolicy=Never."
_NO_VICTIMS = "No preemption victims found for incoming preemptor"
_ONGOING = "ongoing preemption on nominated nodes"
_TOO_LONG = "to find out which pods have to go would take too long"
_NOT_ALL = f"of the pods of lower priority only {MOST_LIFTED:,} were looked at"
_PREFIX = "pod group preemption: "

# What DynamicResources, which comes before, says where no way was found; also without any claims.
# It says nothing about groups that stay in one domain.
_CLAIMS_DONE = "deallocation and deletion of ResourceClaims completed"


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
    units: tuple[victim_units.VictimUnit, ...] = ()
    #: What was found for the members without any pod of lower priority.
    trial: GroupResult | None = None
    #: The code of kube-scheduler's status.
    code: str = Code.UNSCHEDULABLE.value

    @property
    def is_ongoing(self) -> bool:
        """Whether the victims of an earlier attempt are still leaving, so that nothing is new."""
        return self.is_found and not self.units

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
    """A group that found no place, and the search for room for it."""

    #: How the group was tried at first.
    cycle: GroupCycle
    version: KubernetesVersion
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
    def _claims_text(self) -> str:
        return "" if self.group.topology_key else f"{_CLAIMS_DONE}, "

    def seek(self) -> GroupRemedy:
        """Finds victims so that the whole group fits. It changes nothing."""
        if self.group.topology_key and not self.version.evicts_for_domains:
            return GroupRemedy(_NOT_IN_DOMAINS)
        if any(self.group.policy_beside(pod) == NEVER_EVICTS for pod in self.members):
            return GroupRemedy(f"{self._claims_text}{_PREFIX}{_NEVER}")
        # No pod goes that is as important as any member.
        priority = min(map(self.group.priority_beside, self.members))
        if self._is_ongoing(priority):
            kept = {pod.uid: pod.nominated_node_name for pod in self.members}
            return GroupRemedy(
                f"{_PREFIX}{_ONGOING}", is_found=True, nominations=kept, code=SUCCESS
            )
        chosen = self._choose_lesser(priority)
        if not chosen:
            return self._seek_among(victim_units.find_units(self._nodes, priority))
        for pods in chosen:
            remedy = self._seek_among(victim_units.find_units(self._nodes, priority, pods))
            if remedy.is_found:
                return remedy
        return replace(remedy, text=f"{remedy.text}, {_NOT_ALL}")

    def _seek_among(self, units: Sequence[victim_units.VictimUnit]) -> GroupRemedy:
        """Finds victims among some units."""
        if not units:
            return GroupRemedy(f"{_PREFIX}{_NO_VICTIMS}", code=Code.UNRESOLVABLE.value)
        self.trial.work_left = MOST_GROUP_WORK
        units = victim_units.mark_violations(units, BudgetIndex(self._nodes.workloads.budgets))
        return self._try_victims(victim_units.spare_order(units))

    def _choose_lesser(self, priority: int) -> list[tuple[Pod, ...]]:
        """Yields the pods of lower priority to look at, if there are too many to look at all.

        They are different ones whenever the cluster has changed.
        """
        nodes, key = self._nodes, self.group.topology_key if self.cycle.with_topology else ""
        changes = nodes.changes
        seed = f"{self.group.uid}/{changes.generation if changes is not None else 0}".encode()
        domains = nodes.label(key).codes if key else np.zeros(len(nodes.alive), np.intp)
        return victim_units.choose_lesser(nodes, priority, MOST_LIFTED, domains, crc32(seed))

    def _is_ongoing(self, priority: int) -> bool:
        """Whether victims are still leaving a node that a member waits for."""
        names = {pod.nominated_node_name for pod in self.members} - {""}
        rows = [row for name in names if (row := self._nodes.row(name)) is not None]
        return any(
            victim_units.makes_way(other, priority)
            for row in rows
            for other in self._nodes.pods(row).values()
        )

    def _try_victims(self, units: Sequence[victim_units.VictimUnit]) -> GroupRemedy:
        """Places the group without some units; those with which it still fits are spared."""
        try:
            self.trial.lift_all(pod for unit in units for pod in unit.pods)
            mark = self.trial.mark()
            result = self.cycle.run()
            if not result.is_success:
                text = f"{_PREFIX}{result.status.message}"
                if result.status.code is GroupCode.UNSCHEDULABLE:
                    text = f"{self._claims_text}{text}"
                return GroupRemedy(text, trial=result)
            self.trial.roll_back(mark)
            victims = VictimChoice(result.placed, self.trial).choose(units)
        finally:
            self.trial.roll_back()
        if victims is None:
            return GroupRemedy(f"{_PREFIX}{_TOO_LONG}", trial=result)
        count = sum(len(unit.pods) for unit in victims)
        return GroupRemedy(
            f"{_PREFIX}found a placement for podgroup, preempting {count} victims",
            is_found=True,
            plugin=self.plugin,
            nominations={each.pod.uid: each.node_name for each in result.placed},
            units=tuple(victims),
            trial=result,
            code=SUCCESS,
        )
