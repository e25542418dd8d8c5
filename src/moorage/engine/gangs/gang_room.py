"""Counts how many members of a gang find room, and describes to people what it lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Nodes
from moorage.framework.edits import AddToleration
from moorage.framework.profile import Profile
from moorage.framework.status import PluginError
from moorage.objects.placement_rules import CORDONED
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.objects.resources import Amounts, format_amount

from . import topology
from .domain_counts import are_alike, is_countable
from .group_decision import GroupDecision
from .group_result import Domain, GroupStatus
from .member_fits import count_fits

Fits = NDArray[np.int64]


class DomainRoom(msgspec.Struct, frozen=True, rename="camel"):
    """A domain and how many members it takes."""

    name: str
    nodes: int
    room: int


class GangRoom(msgspec.Struct, frozen=True, rename="camel"):
    """How many members find room now, and how many would with some help."""

    #: How many more members must find a node.
    needed: int
    #: The domains in one of which all must go, the roomiest first; one without a name if anywhere.
    domains: tuple[DomainRoom, ...]
    #: How many members find room if domains do not matter.
    anywhere: int
    #: Whether this was counted. Else members were tried, and those that wait are the most it tells.
    is_counted: bool = True
    #: How many cordoned nodes of the roomiest domain would take members, and how many of them.
    cordoned_nodes: int = 0
    cordoned_room: int = 0
    #: The domain that is roomiest without all pods of lower priority; None if that is not known.
    by_eviction: DomainRoom | None = None

    @property
    def best(self) -> DomainRoom:
        return self.domains[0]

    @property
    def short(self) -> int:
        """How many members are left over in the roomiest domain."""
        return max(0, self.needed - self.best.room)

    def spread(self) -> tuple[str, ...]:
        """Returns the fewest domains that take the gang together; none if all of them do not."""
        names: list[str] = []
        left = self.needed
        for domain in self.domains:
            if left <= 0:
                break
            names.append(domain.name)
            left -= domain.room
        return tuple(names) if left <= 0 else ()


def count_room(
    members: Sequence[Pod], domains: Sequence[Domain], needed: int, profile: Profile, nodes: Nodes
) -> GangRoom | None:
    """Counts the room for like members that depend on resources only; None for others."""
    pod = members[0]
    if not are_alike(members, profile, nodes) or not is_countable(pod, profile, nodes):
        return None
    fits = count_fits(pod, profile, nodes)
    if fits is None:
        return None
    rooms = [(_sum(fits, domain), domain) for domain in domains]
    rooms.sort(key=lambda each: -each[0])
    cordoned = _count_cordoned(pod, rooms[0][1], profile, nodes)
    return GangRoom(
        needed,
        tuple(DomainRoom(each.name, count_nodes(each, nodes), room) for room, each in rooms),
        int(fits.sum()),
        cordoned_nodes=int(np.count_nonzero(cordoned)),
        cordoned_room=int(cordoned.sum()),
    )


def count_nodes(domain: Domain, nodes: Nodes) -> int:
    return len(nodes) if domain.rows is None else len(domain.rows)


def _sum(fits: Fits, domain: Domain) -> int:
    return int(fits.sum() if domain.rows is None else fits[domain.rows].sum())


def _count_cordoned(pod: Pod, domain: Domain, profile: Profile, nodes: Nodes) -> Fits:
    """Returns how many members each cordoned row of a domain would take if it were uncordoned."""
    rows = nodes.rows if domain.rows is None else domain.rows
    rows = rows[nodes.unschedulable[rows]]
    if not len(rows):
        return np.zeros(0, np.int64)
    # To have the taint tolerated means the same as not to have it.
    fits = count_fits(AddToleration.of(CORDONED).apply(pod), profile, nodes)
    return np.zeros(0, np.int64) if fits is None else fits[rows]


# So many names are written in a text.
_MOST_NAMES = 4


def diagnose(decision: GroupDecision) -> str | None:
    """Returns how many members of a refused gang find room, and where; None if not counted.

    It is counted for like members that depend on resources only.
    """
    if decision.status.code != "Unschedulable" or not decision.group.is_gang:
        return None
    group, members = decision.group, decision.members
    nodes, profile = decision.trial.cluster.nodes, decision.trial.profile
    domains = topology.find_domains(group, nodes)
    if isinstance(domains, GroupStatus):
        return None
    running = len(nodes.groups.placed(group.group_key))
    try:
        room = count_room(members, domains, group.min_count - running, profile, nodes)
    except PluginError:
        return None
    return None if room is None else describe_room(group, members, running, room)


def describe_room(group: PodGroup, members: Sequence[Pod], running: int, room: GangRoom) -> str:
    """Describes the arithmetic of a gang: what it requests, where that is, and what is missing."""
    asked = ", ".join(describe_requests(members))
    text = f"{asked}: {len(members)} wait, {running} have a node, minCount is {group.min_count}. "
    return text + " ".join(_describe_domains(group.topology_key, room))


def describe_requests(members: Sequence[Pod]) -> list[str]:
    """Describes the requests of members: a text for each different one, the most frequent first."""
    kinds = Counter(pod.requests for pod in members)
    return [f"{count} x {_describe_amounts(requests)}" for requests, count in kinds.most_common()]


def _describe_amounts(requests: Amounts) -> str:
    amounts = [f"{format_amount(name, amount)} {name}" for name, amount in requests]
    if not amounts:
        return "nothing"
    return amounts[0] if len(amounts) == 1 else f"({', '.join(amounts)})"


def _describe_domains(key: str, room: GangRoom) -> Iterator[str]:
    if key:
        text = f"In one {key}: best is {room.best.name} with room for {room.best.room}"
        yield text + _describe_rest(room, " there") + "."
        together = room.spread()
        if room.short and together:
            names = ", ".join(together[:_MOST_NAMES])
            more = f" and {len(together) - _MOST_NAMES} more" * (len(together) > _MOST_NAMES)
            yield f"It fits over {len(together)} of them: {names}{more}."
    most = "" if room.is_counted else "at least "
    text = f"Anywhere: room for {most}{room.anywhere}"
    short = room.needed - room.anywhere
    if key:
        yield text + (f", {short} short." if short > 0 else ".")
    else:
        yield text + _describe_rest(room, "") + "."


def _describe_rest(room: GangRoom, where: str) -> str:
    """Describes how many members are left over in the best domain, and what is in the way."""
    text = f", {room.short} short" if room.short else ""
    if room.short and room.cordoned_room:
        nodes = "cordoned node" + "s" * (room.cordoned_nodes != 1)
        text += f"; {room.cordoned_nodes} {nodes}{where} would add {room.cordoned_room}"
    evicted = room.by_eviction
    if room.short and evicted is not None and evicted.room > room.best.room:
        who = f"{evicted.name} has" if evicted.name else "there is"
        text += f"; without pods of lower priority {who} room for {evicted.room}"
    return text
