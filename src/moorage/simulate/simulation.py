"""Runs the engine over a fixed input, in virtual time, until nothing can change any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from moorage.cluster import Nodes
from moorage.engine import Engine
from moorage.engine.actions import (
    Action,
    AskExtender,
    BindPod,
    EvictPod,
    PatchPodStatus,
    RecordEvent,
    ReleaseClaim,
    RevokeClaims,
    WriteClaims,
    WriteVolumes,
)
from moorage.engine.diagnosis import UNSCHEDULABLE
from moorage.engine.events import ExtenderAnswered
from moorage.objects.kinds import Object
from moorage.objects.pod import Pod
from moorage.queue.entity import Entity
from moorage.world import ClaimedVolume, Scene, World

from .place_study import PlaceStudy, study_places
from .transcript import PendingPod, PlacedPod, PreemptedPod, Reuse, Transcript, Use

GATED, TERMINATING, OTHER_SCHEDULER = "SchedulingGated", "Terminating", "OtherScheduler"
PREEMPTED = "Preempted"

#: Answers a question about a pod of a world.
AnswerOf = Callable[[AskExtender, World], ExtenderAnswered]

NO_STUDIES: Mapping[str, PlaceStudy] = {}

#: Told after each decision how many pods are placed.
Watch = Callable[[int], None]


def simulate(
    engine: Engine,
    objects: Iterable[Object],
    watch: Watch = lambda placed: None,
    answer: AnswerOf | None = None,
) -> Transcript:
    """Schedules the pending pods among the objects. Every action succeeds at once.

    `answer` answers for the extenders of the engine, if it has any.
    """
    run = Run.start(engine, Scene.of(objects), answer)
    studies = study_places(engine)
    while run.goes_on():
        run.advance()
        watch(len(run.placed))
    return run.finish(studies)


def count_pending(objects: Iterable[Object]) -> int:
    """Counts the pods that wait for a node."""
    return len(Scene.of(objects).waiting)


# What is done before the next pod is looked at.
_ANSWERED = WriteVolumes | WriteClaims | AskExtender


@dataclass(slots=True)
class Run:
    """One run of the engine over the pods of a scene that wait.

    It ends when every pod that waits has failed since the last placement or eviction: the cluster
    is as it was when they failed, so they would fail again. Each round between two changes is
    finite, and a pod is placed and evicted at most once.
    """

    engine: Engine
    world: World
    scene: Scene
    #: What the running pods request, by resource.
    before: dict[str, int]
    answer: AnswerOf | None = None
    now: float = 0.0
    #: How many decisions were made.
    decisions: int = 0
    placed: dict[str, PlacedPod] = field(default_factory=dict)
    preempted: list[PreemptedPod] = field(default_factory=list)
    volumes: list[ClaimedVolume] = field(default_factory=list)
    story: list[tuple[float, Action]] = field(default_factory=list)
    #: By which decision a pod got its node or evicted others.
    turns: dict[str, int] = field(default_factory=dict)
    #: Who has left the queue, but is not bound: a plugin waits for something to come true.
    _preparing: set[str] = field(default_factory=set)
    _failed: set[str] = field(default_factory=set)
    _messages: dict[str, tuple[str, str]] = field(default_factory=dict)
    _attempts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def start(cls, engine: Engine, scene: Scene, answer: AnswerOf | None = None) -> Run:
        """Gives a new engine the objects of a scene."""
        world = World(engine)
        # Time passes while pods are tried again, but measurements do not change.
        engine.cluster.extended.stop_ageing()
        for item in (*scene.around, *scene.nodes, *scene.running):
            world.apply(item, 0.0)
        before = _sum_requests(engine.cluster.nodes)
        for pod in scene.waiting:
            world.apply(_forget_attempts(pod), 0.0)
        return cls(engine, world, scene, before, answer)

    def finish(self, studies: Mapping[str, PlaceStudy] = NO_STUDIES) -> Transcript:
        """Returns what was decided."""
        engine, nodes = self.engine, self.engine.cluster.nodes
        return Transcript(
            placed=tuple(self.placed.values()),
            pending=tuple(
                self.why(pod) for pod in self.scene.waiting if pod.uid not in self.placed
            ),
            preempted=tuple(self.preempted),
            volumes=tuple(self.volumes),
            use=_sum_use(nodes, self.before),
            nodes=len(nodes),
            reuse={
                name: Reuse(engine.classes[name].statistics, study)
                for name, study in studies.items()
            },
            story=tuple(self.story),
        )

    def goes_on(self) -> bool:
        """Whether a further step may place a pod; advances to the time of that step."""
        sizes = self.engine.queue.sizes()
        trying = len(self.engine.queue) - sizes["gated"]
        if (
            not any(map(self._is_preparing, self._preparing))
            and len(self._failed) >= trying
            and self._all_failed()
        ):
            return False
        moment = self.engine.next_step(self.now)
        if moment is None:
            return False
        self.now = moment
        return True

    def _is_preparing(self, uid: str) -> bool:
        placed = self.engine.placement(uid)
        return placed is not None and bool(placed.preparing)

    def advance(self) -> None:
        """Makes one decision and performs it before the next one."""
        self.decisions += 1
        actions = self.engine.step(self.now, budget=1)
        self._perform(actions)
        self._ask_extenders(actions)
        while any(isinstance(action, _ANSWERED) for action in actions):
            # Volumes are bound by now, claims have their devices, and extenders have answered, so
            # that the pod goes on before others are looked at.
            actions = self.engine.step(self.now, budget=0)
            self._perform(actions)
            self._ask_extenders(actions)

    def _ask_extenders(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, AskExtender):
                assert self.answer is not None, "an engine with extenders has somebody to ask"
                self.engine.handle(self.answer(action, self.world), self.now)

    def message_of_failure(self, pod: Pod) -> str:
        """Returns why the last attempt at a pod failed that has a node by now."""
        return self._messages[pod.uid][1]

    def why(self, pod: Pod) -> PendingPod:
        """Returns why a pod has no node."""
        queued = self.engine.queue.get(pod.uid)
        if pod.spec.scheduler_name not in self.engine.profiles:
            text = f'no profile serves the scheduler name "{pod.spec.scheduler_name}"'
            return PendingPod(pod, OTHER_SCHEDULER, text, 0)
        if pod.terminating:
            return PendingPod(pod, TERMINATING, "the pod is being deleted", 0)
        attempts = self._attempts.get(pod.uid, 0)
        if queued is not None and queued.place == "gated":
            return PendingPod(pod, GATED, _gate(queued), attempts)
        reason, message = self._messages[pod.uid]
        return PendingPod(pod, reason, message, attempts)

    def _perform(self, actions: Sequence[Action]) -> None:
        for action in actions:
            self.story.append((self.now, action))
            match action:
                case BindPod():
                    self._bind(action)
                case EvictPod():
                    self._evict(action)
                case WriteVolumes() | WriteClaims() | RevokeClaims() | ReleaseClaim():
                    self._write(action)
                case PatchPodStatus():
                    self._take_status(action)
                case RecordEvent(pod, reason="FailedScheduling", note=note):
                    self._fail(pod.uid, note)
        if any(isinstance(action, BindPod | EvictPod | ReleaseClaim) for action in actions):
            self._failed.clear()

    def _write(self, action: WriteVolumes | WriteClaims | RevokeClaims | ReleaseClaim) -> None:
        if isinstance(action, WriteVolumes | WriteClaims):
            self._preparing.add(action.pod.uid)
        if isinstance(action, WriteVolumes):
            self.volumes += self.world.write_volumes(action, self.now)
        else:
            self.world.perform([action], self.now)

    def _take_status(self, action: PatchPodStatus) -> None:
        uid, condition = action.pod.uid, action.condition
        if condition is not None:
            self._messages[uid] = condition.reason, condition.message
        else:
            # Told of its node before it is bound, which may have to wait for something.
            self._preparing.add(uid)

    def _bind(self, action: BindPod) -> None:
        uid = action.pod.uid
        self.turns.setdefault(uid, self.decisions)
        self._preparing.discard(uid)
        attempts = self._attempts.pop(uid, 0) + 1
        pod = self.world.pods[uid]
        self.placed[uid] = PlacedPod(pod, action.node, action.profile, attempts)
        self.world.bind(action, self.now)

    def _evict(self, action: EvictPod) -> None:
        self.turns.setdefault(action.preemptor.uid, self.decisions)
        victim = self.world.evict(action, self.now)
        if victim is None:
            return
        by = f"{action.preemptor.namespace}/{action.preemptor.name}"
        self.preempted.append(PreemptedPod(victim, victim.node_name, by))
        self.placed.pop(victim.uid, None)
        self._messages[victim.uid] = PREEMPTED, f"placed on {victim.node_name}, preempted by {by}"

    def _fail(self, uid: str, note: str) -> None:
        self._preparing.discard(uid)
        self._failed.add(uid)
        self._attempts[uid] = self._attempts.get(uid, 0) + 1
        # The condition comes after the event, in full, if it has changed.
        self._messages.setdefault(uid, (UNSCHEDULABLE, note))

    def _all_failed(self) -> bool:
        queue = self.engine.queue
        return all(each.pod.uid in self._failed for each in queue.in_flight) and all(
            each.pod.uid in self._failed for each in queue if each.place != "gated"
        )


def _gate(queued: Entity) -> str:
    return queued.refusal.message if queued.refusal is not None else f"held by {queued.gated_by}"


def _forget_attempts(pod: Pod) -> Pod:
    """Returns the pod without the traces of earlier attempts, of any scheduler."""
    kept = tuple(each for each in pod.status.conditions or () if each.type != "PodScheduled")
    status = msgspec.structs.replace(pod.status, conditions=kept or None)
    return msgspec.structs.replace(pod, status=status)


def _sum_requests(nodes: Nodes) -> dict[str, int]:
    # Summed as Python integers, which do not overflow.
    return {
        name: sum(nodes.requested[at, nodes.rows].tolist()) for name, at in nodes.resources.items()
    }


def _sum_use(nodes: Nodes, before: dict[str, int]) -> dict[str, Use]:
    after = _sum_requests(nodes)
    use = {
        name: Use(sum(nodes.allocatable[at, nodes.rows].tolist()), before.get(name, 0), after[name])
        for name, at in nodes.resources.items()
    }
    return {name: each for name, each in use.items() if each.allocatable or each.after}
