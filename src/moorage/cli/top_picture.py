"""What `moorage top` shows, read from a cluster or a scheduler: nodes by use, and waiting pods."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Iterable

import msgspec
import numpy as np

from moorage.engine import Engine
from moorage.engine.events import Applied, Removed
from moorage.objects.kinds import Object
from moorage.objects.meta import failure_to_place
from moorage.objects.pod import Pod
from moorage.objects.workload import owner_text
from moorage.web.messages import Figures, Message, NodesPart, QueuePart, Sample
from moorage.web.picture import ABSENT, CORDONED, GONE, THOUSAND, NodeColumns


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
    #: Of a running scheduler: decisions and placements per second.
    rates: tuple[float, float] | None = None
    #: Why it may be out of date.
    problem: str = ""


class FollowedNodes:
    """The nodes, kept up to date by messages."""

    def __init__(self) -> None:
        self.resources: list[str] = []
        self.totals: list[tuple[float, float]] = []
        self._names: dict[int, str] = {}
        self._states: dict[int, int] = {}
        self._uses: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._names)

    def begin(self, resources: list[str]) -> None:
        self.resources = resources
        self._names, self._states, self._uses = {}, {}, {}

    def apply(self, part: NodesPart) -> None:
        columns = [_numbers(column, "<u2") for column in part.uses]
        states = _numbers(part.states, "<u1")
        for at, row in enumerate(_numbers(part.rows, "<u4")):
            if states[at] == GONE:
                self._names.pop(row, None)
                continue
            self._names[row] = part.names.get(row) or self._names[row]
            self._states[row] = states[at]
            self._uses[row] = [column[at] for column in columns]

    def lines(self) -> list[NodeLine]:
        return [
            NodeLine(name, self._states[row] == CORDONED, self._shares(row))
            for row, name in self._names.items()
        ]

    def _shares(self, row: int) -> dict[str, float]:
        pairs = zip(self.resources, self._uses[row], strict=True)
        return {name: use / THOUSAND for name, use in pairs if use != ABSENT}


class FollowedCluster:
    """A cluster, kept up to date by the objects that an API server sends."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._columns = NodeColumns(engine.cluster)
        self._nodes = FollowedNodes()
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
        anew, part = self._columns.differences()
        if anew:
            self._nodes.begin(self._columns.resources)
        if part is not None:
            self._nodes.apply(part)
        said = (
            (owner_text(pod), failure_to_place(pod.status.conditions) or "")
            for pod in self._waiting.values()
        )
        return TopPicture(
            self._nodes.lines(),
            dict(zip(self._columns.resources, self._columns.totals, strict=True)),
            len(self._engine.cluster.pods),
            group_waiting(said),
            problem=problem,
        )


class FollowedScheduler:
    """A running scheduler, kept up to date by the messages of its page."""

    def __init__(self) -> None:
        self._nodes = FollowedNodes()
        self._waiting: dict[int, tuple[str, str]] = {}
        self._pods = 0
        self._samples: list[Sample] = []
        self._problem = ""
        #: Set once all nodes and all waiting pods are known.
        self.known = asyncio.Event()

    def apply(self, line: bytes) -> None:
        """Takes in a message; raises msgspec.MsgspecError if it is not valid."""
        message = msgspec.json.decode(line, type=Message)
        if message.reset:
            self._waiting = {}
        if message.resources is not None:
            self._nodes.begin(message.resources)
        if message.nodes is not None:
            self._nodes.apply(message.nodes)
        self._nodes.totals = message.totals or self._nodes.totals
        if message.queue is not None:
            self._apply_queue(message.queue)
        if message.figures is not None:
            self._pods = message.figures.pods
            self._samples = [*self._samples, message.figures.sample][-_SAMPLES:]
            self._check(message.figures)
        self._problem = ""

    def lost(self, problem: str) -> None:
        """Notes that the scheduler does not answer; it is asked again."""
        self._problem = problem

    def _check(self, figures: Figures) -> None:
        # A picture begins empty, and many pods come in several messages.
        waiting = sum(figures.waiting.values())
        if figures.nodes == len(self._nodes) and waiting <= len(self._waiting):
            self.known.set()

    def _apply_queue(self, part: QueuePart) -> None:
        for number, _, _, _, reason, owner, _, _ in part.put:
            self._waiting[number] = part.texts[owner], part.texts[reason]
        for number in part.gone:
            self._waiting.pop(number, None)

    def look(self) -> TopPicture:
        return TopPicture(
            self._nodes.lines(),
            dict(zip(self._nodes.resources, self._nodes.totals, strict=False)),
            self._pods,
            group_waiting(self._waiting.values()),
            self._rates(),
            self._problem,
        )

    def _rates(self) -> tuple[float, float] | None:
        """Decisions and placements per second since the oldest sample."""
        if len(self._samples) < 2 or self._samples[-1][0] <= self._samples[0][0]:
            return None
        first, last = self._samples[0], self._samples[-1]
        seconds = last[0] - first[0]
        return (last[1] - first[1]) / seconds, (last[4] - first[4]) / seconds


# Samples that rates are taken over: a scheduler tells one every quarter of a second.
_SAMPLES = 8


def group_waiting(pods: Iterable[tuple[str, str]]) -> list[WaitingLine]:
    """Groups waiting pods by owner and reason, the largest group first."""
    counts: dict[tuple[str, str], int] = {}
    for each in pods:
        counts[each] = counts.get(each, 0) + 1
    lines = [WaitingLine(owner, count, reason) for (owner, reason), count in counts.items()]
    return sorted(lines, key=lambda line: (-line.count, line.owner))


def _numbers(text: str, kind: str) -> list[int]:
    return [int(each) for each in np.frombuffer(b64decode(text), kind)]
