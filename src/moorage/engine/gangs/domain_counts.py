"""How many like members each domain takes, counted in one pass instead of tried one by one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import reduce
from operator import attrgetter, or_
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Nodes
from moorage.engine.concerned import find_concerned
from moorage.framework.calls import ask_reserves_for, ask_skips, ask_to_share
from moorage.framework.gang_points import find_room_counter
from moorage.framework.nominated import sees_only_counts
from moorage.framework.plugin import TEMPLATE, UNSIGNABLE, Sign, SignedParts
from moorage.framework.points import pre_filter
from moorage.framework.profile import Profile, once_per_profile
from moorage.objects.coexist import is_exclusive
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
    return _are_bare(members, profile) or len(group_alike(members, profile, nodes)) == 1


def _are_bare(members: Sequence[Pod], profile: Profile) -> bool:
    """Whether members have nothing but their template, so that nothing tells them apart."""
    spec = members[0].spec
    for pod in members:
        if pod.spec is not spec or pod.labels or pod.annotations:
            return False
    return _judge_template(members[0], profile).tells_all


def group_alike(members: Sequence[Pod], profile: Profile, nodes: Nodes) -> list[list[Pod]]:
    """Groups members by the answers of nodes, ignoring labels that no filter reads."""
    parts = _signed_parts(profile)
    if parts is None:
        return [[pod] for pod in members]
    keys = sorted(parts.annotations)
    asked: dict[int, list[Sign]] = {}
    groups: dict[Hashable, list[Pod]] = {}
    for pod in members:
        held = pod.annotations
        labels = tuple(pod.labels.items()) if parts.any_label else nodes.labels_that_matter(pod)
        texts = tuple(held.get(key) for key in keys) if held else ()
        template = id(pod.spec)
        if template not in asked:
            asked[template] = [each for each in _find_asked(profile) if not ask_skips(each, pod)]
        signed = [ask_to_share(plugin, pod, nodes) for plugin in asked[template]]
        alone = pod.uid if UNSIGNABLE in signed else ""
        key = (template, pod.priority, labels, texts, alone, *signed)
        groups.setdefault(key, []).append(pod)
    return list(groups.values())


@once_per_profile
def _signed_parts(profile: Profile) -> SignedParts | None:
    """Returns what filters read of a pod besides its template; None if one does not say."""
    if not all(isinstance(plugin, Sign) for plugin in profile.filter):
        return None
    signs = [plugin.signs for plugin in profile.filter if isinstance(plugin, Sign)]
    parts = [each for each in signs if each is not None]
    return reduce(or_, parts, TEMPLATE)


@once_per_profile
def _find_asked(profile: Profile) -> tuple[Sign, ...]:
    """Returns the filters that read more of a pod than they name, and so sign each member."""
    signing = (each for each in profile.filter if isinstance(each, Sign))
    return tuple(each for each in signing if each.signs is None)


def is_countable(pod: Pod, profile: Profile, nodes: Nodes) -> bool:
    """Whether a pod takes of a node only what can be counted, and no pod is nominated."""
    reserve = find_concerned(pod, profile).reserve
    return _judge_template(pod, profile).is_countable and not (
        nodes.nominations
        or is_exclusive(pod)
        or (pod.status.sizes and pod.held.requests != pod.requests)
        or (reserve and any(ask_reserves_for(profile.reserve[at], pod, nodes) for at in reserve))
    )


class _TemplateFacts(NamedTuple):
    """What a profile finds out about the pods of a template."""

    #: Whether filters read nothing else of a pod without labels and annotations.
    tells_all: bool
    #: Whether such pods ask of a node only for what can be counted.
    is_countable: bool


@once_per_template_for(attrgetter("number"))
def _judge_template(pod: Pod, profile: Profile) -> _TemplateFacts:
    """Returns what a profile finds out about a pod's template; computed once for all gangs."""
    spec = pod.spec
    return _TemplateFacts(
        _signed_parts(profile) is not None
        and all(ask_skips(each, pod) for each in _find_asked(profile)),
        not (
            spec.host_ports
            or spec.volumes
            or spec.resource_claims
            or spec.held.requests != spec.requests
            or profile.percentage_of_nodes_to_score
            or _asks_for_ignored(pod, profile)
        ),
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
