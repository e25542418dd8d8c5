"""Counts what a refused gang lacks, for people, besides kube-scheduler's message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from moorage.framework.status import PluginError
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.objects.resources import Amounts, format_amount

from . import topology
from .gang_room import GangRoom, count_room
from .group_decision import GroupDecision
from .group_result import GroupCode, GroupStatus

# So many names are written in a text.
_MOST_NAMES = 4


def diagnose(decision: GroupDecision) -> str | None:
    """Returns how many members of a refused gang find room, and where; None if not counted.

    It is counted for like members that depend on resources only.
    """
    if decision.status.code is not GroupCode.UNSCHEDULABLE or not decision.group.is_gang:
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
