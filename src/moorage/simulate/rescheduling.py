"""What if everything were placed anew: how full nodes would be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np

from moorage.engine import Engine
from moorage.engine.explain.explanation import ExplanationPart
from moorage.objects.daemons import is_ordinary
from moorage.objects.pod import Pod
from moorage.objects.resources import CPU, MEMORY
from moorage.world import Scene, World

from .drain import TouchedBudget, find_budgets
from .pod_fit import PodPlacer

replace = msgspec.structs.replace

_DECILES = 10


class NodeResourceUse(ExplanationPart, frozen=True):
    """How much of a resource is used, and on how many nodes to which share."""

    resource: str
    allocatable: int
    used: int
    #: Nodes that are used to 0-10 %, 10-20 %, … 90-100 %.
    histogram: tuple[int, ...]
    #: The most that one node has left.
    largest_free: int
    #: Percent of what is free that is on nodes without room for a median pod.
    fragmented: int


class Packing(ExplanationPart, frozen=True):
    """How full the nodes are, and how many pods had to move."""

    name: str
    pods: int
    #: Pods that find no node.
    left: int
    nodes: int
    nodes_in_use: int
    resources: tuple[NodeResourceUse, ...]
    #: Pods that are on another node than they are now.
    moves: int = 0
    budgets: tuple[TouchedBudget, ...] = ()

    @property
    def empty_nodes(self) -> int:
        return self.nodes - self.nodes_in_use


def measure_present(engine: Engine, scene: Scene) -> Packing:
    """Measures how full the nodes are now."""
    world = World(engine)
    for item in (*scene.around, *scene.nodes, *scene.running):
        world.apply(item, 0.0)
    moving = [pod for pod in scene.running if is_ordinary(pod)]
    return _measure("now", engine, moving, left=0)


def reschedule(
    name: str, engine: Engine, scene: Scene, selects: Callable[[Pod], bool] = lambda pod: True
) -> Packing:
    """Places the selected pods anew, in a new engine, the most important and oldest first.

    Pods of daemonsets and static pods stay where they are.
    """
    moving = [pod for pod in scene.running if is_ordinary(pod) and selects(pod)]
    gone = {pod.uid for pod in moving}
    world = World(engine)
    for item in (
        *scene.around,
        *scene.nodes,
        *(each for each in scene.running if each.uid not in gone),
    ):
        world.apply(item, 0.0)
    placer = PodPlacer(engine.decider)
    for pod in sorted(moving, key=lambda each: (-each.priority, each.created or 0.0, each.key)):
        placer.place(replace(pod, node_name=""))
    moved = [pod for pod in moving if placer.places[pod.key] not in ("", pod.node_name)]
    left = sum(1 for pod in moving if not placer.places[pod.key])
    packing = _measure(name, engine, moving, left)
    return replace(packing, moves=len(moved), budgets=find_budgets(scene.around, moved))


def _measure(name: str, engine: Engine, pods: Sequence[Pod], left: int) -> Packing:
    nodes = engine.cluster.nodes
    rows = nodes.rows
    held = [nodes.pods(row).values() for row in rows.tolist()]
    in_use = sum(1 for each in held if any(map(is_ordinary, each)))
    return Packing(
        name,
        len(pods),
        left,
        len(rows),
        in_use,
        tuple(_measure_resource(resource, engine, pods) for resource in (CPU, MEMORY)),
    )


def _measure_resource(resource: str, engine: Engine, pods: Sequence[Pod]) -> NodeResourceUse:
    nodes = engine.cluster.nodes
    whole = np.array(
        [_amount(nodes.node(row).allocatable, resource) for row in nodes.rows.tolist()], np.int64
    )
    used = np.array(
        [
            sum(_amount(pod.requests, resource) for pod in nodes.pods(row).values())
            for row in nodes.rows.tolist()
        ],
        np.int64,
    )
    free = np.maximum(whole - used, 0)
    shares = np.minimum(used / np.maximum(whole, 1), 0.999)
    histogram = np.bincount((shares * _DECILES).astype(np.intp), minlength=_DECILES)
    median = int(np.median([_amount(pod.requests, resource) for pod in pods])) if pods else 0
    stranded = int(free[free < median].sum())
    return NodeResourceUse(
        resource,
        int(whole.sum()),
        int(used.sum()),
        tuple(histogram.tolist()),
        int(free.max(initial=0)),
        100 * stranded // max(int(free.sum()), 1),
    )


def _amount(amounts: Iterable[tuple[str, int]], resource: str) -> int:
    return dict(amounts).get(resource, 0)
