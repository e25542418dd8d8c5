"""Explains a gang as a whole: why it waits, where it goes, and how much is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from moorage.engine import budget
from moorage.engine.engine import Engine
from moorage.engine.gangs import topology
from moorage.engine.gangs.admission import hold_member
from moorage.engine.gangs.gang_room import (
    DomainRoom,
    GangRoom,
    count_nodes,
    count_room,
    describe_requests,
    describe_room,
)
from moorage.engine.gangs.group_cycle import EVERYWHERE, GroupCycle
from moorage.engine.gangs.group_decision import GroupDecision
from moorage.engine.gangs.group_result import Domain, GroupStatus
from moorage.engine.gangs.trial import Trial
from moorage.framework.calls import ask_pre_enqueue
from moorage.framework.edits import PodAt, pod_at
from moorage.framework.observe import UNOBSERVED
from moorage.framework.status import PluginError
from moorage.framework.victim_units import find_units
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup

from .explanation import ExplanationPart, Names

#: fits: a place is found for enough members now. pending: none is. preempting: evicting others
#: makes room. gated: it is not tried yet. running: no member waits. error: it cannot be tried.
GangState = Literal["fits", "pending", "preempting", "gated", "running", "error"]

# Members that cannot be counted are tried, in so many of the largest domains; of large gangs in
# fewer, because a running scheduler decides nothing meanwhile.
_MOST_TRIED_DOMAINS, _MOST_TRIED_MEMBERS = 32, 4_096


class GangExplanation(ExplanationPart, frozen=True):
    """Why a gang waits, or where it goes."""

    group: str
    scheduler: str
    state: GangState
    min_count: int
    waiting: int = 0
    running: int = 0
    #: The scheduler's own words.
    message: str = ""
    #: What members ask for, a text for each different request.
    asks: Names = ()
    topology_key: str = ""
    #: Where the members are, or would go.
    domain: str = ""
    #: Which member is on which node, or would go there.
    nodes: dict[str, str] = msgspec.field(default_factory=dict)
    victims: tuple[PodAt, ...] = ()
    room: GangRoom | None = None
    #: The room in words.
    arithmetic: str = ""

    @property
    def has_place(self) -> bool:
        return self.state in ("fits", "running")


def explain_gang(engine: Engine, group: PodGroup) -> GangExplanation:
    """Explains a group of the cluster, without changing anything."""
    groups = engine.cluster.groups
    placed = groups.placed(group.group_key)
    waiting = [
        pod
        for pod in groups.waiting(group.group_key).values()
        if pod.uid not in placed and not pod.terminating
    ]
    waiting.sort(key=lambda pod: (-pod.priority, pod.created or 0.0, pod.name))
    base = GangExplanation(
        group.key,
        next((pod.spec.scheduler_name for pod in (*waiting, *placed.values())), ""),
        "running" if placed else "gated",
        group.min_count,
        len(waiting),
        len(placed),
        topology_key=group.topology_key,
        nodes={pod.key: pod.node_name for pod in placed.values()},
    )
    if not waiting:
        text = "" if placed else "no pod that is served here names this group"
        return msgspec.structs.replace(base, message=text, domain=_domain_of(group, placed, engine))
    return _GangCase(engine, group, waiting, base).explain()


def _domain_of(group: PodGroup, placed: object, engine: Engine) -> str:
    domains = topology.find_domains(group, engine.cluster.nodes) if placed else ()
    known = [] if isinstance(domains, GroupStatus) else [each.name for each in domains]
    return known[0] if len(known) == 1 else ""


@dataclass(frozen=True)
class _GangCase:
    """A group with members that wait."""

    engine: Engine
    group: PodGroup
    members: Sequence[Pod]
    base: GangExplanation

    def explain(self) -> GangExplanation:
        asks = tuple(describe_requests(self.members))
        base = msgspec.structs.replace(self.base, asks=asks)
        name = self.members[0].spec.scheduler_name
        if name not in self.engine.profiles:
            text = f"no profile serves scheduler {name}"
            return msgspec.structs.replace(base, state="error", message=text)
        most = budget.MOST_WORK // budget.PASSES_TO_EXPLAIN
        costs = (budget.excess(pod, self.engine.cluster, most) for pod in self.members)
        too_costly = next(filter(None, costs), None)
        if too_costly is not None:
            text = f"too costly to be explained: {too_costly}"
            return msgspec.structs.replace(base, state="error", message=text)
        held = self._find_hold()
        if held is not None:
            base = msgspec.structs.replace(base, state="gated", message=held)
            return self._add_room(base)
        decision = self.engine.consider_group(self.group, self.members)
        decision.trial.roll_back()
        return self._add_room(self._describe(base, decision))

    def _find_hold(self) -> str | None:
        """Returns why the group is not tried yet: one held member holds back all."""
        profile = self.engine.profiles[self.members[0].spec.scheduler_name]
        for pod in self.members:
            refused = hold_member(pod, self.engine.cluster.groups)
            for plugin in profile.pre_enqueue:
                refused = refused or ask_pre_enqueue(plugin, pod)
            if refused is not None:
                return f"{pod.key}: {refused.message}"
        return None

    def _describe(self, base: GangExplanation, decision: GroupDecision) -> GangExplanation:
        result, remedy = decision.result, decision.remedy
        state: GangState = "pending"
        where = {each.pod.key: each.node_name for each in result.placed}
        if decision.status.code == "Success":
            state = "fits"
        elif decision.status.code == "Error":
            state = "error"
        elif decision.is_waiting:
            state = "preempting"
            chosen = remedy.nominations if remedy is not None else None
            by_uid = {pod.uid: pod.key for pod in self.members}
            where = {by_uid[uid]: name for uid, name in (chosen or {}).items() if name}
        else:
            where = {}
        victims = remedy.victims if remedy is not None else ()
        return msgspec.structs.replace(
            base,
            state=state,
            message=decision.status.message,
            domain=result.domain.name if state == "fits" and result.domain is not None else "",
            nodes={**base.nodes, **where},
            victims=tuple(pod_at(pod, pod.node_name) for pod in victims),
        )

    # Room

    def _add_room(self, base: GangExplanation) -> GangExplanation:
        try:
            room = self._find_room()
        except PluginError:
            room = None
        if room is None:
            return base
        text = describe_room(self.group, self.members, base.running, room)
        return msgspec.structs.replace(base, room=room, arithmetic=text)

    def _find_room(self) -> GangRoom | None:
        engine, group, members = self.engine, self.group, self.members
        nodes, needed = engine.cluster.nodes, max(0, group.min_count - self.base.running)
        profile = replace(engine.profiles[members[0].spec.scheduler_name], observer=UNOBSERVED)
        domains = topology.find_domains(group, nodes)
        if isinstance(domains, GroupStatus):
            return None
        room = count_room(members, domains, needed, profile, nodes)
        trial = Trial(engine.cluster, profile, UNOBSERVED)
        if room is None:
            return self._try_room(trial, domains, needed)
        if not room.short:
            return room
        try:
            units = find_units(nodes, min(map(group.priority_beside, members)))
            trial.lift_all(pod for unit in units for pod in unit.pods)
            without = count_room(members, domains, needed, profile, nodes) if units else None
        finally:
            trial.roll_back()
        evicted = None if without is None else without.best
        return msgspec.structs.replace(room, by_eviction=evicted)

    def _try_room(self, trial: Trial, domains: Sequence[Domain], needed: int) -> GangRoom:
        """Finds the room for members that affect each other, by placing as many as possible."""
        nodes = self.engine.cluster.nodes
        most = max(1, min(_MOST_TRIED_DOMAINS, _MOST_TRIED_MEMBERS // len(self.members)))
        largest = sorted(domains, key=lambda each: -count_nodes(each, nodes))[:most]
        rooms = [
            DomainRoom(each.name, count_nodes(each, nodes), self._try_domain(trial, each))
            for each in largest
        ]
        rooms.sort(key=lambda each: -each.room)
        anywhere = self._try_domain(trial, EVERYWHERE) if self.group.topology_key else rooms[0].room
        return GangRoom(needed, tuple(rooms), anywhere, is_counted=False)

    def _try_domain(self, trial: Trial, domain: Domain) -> int:
        one = msgspec.structs.replace(self.group, min_count=1)
        cycle = GroupCycle(one, self.members, trial, self.engine.decide_member)
        mark = trial.mark()
        count = len(cycle.try_domain(domain).placed)
        trial.roll_back(mark)
        return count
