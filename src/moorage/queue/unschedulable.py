"""Entities that wait for an event, grouped by equal answers of hints and filed by topic."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from math import floor, inf
from typing import Any

from moorage.documents.errors import STOPPED
from moorage.framework.wakeups import Wakeup
from moorage.objects.pod import Pod

from .entity import Entity, EntityKey
from .entity_heap import EntityHeap
from .queue_events import Listeners, QueueEvent

#: What like pods share: template, namespace, labels, who keeps them waiting, what makes them fail
#: alike, and whatever else the hints of these read.
Kind = tuple[Hashable, ...]


class LikePods:
    """Waiting pods that every hint answers alike. Never empty while it is filed."""

    __slots__ = ("_pods", "files", "kind", "topics")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self._pods: dict[EntityKey, Entity] = {}
        #: The files that have them.
        self.files: list[dict[LikePods, None]] = []
        #: Each topic they are filed under, and where.
        self.topics: list[tuple[TopicFile, Hashable]] = []

    def __iter__(self) -> Iterator[Entity]:
        return iter(self._pods.values())

    def __contains__(self, key: object) -> bool:
        return key in self._pods

    def __len__(self) -> int:
        return len(self._pods)

    def push(self, queued: Entity) -> None:
        self._pods[queued.key] = queued

    def remove(self, key: EntityKey) -> None:
        del self._pods[key]


class Companions(LikePods):
    """The same for pods that all fail where one does."""

    __slots__ = ("_backing_off", "_ready", "is_represented", "label")

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        #: Whether one of them was woken to be tried for all: its representative.
        self.is_represented = False
        #: The event that woke it, or the last one.
        self.label = ""
        #: The one whose backoff ends first is at the head.
        self._backing_off = EntityHeap()
        #: Those whose backoff was over when somebody asked, the oldest at the head.
        self._ready = EntityHeap()

    def push(self, queued: Entity) -> None:
        super().push(queued)
        self._backing_off.push(queued, queued.expiry)

    def remove(self, key: EntityKey) -> None:
        super().remove(key)
        (self._ready if key in self._ready else self._backing_off).remove(key)

    def first(self, now: float) -> Entity | None:
        """Returns the one that would be tried before the others if all were woken."""
        while (queued := self._backing_off.head()) is not None and not queued.backs_off(now):
            self._backing_off.pop()
            self._ready.push(queued, 0)
        return self._ready.head() or queued


#: Pods by a topic that they wait for; None are those that may wait for anything.
TopicFile = dict[Hashable, dict[LikePods, None]]

#: How often pods are looked for that have waited too long, in seconds.
SWEEP_SECONDS = 30


class _PluginFile:
    """The pods that one plugin of a profile keeps waiting."""

    def __init__(self, registered: Iterable[Wakeup]) -> None:
        """`registered` are the registrations of the plugin."""
        self.units: dict[LikePods, None] = {}
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

    def add(self, pods: LikePods, queued: Entity) -> None:
        self.units[pods] = None
        pods.files.append(self.units)
        for of_pod, files in self._topical.items():
            answer = None if queued.is_costly else _ask(of_pod, queued.asked)
            for topic in (None,) if answer is None else answer:
                for file in files:
                    file.setdefault(topic, {})[pods] = None
                    pods.topics.append((file, topic))

    def find(self, wakeup: Wakeup, old: Any, new: Any, found: dict[LikePods, None]) -> None:
        """Adds the pods that the event may concern."""
        topics = None if wakeup.topics is None else _ask(wakeup.topics.of_event, old, new)
        # Where pods have no topics, any topic of the event concerns them all.
        file = None if topics is None else self._topics.get(id(wakeup))
        if topics is None or (topics and file is None):
            found.update(self.units)
        elif file is not None:
            for topic in (None, *topics) if topics else ():
                if topic in file:
                    found.update(file[topic])


class UnschedulableEntities:
    """Unschedulable and gated pods; a gated pod is filed only under the plugin that holds it."""

    def __init__(self, patience: float, listeners: Listeners) -> None:
        #: How long pods that nothing wakes wait before they are tried all the same.
        self.patience = patience
        self._listeners = listeners
        self._like: dict[Kind, LikePods] = {}
        #: By profile and plugin.
        self._files: dict[str, dict[str, _PluginFile]] = {}
        #: Where each pod is filed, by key: its verdicts may change before it is taken out.
        self.filed: dict[EntityKey, LikePods] = {}
        #: By the moment at which they have waited too long.
        self._swept = EntityHeap()
        self.gated: set[EntityKey] = set()

    def __len__(self) -> int:
        return len(self.filed)

    def __contains__(self, key: EntityKey) -> bool:
        return key in self.filed

    def __iter__(self) -> Iterator[Entity]:
        return (queued for pods in self._like.values() for queued in pods)

    def add(self, queued: Entity) -> None:
        """Files an entity that is not here."""
        if queued.place == "gated":
            self.gated.add(queued.key)
        kind = self._kind(queued)
        pods = self._like.get(kind)
        if pods is None:
            pods = self._file(kind, queued)
        self.filed[queued.key] = pods
        pods.push(queued)
        end = max(queued.timestamp, queued.flushed) + self.patience
        queued.swept_at = float((floor(end / SWEEP_SECONDS) + 1) * SWEEP_SECONDS)
        self._swept.push(queued, queued.swept_at)

    def remove(self, key: EntityKey) -> None:
        """Takes out an entity that is here."""
        pods = self.filed.pop(key)
        pods.remove(key)
        if not pods:
            self._unfile(pods)
        self._swept.remove(key)
        self.gated.discard(key)

    def _file(self, kind: Kind, queued: Entity) -> LikePods:
        fail_together = queued.alike is not None and queued.place == "unschedulable"
        pods = self._like[kind] = Companions(kind) if fail_together else LikePods(kind)
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
        for units in pods.files:
            del units[pods]
        for topics, topic in pods.topics:
            filed = topics[topic]
            del filed[pods]
            if not filed:
                del topics[topic]

    def is_filed_as(self, queued: Entity) -> bool:
        """Whether a pod is filed where its present state belongs."""
        return self.filed[queued.key].kind == self._kind(queued)

    def companions(self, key: EntityKey) -> Companions | None:
        """Returns the pods that fail where this one does; None if it is not here or not known."""
        pods = self.filed.get(key)
        return pods if isinstance(pods, Companions) else None

    def find(self, queue_event: QueueEvent) -> list[LikePods]:
        """Returns the pods that the event may concern, as far as topics tell."""
        found: dict[LikePods, None] = {}
        old, new = queue_event.old, queue_event.new
        for profile, plugins in queue_event.heard.items():
            files = self._files.get(profile)
            if files is None:
                continue
            for plugin, wakeups in plugins.items():
                file = files.get(plugin)
                if file is not None and file.units:
                    for wakeup in wakeups:
                        file.find(wakeup, old, new, found)
        for each in (old, new):
            if isinstance(each, Pod) and each.uid in self.filed:
                # An event about the pod itself may help it, whatever the topics are.
                found[self.filed[each.uid]] = None
        return list(found)

    def next_overdue(self, now: float) -> Entity | None:
        """Returns an entity that has waited too long, without removing it; None if none has."""
        return self._swept.head() if self.next_sweep() <= now else None

    def next_sweep(self) -> float:
        """Returns when the next entity has waited too long; infinity if none waits."""
        return inf if (first := self._swept.head_key()) is None else first

    def check(self) -> None:
        """Raises AssertionError unless each entity is filed under the plugins that can wake it."""
        for queued in self:
            key = queued.key
            profile, wanted = queued.pod.spec.scheduler_name, set(_plugins(queued))
            pods = self.filed[key]
            files = self._files[profile] if wanted else {}
            found = {plugin for plugin, file in files.items() if pods in file.units}
            assert found == wanted, f"{key} is filed under {found}, not {wanted}"
            assert pods is self._like[pods.kind], f"{key} is filed where nobody looks"
            assert self.is_filed_as(queued), f"{key} is among pods that it is not like"
            assert key in self._swept, f"{key} may wait for ever"
            assert key in pods, f"{key} is not among those that it is like"
        held = sum(map(len, self._like.values()))
        assert held == len(self), f"{held} pods in groups, but {len(self)} are unschedulable"
        assert len(self._swept) == len(self), "what is not here has a limit"

    def _kind(self, queued: Entity) -> Kind:
        pod = queued.asked
        gated_by = queued.gated_by if queued.place == "gated" else ""
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


def _plugins(queued: Entity) -> Iterable[str]:
    """Returns the plugins whose events can wake the pod."""
    return (queued.gated_by,) if queued.place == "gated" else queued.waking_plugins


def _ask(topics: Any, *args: Any) -> tuple[Hashable, ...] | None:
    """Returns the topics that a plugin names, each once; all topics if it fails."""
    try:
        answer = topics(*args)
        return None if answer is None else tuple(dict.fromkeys(answer))
    except STOPPED:  # then the hint is asked, which reports what is wrong
        return None
