"""Pods that wait for an event: alike ones together, found by what they wait for."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from math import floor
from typing import Any

from mooring.framework.calls import PASSING
from mooring.framework.wakeups import Wakeup

from .pod_heap import PodHeap
from .queue_events import Listeners, QueueEvent
from .queued_pod import Place, QueuedPod

#: How often pods are looked for that have waited too long, in seconds.
SWEEP_SECONDS = 30

#: What like pods share: template, namespace, labels, who keeps them waiting, what makes them fail
#: alike, and whatever else the hints of these read.
_Kind = tuple[Hashable, ...]


class LikePods:
    """Waiting pods that every hint tells the same. Never empty while they are filed."""

    __slots__ = ("_backing_off", "_ready", "fail_alike", "filed", "is_represented", "kind")

    def __init__(self, kind: _Kind, fail_alike: bool = False) -> None:
        self.kind = kind
        #: Whether all of them would fail where one does.
        self.fail_alike = fail_alike
        #: Whether one of them was woken to be tried for all.
        self.is_represented = False
        #: The one whose backoff ends first is at the head.
        self._backing_off = PodHeap()
        #: Those whose backoff was over when somebody asked, the oldest at the head.
        self._ready = PodHeap()
        #: Each topic they are filed under, and where.
        self.filed: list[tuple[_TopicFile, Hashable]] = []

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._ready
        yield from self._backing_off

    def __contains__(self, uid: object) -> bool:
        return uid in self._backing_off or uid in self._ready

    def __len__(self) -> int:
        return len(self._backing_off) + len(self._ready)

    def push(self, queued: QueuedPod) -> None:
        self._backing_off.push(queued, queued.expiry)

    def remove(self, uid: str) -> None:
        (self._ready if uid in self._ready else self._backing_off).remove(uid)

    @property
    def any(self) -> QueuedPod | None:
        """One of them."""
        return self._ready.head() or self._backing_off.head()

    def first(self, now: float) -> QueuedPod | None:
        """The one that would be tried before the others if all were woken."""
        while (queued := self._backing_off.head()) is not None and not queued.backs_off(now):
            self._backing_off.pop()
            self._ready.push(queued, 0)
        return self._ready.head() or queued


#: Like pods by a topic that they wait for; None are those that may wait for anything.
_TopicFile = dict[Hashable, dict[_Kind, LikePods]]

_NOBODY: dict[_Kind, LikePods] = {}


class _PluginFile:
    """The pods that one plugin of a profile keeps waiting."""

    __slots__ = ("everybody", "topics")

    def __init__(self) -> None:
        self.everybody: dict[_Kind, LikePods] = {}
        #: By the identity of a registration that has topics for pods.
        self.topics: dict[int, _TopicFile] = {}

    def add(self, pods: LikePods, queued: QueuedPod, wakeups: Iterable[Wakeup]) -> None:
        self.everybody[pods.kind] = pods
        for wakeup in wakeups:
            if wakeup.topics is None or wakeup.topics.of_pod is None:
                continue
            file = self.topics.setdefault(id(wakeup), {})
            topics = None if queued.is_costly else _ask(wakeup.topics.of_pod, queued.pod)
            for topic in (None,) if topics is None else topics:
                file.setdefault(topic, {})[pods.kind] = pods
                pods.filed.append((file, topic))

    def find(self, wakeup: Wakeup, old: Any, new: Any) -> Iterator[dict[_Kind, LikePods]]:
        """The like pods that the event may concern, perhaps some of them twice."""
        topics = None if wakeup.topics is None else _ask(wakeup.topics.of_event, old, new)
        if topics is None:
            yield self.everybody
        elif topics:
            file = self.topics.get(id(wakeup))
            if file is None:
                # Pods have no topics here, so that any topic of the event concerns them all.
                yield self.everybody
                return
            for topic in (None, *topics):
                yield file.get(topic, _NOBODY)


class UnschedulablePods:
    """Unschedulable and gated pods; a gated one is filed only under the plugin that holds it."""

    __slots__ = ("_files", "_like", "_listeners", "_sweeps", "gated", "kinds", "patience")

    def __init__(self, patience: float, listeners: Listeners) -> None:
        #: How long pods that nothing wakes wait before they are tried all the same.
        self.patience = patience
        self._listeners = listeners
        self._like: dict[_Kind, LikePods] = {}
        self._files: dict[tuple[str, str], _PluginFile] = {}
        #: Under what each pod is filed, by uid: its verdicts may change before it is taken out.
        self.kinds: dict[str, _Kind] = {}
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
            fail_alike = queued.alike is not None and queued.place is Place.UNSCHEDULABLE
            pods = self._like[kind] = LikePods(kind, fail_alike)
            profile = queued.pod.spec.scheduler_name
            for plugin in _plugins(queued):
                file = self._files.setdefault((profile, plugin), _PluginFile())
                file.add(pods, queued, self._listeners.registered(profile, plugin))
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

    def _unfile(self, pods: LikePods) -> None:
        del self._like[pods.kind]
        for file in self._files.values():
            file.everybody.pop(pods.kind, None)
        for topics, topic in pods.filed:
            filed = topics[topic]
            del filed[pods.kind]
            if not filed:
                del topics[topic]

    def is_filed_as(self, queued: QueuedPod) -> bool:
        """Whether a pod that is here is where it belongs as it is now."""
        return self.kinds[queued.pod.uid] == self._kind(queued)

    def like(self, uid: str) -> LikePods | None:
        """The pods that this one waits among; None if it is not here."""
        kind = self.kinds.get(uid)
        return None if kind is None else self._like[kind]

    def find(self, queue_event: QueueEvent) -> list[LikePods]:
        """The pods that the event may concern, as far as topics tell."""
        found: dict[_Kind, LikePods] = {}
        for profile, plugins in queue_event.heard.items():
            for plugin, wakeups in plugins.items():
                file = self._files.get((profile, plugin))
                if file is not None and file.everybody:
                    for wakeup in wakeups:
                        for some in file.find(wakeup, queue_event.old, queue_event.new):
                            found.update(some)
        for uid in queue_event.pod_uids:
            kind = self.kinds.get(uid)
            if kind is not None:
                # An event about the pod itself may help it, whatever the topics are.
                found[kind] = self._like[kind]
        return list(found.values())

    def everybody(self) -> list[LikePods]:
        """All pods."""
        return list(self._like.values())

    def overdue(self, now: float) -> QueuedPod | None:
        """A pod that has waited too long, which stays in."""
        moment = self._sweeps.head_key()
        return self._sweeps.head() if moment is not None and moment <= now else None

    def next_sweep(self) -> float | None:
        """When the next pod has waited too long."""
        return self._sweeps.head_key()

    def check(self) -> None:
        """Raises AssertionError unless each pod is filed under the plugins that can wake it."""
        for queued in self:
            uid = queued.pod.uid
            wanted = {(queued.pod.spec.scheduler_name, plugin) for plugin in _plugins(queued)}
            kind = self.kinds[uid]
            found = {label for label, file in self._files.items() if kind in file.everybody}
            assert found == wanted, f"{uid} is filed under {found}, not {wanted}"
            assert kind == self._kind(queued), f"{uid} is among pods that it is not like"
            assert uid in self._like[kind], f"{uid} is not among those that it is like"
        held = sum(map(len, self._like.values()))
        assert held == len(self), f"{held} pods in groups, but {len(self)} are unschedulable"

    def _kind(self, queued: QueuedPod) -> _Kind:
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


def _plugins(queued: QueuedPod) -> Iterable[str]:
    """The plugins whose events can wake the pod."""
    return (queued.gated_by,) if queued.place is Place.GATED else queued.blamed


def _ask(topics: Any, *args: Any) -> tuple[Hashable, ...] | None:
    """The topics that a plugin names, each once; all of them if it breaks."""
    try:
        answer = topics(*args)
        return None if answer is None else tuple(dict.fromkeys(answer))
    except PASSING:
        raise
    except BaseException:  # noqa: BLE001 - then the hint is asked, which reports what is wrong
        return None
