"""Pods that wait for an event, grouped by equal answers of hints and filed by topic."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from heapq import heappop, heappush
from math import floor, inf
from typing import Any

from moorage.framework.plugin_fence import STOPPED
from moorage.framework.wakeups import Wakeup
from moorage.objects.pod import Pod

from .companions import Companions, Kind, LikePods, TopicFile
from .queue_events import Listeners, QueueEvent
from .queued_pod import GATED, UNSCHEDULABLE, QueuedPod

#: How often pods are looked for that have waited too long, in seconds.
SWEEP_SECONDS = 30


class _PluginFile:
    """The pods that one plugin of a profile keeps waiting."""

    __slots__ = ("_topical", "_topics", "alone", "together")

    def __init__(self, registered: Iterable[Wakeup]) -> None:
        """`registered` are the registrations of the plugin."""
        #: Those that are not known to fail where others do.
        self.alone: dict[LikePods, None] = {}
        self.together: dict[Companions, None] = {}
        #: By the identity of a registration that has topics for pods.
        self._topics: dict[int, TopicFile] = {}
        #: The functions that name topics of a pod, each with its files: registrations for several
        #: events often have the same.
        self._topical: dict[Callable[[Pod], Iterable[Hashable] | None], list[TopicFile]] = {}
        for wakeup in registered:
            of_pod = None if wakeup.topics is None else wakeup.topics.of_pod
            if of_pod is not None:
                file = self._topics[id(wakeup)] = {}
                self._topical.setdefault(of_pod, []).append(file)

    def add(self, pods: LikePods, queued: QueuedPod) -> None:
        companions = pods.companions
        if companions is None:
            self.alone[pods] = None
            pods.files.append(self.alone)
        elif companions not in self.together:
            self.together[companions] = None
            companions.files.append(self.together)
        for of_pod, files in self._topical.items():
            answer = None if queued.is_costly else _ask(of_pod, queued.pod)
            for topic in (None,) if answer is None else answer:
                for file in files:
                    file.setdefault(topic, {})[pods] = None
                    pods.topics.append((file, topic))

    def holds(self, pods: LikePods) -> bool:
        """Whether the plugin keeps these pods waiting."""
        if pods.companions is None:
            return pods in self.alone
        return pods.companions in self.together

    def find(self, wakeup: Wakeup, old: Any, new: Any, found: _Found) -> None:
        """Adds the pods that the event may concern."""
        topics = None if wakeup.topics is None else _ask(wakeup.topics.of_event, old, new)
        # Where pods have no topics, any topic of the event concerns them all.
        file = None if topics is None else self._topics.get(id(wakeup))
        if topics is None or (topics and file is None):
            found.alone.update(self.alone)
            found.together.update(self.together)
        elif file is not None:
            for topic in (None, *topics) if topics else ():
                if topic in file:
                    found.alone.update(file[topic])


class _Found:
    """Pods that an event may concern."""

    __slots__ = ("alone", "together")

    def __init__(self) -> None:
        self.alone: dict[LikePods, None] = {}
        self.together: dict[Companions, None] = {}

    def list(self) -> list[LikePods | Companions]:
        """Returns all of them, each once."""
        together = self.together
        if not together:
            return [*self.alone]
        return [*together, *(each for each in self.alone if each.companions not in together)]


class UnschedulablePods:
    """Unschedulable and gated pods; a gated pod is filed only under the plugin that holds it."""

    __slots__ = (
        "_companions",
        "_files",
        "_like",
        "_listeners",
        "_moments",
        "_swept",
        "filed",
        "gated",
        "patience",
    )

    def __init__(self, patience: float, listeners: Listeners) -> None:
        #: How long pods that nothing wakes wait before they are tried all the same.
        self.patience = patience
        self._listeners = listeners
        self._like: dict[Kind, LikePods] = {}
        self._companions: dict[Hashable, Companions] = {}
        #: By profile and plugin.
        self._files: dict[str, dict[str, _PluginFile]] = {}
        #: Where each pod is filed, by uid: its verdicts may change before it is taken out.
        self.filed: dict[str, LikePods] = {}
        #: The pods by the moment at which they have waited too long, and a heap of these moments.
        self._swept: dict[float, dict[str, QueuedPod]] = {}
        self._moments: list[float] = []
        #: The uids of gated pods.
        self.gated: set[str] = set()

    def __len__(self) -> int:
        return len(self.filed)

    def __contains__(self, uid: str) -> bool:
        return uid in self.filed

    def __iter__(self) -> Iterator[QueuedPod]:
        return (queued for pods in self._like.values() for queued in pods)

    def add(self, queued: QueuedPod) -> None:
        """Files a pod that is not here."""
        uid = queued.pod.uid
        if queued.place is GATED:
            self.gated.add(uid)
        kind = self._kind(queued)
        pods = self._like.get(kind)
        if pods is None:
            pods = self._file(kind, queued)
        self.filed[uid] = pods
        pods.push(queued)
        moment = queued.swept_at = self._swept_at(queued)
        swept = self._swept.get(moment)
        if swept is None:
            swept = self._swept[moment] = {}
            heappush(self._moments, moment)
        swept[uid] = queued

    def remove(self, uid: str) -> None:
        """Takes out a pod that is here."""
        pods = self.filed.pop(uid)
        queued = pods.remove(uid)
        if not pods:
            self._unfile(pods)
        del self._swept[queued.swept_at][uid]
        self.gated.discard(uid)

    def _file(self, kind: Kind, queued: QueuedPod) -> LikePods:
        companions = None
        if queued.alike is not None and queued.place is UNSCHEDULABLE:
            key = _find_key(kind, queued)
            companions = self._companions.get(key)
            if companions is None:
                companions = self._companions[key] = Companions(key)
        pods = self._like[kind] = LikePods(kind, companions)
        if companions is not None:
            companions.members[pods] = None
        profile = queued.pod.spec.scheduler_name
        files = self._files.setdefault(profile, {})
        for plugin in _plugins(queued):
            file = files.get(plugin)
            if file is None:
                file = files[plugin] = _PluginFile(self._listeners.registered(profile, plugin))
            file.add(pods, queued)
        return pods

    def _unfile(self, pods: LikePods) -> None:
        del self._like[pods.kind]
        for file in pods.files:
            del file[pods]
        companions = pods.companions
        if companions is not None:
            del companions.members[pods]
            if not companions.members:
                self._drop_companions(companions)
        for topics, topic in pods.topics:
            filed = topics[topic]
            del filed[pods]
            if not filed:
                del topics[topic]

    def _drop_companions(self, companions: Companions) -> None:
        del self._companions[companions.key]
        for file in companions.files:
            del file[companions]

    def is_filed_as(self, queued: QueuedPod) -> bool:
        """Whether a pod is filed where its present state belongs."""
        return self.filed[queued.pod.uid].kind == self._kind(queued)

    def companions(self, uid: str) -> Companions | None:
        """Returns the pods that fail where this one does; None if it is not here or not known."""
        pods = self.filed.get(uid)
        return None if pods is None else pods.companions

    def find(self, queue_event: QueueEvent) -> list[LikePods | Companions]:
        """Returns the pods that the event may concern, as far as topics tell."""
        found = _Found()
        old, new = queue_event.old, queue_event.new
        for profile, plugins in queue_event.heard.items():
            files = self._files.get(profile)
            if files is None:
                continue
            for plugin, wakeups in plugins.items():
                file = files.get(plugin)
                if file is not None and (file.alone or file.together):
                    for wakeup in wakeups:
                        file.find(wakeup, old, new, found)
        for each in (old, new):
            if isinstance(each, Pod) and each.uid in self.filed:
                # An event about the pod itself may help it, whatever the topics are.
                found.alone[self.filed[each.uid]] = None
        return found.list()

    def everybody(self) -> list[LikePods | Companions]:
        """Returns all pods."""
        return list(self._like.values())

    def overdue(self, now: float) -> list[QueuedPod]:
        """Returns the pods that have waited too long, in the order of their moments."""
        late = [moment for moment in self._swept if moment <= now]
        return [
            queued
            for moment in sorted(late)
            for queued in sorted(self._swept[moment].values(), key=_find_arrival)
        ]

    def next_sweep(self) -> float:
        """Returns when the next pod has waited too long; infinity if none waits."""
        moments, swept = self._moments, self._swept
        while moments and not swept[moments[0]]:
            del swept[heappop(moments)]
        return moments[0] if moments else inf

    def check(self) -> None:
        """Raises AssertionError unless each pod is filed under the plugins that can wake it."""
        for queued in self:
            uid = queued.pod.uid
            profile, wanted = queued.pod.spec.scheduler_name, set(_plugins(queued))
            pods = self.filed[uid]
            files = self._files[profile] if wanted else {}
            found = {plugin for plugin, file in files.items() if file.holds(pods)}
            assert found == wanted, f"{uid} is filed under {found}, not {wanted}"
            assert pods is self._like[pods.kind], f"{uid} is filed where nobody looks"
            assert self.is_filed_as(queued), f"{uid} is among pods that it is not like"
            assert uid in self._swept[queued.swept_at], f"{uid} may wait for ever"
            assert uid in pods, f"{uid} is not among those that it is like"
            companions = pods.companions
            assert companions is None or uid in companions, f"{uid} is not among its companions"
        held = sum(map(len, self._like.values()))
        assert held == len(self), f"{held} pods in groups, but {len(self)} are unschedulable"
        swept = sum(map(len, self._swept.values()))
        assert swept == len(self), f"{swept} pods have a limit, but {len(self)} are unschedulable"
        moments = sorted(self._moments)
        assert moments == sorted(self._swept), "the moments are not those of the pods"

    def _kind(self, queued: QueuedPod) -> Kind:
        pod = queued.pod
        gated_by = queued.gated_by if queued.place is GATED else ""
        return (
            # Templates differ by identity: while like pods are filed, they keep it alive.
            id(pod.spec),
            pod.namespace,
            tuple(pod.labels.items()),
            queued.rejectors,
            queued.pending,
            queued.alike,
            gated_by,
            self._listeners.read(queued),
        )

    def _swept_at(self, queued: QueuedPod) -> float:
        end = max(queued.timestamp, queued.flushed) + self.patience
        return float((floor(end / SWEEP_SECONDS) + 1) * SWEEP_SECONDS)


def _find_key(kind: Kind, queued: QueuedPod) -> Hashable:
    """Returns the value that companions share."""
    if queued.alike is None or not queued.alike.spans_templates:
        return kind
    return queued.pod.spec.scheduler_name, queued.rejectors, queued.pending, queued.alike


def _plugins(queued: QueuedPod) -> Iterable[str]:
    """Returns the plugins whose events can wake the pod."""
    return (queued.gated_by,) if queued.place is GATED else queued.waking_plugins


def _find_arrival(queued: QueuedPod) -> int:
    return queued.arrival


def _ask(topics: Any, *args: Any) -> tuple[Hashable, ...] | None:
    """Returns the topics that a plugin names, each once; all topics if it fails."""
    try:
        answer = topics(*args)
        return None if answer is None else tuple(dict.fromkeys(answer))
    except STOPPED:  # then the hint is asked, which reports what is wrong
        return None
