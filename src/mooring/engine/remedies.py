"""Asking the post-filters what could be done for a pod that fits nowhere."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.cluster import Nodes
from mooring.framework.attempt import Failed
from mooring.framework.calls import ask_post_filter
from mooring.framework.observe import ERROR, POST_FILTER, SUCCESS, PointTimer, make_caller
from mooring.framework.plugin import NoRemedy, Remedy
from mooring.framework.profile import Profile
from mooring.framework.status import Code, PluginError
from mooring.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class Remedied:
    """What the post-filters said. A nomination of None is left alone, an empty one is ended."""

    text: str
    nominate: str | None = None
    remedy: Remedy | None = None
    status: str = Code.UNSCHEDULABLE.value


def seek_remedy(profile: Profile, pod: Pod, failed: Failed, nodes: Nodes) -> Remedied:
    """The first remedy that a post-filter finds, or what they all have to say."""
    with PointTimer(profile.observer, POST_FILTER, profile.name) as running:
        remedied = _seek_remedy(profile, pod, failed, nodes)
        running.status = remedied.status
    return remedied


def _seek_remedy(profile: Profile, pod: Pod, failed: Failed, nodes: Nodes) -> Remedied:
    ask = make_caller(profile.observer, POST_FILTER)
    texts: list[str] = []
    nominate: str | None = None
    for plugin in profile.post_filter:
        try:
            answer = ask_post_filter(plugin, ask, pod, failed, nodes, profile)
        except PluginError as error:
            return Remedied(str(error), status=ERROR)
        match answer:
            case Remedy(node_name):
                return Remedied("", node_name, answer, SUCCESS)
            case NoRemedy(Code.UNSCHEDULABLE, reasons, clears):
                texts.extend(reasons)
                nominate = "" if clears else nominate
            case NoRemedy(code, reasons, clears):
                return Remedied(", ".join(reasons), "" if clears else None, status=code.value)
    return Remedied(", ".join(texts), nominate)
