"""Remedies for a pod that fits nowhere: the post-filters are asked."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from moorage.cluster import Nodes
from moorage.framework.attempt import Failed
from moorage.framework.calls import ask_post_filter
from moorage.framework.device_writes import ClaimRelease
from moorage.framework.observe import (
    ERROR,
    POST_FILTER,
    SUCCESS,
    PointTimer,
    make_caller,
)
from moorage.framework.plugin import UNSIGNABLE, NoRemedy, Remedy, Sign
from moorage.framework.profile import Profile
from moorage.framework.signing import sign_to_share
from moorage.framework.status import Code, PluginError
from moorage.objects.pod import Pod


class RemedyResult(msgspec.Struct, frozen=True):
    """The answers of the post-filters.

    A nomination of None is left alone, an empty one is ended.
    """

    text: str
    nominate: str | None = None
    remedy: Remedy | None = None
    status: str = Code.UNSCHEDULABLE.value
    #: The plugin that found the remedy.
    plugin: str = ""
    #: Whether some post-filter stopped before its end.
    partial: bool = False
    #: Claims that give their devices back.
    releases: tuple[ClaimRelease, ...] = ()

    @property
    def is_final(self) -> bool:
        """Whether nothing can be done for the pod, as things are."""
        is_known = self.status != ERROR and not self.partial
        return self.remedy is None and is_known and not self.releases


def sign_for_remedy(profile: Profile, pod: Pod, nodes: Nodes) -> Hashable | None:
    """Returns what the post-filters read of a pod; None if any of them does not say."""
    parts = []
    for plugin in profile.post_filter:
        if not isinstance(plugin, Sign):
            return None
        part = sign_to_share(plugin, pod, nodes)
        if part is UNSIGNABLE:
            return None
        parts.append(part)
    return tuple(parts)


def seek_remedy(profile: Profile, pod: Pod, failed: Failed, nodes: Nodes) -> RemedyResult:
    """Returns the first remedy that a post-filter finds, or the answers of all."""
    with PointTimer(profile.observer, POST_FILTER, profile.name) as running:
        remedied = _seek_remedy(profile, pod, failed, nodes)
        running.status = remedied.status
    return remedied


def _seek_remedy(profile: Profile, pod: Pod, failed: Failed, nodes: Nodes) -> RemedyResult:
    ask = make_caller(profile.observer, POST_FILTER)
    search = RemedySearch(profile)
    for plugin in profile.post_filter:
        try:
            answer = ask_post_filter(plugin, ask, pod, failed, nodes, profile)
        except PluginError as error:
            return RemedyResult(str(error), status=ERROR)
        remedied = search.take(plugin.name, answer)
        if remedied is not None:
            return remedied
    return search.give_up()


class RemedySearch:
    """The answers of the post-filters so far."""

    def __init__(self, profile: Profile) -> None:
        self._texts: list[str] = []
        # Where nobody can find a remedy, a nomination is of no use any more.
        self._nominate: str | None = None if profile.post_filter else ""
        self._partial = False
        self._releases: tuple[ClaimRelease, ...] = ()

    def take(self, plugin: str, answer: Remedy | NoRemedy) -> RemedyResult | None:
        """Takes in an answer; returns the end of the search if this is it."""
        if isinstance(answer, Remedy):
            return RemedyResult(
                answer.text, answer.node_name, answer, SUCCESS, plugin, releases=self._releases
            )
        if answer.release is not None:
            self._releases = (*self._releases, answer.release)
        clears = "" if answer.clears_nomination else None
        if answer.code is not Code.UNSCHEDULABLE:
            return RemedyResult(", ".join(answer.reasons), clears, status=answer.code.value)
        self._texts.extend(answer.reasons)
        self._nominate = self._nominate if clears is None else clears
        self._partial = self._partial or answer.partial
        return None

    def give_up(self) -> RemedyResult:
        """Returns the result if no post-filter found a remedy."""
        return RemedyResult(
            ", ".join(self._texts),
            self._nominate,
            partial=self._partial,
            releases=self._releases,
        )
