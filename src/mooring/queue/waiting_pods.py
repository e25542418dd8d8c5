"""Pods that wait for an event, grouped by equal answers of hints and filed by topic."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from math import floor
from typing import Any

from mooring.framework.plugin_fence import PASSING
from mooring.framework.wakeups import Wakeup

from .companions import Companions, Kind, LikePods, TopicFile
from .pod_heap import PodHeap
from .queue_events import Listeners, QueueEvent
from .queued_pod import Place, QueuedPod

#: How often pods are looked for that have waited too long, in seconds.
SWEEP_SECONDS = 30

_NOBODY: dict[Kind, LikePods] = {}


class _PluginFile:
    """The pods that one plugin of a profile keeps waiting."""

    __slots__ = ("alone", "together", "topics")

    def __init__(self) -> None:
        #: Those that are not known to fail where others do.
        self.alone: dict[Kind, LikePods] = {}
        self.together: dict[Hashable, Companions] = {}
        #: By the identity of a registration that has topics for pods.
        self.topics: dict[int, TopicFile] = {}

    def add(self, pods: LikePods, queued: QueuedPod, wakeups: Iterable[Wakeup]) -> None:
        if pods.companions is None:
            self.alone[pods.kind] = pods
        else:
            self.together[pods.companions.key] = pods.companions
        # Registrations for several events often read the same topics of a pod.
        asked: dict[int, tuple[Hashable, ...]] = {}
        for wakeup in wakeups:
            if wakeup.topics is None or wakeup.topics.of_pod is None:
                continue
            of_pod = wakeup.topics.of_pod
            topics = asked.get(id(of_pod))
            if topics is None:
                answer = None if queued.is_costly else _ask(of_pod, queued.pod)
                topics = asked[id(of_pod)] = (None,) if answer is None else answer
            file = self.topics.setdefault(id(wakeup), {})
            for topic in topics:
                file.setdefault(topic, {})[pods.kind] = pods
                pods.filed.append((file, topic))

    @property
    def is_empty(self) -> bool:
        return not self.alone and not self.together

    def drop(self, pods: LikePods) -> None:
        """Removes a set of pods that is empty."""
        self.alone.pop(pods.kind, None)
        if pods.companions is not None and not pods.companions.members:
            self.together.pop(pods.companions.key, None)

    def holds(self, pods: LikePods) -> bool:
        """Whether the plugin keeps these pods waiting."""
        if pods.companions is None:
            return pods.kind in self.alone
        return pods.companions.key in self.together

    def find(self, wakeup: Wakeup, old: Any, new: Any, found: _Found) -> None:
        """Adds the pods that the event may concern."""
        topics = None if wakeup.topics is None else _ask(wakeup.topics.of_event, old, new)
        # Where pods have no topics, any topic of the event concerns them all.
        file = None if topics is None else self.topics.get(id(wakeup))
        if topics is None or (topics and file is None):
            found.alone.update(self.alone)
            found.together.update(self.together)
        elif file is not None:
            for topic in (None, *topics) if topics else ():
                found.alone.update(file.get(topic, _NOBODY))


class _Found:
    """Pods that an event may concern."""

    __slots__ = ("alone", "together")

    def __init__(self) -> None:
        self.alone: dict[Kind, LikePods] = {}
        self.together: dict[Hashable, Companions] = {}

    def list(self) -> list[LikePods | Companions]:
        """Returns all of them, each once."""
        together = self.together
        if not together:
            return [*self.alone.values()]
        others = (
            each
            for each in self.alone.values()
            if each.companions is None or each.companions.key not in together
        )
        return [*together.values(), *others]


class UnschedulablePods:
    """Unschedulable and gated pods; a gated pod is filed only under the plugin that holds it."""

    __slots__ = (
        "_companions",
        "_files",
        "_like",
        "_listeners",
        "_sweeps",
        "gated",
        "kinds",
        "patience",
    )

    def __init__(self, patience: float, listeners: Listeners) -> None:
        #: How long pods that nothing wakes wait before they are tried all the same.
        self.patience = patience
        self._listeners = listeners
        self._like: dict[Kind, LikePods] = {}
        self._companions: dict[Hashable, Companions] = {}
        self._files: dict[tuple[str, str], _PluginFile] = {}
        #: Under what each pod is filed, by uid: its verdicts may change before it is taken out.
        self.kinds: dict[str, Kind] = {}
        self._sweeps = PodHeap()
        #: The uids of gated pods.
        self.gated: set[str] = set()

    def __len__(self) -> int:
        return len(self.kinds)

    def __contains__(self, uid: str) -> bool:
        return uid in self.kinds

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._sweeps)

    def add(self, queued: QueuedPod) -> None:
        """Files a pod that is not here."""
        uid = queued.pod.uid
        if queued.place is Place.GATED:
            self.gated.add(uid)
        kind = self.kinds[uid] = self._kind(queued)
        pods = self._like.get(kind)
        if pods is None:
            pods = self._file(kind, queued)
        pods.push(queued)
        self._sweeps.push(queued, self._swept_at(queued))

    def remove(self, uid: str) -> None:
        """Takes out a pod that is here."""
        pods = self._like[self.kinds.pop(uid)]
        pods.remove(uid)
        if not pods:
            self._unfile(pods)
        self._sweeps.remove(uid)
        self.gated.discard(uid)

    def _file(self, kind: Kind, queued: QueuedPod) -> LikePods:
        companions = None
        if queued.alike is not None and queued.place is Place.UNSCHEDULABLE:
            key = _find_key(kind, queued)
            companions = self._companions.get(key)
            if companions is None:
                companions = self._companions[key] = Companions(key)
        pods = self._like[kind] = LikePods(kind, companions)
        if companions is not None:
            companions.members[kind] = pods
        profile = queued.pod.spec.scheduler_name
        for plugin in _plugins(queued):
            file = self._files.setdefault((profile, plugin), _PluginFile())
            file.add(pods, queued, self._listeners.registered(profile, plugin))
        return pods

    def _unfile(self, pods: LikePods) -> None:
        del self._like[pods.kind]
        companions = pods.companions
        if companions is not None:
            del companions.members[pods.kind]
            if not companions.members:
                del self._companions[companions.key]
        for file in self._files.values():
            file.drop(pods)
        for topics, topic in pods.filed:
            filed = topics[topic]
            del filed[pods.kind]
            if not filed:
                del topics[topic]

    def is_filed_as(self, queued: QueuedPod) -> bool:
        """Whether a pod is filed where its present state belongs."""
        return self.kinds[queued.pod.uid] == self._kind(queued)

    def companions(self, uid: str) -> Companions | None:
        """Returns the pods that fail where this one does; None if it is not here or not known."""
        kind = self.kinds.get(uid)
        return None if kind is None else self._like[kind].companions

    def find(self, queue_event: QueueEvent) -> list[LikePods | Companions]:
        """Returns the pods that the event may concern, as far as topics tell."""
        found = _Found()
        for profile, plugins in queue_event.heard.items():
            for plugin, wakeups in plugins.items():
                file = self._files.get((profile, plugin))
                if file is not None and not file.is_empty:
                    for wakeup in wakeups:
                        file.find(wakeup, queue_event.old, queue_event.new, found)
        for uid in queue_event.pod_uids:
            kind = self.kinds.get(uid)
            if kind is not None:
                # An event about the pod itself may help it, whatever the topics are.
                found.alone[kind] = self._like[kind]
        return found.list()

    def everybody(self) -> list[LikePods | Companions]:
        """Returns all pods."""
        return list(self._like.values())

    def overdue(self, now: float) -> QueuedPod | None:
        """Returns a pod that has waited too long, without removing it."""
        moment = self._sweeps.head_key()
        return self._sweeps.head() if moment is not None and moment <= now else None

    def next_sweep(self) -> float | None:
        """Returns when the next pod has waited too long."""
        return self._sweeps.head_key()

    def check(self) -> None:
        """Raises AssertionError unless each pod is filed under the plugins that can wake it."""
        for queued in self:
            uid = queued.pod.uid
            wanted = {(queued.pod.spec.scheduler_name, plugin) for plugin in _plugins(queued)}
            kind = self.kinds[uid]
            pods = self._like[kind]
            found = {label for label, file in self._files.items() if file.holds(pods)}
            assert found == wanted, f"{uid} is filed under {found}, not {wanted}"
            assert kind == self._kind(queued), f"{uid} is among pods that it is not like"
            assert uid in pods, f"{uid} is not among those that it is like"
            companions = pods.companions
            assert companions is None or uid in companions, f"{uid} is not among its companions"
        held = sum(map(len, self._like.values()))
        assert held == len(self), f"{held} pods in groups, but {len(self)} are unschedulable"

    def _kind(self, queued: QueuedPod) -> Kind:
        pod = queued.pod
        gated_by = queued.gated_by if queued.place is Place.GATED else ""
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
    return (queued.gated_by,) if queued.place is Place.GATED else queued.blamed


def _ask(topics: Any, *args: Any) -> tuple[Hashable, ...] | None:
    """Returns the topics that a plugin names, each once; all topics if it fails."""
    try:
        answer = topics(*args)
        return None if answer is None else tuple(dict.fromkeys(answer))
    except PASSING:
        raise
    except BaseException:  # noqa: BLE001 - then the hint is asked, which reports what is wrong
        return None
