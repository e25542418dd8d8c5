"""Asking the post-filters what could be done for a pod that fits nowhere."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.cluster import Nodes
from mooring.framework.attempt import Failed
from mooring.framework.plugin import NoRemedy, Remedy
from mooring.framework.profile import Profile
from mooring.framework.run import broken
from mooring.framework.status import Code
from mooring.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class Remedied:
    """What the post-filters said. A nomination of None is left alone, an empty one is ended."""

    told: str
    nominate: str | None = None
    remedy: Remedy | None = None


def seek_remedy(profile: Profile, pod: Pod, failed: Failed, nodes: Nodes) -> Remedied:
    """The first remedy that a post-filter finds, or what they all have to say."""
    told: list[str] = []
    nominate: str | None = None
    for plugin in profile.post_filter:
        try:
            answer = plugin.post_filter(pod, failed, nodes, profile)
        except Exception as error:  # noqa: BLE001 - a plugin that breaks fails one pod
            return Remedied(str(broken(f'running PostFilter plugin "{plugin.name}"', error)))
        match answer:
            case Remedy(node_name):
                return Remedied("", node_name, answer)
            case NoRemedy(Code.UNSCHEDULABLE, reasons, clears):
                told.extend(reasons)
                nominate = "" if clears else nominate
            case NoRemedy(_, reasons, clears):
                return Remedied(", ".join(reasons), "" if clears else None)
    return Remedied(", ".join(told), nominate)
