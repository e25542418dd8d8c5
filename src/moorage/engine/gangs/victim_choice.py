"""Chooses which units must make way for a group: all others are put back."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from moorage.cluster import Nodes
from moorage.framework.gang_points import CountRoom
from moorage.framework.nominated import filter_with_nominated, sees_only_counts
from moorage.framework.points import pre_filter
from moorage.framework.status import PluginError
from moorage.framework.victim_units import VictimUnit
from moorage.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

from .group_result import MemberResult
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
