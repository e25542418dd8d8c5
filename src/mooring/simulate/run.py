"""Running the engine over a fixed input, in virtual time, until nothing can change any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from mooring.cluster import Nodes
from mooring.engine import Engine
from mooring.engine.actions import (
    Action,
    BindPod,
    EvictPod,
    PatchPodStatus,
    PodRef,
    RecordEvent,
    WriteVolumes,
)
from mooring.engine.events import Applied, Bound, Evicted, Removed
from mooring.engine.failures import UNSCHEDULABLE
from mooring.objects.decode import Object
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.queue.queued_pod import Place, QueuedPod

from .transcript import Claimed, Pending, Placed, Preempted, Transcript, Use
from .volumes import written

GATED, TERMINATING, OTHER_SCHEDULER = "SchedulingGated", "Terminating", "OtherScheduler"
PREEMPTED = "Preempted"

#: Told after each decision how many pods are placed.
Watch = Callable[[int], None]


def simulate(
    engine: Engine, objects: Iterable[Object], watch: Watch = lambda placed: None
) -> Transcript:
    """Schedules what is pending among the objects. All that is asked for succeeds at once."""
    given = _Given.sorted(objects)
    for item in (*given.around, *given.nodes, *given.running):
        engine.handle(Applied(item), 0.0)
    before = _requested(engine.cluster.nodes)
    for pod in given.waiting:
        engine.handle(Applied(pod), 0.0)
    run = _Run(engine, {pod.uid: pod for pod in given.waiting})
    while run.goes_on():
        run.advance()
        watch(len(run.placed))
    return Transcript(
        placed=tuple(run.placed.values()),
        pending=tuple(run.why(pod) for pod in given.waiting if pod.uid not in run.placed),
        preempted=tuple(run.preempted),
        volumes=tuple(run.volumes),
        use=_use(engine.cluster.nodes, before),
        nodes=len(engine.cluster.nodes),
        reuse={name: reuse.statistics for name, reuse in engine.reuse.items()},
        story=tuple(run.story),
    )


def pending(objects: Iterable[Object]) -> int:
    """How many pods wait for a node."""
    return len(_Given.sorted(objects).waiting)


@dataclass(frozen=True, slots=True)
class _Given:
    """The objects in the order in which the engine hears of them."""

    #: Namespaces, volumes, budgets and the like: what pods and nodes are seen in the light of.
    around: list[Object] = field(default_factory=list)
    nodes: list[Object] = field(default_factory=list)
    running: list[Pod] = field(default_factory=list)
    waiting: list[Pod] = field(default_factory=list)

    @classmethod
    def sorted(cls, objects: Iterable[Object]) -> _Given:
        given = cls()
        for item in objects:
            match item:
                case Pod() if item.is_finished:
                    pass
                case Pod() if item.node_name:
                    given.running.append(item)
                case Pod():
                    given.waiting.append(_untried(item))
                case Node():
                    given.nodes.append(item)
                case _:
                    given.around.append(item)
        return given


@dataclass(slots=True)
class _Run:
    """One run of the engine.

    It ends when every pod that waits has failed since the last placement or eviction: the cluster
    is as it was when they failed, so they would fail again. Each round between two changes is
    finite, and a pod is placed and evicted at most once.
    """

    engine: Engine
    waiting: dict[str, Pod]
    now: float = 0.0
    placed: dict[str, Placed] = field(default_factory=dict)
    preempted: list[Preempted] = field(default_factory=list)
    volumes: list[Claimed] = field(default_factory=list)
    story: list[tuple[float, Action]] = field(default_factory=list)
    #: Who has left the queue, but is not bound: a plugin waits for something to come true.
    _preparing: set[str] = field(default_factory=set)
    _failed: set[str] = field(default_factory=set)
    _messages: dict[str, tuple[str, str]] = field(default_factory=dict)
    _attempts: dict[str, int] = field(default_factory=dict)

    def goes_on(self) -> bool:
        """Whether a further step may place a pod; moves on to the time of that step."""
        sizes = self.engine.queue.sizes()
        trying = len(self.engine.queue) - sizes["gated"]
        if not self._preparing and len(self._failed) >= trying and self._all_failed():
            return False
        moment = self.engine.next_step(self.now)
        if moment is None:
            return False
        self.now = moment
        return True

    def advance(self) -> None:
        """Makes one decision and performs it, so that the next one is made in its light."""
        actions = self.engine.step(self.now, budget=1)
        self._perform(actions)
        if any(isinstance(action, WriteVolumes) for action in actions):
            # The volumes are bound by now, so their pod goes on before others are looked at.
            self._perform(self.engine.step(self.now, budget=0))

    def why(self, pod: Pod) -> Pending:
        """Why a pod has no node."""
        queued = self.engine.queue.get(pod.uid)
        if pod.spec.scheduler_name not in self.engine.profiles:
            text = f'no profile serves the scheduler name "{pod.spec.scheduler_name}"'
            return Pending(pod, OTHER_SCHEDULER, text, 0)
        if pod.terminating:
            return Pending(pod, TERMINATING, "the pod is being deleted", 0)
        attempts = self._attempts.get(pod.uid, 0)
        if queued is not None and queued.place is Place.GATED:
            return Pending(pod, GATED, _gate(queued), attempts)
        reason, message = self._messages[pod.uid]
        return Pending(pod, reason, message, attempts)

    def _perform(self, actions: Sequence[Action]) -> None:
        for action in actions:
            self.story.append((self.now, action))
            match action:
                case BindPod(pod, node, profile):
                    self._bind(self.waiting[pod.uid], node, profile)
                case EvictPod(pod, preemptor):
                    self._evict(pod, preemptor)
                case WriteVolumes():
                    self._write(action)
                case PatchPodStatus(pod, condition) if condition is not None:
                    self._messages[pod.uid] = condition.reason, condition.message
                case RecordEvent(pod, reason="FailedScheduling", note=note):
                    self._fail(pod.uid, note)
        if any(isinstance(action, BindPod | EvictPod) for action in actions):
            self._failed.clear()

    def _bind(self, pod: Pod, node: str, profile: str) -> None:
        self._preparing.discard(pod.uid)
        attempts = self._attempts.pop(pod.uid, 0) + 1
        self.placed[pod.uid] = Placed(pod, node, profile, attempts)
        self.engine.handle(Applied(pod.on(node)), self.now)
        self.engine.handle(Bound(pod.uid), self.now)

    def _evict(self, ref: PodRef, preemptor: PodRef) -> None:
        self.engine.handle(Evicted(ref.uid, preemptor.uid), self.now)
        victim = self.engine.cluster.pod(ref.uid)
        if victim is None:
            return
        by = f"{preemptor.namespace}/{preemptor.name}"
        self.preempted.append(Preempted(victim, victim.node_name, by))
        self.placed.pop(ref.uid, None)
        self._messages[ref.uid] = PREEMPTED, f"placed on {victim.node_name}, preempted by {by}"
        self.engine.handle(Removed(victim), self.now)
        for budget in list(self.engine.cluster.nodes.workloads.budgets):
            if budget.covers(victim):
                left = max(0, budget.disruptions_allowed - 1)
                changed = msgspec.structs.replace(budget, disruptions_allowed=left)
                self.engine.handle(Applied(changed), self.now)

    def _write(self, action: WriteVolumes) -> None:
        self._preparing.add(action.pod.uid)
        for each in written(action, self.engine.cluster.nodes):
            self.engine.handle(Applied(each.volume), self.now)
            self.engine.handle(Applied(each.claim), self.now)
            self.volumes.append(each)

    def _fail(self, uid: str, note: str) -> None:
        self._preparing.discard(uid)
        self._failed.add(uid)
        self._attempts[uid] = self._attempts.get(uid, 0) + 1
        # The condition comes after the event, in full, if it has changed.
        self._messages.setdefault(uid, (UNSCHEDULABLE, note))

    def _all_failed(self) -> bool:
        queue = self.engine.queue
        return all(each.pod.uid in self._failed for each in queue.in_flight) and all(
            each.pod.uid in self._failed for each in queue if each.place is not Place.GATED
        )


def _gate(queued: QueuedPod) -> str:
    return queued.refusal.message if queued.refusal is not None else f"held by {queued.gated_by}"


def _untried(pod: Pod) -> Pod:
    """The pod without what another run, or a real scheduler, has said about it."""
    kept = tuple(each for each in pod.status.conditions or () if each.type != "PodScheduled")
    status = msgspec.structs.replace(pod.status, conditions=kept or None)
    return msgspec.structs.replace(pod, status=status)


def _requested(nodes: Nodes) -> dict[str, int]:
    # Summed as Python integers, which do not overflow.
    return {
        name: sum(nodes.requested[at, nodes.rows].tolist()) for name, at in nodes.resources.items()
    }


def _use(nodes: Nodes, before: dict[str, int]) -> dict[str, Use]:
    after = _requested(nodes)
    use = {
        name: Use(sum(nodes.allocatable[at, nodes.rows].tolist()), before.get(name, 0), after[name])
        for name, at in nodes.resources.items()
    }
    return {name: each for name, each in use.items() if each.allocatable or each.after}
