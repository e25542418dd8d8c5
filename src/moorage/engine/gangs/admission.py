"""Whether a group may be queued: enough of its members must exist."""

from __future__ import annotations

from moorage.cluster.pod_groups import KnownGroups
from moorage.framework.status import Rejected, unresolvable
from moorage.objects.pod import Pod
from moorage.objects.pod_group import GroupKey

#: Under which name a group is held back, as in kube-scheduler.
GANG_SCHEDULING = "GangScheduling"

_TOO_FEW = unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")


def hold_member(pod: Pod, groups: KnownGroups) -> Rejected | None:
    """Returns why a member of a group must not be tried yet; None if it may or has no group."""
    key = groups.key_of(pod)
    return None if key is None else hold_group(key, groups)


def hold_group(key: GroupKey, groups: KnownGroups) -> Rejected | None:
    """Returns why no member of a group must be tried yet; None if they may."""
    group = groups.get(key)
    if group is None:
        name = key[1].partition("/")[2]
        return unresolvable(f'waiting for pods\'s pod group "{name}" to appear in scheduling queue')
    if group.is_gang and groups.count(key) < group.min_count:
        return _TOO_FEW
    return None
