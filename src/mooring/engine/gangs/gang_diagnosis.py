"""What a refused gang lacks, in numbers: for people, beside kube-scheduler's words."""

from __future__ import annotations

from mooring.framework.status import PluginError
from mooring.objects.resources import format_amount

from . import topology
from .domain_counts import count_members
from .group_decision import GroupDecision
from .group_result import Domain, GroupCode, GroupStatus

_EVERYWHERE = Domain("")


def diagnose(decision: GroupDecision) -> str | None:
    """How many members of a refused gang would find room, and where; None if that is not counted.

    It is counted for like members that mind only resources.
    """
    if decision.status.code is not GroupCode.UNSCHEDULABLE or not decision.group.is_gang:
        return None
    group, members = decision.group, decision.members
    nodes, profile = decision.trial.cluster.nodes, decision.trial.profile
    domains = topology.find_domains(group, nodes)
    if isinstance(domains, GroupStatus):
        return None
    try:
        counts = count_members(members, (_EVERYWHERE, *domains), profile, nodes)
    except PluginError:
        return None
    if counts is None:
        return None
    pod, anywhere = members[0], counts[0]
    asked = ", ".join(f"{format_amount(name, amount)} {name}" for name, amount in pod.requests)
    running = len(nodes.groups.placed(group.group_key))
    text = f"{len(members)} pods wait and {running} have a node; minCount is {group.min_count}. "
    text += f"Each asks for {asked or 'no resources'}. "
    if group.topology_key:
        best = max(range(len(domains)), key=lambda at: (counts[at + 1], -at))
        room = counts[best + 1]
        short = group.min_count - running - room
        text += f"In one {group.topology_key}: best is {domains[best].name} with room for {room}"
        text += f", {short} short. " if short > 0 else ". "
    short = group.min_count - running - anywhere
    text += f"Anywhere: room for {anywhere}"
    return text + (f", {short} short." if short > 0 else ".")
