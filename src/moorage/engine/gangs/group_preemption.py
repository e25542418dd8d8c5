"""Makes room for a whole group: no pod is evicted unless the group then fits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from moorage.cluster import Nodes
from moorage.config.kubernetes_versions import KubernetesVersion
from moorage.engine.budget import MOST_GROUP_WORK, MOST_LIFTED
from moorage.framework import victim_units
from moorage.framework.disruption_budgets import BudgetIndex
from moorage.framework.gang_points import CountRoom
from moorage.framework.nominated import filter_with_nominated, sees_only_counts
from moorage.framework.observe import SUCCESS
from moorage.framework.points import pre_filter
from moorage.framework.status import Code, PluginError
from moorage.framework.victim_units import VictimUnit
from moorage.objects.pod import Pod
from moorage.objects.pod_group import NEVER_EVICTS, PodGroup
from moorage.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

from .group_cycle import GroupCycle
from .group_result import GroupResult, MemberResult
from .trial import Trial

# No configuration leaves these out of what is compared with the room of a node.
_ALWAYS_COUNTED = frozenset((CPU, MEMORY, EPHEMERAL_STORAGE, PODS))

#: By node, what members take of it: the name of a resource, its place, and how much.
TakenRoom = Mapping[str, Sequence[tuple[str, int, int]]]


@dataclass(frozen=True, slots=True)
class VictimChoice:
    """Members of a group with the nodes that they found while all units were lifted."""

    placed: Sequence[MemberResult]
    trial: Trial

    @property
    def _nodes(self) -> Nodes:
        return self.trial.cluster.nodes

    def choose(self, units: Sequence[VictimUnit]) -> Sequence[VictimUnit] | None:
        """Puts back all units with which the group still fits; returns the others.

        None if it takes too long to find out.
        """
        if self._see_only_their_nodes():
            return self._choose_by_node(units)
        work = len(units) * sum(self.trial.member_work(each.pod) for each in self.placed)
        if work <= self.trial.work_left:
            return self._choose_one_by_one(units, self.placed, self._sum_requests())
        return self._choose_in_parts(units)

    def _see_only_their_nodes(self) -> bool:
        """Whether no member depends on other nodes than its own."""
        profile, nodes = self.trial.profile, self._nodes
        specs = {id(each.pod.spec): each.pod for each in self.placed}
        return all(
            sees_only_counts(profile, pod, pre_filter(profile, pod, nodes), nodes)
            for pod in specs.values()
        )

    def _choose_by_node(self, units: Sequence[VictimUnit]) -> Sequence[VictimUnit]:
        """Chooses for members that depend on their own nodes only; other nodes stay as they are."""
        if not self._fit(self.placed):
            # Nominations are in the way even so: nobody can be spared.
            return units
        on_node: dict[str, list[MemberResult]] = defaultdict(list)
        for each in self.placed:
            on_node[each.node_name].append(each)
        taken = self._sum_requests()
        victims: list[VictimUnit] = []
        for unit in units:
            touched = dict.fromkeys(pod.node_name for pod in unit.pods)
            members = [each for name in touched for each in on_node.get(name, ())]
            if members:
                victims += self._choose_one_by_one((unit,), members, taken)
        return victims

    def _choose_one_by_one(
        self, units: Sequence[VictimUnit], members: Sequence[MemberResult], taken: TakenRoom
    ) -> Sequence[VictimUnit]:
        victims: list[VictimUnit] = []
        for unit in units:
            mark = self.trial.mark()
            if not (self._put_back_beside(unit, taken) and self._fit(members)):
                self.trial.roll_back(mark)
                victims.append(unit)
        return victims

    def _choose_in_parts(self, units: Sequence[VictimUnit]) -> Sequence[VictimUnit] | None:
        """Chooses among many: puts back several units at once, fewer if members do not fit then.

        Units whose nodes have too little room beside the members must go in any case.
        """
        taken = self._sum_requests()
        victims: set[int] = set()
        parts = [list(units)]
        while parts:
            part = parts.pop()
            if self.trial.is_spent:
                return None
            mark = self.trial.mark()
            refused = [unit for unit in part if not self._put_back_beside(unit, taken)]
            if len(refused) == len(part) or self._fit(self.placed):
                victims.update(map(id, refused))
                continue
            self.trial.roll_back(mark)
            if len(part) == 1:
                victims.add(id(part[0]))
                continue
            middle = len(part) // 2
            parts += [part[middle:], part[:middle]]
        return [unit for unit in units if id(unit) in victims]

    def _put_back_beside(self, unit: VictimUnit, taken: TakenRoom) -> bool:
        """Puts a unit back if it has room beside the members; returns whether it has."""
        if self._lacks_room(unit, taken):
            return False
        for pod in unit.pods:
            self.trial.put_back(pod)
        return True

    def _sum_requests(self) -> TakenRoom:
        """Returns what the members take of each node."""
        nodes, taken = self._nodes, defaultdict[str, Counter[str]](Counter)
        if not any(isinstance(each, CountRoom) for each in self.trial.profile.filter):
            return {}
        for each in self.placed:
            for name, amount in ((PODS, 1), *each.pod.requests):
                if amount and name in _ALWAYS_COUNTED:
                    taken[each.node_name][name] += amount
        return {
            node_name: [
                (name, place, amount)
                for name, amount in amounts.items()
                if (place := nodes.resource(name)) is not None
            ]
            for node_name, amounts in taken.items()
        }

    def _lacks_room(self, unit: VictimUnit, taken: TakenRoom) -> bool:
        """Whether the node of one of its pods has too little room for it beside the members."""
        nodes = self._nodes
        for pod in unit.pods:
            row, wanted = nodes.row(pod.node_name), taken.get(pod.node_name)
            if row is None or wanted is None:
                continue
            held = {PODS: 1, **dict(pod.held.requests)}
            for name, place, amount in wanted:
                needed = nodes.requested.item(place, row) + held.get(name, 0) + amount
                if needed > nodes.allocatable.item(place, row):
                    return True
        return False

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
        self.trial.work_left -= self.trial.member_work(member.pod)
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
        self.trial.place(member.pod, member.node_name, stays_nominated=True)
        return True


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
                if result.status.code == "Unschedulable":
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
