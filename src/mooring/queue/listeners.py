"""Who listens to an event, and whether it concerns a waiting pod."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import numpy as np

from mooring.framework.calls import PASSING, expect
from mooring.framework.events import Action, ClusterEvent, Hint, Resource, Wakeup, on
from mooring.framework.observe import Observer
from mooring.objects.pod import Pod

from .queued_pod import QueuedPod

Wakeups = Mapping[str, Mapping[str, tuple[Wakeup, ...]]]
#: By profile, each plugin that listens to an event, and its hints for it.
Heard = Mapping[str, Mapping[str, tuple[Hint, ...]]]


class Answer(Enum):
    """What an event means for a waiting pod."""

    STAY = auto()
    AFTER_BACKOFF = auto()
    AT_ONCE = auto()


@dataclass(frozen=True, slots=True)
class Happening:
    """An event, the object before and after it, and who listens."""

    event: ClusterEvent
    old: Any
    new: Any
    heard: Heard = field(repr=False)
    #: The plugins among them whose hints must be asked about every pod.
    choosy: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def is_heard(self) -> bool:
        return bool(self.heard) or self.event.is_wildcard

    def is_about(self, uids: Container[str]) -> bool:
        """Whether the object is one of these pods."""
        return any(isinstance(each, Pod) and each.uid in uids for each in (self.old, self.new))

    def names(self, pod: Pod) -> bool:
        """Whether a wildcard is meant for this pod: one that carries an object is for that only."""
        return self.new is None or (isinstance(self.new, Pod) and self.new.uid == pod.uid)


class Listeners:
    """The registrations of all profiles."""

    __slots__ = ("_heard", "_observer", "_wakeups")

    def __init__(self, wakeups: Wakeups, observer: Observer) -> None:
        self._wakeups = {
            profile: {name: _with_taints(registered) for name, registered in plugins.items()}
            for profile, plugins in wakeups.items()
        }
        self._observer = observer
        self._heard: dict[tuple[Resource | str, Action], tuple[Heard, frozenset[str]]] = {}

    def happening(self, event: ClusterEvent, old: Any, new: Any) -> Happening:
        """The event together with who listens to it."""
        kind = (event.resource, event.action)
        heard = self._heard.get(kind)
        if heard is None:
            heard = self._heard[kind] = self._hearing(event), self._choosy(event)
        return Happening(event, old, new, *heard)

    def answer(self, queued: QueuedPod, happening: Happening) -> Answer:
        """Whether the pod is worth another try, as the plugins that rejected it see it."""
        if happening.event.is_wildcard:
            return Answer.AFTER_BACKOFF if happening.names(queued.pod) else Answer.STAY
        heard = happening.heard.get(queued.pod.spec.scheduler_name)
        if heard is None:
            return Answer.STAY
        if queued.is_costly:
            # What plugins say of such a pod may take as long as trying it, which waits its time.
            return Answer.STAY if heard.keys().isdisjoint(queued.blamed) else Answer.AFTER_BACKOFF
        if queued.pending and self._any_agrees(queued.pending, heard, queued.pod, happening):
            return Answer.AT_ONCE
        if self._any_agrees(queued.rejectors, heard, queued.pod, happening):
            return Answer.AFTER_BACKOFF
        return Answer.STAY

    def _any_agrees(
        self,
        plugins: frozenset[str],
        heard: Mapping[str, tuple[Hint, ...]],
        pod: Pod,
        happening: Happening,
    ) -> bool:
        for plugin in plugins:
            hints = heard.get(plugin)
            if hints is not None and self._agrees(plugin, hints, pod, happening):
                return True
        return False

    def _hearing(self, event: ClusterEvent) -> Heard:
        found: dict[str, dict[str, tuple[Hint, ...]]] = {}
        for profile, plugins in self._wakeups.items():
            for name, registered in plugins.items():
                hints = tuple(
                    each.hint or _always for each in registered if each.event.hears(event)
                )
                if hints:
                    found.setdefault(profile, {})[name] = hints
        return found

    def _choosy(self, event: ClusterEvent) -> frozenset[str]:
        return frozenset(
            name
            for plugins in self._wakeups.values()
            for name, registered in plugins.items()
            if any(each.event.hears(event) and not each.alike for each in registered)
        )

    def _agrees(self, plugin: str, hints: tuple[Hint, ...], pod: Pod, happening: Happening) -> bool:
        began = self._observer.clock()
        told = "QueueSkip"
        try:
            for hint in hints:
                answer = hint(pod, happening.old, happening.new)
                if answer is not True and answer is not False:
                    answer = _boolean(answer)
                if answer:
                    told = "Queue"
                    return True
        except PASSING:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a plugin raises
            told = "Error"
            # A try for nothing is better than a pod that a broken hint keeps waiting.
            self._observer.hint_broke(plugin, pod.key, happening.event.label, error)
            return True
        finally:
            self._observer.hinted(plugin, happening.event.label, told, began)
        return False


def _boolean(answer: object) -> bool:
    """An answer of NumPy's; any other is a mistake, such as a forgotten `return`."""
    expect(answer, bool, np.bool_)
    return bool(answer)


def _always(pod: Pod, old: Any, new: Any) -> bool:
    return True


def _with_taints(registered: tuple[Wakeup, ...]) -> tuple[Wakeup, ...]:
    # A new node usually carries taints at first, so who waits for nodes must hear when they go.
    heard = Action(0)
    for each in registered:
        if each.event.resource is Resource.NODE:
            heard |= each.event.action
    if Action.ADD in heard and Action.UPDATE_NODE_TAINT not in heard:
        return (*registered, on(Resource.NODE, Action.UPDATE_NODE_TAINT))
    return registered
