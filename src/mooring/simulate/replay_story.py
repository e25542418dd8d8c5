"""What a replay tells about single pods: the story of one, and why others wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mooring.engine import Engine
from mooring.engine.actions import (
    Action,
    BindPod,
    EvictPod,
    PatchPodStatus,
    RecordEvent,
    Report,
    WriteVolumes,
)
from mooring.engine.events import (
    Applied,
    BindingFailed,
    Bound,
    Event,
    Evicted,
    EvictionFailed,
    PermitRefused,
    Permitted,
    PodEnded,
    Removed,
    Unbound,
)
from mooring.objects.pod import Pod
from mooring.queue import QueuedPod

from .findings import find
from .replay import Listener, pod_of


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened to a pod."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod that waits, and why."""

    pod: str
    place: str
    attempts: int
    rejectors: tuple[str, ...]
    message: str


class Chronicle(Listener):
    """Keeps the story of one pod, and the last message about each pod that waits."""

    def __init__(self, engine: Engine, pod: str = "") -> None:
        self._engine = engine
        self._pod = pod
        self._uid = ""
        self._last_form = ""
        self.story: list[Moment] = []
        self._messages: dict[str, str] = {}

    def happened(self, at: float, event: Event) -> None:
        match event:
            case Applied(Pod() as pod):
                self._seen(at, pod)
            case Removed(Pod() as pod):
                self._messages.pop(pod.uid, None)
                if pod.key == self._pod:
                    self._add(at, "removed")
            case Applied() | Removed():
                pass
            case _ if event.uid == self._uid:
                self._add(at, _outcome(event))

    def decided(self, at: float, actions: Sequence[Action]) -> None:
        for action in actions:
            self._remember(action)
            if self._pod and pod_of(action) == self._pod:
                self._add(at, told(action) + self._attempt(action))

    def waiting(self) -> Iterator[Waiting]:
        """The pods that wait, in the order in which they came."""
        for queued in self._engine.queue:
            yield Waiting(
                queued.pod.key,
                str(queued.place),
                queued.attempts,
                tuple(sorted(queued.blamed)),
                _refusal(queued) or self._messages.get(queued.pod.uid, ""),
            )

    def verdicts(self) -> dict[str, int]:
        """For how many nodes each plugin rejects the pod as things are, and why."""
        queued = self._engine.queue.get(self._uid)
        if queued is None:
            return {}
        found = find(self._engine, queued.pod, 0)
        counts: Counter[str] = Counter()
        for refused in (found.filter or {}).values():
            counts[f"{refused.plugin}: {', '.join(sorted(refused.reasons))}"] += 1
        for whole in (found.pre_enqueue, found.rejected):
            if whole is not None:
                counts[f"{whole.plugin}: {', '.join(sorted(whole.reasons))}"] = len(
                    self._engine.cluster.nodes
                )
        return dict(counts)

    def _seen(self, at: float, pod: Pod) -> None:
        if pod.node_name or pod.is_finished:
            self._messages.pop(pod.uid, None)
        if pod.key != self._pod:
            return
        self._uid = pod.uid
        form = _form(pod)
        if form != self._last_form:
            self._last_form = form
            self._add(at, form)

    def _remember(self, action: Action) -> None:
        match action:
            case PatchPodStatus(pod, condition) if condition is not None:
                self._messages[pod.uid] = condition.message
            case RecordEvent(pod, reason="FailedScheduling", note=note):
                self._messages.setdefault(pod.uid, note)

    def _attempt(self, action: Action) -> str:
        """Which attempt it was, and who rejected the pod."""
        queued = self._engine.queue.get(self._uid)
        if not isinstance(action, RecordEvent) or queued is None or not queued.attempts:
            return ""
        by = f", rejected by {', '.join(sorted(queued.blamed))}" if queued.blamed else ""
        return f" (attempt {queued.attempts}{by})"

    def _add(self, at: float, text: str) -> None:
        self.story.append(Moment(at, text))


def told(action: Action) -> str:
    """An action in words."""
    match action:
        case BindPod(_, node):
            return f"bind to {node}"
        case RecordEvent():
            return f"event {action.reason}: {action.note}"
        case PatchPodStatus():
            return f"status {_status(action)}"
        case EvictPod():
            by = action.preemptor
            return f"evict for {by.namespace}/{by.name}"
        case WriteVolumes(_, node):
            written = [each.name for each in action.volumes]
            written += [each.name for each in action.claims]
            return f"write volumes {', '.join(written)} for {node}"
        case Report():
            return f"report: {action.message}"


def _status(action: PatchPodStatus) -> str:
    parts = []
    if action.condition is not None:
        parts.append(f"{action.condition.reason}: {action.condition.message}")
    if action.nominated_node_name is not None:
        parts.append(f"nominated to {action.nominated_node_name or 'no node'}")
    return "; ".join(parts)


_OUTCOMES: dict[type[Event], str] = {
    Bound: "bound",
    PodEnded: "has ended or is gone, of which no watch has told",
    Unbound: "has no node after all",
    Evicted: "evicted",
}


def _outcome(event: Event) -> str:
    match event:
        case BindingFailed():
            return f"binding failed: {event.message}"
        case Permitted():
            return f"permitted by {event.plugin}"
        case PermitRefused():
            return f"refused by {event.plugin}: {event.message}"
        case EvictionFailed():
            return f"could not be evicted: {event.message}"
        case _:
            return _OUTCOMES.get(type(event), type(event).__name__)


def _form(pod: Pod) -> str:
    state = f"runs on {pod.node_name}" if pod.node_name else "has no node"
    if pod.is_finished:
        state = f"has ended: {pod.status.phase}"
    if pod.nominated_node_name:
        state += f", is nominated to {pod.nominated_node_name}"
    return f"{state}, is being deleted" if pod.terminating else state


def _refusal(queued: QueuedPod) -> str:
    return "" if queued.refusal is None else queued.refusal.message
