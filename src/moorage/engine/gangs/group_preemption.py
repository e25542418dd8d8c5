"""Makes room for a whole group: no pod is evicted unless the group then fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import msgspec
import numpy as np

from moorage.cluster import Nodes
from moorage.config.kubernetes_versions import KubernetesVersion
from moorage.engine.budget import MOST_GROUP_WORK, MOST_LIFTED
from moorage.framework.disruption_budgets import BudgetIndex
from moorage.framework.observe import SUCCESS
from moorage.framework.status import Code
from moorage.framework.victim_units import (
    VictimUnit,
    choose_lesser,
    find_units,
    makes_way,
    mark_violations,
    spare_order,
)
from moorage.objects.pod import Pod
from moorage.objects.pod_group import NEVER_EVICTS, PodGroup

from . import topology
from .eviction_costs import cost_of
from .fewest_victims import FewestVictims, Rows
from .group_cycle import EVERYWHERE, GroupCycle
from .group_result import Domain, GroupCode, GroupResult, GroupStatus
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
_ABOVE_MINIMUM = "members above minCount evict nobody"
_PREFIX = "pod group preemption: "

# What DynamicResources, which comes before, says where no way was found; also without any claims.
# It says nothing about groups that stay in one domain.
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
        if self.is_sparing and self.group.is_gang and self._needed <= 0:
            return GroupRemedy(f"{_PREFIX}{_ABOVE_MINIMUM}")
        if self._is_ongoing(priority):
            kept = {pod.uid: pod.nominated_node_name for pod in self.members}
            return GroupRemedy(
                f"{_PREFIX}{_ONGOING}", is_found=True, nominations=kept, code=SUCCESS
            )
        chosen = self._choose_lesser(priority)
        if not chosen:
            return self._seek_among(find_units(self._nodes, priority))
        for pods in chosen:
            remedy = self._seek_among(find_units(self._nodes, priority, pods))
            if remedy.is_found:
                return remedy
        return replace(remedy, text=f"{remedy.text}, {_NOT_ALL}")

    def _seek_among(self, units: Sequence[VictimUnit]) -> GroupRemedy:
        """Finds victims among some units."""
        if not units:
            return GroupRemedy(f"{_PREFIX}{_NO_VICTIMS}", code=Code.UNRESOLVABLE.value)
        self.trial.work_left = MOST_GROUP_WORK
        units = mark_violations(units, BudgetIndex(self._nodes.workloads.budgets))
        units = spare_order(units)
        remedy, victims = self._try_victims(units, self.cycle)
        if not self.is_sparing or cost_of(victims) < _TWO_PODS:
            return remedy
        return self._find_better(units, remedy, victims) or remedy

    def _choose_lesser(self, priority: int) -> list[tuple[Pod, ...]]:
        """Yields the pods of lower priority to look at, if there are too many to look at all.

        They are different ones whenever the cluster has changed.
        """
        nodes, key = self._nodes, self.group.domain_key if self.cycle.with_topology else ""
        changes = nodes.changes
        seed = f"{self.group.uid}/{changes.generation if changes is not None else 0}".encode()
        domains = nodes.label(key).codes if key else np.zeros(len(nodes.alive), np.intp)
        return choose_lesser(nodes, priority, MOST_LIFTED, domains, crc32(seed))

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
        """Places the group without some units; returns those of them that must go."""
        try:
            self.trial.lift_all(pod for unit in units for pod in unit.pods)
            mark = self.trial.mark()
            result = cycle.run()
            if not result.is_success:
                text = f"{_PREFIX}{result.status.message}"
                if result.status.code is GroupCode.UNSCHEDULABLE:
                    text = f"{self._claims_text}{text}"
                return GroupRemedy(text, trial=result), ()
            self.trial.roll_back(mark)
            victims = VictimChoice(result.placed, self.trial).choose(units)
        finally:
            self.trial.roll_back()
        if victims is None:
            return GroupRemedy(f"{_PREFIX}{_TOO_LONG}", trial=result), ()
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
        """Returns a cheaper way to place the needed members; None if none is found."""
        placed = [each.pod for each in known.trial.placed] if known.trial is not None else []
        domains: Sequence[Domain] = [EVERYWHERE]
        if self.cycle.with_topology:
            listed = topology.find_domains(self.group, self._nodes)
            domains = [] if isinstance(listed, GroupStatus) else listed
        found: list[tuple[Sequence[VictimUnit], GroupRemedy]] = []

        def attempt(
            proposal: Sequence[VictimUnit], members: Sequence[Pod], rows: Rows | None
        ) -> Sequence[VictimUnit] | None:
            if self.trial.is_spent:
                return None
            # In the order of `units`, so that the most important are spared first.
            chosen = {id(unit) for unit in proposal}
            cycle = msgspec.structs.replace(self.cycle, members=members)
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
