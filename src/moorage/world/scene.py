"""The objects of a cluster, and how they would be with nodes added or drained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import msgspec

from moorage.objects.daemons import is_ordinary
from moorage.objects.kinds import Object
from moorage.objects.node import HOSTNAME, Node
from moorage.objects.placement_rules import CORDONED
from moorage.objects.pod import Pod


class DrainError(LookupError):
    """The node to drain does not exist. The text is its name."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The objects of a cluster, sorted by their role in the question."""

    #: Namespaces, volumes, budgets and the like.
    around: tuple[Object, ...] = ()
    nodes: tuple[Node, ...] = ()
    running: tuple[Pod, ...] = ()
    waiting: tuple[Pod, ...] = ()
    #: Pods that a drain sent away, with the node that they are to leave.
    leaving: tuple[tuple[Pod, str], ...] = ()
    #: The nodes that are drained.
    drained: frozenset[str] = frozenset()

    @classmethod
    def of(cls, objects: Iterable[Object]) -> Scene:
        items = list(objects)
        pods = [item for item in items if isinstance(item, Pod) and not item.is_finished]
        return cls(
            tuple(item for item in items if not isinstance(item, Pod | Node)),
            tuple(item for item in items if isinstance(item, Node)),
            tuple(pod for pod in pods if pod.node_name),
            tuple(pod for pod in pods if not pod.node_name),
        )

    def drain(self, names: Iterable[str]) -> Scene:
        """Returns the scene with nodes cordoned, and with the evicted pods waiting.

        Pods that waited before are left out: the question is about those that leave.
        """
        gone = set(names)
        missing = gone - {node.name for node in self.nodes}
        if missing:
            raise DrainError(min(missing))
        away = [pod for pod in self.running if pod.node_name in gone and is_ordinary(pod)]
        # The most important first, as the queue would have it.
        away.sort(key=lambda pod: (-pod.priority, pod.key))
        moving = {pod.uid for pod in away}
        return replace(
            self,
            nodes=tuple(_cordon(node) if node.name in gone else node for node in self.nodes),
            running=tuple(pod for pod in self.running if pod.uid not in moving),
            waiting=(),
            drained=frozenset(gone),
            leaving=tuple(
                (msgspec.structs.replace(pod, node_name=""), pod.node_name) for pod in away
            ),
        )

    def extend(self, shape: Node, count: int) -> Scene:
        """Returns the scene with that many more nodes of a shape."""
        taken = {node.name for node in self.nodes}
        return replace(self, nodes=(*self.nodes, *_copies(shape, count, taken)))


def _cordon(node: Node) -> Node:
    taints = tuple(dict.fromkeys((*node.taints, CORDONED)))
    return msgspec.structs.replace(node, unschedulable=True, taints=taints)


def _copies(shape: Node, count: int, taken: set[str]) -> Iterator[Node]:
    number = 0
    while count:
        number += 1
        name = f"{shape.name}-{number}"
        if name not in taken:
            count -= 1
            labels = {**shape.labels, HOSTNAME: name}
            yield msgspec.structs.replace(shape, name=name, uid=name, labels=labels)
