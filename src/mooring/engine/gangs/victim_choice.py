"""Which of the units that could make way for a group must: all others are put back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mooring.cluster import Nodes
from mooring.framework.gang_points import CountRoom
from mooring.framework.nominated import filter_with_nominated, sees_only_counts
from mooring.framework.points import pre_filter
from mooring.framework.status import PluginError
from mooring.framework.victim_units import VictimUnit
from mooring.objects.pod import Pod
from mooring.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

from .group_result import MemberResult
from .trial import Trial

# No configuration leaves these out of what is compared with the room of a node.
_ALWAYS_COUNTED = frozenset((CPU, MEMORY, EPHEMERAL_STORAGE, PODS))


@dataclass(frozen=True, slots=True)
class VictimChoice:
    """Members of a group with the nodes that they found while all units were lifted."""

    placed: Sequence[MemberResult]
    trial: Trial

    @property
    def _nodes(self) -> Nodes:
        return self.trial.cluster.nodes

    def choose(self, units: Sequence[VictimUnit]) -> Sequence[VictimUnit] | None:
        """Puts back all units with which the group still fits where it is; the others must go.

        None if it takes too long to find out.
        """
        if self._see_only_their_nodes():
            return self._choose_by_node(units)
        work = len(units) * sum(self.trial.member_work(each.pod) for each in self.placed)
        if work <= self.trial.work_left:
            return self._choose_one_by_one(units, self.placed)
        return self._choose_in_parts(units)

    def _see_only_their_nodes(self) -> bool:
        """Whether no member minds what is on other nodes than its own."""
        profile, nodes = self.trial.profile, self._nodes
        specs = {id(each.pod.spec): each.pod for each in self.placed}
        return all(
            sees_only_counts(profile, pod, pre_filter(profile, pod, nodes), nodes)
            for pod in specs.values()
        )

    def _choose_by_node(self, units: Sequence[VictimUnit]) -> Sequence[VictimUnit]:
        """The same for members that mind only their own nodes: other nodes are left as they are."""
        if not self._fit(self.placed):
            # Nominations are in the way even so: nobody can be spared.
            return units
        on_node: dict[str, list[MemberResult]] = defaultdict(list)
        for each in self.placed:
            on_node[each.node_name].append(each)
        victims: list[VictimUnit] = []
        for unit in units:
            touched = dict.fromkeys(pod.node_name for pod in unit.pods)
            members = [each for name in touched for each in on_node.get(name, ())]
            if members:
                victims += self._choose_one_by_one((unit,), members)
        return victims

    def _choose_one_by_one(
        self, units: Sequence[VictimUnit], members: Sequence[MemberResult]
    ) -> Sequence[VictimUnit]:
        victims: list[VictimUnit] = []
        for unit in units:
            mark = self.trial.mark()
            for pod in unit.pods:
                self.trial.put_back(pod)
            if not self._fit(members):
                self.trial.roll_back(mark)
                victims.append(unit)
        return victims

    def _choose_in_parts(self, units: Sequence[VictimUnit]) -> Sequence[VictimUnit] | None:
        """The same for many: several units are put back at once, fewer if members do not fit then.

        Units whose nodes have too little room for them beside the members must go in any case.
        """
        taken = self._sum_requests()
        victims: set[int] = set()
        parts = [list(units)]
        while parts:
            part = parts.pop()
            if self.trial.is_spent:
                return None
            mark = self.trial.mark()
            refused = [unit for unit in part if not self._put_back(unit, taken)]
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

    def _sum_requests(self) -> dict[tuple[str, int], int]:
        """What the members take of each node, by its name and the place of a resource."""
        nodes, taken = self._nodes, defaultdict[tuple[str, int], int](int)
        if not any(isinstance(each, CountRoom) for each in self.trial.profile.filter):
            return taken
        for each in self.placed:
            for name, amount in ((PODS, 1), *each.pod.requests):
                place = nodes.resource(name) if name in _ALWAYS_COUNTED else None
                if place is not None and amount:
                    taken[each.node_name, place] += amount
        return taken

    def _put_back(self, unit: VictimUnit, taken: dict[tuple[str, int], int]) -> bool:
        """Puts a unit back if there is room for it beside the members; whether there was."""
        mark = self.trial.mark()
        for pod in unit.pods:
            self.trial.put_back(pod)
        if all(self._have_room(pod, taken) for pod in unit.pods):
            return True
        self.trial.roll_back(mark)
        return False

    def _have_room(self, returned: Pod, taken: dict[tuple[str, int], int]) -> bool:
        nodes, name = self._nodes, returned.node_name
        row = nodes.row(name)
        if row is None:
            return True
        places = (nodes.resource(each) for each in _ALWAYS_COUNTED)
        return all(
            nodes.requested[place, row] + taken[name, place] <= nodes.allocatable[place, row]
            for place in places
            if place is not None and (name, place) in taken
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
        self.trial.place_beside(member.pod, member.node_name)
        return True
