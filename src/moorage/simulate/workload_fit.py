"""What if workloads came: their pods are placed, and pods of an older version make way."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from moorage.engine.engine import Engine
from moorage.engine.explain import GangExplanation, explain_gang
from moorage.engine.explain.explanation import Explanation, ExplanationPart, Names
from moorage.objects.kinds import Object
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.world import Scene, World

from .drain import Drain, study_drain
from .pod_fit import NodeShare, PodPlacer, free_claims
from .workload_pods import NotUnderstood, WantedWorkload, workload_names


class WorkloadFit(ExplanationPart, frozen=True):
    """Whether the pods of a workload find nodes."""

    workload: str
    asked: int
    placed: int
    #: How many pods of an older version make way.
    replaced: int = 0
    #: How many of these stay, because the rollout stops.
    stay: int = 0
    nodes: tuple[NodeShare, ...] = ()
    #: Why a pod finds no node.
    message: str = ""
    why: Explanation | None = None
    #: The same for pods that are placed together.
    gang: GangExplanation | None = None
    #: Where the workload is written; lines count from 1, and 0 is not known.
    file: str = ""
    line: int = 0

    @property
    def fits(self) -> bool:
        return self.placed == self.asked


class WorkloadsFit(ExplanationPart, frozen=True):
    """The result for all workloads. Pods that waited before are tried first."""

    node_count: int
    workloads: tuple[WorkloadFit, ...]
    waited: int = 0
    #: Pods that waited before and find no node.
    still_waiting: Names = ()
    #: What makes pods, but not known how many.
    unknown: tuple[NotUnderstood, ...] = ()
    drain: Drain | None = None


def fit_workloads(
    engine: Engine, scene: Scene, workloads: Sequence[WantedWorkload], around: Iterable[Object] = ()
) -> WorkloadsFit:
    """Places workloads in a new engine that serves nothing else, without evictions."""
    world = World(engine)
    for item in (*scene.around, *around, *scene.nodes, *scene.running):
        world.apply(item, 0.0)
    placer = PodPlacer(engine.decider, scene.drained)
    replaced = {workload.text: _pods_of(workload, scene) for workload in workloads}
    gone = {pod.uid for pods in replaced.values() for pod in pods}
    waiting = [
        pod
        for pod in scene.waiting
        # Those of other schedulers wait for them.
        if pod.uid not in gone and pod.spec.scheduler_name in engine.profiles
    ]
    for pod, _ in scene.leaving:
        free_claims(pod, world)
        placer.place(pod)
    for pod in sorted(waiting, key=lambda each: -each.priority):
        placer.place(pod)
    still = tuple(key for key, node in placer.places.items() if not node)
    fits = {
        workload.text: replace(
            _place(world, placer, workload, replaced[workload.text]),
            file=workload.file,
            line=workload.line,
        )
        for workload in sorted(workloads, key=_importance)
    }
    ordered = tuple(fits[workload.text] for workload in workloads)
    drain = study_drain(scene, still)
    left = still if drain is None else tuple(key for key in still if key not in drain.left)
    return WorkloadsFit(len(engine.cluster.nodes), ordered, len(waiting), left, drain=drain)


def _importance(workload: WantedWorkload) -> int:
    return -max((pod.priority for pod in workload.pods), default=0)


def _pods_of(workload: WantedWorkload, scene: Scene) -> list[Pod]:
    """Returns the present pods of the workload of that name."""
    us = workload.kind.lower(), workload.name
    return [
        pod
        for pod in (*scene.running, *scene.waiting)
        if pod.namespace == workload.namespace
        and (us in workload_names(pod) or (workload.kind == "Pod" and pod.name == workload.name))
    ]


def _place(
    world: World, placer: PodPlacer, workload: WantedWorkload, older: Sequence[Pod]
) -> WorkloadFit:
    if workload.group is not None:
        return _place_together(world, placer, workload, workload.group, older)
    return _roll_out(world, placer, workload, older)


def _roll_out(
    world: World, placer: PodPlacer, workload: WantedWorkload, older: Sequence[Pod]
) -> WorkloadFit:
    """Replaces old pods by new ones, with no more pods at a time than the rollout allows.

    Where a pod finds no node, none of its template does.
    """
    left, old = deque(workload.pods), deque(pod for pod in older if pod.node_name)
    wanted, message = len(workload.pods), ""
    placed: list[Pod] = []
    refused: Pod | None = None
    while left:
        begun, said = (len(left), len(old)), ""
        while left and (not old or len(placed) + len(old) < wanted + workload.surge):
            said = placer.place(left[0])
            if said:
                break
            placed.append(left.popleft())
        while old and len(placed) + len(old) > wanted - workload.unavailable:
            world.remove(old.popleft(), 0.0)
        if begun == (len(left), len(old)):
            first = left[0]
            refused, message = refused or first, message or said
            left = deque(pod for pod in left if pod.spec is not first.spec)
    if len(placed) == wanted:
        # A rollout that is stuck leaves them where they are.
        for pod in old:
            world.remove(pod, 0.0)
        old.clear()
    counts = Counter(placer.places[pod.key] for pod in placed)
    return WorkloadFit(
        workload.text,
        wanted,
        len(placed),
        len(older),
        len(old),
        tuple(NodeShare(name, count) for name, count in counts.most_common()),
        message,
        None if refused is None else placer.explain(refused),
    )


def _place_together(
    world: World,
    placer: PodPlacer,
    workload: WantedWorkload,
    group: PodGroup,
    older: Sequence[Pod],
) -> WorkloadFit:
    """Places the pods of a group in one decision, once those of an older version are gone."""
    engine, pods = world.engine, workload.pods
    for pod in older:
        world.remove(pod, 0.0)
    for pod in pods:
        engine.cluster.expect(pod)
    why = explain_gang(engine, group)
    placed: dict[str, str] = {}
    if why.has_place:
        decision = engine.decide_group(group, pods)
        placed = {each.pod.key: each.node_name for each in decision.result.placed}
        decision.trial.keep()
    placer.places.update({pod.key: placed.get(pod.key, "") for pod in pods})
    counts = Counter(placed.values())
    is_left = len(placed) < len(pods)
    return WorkloadFit(
        workload.text,
        len(pods),
        len(placed),
        len(older),
        nodes=tuple(NodeShare(name, count) for name, count in counts.most_common()),
        message=(why.arithmetic or why.message) if is_left else "",
        gang=why if is_left else None,
    )


def left_over(fit: WorkloadsFit) -> Iterator[WorkloadFit]:
    """Returns the workloads that do not fit."""
    return (each for each in fit.workloads if not each.fits)
