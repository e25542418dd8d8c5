"""Remedies for a pod that fits nowhere: post-filters are asked, and victims are evicted."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import msgspec

from moorage.cluster import Nodes
from moorage.framework.attempt import Failed
from moorage.framework.calls import ask_post_filter, ask_sign
from moorage.framework.device_writes import ClaimRelease
from moorage.framework.observe import (
    ERROR,
    POD,
    POST_FILTER,
    SUCCESS,
    UNOBSERVED,
    Observer,
    PointTimer,
    make_caller,
)
from moorage.framework.plugin import UNSIGNABLE, NoRemedy, Remedy, Sign
from moorage.framework.profile import Profile
from moorage.framework.status import Code, PluginError, Rejected, unresolvable
from moorage.objects.pod import Pod
from moorage.queue import Place, Queue

from . import actions
from .actions import Action, EvictPod, PodRef, RecordEvent

_IN_PROGRESS = unresolvable("waiting for the preemption for this pod to be finished")


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
        try:
            part = ask_sign(plugin, pod, nodes)
        except PluginError:
            return None
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


class PodEvictions(msgspec.Struct, frozen=True):
    """The victims of one pod that are still to be evicted."""

    #: The plugin that found them.
    plugin: str
    #: The event to record for each victim once it is evicted, by uid.
    events: dict[str, RecordEvent]
    #: When they were asked for.
    since: float = 0.0


class Evictions:
    """The preemptions under way, by the uid of the pod that needs the room.

    Such a pod waits until all evictions were requested.
    """

    def __init__(
        self, queue: Queue, emit: Callable[[Action], None], observer: Observer = UNOBSERVED
    ) -> None:
        self._queue = queue
        self._emit = emit
        self._observer = observer
        self._preemptions: dict[str, PodEvictions] = {}

    def hold_back(self, uid: str) -> tuple[str, Rejected] | None:
        """Returns why a pod must not be tried yet: its victims are still being evicted."""
        known = self._preemptions.get(uid)
        return None if known is None else (known.plugin, _IN_PROGRESS)

    def begin(
        self,
        preemptor: PodRef,
        victims: Sequence[Pod],
        remedied: RemedyResult,
        profile: Profile,
        now: float,
    ) -> None:
        """Asks for the eviction of victims."""
        message = f"{profile.name}: preempting to accommodate a higher priority pod"
        where = remedied.nominate or "", profile.name
        known = self._preemptions.get(preemptor.uid)
        if known is None:
            known = self._preemptions[preemptor.uid] = PodEvictions(remedied.plugin, {}, now)
        for victim in victims:
            ref = PodRef.to(victim)
            self._emit(EvictPod(ref, preemptor, message))
            known.events[victim.uid] = actions.make_preemption_event(ref, preemptor, *where)

    def evicted(self, victim_uid: str, pod_uid: str, now: float) -> None:
        """Handles the eviction of a victim."""
        known = self._preemptions.get(pod_uid)
        event = known.events.pop(victim_uid, None) if known is not None else None
        if known is None or event is None:
            return
        self._emit(event)
        if not known.events:
            self._finish(pod_uid, "success", now)

    def failed(self, victim_uid: str, pod_uid: str, now: float) -> None:
        """Handles a failed eviction: the pod may look for another way at once."""
        known = self._preemptions.get(pod_uid)
        if known is not None:
            known.events.pop(victim_uid, None)
        if known is None or not known.events:
            self._finish(pod_uid, "error", now)
        queued = self._queue.get(pod_uid)
        if queued is not None:
            self._queue.activate([queued.pod], now)

    def forget(self, pod_uid: str) -> None:
        """Forgets a pod that is gone or placed."""
        self._preemptions.pop(pod_uid, None)

    def _finish(self, pod_uid: str, result: str, now: float) -> None:
        """Lets a pod be tried that has no victims left to wait for."""
        known = self._preemptions.pop(pod_uid, None)
        if known is not None:
            self._observer.victims_left(POD, result, now - known.since)
        queued = self._queue.get(pod_uid)
        if queued is not None and queued.place is Place.GATED:
            # What woke it came while its victims were still being evicted.
            self._queue.activate([queued.pod], now)
