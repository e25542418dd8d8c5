"""What a replay says about single pods: the story of one, and why others wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from moorage.engine import Engine
from moorage.engine.actions import Action, BindPod, PatchPodStatus, RecordEvent
from moorage.engine.events import Applied, Event, Removed
from moorage.objects.pod import Pod
from moorage.queue import Entity

from .replayer import ReplayListener, find_pod_key


@dataclass(frozen=True, slots=True)
class StoryEntry:
    """Something that happened to a pod."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """A pod that waits, and why."""

    pod: str
    place: str
    attempts: int
    rejectors: tuple[str, ...]
    message: str


class PodStory(ReplayListener):
    """Keeps the story of one pod, and the last message about each pod that waits."""

    def __init__(self, engine: Engine, pod: str = "") -> None:
        self._engine = engine
        self._pod = pod
        self._uid = ""
        self._last_form = ""
        self.entries: list[StoryEntry] = []
        self._messages: dict[str, str] = {}

    def on_event(self, at: float, event: Event) -> None:
        match event:
            case Applied(Pod() as pod):
                self._follow(at, pod)
            case Removed(Pod() as pod):
                self._messages.pop(pod.uid, None)
                if pod.key == self._pod:
                    self._add(at, "removed")
            case Applied() | Removed():
                pass
            case _ if event.uid == self._uid:
                self._add(at, _list_fields(event))

    def on_step(self, at: float, actions: Sequence[Action]) -> None:
        for action in actions:
            self._remember(action)
            if self._pod and find_pod_key(action) == self._pod:
                self._add(at, describe_action(action) + self._describe_attempt(action))

    def waiting(self) -> Iterator[WaitingPod]:
        """Yields the pods that wait, in the order in which they came."""
        for queued in self._engine.queue:
            yield WaitingPod(
                queued.pod.key,
                str(queued.place),
                queued.attempts,
                tuple(sorted(queued.waking_plugins)),
                _read_refusal(queued) or self._messages.get(queued.pod.uid, ""),
            )

    def _follow(self, at: float, pod: Pod) -> None:
        if pod.node_name or pod.is_finished:
            self._messages.pop(pod.uid, None)
        if pod.key != self._pod:
            return
        self._uid = pod.uid
        form = _describe_pod(pod)
        if form != self._last_form:
            self._last_form = form
            self._add(at, form)

    def _remember(self, action: Action) -> None:
        match action:
            case PatchPodStatus(pod, condition) if condition is not None:
                self._messages[pod.uid] = condition.message
            case RecordEvent(pod, reason="FailedScheduling", note=note):
                self._messages.setdefault(pod.uid, note)

    def _describe_attempt(self, action: Action) -> str:
        """Describes an attempt: its number, and the plugins that rejected the pod."""
        queued = self._engine.queue.get(self._uid)
        if not isinstance(action, RecordEvent) or queued is None or not queued.attempts:
            return ""
        plugins = ", ".join(sorted(queued.waking_plugins))
        by = f", rejected by {plugins}" if plugins else ""
        return f" (attempt {queued.attempts}{by})"

    def _add(self, at: float, text: str) -> None:
        self.entries.append(StoryEntry(at, text))


def describe_action(action: Action) -> str:
    """Describes an action in words; rare ones by their kind and their fields."""
    match action:
        case BindPod(_, node):
            return f"bind to {node}"
        case RecordEvent():
            return f"event {action.reason}: {action.note}"
        case PatchPodStatus(_, condition) if condition is not None:
            return f"status {condition.reason}: {condition.message}"
        case _:
            return _list_fields(action)


def _list_fields(item: Action | Event) -> str:
    fields = msgspec.to_builtins(item, enc_hook=str)
    kind = fields.pop("do", type(item).__name__)
    shown = (f"{name}={value}" for name, value in fields.items() if name not in ("pod", "uid"))
    return " ".join((kind, *shown))


def _describe_pod(pod: Pod) -> str:
    state = f"runs on {pod.node_name}" if pod.node_name else "has no node"
    if pod.is_finished:
        state = f"has ended: {pod.status.phase}"
    if pod.nominated_node_name:
        state += f", is nominated to {pod.nominated_node_name}"
    return f"{state}, is being deleted" if pod.terminating else state


def _read_refusal(queued: Entity) -> str:
    return "" if queued.refusal is None else queued.refusal.message
