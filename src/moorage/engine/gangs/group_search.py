"""Finds places for a group that kube-scheduler's order of trying does not find.

First, members are tried in another order. Then, if they depend on resources only, a search over all
ways to place them runs for a bounded number of looks. Both are deterministic. The group was refused
before, so a group that kube-scheduler would place is not placed differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask, Nodes
from moorage.engine.cycle import Window
from moorage.framework.points import filter_rows, pre_filter, rows_to_filter
from moorage.framework.profile import Profile
from moorage.framework.status import PluginError
from moorage.objects.pod import Pod
from moorage.objects.resources import PODS

from . import topology
from .domain_counts import are_alike, group_alike, sees_counts
from .group_cycle import EVERYWHERE, GroupCycle
from .group_result import Domain, GroupResult, GroupStatus, MemberResult

#: How the places were found, for those who ask.
REORDERED, SEARCHED = "reordered", "searched"

# How many places the search tries before it gives up, which takes some milliseconds. So many rows
# that are only compared count as one.
_MOST_LOOKS = 1_000
_ROWS_PER_LOOK = 64

# With more kinds of members, or more members, the search would give up anyway.
_MOST_KINDS = 8
_MOST_MEMBERS = 256


@dataclass(slots=True)
class MemberKind:
    """Members that every node answers alike."""

    members: list[Pod]
    #: The rows that take such a member now.
    rows: NDArray[np.intp]
    #: The largest share of what any node has that a member asks for.
    share: float

    @property
    def pod(self) -> Pod:
        return self.members[0]

    @property
    def difficulty(self) -> tuple[bool, int, float]:
        """A sort key: kinds that others need first, then those with few nodes, then the large."""
        return bool(self.pod.terms.affinity), len(self.rows), -self.share


def search(cycle: GroupCycle) -> GroupResult | None:
    """Places a refused group, if another way is found; else returns None and undoes all."""
    nodes = cycle.trial.cluster.nodes
    scheduled = len(nodes.groups.placed(cycle.group.group_key))
    if scheduled + len(cycle.members) < cycle.group.min_count:
        return None
    if are_alike(cycle.members, cycle.trial.profile, nodes):
        # No order is better than another.
        return None
    domains = topology.find_domains(cycle.group, nodes) if cycle.with_topology else [EVERYWHERE]
    if isinstance(domains, GroupStatus):
        return None
    for domain in domains:
        if cycle.trial.is_spent:
            break
        result = _search_domain(cycle, domain, cycle.group.min_count - scheduled)
        if result is not None:
            return result
    return None


def _search_domain(cycle: GroupCycle, domain: Domain, needed: int) -> GroupResult | None:
    try:
        kinds = _find_kinds(cycle.members, domain, cycle.trial.profile, cycle.trial.cluster.nodes)
    except PluginError:
        return None
    if sum(len(each.members) for each in kinds if len(each.rows)) < needed:
        return None
    kinds.sort(key=lambda kind: kind.difficulty)
    ordered = [pod for kind in kinds for pod in kind.members]
    mark = cycle.trial.mark()
    result = msgspec.structs.replace(cycle, members=ordered).try_domain(domain)
    if result.is_success and result.has_placed:
        result.found_by = REORDERED
        return result
    cycle.trial.roll_back(mark)
    found = _Packing.find(kinds, needed, cycle.trial.profile, cycle.trial.cluster.nodes)
    if found is None:
        return None
    return _place(cycle, domain, found, ordered)


def _find_kinds(
    members: Sequence[Pod], domain: Domain, profile: Profile, nodes: Nodes
) -> list[MemberKind]:
    return [
        MemberKind(
            pods,
            _find_rows(pods[0], domain, profile, nodes),
            topology.largest_share(pods[0], nodes),
        )
        for pods in group_alike(members, profile, nodes)
    ]


def _find_rows(pod: Pod, domain: Domain, profile: Profile, nodes: Nodes) -> NDArray[np.intp]:
    prepared = pre_filter(profile, pod, nodes)
    if prepared.rejected is not None:
        return np.zeros(0, np.intp)
    rows = Window(rows=domain.rows).limit(rows_to_filter(prepared, nodes))
    return filter_rows(profile, pod, prepared, nodes, rows).feasible_rows


def _place(
    cycle: GroupCycle, domain: Domain, found: dict[str, int], ordered: Sequence[Pod]
) -> GroupResult | None:
    """Places members where the search found room, then the others as usual, if plugins agree."""
    mark = cycle.trial.mark()
    chosen = {
        pod.uid: replace(domain, rows=np.array([found[pod.uid]], np.intp))
        for pod in ordered
        if pod.uid in found
    }
    members: list[MemberResult] = [
        cycle.try_member(pod, chosen[pod.uid]) for pod in ordered if pod.uid in chosen
    ]
    if not all(each.node_name for each in members):
        cycle.trial.roll_back(mark)
        return None
    others = [pod for pod in ordered if pod.uid not in chosen]
    result = msgspec.structs.replace(cycle, members=others).try_domain(domain)
    if not result.is_success:
        cycle.trial.roll_back(mark)
        return None
    result.members = [*members, *result.members]
    result.has_placed = True
    result.found_by = SEARCHED
    return result


@dataclass(slots=True)
class _Packing:
    """A search for places of members that depend only on what is counted."""

    kinds: Sequence[MemberKind]
    #: What is free: int64[resource, row].
    free: NDArray[np.int64]
    #: What a member of each kind takes: int64[kind, resource].
    takes: NDArray[np.int64]
    #: Which rows take a member of each kind at all: bool[kind, row].
    takers: Mask
    looks: int = 0
    chosen: list[int] = field(default_factory=list)

    @classmethod
    def find(
        cls, kinds: Sequence[MemberKind], needed: int, profile: Profile, nodes: Nodes
    ) -> dict[str, int] | None:
        """Returns the row of each necessary member, by uid; None if not found."""
        if len(kinds) > _MOST_KINDS or needed > _MOST_MEMBERS:
            return None
        if not all(sees_counts(kind.pod, profile, nodes) for kind in kinds):
            return None
        amounts = [{PODS: 1, **dict(kind.pod.requests)} for kind in kinds]
        names = sorted({name for each in amounts for name in each})
        places = [place for name in names if (place := nodes.resource(name)) is not None]
        if len(places) < len(names):
            return None
        at, everything = np.array(places, np.intp), nodes.everything
        takers = np.zeros((len(kinds), nodes.count(everything)), np.bool_)
        for number, kind in enumerate(kinds):
            takers[number, kind.rows] = True
        packing = cls(
            kinds,
            (nodes.allocatable[at] - nodes.requested[at])[:, everything],
            np.array([[each.get(name, 0) for name in names] for each in amounts], np.int64),
            takers,
        )
        return packing._find(needed)

    def _find(self, needed: int) -> dict[str, int] | None:
        wanted = self._choose_members(needed)
        if self._lacks_room(wanted) or not self._pack(wanted, 0, 0):
            return None
        left = [iter(kind.members) for kind in self.kinds]
        return {next(left[kind]).uid: row for kind, row in zip(wanted, self.chosen, strict=True)}

    def _choose_members(self, needed: int) -> list[int]:
        """Returns the kinds of the members that are easiest to place, the hardest of them first."""
        easiest = sorted(range(len(self.kinds)), key=lambda kind: self.kinds[kind].share)
        able = [
            kind for kind in easiest if len(self.kinds[kind].rows) for _ in self.kinds[kind].members
        ]
        return sorted(able[:needed], key=lambda kind: (-self.kinds[kind].share, kind))

    def _lacks_room(self, wanted: Sequence[int]) -> bool:
        """Whether even all that is free is not enough."""
        rows = self.takers[sorted(set(wanted))].any(axis=0)
        asked = self.takes[wanted].sum(axis=0)
        return bool((self.free[:, rows].sum(axis=1) < asked).any())

    def _pack(self, wanted: Sequence[int], at: int, first: int) -> bool:
        """Places the members from one on; like members go to rows in ascending order."""
        if at == len(wanted):
            return True
        kind = wanted[at]
        is_repeated = at + 1 < len(wanted) and wanted[at + 1] == kind
        seen: set[bytes] = set()
        for row in self._candidates(kind, first):
            state = self.free[:, row].tobytes() + self.takers[:, row].tobytes()
            if state in seen:
                # A row that was like it has been tried in vain.
                continue
            seen.add(state)
            self.looks += 1
            if self.looks > _MOST_LOOKS:
                return False
            self.free[:, row] -= self.takes[kind]
            self.chosen.append(row)
            if self._pack(wanted, at + 1, row if is_repeated else 0):
                return True
            self.chosen.pop()
            self.free[:, row] += self.takes[kind]
        return False

    def _candidates(self, kind: int, first: int) -> list[int]:
        """Yields the rows from one on with room for a member, the fullest first."""
        rows = self.kinds[kind].rows
        self.looks += len(rows) // _ROWS_PER_LOOK
        rows = rows[rows >= first]
        room = self.free[:, rows] - self.takes[kind][:, None]
        fits = (room >= 0).all(axis=0)
        rows, room = rows[fits], room[:, fits]
        left = (room / np.maximum(self.free.max(axis=1, initial=1), 1)[:, None]).sum(axis=0)
        order: list[int] = rows[np.lexsort((rows, left))].tolist()
        return order
