"""Makes room for a gang with as few evictions as possible.

Sets of victims are proposed, tried on the columns, and compared by cost: broken budgets first, then
the number of pods, then their importance. For members that depend on resources only, the cheapest
set is counted; for others, smaller and smaller sets are tried. The number of tries is bounded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Nodes
from moorage.framework.status import PluginError
from moorage.framework.victim_units import VictimUnit
from moorage.objects.pod import Pod
from moorage.objects.resources import PODS

from .domain_counts import group_alike, is_countable
from .eviction_costs import Cost, EvictionCosts, EvictionPlan, LikeMembers, cost_of
from .group_result import Domain
from .member_fits import count_fits
from .trial import Trial

#: The row that a member is to go to, by uid.
Rows = Mapping[str, int]

#: Which of some units must go so that members fit once the others return; None if they do not.
#: With rows, members go there and nowhere else.
Try = Callable[[Sequence[VictimUnit], Sequence[Pod], Rows | None], Sequence[VictimUnit] | None]

# So many domains are counted, and so many groups that are evicted whole are weighed.
_MOST_DOMAINS = 32
_MOST_WHOLE_GROUPS = 8
_MOST_ROUNDS = 3

# So many of the cheapest sets are tried.
_MOST_TRIES = 4

# With more kinds of members, sets are tried instead of counted.
_MOST_KINDS = 8


@dataclass(frozen=True, slots=True)
class _Proposal:
    """A set of victims, and where members would go."""

    units: tuple[VictimUnit, ...]
    rows: Rows
    members: tuple[Pod, ...]

    @property
    def cost(self) -> Cost:
        return cost_of(self.units)


@dataclass(frozen=True, slots=True)
class FewestVictims:
    """Members that need room, and the pods that may have to leave."""

    #: Those that find a place if all units go.
    members: Sequence[Pod]
    #: How many of them the gang cannot do without.
    needed: int
    units: Sequence[VictimUnit]
    domains: Sequence[Domain]
    trial: Trial
    attempt: Try

    @property
    def _nodes(self) -> Nodes:
        return self.trial.cluster.nodes

    def find(self, known: Sequence[VictimUnit]) -> Sequence[VictimUnit] | None:
        """Returns victims that cost less than the known ones; None if none were found."""
        best, cost = None, cost_of(known)
        for chosen in self._try_all(cost):
            if chosen is not None and cost_of(chosen) < cost:
                best, cost = chosen, cost_of(chosen)
        return best

    def _try_all(self, known: Cost) -> Iterator[Sequence[VictimUnit] | None]:
        try:
            kinds = self._count_kinds()
        except PluginError:
            kinds = None
        if kinds is not None:
            for proposal in self._cheapest(kinds):
                if proposal.cost < known:
                    units, members = proposal.units, proposal.members
                    freely = self.attempt(units, members, None)
                    yield freely or self.attempt(units, members, proposal.rows)
            return
        # From the least important unit on, and from the row with the fewest units on.
        yield from self._shrink([[unit] for unit in reversed(self.units)])
        yield from self._shrink(self._by_row())

    # Members that are counted

    def _count_kinds(self) -> tuple[EvictionCosts, list[LikeMembers]] | None:
        """Returns the kinds of members, the fewest places first; None if not countable."""
        profile, nodes = self.trial.profile, self._nodes
        alike = group_alike(self.members, profile, nodes)
        firsts = [pods[0] for pods in alike]
        if len(alike) > _MOST_KINDS or not all(is_countable(pod, profile, nodes) for pod in firsts):
            return None
        names = [PODS, *dict.fromkeys(name for pod in firsts for name, amount in pod.requests)]
        costs = EvictionCosts.of(names, nodes, self.units)
        if costs is None:
            return None
        mark = self.trial.mark()
        self.trial.lift_all(pod for unit in self.units for pod in unit.pods)
        try:
            most = [count_fits(pod, profile, nodes) for pod in firsts]
        finally:
            self.trial.roll_back(mark)
        kinds = [
            LikeMembers(pods, costs.takes(pods[0].requests), fits)
            for pods, fits in zip(alike, most, strict=True)
            if fits is not None
        ]
        return (costs, self._choose_easiest(kinds)) if len(kinds) == len(alike) else None

    def _choose_easiest(self, kinds: list[LikeMembers]) -> list[LikeMembers]:
        """Returns as many members as are needed: those with the most places, the fewest first."""
        kinds.sort(key=lambda kind: -int(np.count_nonzero(kind.most)))
        chosen: list[LikeMembers] = []
        left = self.needed
        for kind in kinds:
            pods = kind.pods[:left]
            if pods:
                chosen.append(replace(kind, pods=pods))
                left -= len(pods)
        return chosen[::-1]

    def _cheapest(
        self, counted: tuple[EvictionCosts, Sequence[LikeMembers]]
    ) -> Iterator[_Proposal]:
        """Yields the cheapest sets of all domains, the cheapest of them first."""
        costs, kinds = counted
        found: list[tuple[Cost, int, _Proposal]] = []
        for number, domain in enumerate(self._roomy(kinds)):
            proposal = self._cheapest_in(costs, kinds, self._rows(domain))
            if proposal is not None:
                found.append((proposal.cost, number, proposal))
        found.sort(key=lambda each: each[:2])
        yield from (proposal for _, _, proposal in found[:_MOST_TRIES])

    def _roomy(self, kinds: Sequence[LikeMembers]) -> list[Domain]:
        """Returns domains that take every kind if all lesser pods go, the smallest first."""
        rooms = [
            (min(int(kind.most[self._rows(each)].sum()) - len(kind.pods) for kind in kinds), each)
            for each in self.domains
        ]
        enough = [(room, domain) for room, domain in rooms if room >= 0]
        enough.sort(key=lambda each: each[0])
        return [domain for _, domain in enough[:_MOST_DOMAINS]]

    def _cheapest_in(
        self, costs: EvictionCosts, kinds: Sequence[LikeMembers], rows: NDArray[np.intp]
    ) -> _Proposal | None:
        """Returns the cheapest set in a domain; groups that go as a whole are added one by one."""
        best = self._plan(costs, kinds, rows, ())
        gone: tuple[VictimUnit, ...] = ()
        for _ in range(_MOST_ROUNDS):
            tried = [
                ((*gone, group), self._plan(costs, kinds, rows, (*gone, group)))
                for group in self._whole_groups(rows, gone)
            ]
            better = [
                (units, plan)
                for units, plan in tried
                if plan is not None and (best is None or plan.cost < best.cost)
            ]
            if not better:
                return best
            gone, best = min(better, key=lambda each: each[1].cost)
        return best

    def _plan(
        self,
        costs: EvictionCosts,
        kinds: Sequence[LikeMembers],
        rows: NDArray[np.intp],
        gone: tuple[VictimUnit, ...],
    ) -> _Proposal | None:
        """Makes room for one kind after the other, once some units are gone."""
        units, chosen = list(gone), dict[str, int]()
        costs = costs.without(gone, self._nodes) if gone else costs
        for kind in kinds:
            plan = costs.cheapest(kind, rows)
            if plan is None:
                return None
            units += plan.units
            chosen.update(_share_out(kind, plan))
            costs = costs.after(plan, kind, self._nodes)
        members = tuple(pod for pod in self.members if pod.uid in chosen)
        return _Proposal(tuple(units), chosen, members)

    def _whole_groups(
        self, rows: NDArray[np.intp], gone: Sequence[VictimUnit]
    ) -> Iterator[VictimUnit]:
        """Returns groups of several pods that are evicted as a whole and are on the rows."""
        large = [unit for unit in self.units if len(unit.pods) > 1 and unit not in gone]
        if large:
            here = set(self._nodes.names(rows.tolist()))
            large = [unit for unit in large if any(pod.node_name in here for pod in unit.pods)]
            large.sort(key=lambda unit: cost_of([unit]))
        yield from large[:_MOST_WHOLE_GROUPS]

    def _rows(self, domain: Domain) -> NDArray[np.intp]:
        return self._nodes.rows if domain.rows is None else domain.rows

    # Members that are tried

    def _by_row(self) -> list[list[VictimUnit]]:
        on_node: dict[str, list[VictimUnit]] = defaultdict(list)
        for unit in self.units:
            for name in dict.fromkeys(pod.node_name for pod in unit.pods):
                on_node[name].append(unit)
        return [on_node[name] for name in sorted(on_node, key=lambda name: len(on_node[name]))]

    def _shrink(
        self, parts: Sequence[Sequence[VictimUnit]]
    ) -> Iterator[Sequence[VictimUnit] | None]:
        """Tries fewer and fewer of the first parts, halving the undecided ones each time."""
        enough, too_few = len(parts), 0
        while enough - too_few > 1:
            middle = (enough + too_few) // 2
            units = list({id(unit): unit for part in parts[:middle] for unit in part}.values())
            chosen = self.attempt(units, self.members[: self.needed], None)
            if chosen is None:
                too_few = middle
            else:
                enough = middle
            yield chosen


def _share_out(kind: LikeMembers, plan: EvictionPlan) -> dict[str, int]:
    places = (row for row, count in plan.counts.items() for _ in range(count))
    return {pod.uid: row for pod, row in zip(kind.pods, places, strict=True)}
