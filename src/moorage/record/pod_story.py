"""What a replay says about single pods: the story of one, and why others wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from moorage.engine import Engine
from moorage.engine.actions import (
    Action,
    AskExtender,
    BindPod,
    EvictPod,
    PatchPodGroupStatus,
    PatchPodStatus,
    RecordEvent,
    ReleaseClaim,
    Report,
    RevokeClaims,
    WriteClaims,
    WriteVolumes,
)
from moorage.engine.cycle import find_feasible
from moorage.engine.events import (
    Applied,
    BindingFailed,
    Bound,
    ClaimsRevoked,
    ClaimsWritten,
    Event,
    Evicted,
    EvictionFailed,
    PermitRefused,
    Permitted,
    PodEnded,
    ReleaseFailed,
    Removed,
    Unbound,
)
from moorage.framework.calls import ask_pre_enqueue
from moorage.framework.points import pre_filter
from moorage.framework.status import PluginError
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
                self._add(at, _describe_outcome(event))

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

    def verdicts(self) -> dict[str, int]:
        """Counts for each plugin the nodes on which it rejects the pod now, and why."""
        queued = self._engine.queue.get(self._uid)
        if queued is None:
            return {}
        return _count_rejections(self._engine, queued.pod)

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
    """Describes an action in words."""
    match action:
        case BindPod(_, node):
            return f"bind to {node}"
        case RecordEvent():
            return f"event {action.reason}: {action.note}"
        case PatchPodStatus() | PatchPodGroupStatus():
            return f"status {_describe_status(action)}"
        case EvictPod():
            by = action.preemptor
            return f"evict for {by.namespace}/{by.name}"
        case AskExtender():
            about = len(action.nodes) or len(action.victims)
            return f"ask extender {action.extender} to {action.verb} {about} nodes"
        case WriteVolumes() | WriteClaims() | RevokeClaims() | ReleaseClaim():
            return _describe_write(action)
        case Report():
            return f"report: {action.message}"


def _describe_write(action: WriteVolumes | WriteClaims | RevokeClaims | ReleaseClaim) -> str:
    match action:
        case WriteVolumes(_, node):
            names = [each.name for each in action.volumes]
            names += [each.name for each in action.claims]
            return f"write volumes {', '.join(names)} for {node}"
        case WriteClaims(_, node, writes):
            names = [each.claim.name for each in writes.grants]
            names += ["one for extended resources"] if writes.creation else []
            return f"write claims {', '.join(names)} for {node}"
        case RevokeClaims():
            return f"revoke claims {', '.join(each.name for each in action.claims)}"
        case ReleaseClaim():
            return f"release claim {action.release.claim.name}"


def _describe_status(action: PatchPodStatus | PatchPodGroupStatus) -> str:
    if isinstance(action, PatchPodGroupStatus):
        condition = action.condition
        return f"{condition.type}={condition.status} {condition.reason}: {condition.message}"
    parts = []
    if action.condition is not None:
        parts.append(f"{action.condition.reason}: {action.condition.message}")
    if action.nominated_node_name is not None:
        parts.append(f"nominated to {action.nominated_node_name or 'no node'}")
    return "; ".join(parts)


_OUTCOMES: dict[type[Event], str] = {
    Bound: "bound",
    ClaimsWritten: "its claims are written",
    ClaimsRevoked: "it is known what its claims have",
    PodEnded: "has ended or is gone, which no watch has reported",
    Unbound: "has no node after all",
    Evicted: "evicted",
}


def _describe_outcome(event: Event) -> str:
    match event:
        case ReleaseFailed():
            return f"a claim kept its devices: {event.message}"
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


def _describe_pod(pod: Pod) -> str:
    state = f"runs on {pod.node_name}" if pod.node_name else "has no node"
    if pod.is_finished:
        state = f"has ended: {pod.status.phase}"
    if pod.nominated_node_name:
        state += f", is nominated to {pod.nominated_node_name}"
    return f"{state}, is being deleted" if pod.terminating else state


def _read_refusal(queued: Entity) -> str:
    return "" if queued.refusal is None else queued.refusal.message


def _count_rejections(engine: Engine, pod: Pod) -> dict[str, int]:
    """Counts the nodes that each plugin rejects, and why; nothing if a plugin fails."""
    profile, nodes = engine.profiles[pod.spec.scheduler_name], engine.cluster.nodes
    try:
        for plugin in profile.pre_enqueue:
            refused = ask_pre_enqueue(plugin, pod)
            if refused is not None:
                return {_describe_rejection(plugin.name, refused.reasons): len(nodes)}
        prepared = pre_filter(profile, pod, nodes)
        if prepared.rejected is not None:
            reasons = prepared.rejected.reasons
            return {_describe_rejection(prepared.rejected_by, reasons): len(nodes)}
        filtered = find_feasible(profile, pod, prepared, nodes)
    except PluginError:
        return {}
    return Counter(_describe_rejection(why.plugin, why.reasons) for _, why in filtered.refusals())


def _describe_rejection(plugin: str, reasons: Iterable[str]) -> str:
    return f"{plugin}: {', '.join(sorted(reasons))}"
