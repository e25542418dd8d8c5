"""What `moorage top` shows of a cluster: nodes by use, and waiting pods."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from moorage.engine import Engine
from moorage.engine.events import Applied, Removed
from moorage.objects.kinds import Object
from moorage.objects.meta import failure_to_place
from moorage.objects.pod import Pod
from moorage.objects.workload import owner_text
from moorage.web.picture import NodeColumns


class NodeLine(msgspec.Struct, frozen=True, rename="camel"):
    """A node, and which share of each resource that it has is requested."""

    name: str
    cordoned: bool
    uses: dict[str, float]


class WaitingLine(msgspec.Struct, frozen=True, rename="camel"):
    """Pods of one owner that wait for the same reason.

    The reason is empty if only their turn has not come.
    """

    owner: str
    count: int
    reason: str


class TopPicture(msgspec.Struct, frozen=True, rename="camel"):
    """One look at a cluster."""

    nodes: list[NodeLine]
    #: What is requested and allocatable of each resource, in native units.
    totals: dict[str, tuple[float, float]]
    pod_count: int
    waiting: list[WaitingLine]
    #: Why it may be out of date.
    problem: str = ""


class FollowedCluster:
    """A cluster, kept up to date by the objects that an API server sends."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._columns = NodeColumns(engine.cluster)
        self._waiting: dict[str, Pod] = {}

    def applied(self, item: Object, raw: object = None) -> None:
        self._engine.handle(Applied(item), 0.0)
        if isinstance(item, Pod):
            self._waiting.pop(item.uid, None)
            if not item.node_name and not item.is_finished:
                self._waiting[item.uid] = item

    def removed(self, item: Object) -> None:
        self._engine.handle(Removed(item), 0.0)
        if isinstance(item, Pod):
            self._waiting.pop(item.uid, None)

    def unreadable(self, kind: str, key: str, problem: str) -> None:
        """Ignores an object that cannot be read."""

    def look(self, problem: str = "") -> TopPicture:
        self._columns.differences()
        said = (
            (owner_text(pod), failure_to_place(pod.status.conditions) or "")
            for pod in self._waiting.values()
        )
        return TopPicture(
            [NodeLine(*each) for each in self._columns.list_nodes()],
            dict(zip(self._columns.resources, self._columns.totals, strict=True)),
            len(self._engine.cluster.pods),
            group_waiting(said),
            problem=problem,
        )


def group_waiting(pods: Iterable[tuple[str, str]]) -> list[WaitingLine]:
    """Groups waiting pods by owner and reason, the largest group first."""
    counts: dict[tuple[str, str], int] = {}
    for each in pods:
        counts[each] = counts.get(each, 0) + 1
    lines = [WaitingLine(owner, count, reason) for (owner, reason), count in counts.items()]
    return sorted(lines, key=lambda line: (-line.count, line.owner))
