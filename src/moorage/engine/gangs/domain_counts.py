"""How many like members each domain takes, counted in one pass instead of tried one by one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Nodes
from moorage.engine.concerned import find_concerned
from moorage.framework.calls import ask_reserves_for, ask_watch
from moorage.framework.gang_points import find_room_counter
from moorage.framework.nominated import sees_only_counts
from moorage.framework.plugin import UNSIGNABLE, Sign
from moorage.framework.points import pre_filter
from moorage.framework.profile import Profile, once_per_profile
from moorage.framework.signing import SignedTemplate, SignedTemplates, SigningFailed
from moorage.objects.per_template import once_per_template_for
from moorage.objects.pod import Pod

from .group_result import Domain
from .key_domains import has_all, sum_domains
from .member_fits import Look, count_fits, sum_fits


def count_members(
    members: Sequence[Pod],
    domains: Sequence[Domain],
    profile: Profile,
    nodes: Nodes,
    key: str = "",
    look: Look | None = None,
) -> NDArray[np.int64] | None:
    """Returns how many of the members each domain takes; None if only trying can tell.

    The key is that of the domains.
    """
    pod = members[0]
    if not are_alike(members, profile, nodes) or not is_countable(pod, profile, nodes):
        return None
    sums = None
    if look is not None and has_all(domains, key, nodes):
        sums = sum_fits(pod, profile, nodes, key, look)
    if sums is None:
        fits = count_fits(pod, profile, nodes)
        if fits is None:
            return None
        sums = sum_domains(fits, domains, nodes, key)
    return np.minimum(sums, len(members))


def are_alike(members: Sequence[Pod], profile: Profile, nodes: Nodes) -> bool:
    """Whether any node answers all members alike."""
    return _are_bare(members, profile, nodes) or len(group_alike(members, profile, nodes)) == 1


def _are_bare(members: Sequence[Pod], profile: Profile, nodes: Nodes) -> bool:
    """Whether members have nothing but their template, so that nothing tells them apart."""
    spec = members[0].spec
    for pod in members:
        if pod.spec is not spec or pod.labels or pod.annotations:
            return False
    signed = _sign(members[0], profile, nodes)
    return signed is not None and not signed.again


def group_alike(members: Sequence[Pod], profile: Profile, nodes: Nodes) -> list[list[Pod]]:
    """Groups members by the answers of nodes, ignoring labels that no filter reads."""
    groups: dict[Hashable, list[Pod]] = {}
    for pod in members:
        parts = _sign_all(pod, profile, nodes)
        key = pod.uid if parts is None else (id(pod.spec), pod.priority, *parts)
        groups.setdefault(key, []).append(pod)
    return list(groups.values())


def _sign_all(pod: Pod, profile: Profile, nodes: Nodes) -> list[Hashable] | None:
    """Returns what the filters sign of a pod; None if they cannot."""
    templates, signed = _find_templates(profile), _sign(pod, profile, nodes)
    if templates is None or signed is None:
        return None
    try:
        parts = [*signed.parts, *templates.sign_again(signed, pod, nodes)]
    except SigningFailed:
        return None
    return None if UNSIGNABLE in parts else parts


def _sign(pod: Pod, profile: Profile, nodes: Nodes) -> SignedTemplate | None:
    """Returns what the filters sign of pods like this one; None if they cannot."""
    templates = _find_templates(profile)
    try:
        return None if templates is None else templates.find(pod, nodes)
    except SigningFailed:
        return None


@once_per_profile
def _find_templates(profile: Profile) -> SignedTemplates | None:
    """Returns what signs pods for the filters; None if one of them does not sign."""
    signing = [plugin for plugin in profile.filter if isinstance(plugin, Sign)]
    return SignedTemplates(signing) if len(signing) == len(profile.filter) else None


def is_countable(pod: Pod, profile: Profile, nodes: Nodes) -> bool:
    """Whether a pod takes of a node only what can be counted, and no pod is nominated."""
    reserve = find_concerned(pod, profile).reserve
    return _is_template_countable(pod, profile) and not (
        nodes.nominations
        or _counts_against_itself(pod, profile, nodes)
        or (pod.status.sizes and pod.held.requests != pod.requests)
        or (reserve and any(ask_reserves_for(profile.reserve[at], pod, nodes) for at in reserve))
    )


def _counts_against_itself(pod: Pod, profile: Profile, nodes: Nodes) -> bool:
    """Whether a filter watches what such a pod counts for, so that one may keep others off."""
    return any(
        ledger.kinds & ask_watch(plugin, pod, nodes) and ledger.entries(pod)
        for plugin in profile.filter
        for ledger in plugin.ledgers
    )


@once_per_template_for(attrgetter("number"))
def _is_template_countable(pod: Pod, profile: Profile) -> bool:
    """Whether pods of a template ask of a node only for what can be counted."""
    spec = pod.spec
    return not (
        spec.host_ports
        or spec.volumes
        or spec.resource_claims
        or spec.held.requests != spec.requests
        or profile.percentage_of_nodes_to_score
        or _asks_for_ignored(pod, profile)
    )


def _asks_for_ignored(pod: Pod, profile: Profile) -> bool:
    """Whether a pod requests a resource that may be given away more than once."""
    counter = find_room_counter(profile)
    return counter is not None and any(counter.ignores(name) for name, _ in pod.requests)


def sees_counts(pod: Pod, profile: Profile, nodes: Nodes) -> bool:
    """Whether a pod takes and reads only what is counted of nodes."""
    prepared = pre_filter(profile, pod, nodes)
    return (
        prepared.rejected is None
        and is_countable(pod, profile, nodes)
        and sees_only_counts(profile, pod, prepared, nodes)
    )
