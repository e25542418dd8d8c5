"""What the viewers of an engine have been told, and what is different by now."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Change, Cluster
from mooring.cluster.changes import EVERYWHERE
from mooring.engine import Engine
from mooring.framework.status import Rejected
from mooring.objects.pod import Pod
from mooring.queue import Queue, QueuedPod
from mooring.queue.queued_pod import Place

from .messages import Figures, Message, NodesPart, Put, QueuePart, Sample, pack

#: Use is told in thousandths of what a node has; a node without the resource says so.
THOUSAND = 1_000
ABSENT = 0xFFFF
# Requests of pods that were placed by others may go beyond what a node has.
_MOST = 60_000

GONE, OPEN, CORDONED = 0, 1, 2

# A generation before everything.
_NEVER = -1

# Pods that are looked at before decisions get their turn again: less than a millisecond.
SLICE = 2_000

# Pods that are told at a time. What is left is different next time too, and is told then: so a
# message stays small, however many pods come at once.
MOST_PUT = 5_000

# Arrivals that are told by name, for as many as an eye may follow.
_MOST_ARRIVALS = 40


class Picture:
    """A copy of what can be seen of an engine, as of the last step.

    A viewer that applies the messages of `everything` and of all steps since sees the same.
    """

    def __init__(self, engine: Engine, *, limited: bool = True) -> None:
        self._engine = engine
        self._columns = NodeColumns(engine.cluster)
        self._waiting = WaitingPods(engine.queue, MOST_PUT if limited else sys.maxsize)

    def advance(self, figures: Figures, arrived: list[Pod]) -> Generator[None, None, Message]:
        """Catches up with the engine, in slices; returns what has changed."""
        queue = yield from self._waiting.differences()
        anew, nodes = self._columns.differences()
        return Message(
            resources=self._columns.resources if anew else None,
            nodes=nodes,
            queue=queue,
            arrivals=self._locate(arrived),
            figures=figures,
        )

    def everything(self, now: Figures, history: list[Sample]) -> Iterator[Message]:
        """The whole picture in parts."""
        yield Message(
            reset=True,
            resources=self._columns.resources,
            nodes=self._columns.everything(),
            figures=now,
            history=history,
        )
        for part in self._waiting.everything():
            yield Message(queue=part)

    def _locate(self, arrived: list[Pod]) -> list[tuple[str, int]]:
        row = self._engine.cluster.nodes.row
        found = ((pod.key, row(pod.node_name)) for pod in arrived[:_MOST_ARRIVALS])
        return [(key, at) for key, at in found if at is not None]


class NodeColumns:
    """The rows as they were told last."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._generation = _NEVER
        self._names: dict[int, str] = {}
        self._states = np.zeros(0, np.uint8)
        #: uint16[resource, row]
        self._uses = np.zeros((0, 0), np.uint16)
        #: The resources that some node has, first of all those that every node has.
        self.resources: list[str] = []

    def differences(self) -> tuple[bool, NodesPart | None]:
        """Whether the nodes begin anew, and the rows that are different from what was told."""
        nodes, changes = self._cluster.nodes, self._cluster.changes
        changed = changes.since(self._generation)
        self._generation = changes.generation
        resources = self._resources()
        if changed is None or resources != self.resources:
            self._begin(resources)
            self._take(nodes.rows)
            return True, self.everything()
        found = np.array([row for row in changed if row != EVERYWHERE], np.intp)
        rows = self._take(np.sort(found))
        renamed = [row for row in rows.tolist() if changed[row] & Change.MEMBERSHIP]
        return False, self._part(rows, renamed) if len(rows) else None

    def everything(self) -> NodesPart:
        """All rows that have a node, as they were told last."""
        return self._part(np.flatnonzero(self._states), list(self._names))

    def _resources(self) -> list[str]:
        nodes = self._cluster.nodes
        there = np.atleast_1d((nodes.allocatable[:, nodes.everything] > 0).any(axis=1))
        return [name for name, at in nodes.resources.items() if there[at]]

    def _begin(self, resources: list[str]) -> None:
        self.resources = resources
        self._names.clear()
        self._states = np.zeros(0, np.uint8)
        self._uses = np.zeros((len(resources), 0), np.uint16)

    def _take(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Notes what these rows show now; returns those where that is new."""
        self._grow()
        uses, states = self._read(rows)
        names = self._read_names(rows)
        renamed = [self._names.get(row) != name for row, name in names.items()]
        new = (
            (self._uses[:, rows] != uses).any(axis=0)
            | (self._states[rows] != states)
            | np.array(renamed, np.bool_)
        )
        self._uses[:, rows], self._states[rows] = uses, states
        for row, name in names.items():
            if name:
                self._names[row] = name
            else:
                self._names.pop(row, None)
        return rows[new]

    def _read(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
        nodes = self._cluster.nodes
        columns = np.array([nodes.resources[name] for name in self.resources], np.intp)
        at = np.ix_(columns, rows)
        has, asked = nodes.allocatable[at], nodes.requested[at]
        shares = np.minimum(asked / np.maximum(has, 1) * THOUSAND, _MOST)
        uses = np.where(has > 0, shares, ABSENT).astype(np.uint16)
        states = np.where(nodes.unschedulable[rows], CORDONED, OPEN) * nodes.alive[rows]
        return uses, states.astype(np.uint8)

    def _read_names(self, rows: NDArray[np.intp]) -> dict[int, str | None]:
        nodes = self._cluster.nodes
        alive = nodes.alive[rows].tolist()
        return {
            row: nodes.name(row) if there else None
            for row, there in zip(rows.tolist(), alive, strict=True)
        }

    def _grow(self) -> None:
        count = len(self._cluster.nodes.alive)
        more = count - len(self._states)
        if more > 0:
            self._states = np.pad(self._states, (0, more))
            self._uses = np.pad(self._uses, ((0, 0), (0, more)), constant_values=ABSENT)

    def _part(self, rows: NDArray[np.intp], named: list[int]) -> NodesPart:
        return NodesPart(
            pack(rows, "<u4"),
            pack(self._states[rows], "<u1"),
            [pack(column[rows], "<u2") for column in self._uses],
            {row: self._names[row] for row in named if row in self._names},
        )


@dataclass(slots=True)
class _Shown:
    """What was told of a waiting pod."""

    number: int
    key: str
    place: Place
    attempts: int
    reason: str
    message: str
    refusal: Rejected | None
    #: The last look at the queue that found it.
    seen: int


class WaitingPods:
    """The queue as it was told last."""

    def __init__(self, queue: Queue, most_put: int = MOST_PUT) -> None:
        self._queue = queue
        self._most_put = most_put
        self._shown: dict[str, _Shown] = {}
        self._numbers = count()
        self._looks = 0

    def differences(self) -> Generator[None, None, QueuePart | None]:
        """Looks at the queue in slices; in between the queue may change."""
        self._looks += 1
        put: list[_Shown] = []
        pods = iter([*self._queue, *self._queue.in_flight])
        while some := list(islice(pods, SLICE)):
            for queued in some:
                self._look(queued, put)
            yield
        gone = [uid for uid, shown in self._shown.items() if shown.seen != self._looks]
        numbers = [self._shown.pop(uid).number for uid in gone]
        return _part(put, numbers) if put or numbers else None

    def everything(self) -> Iterator[QueuePart]:
        """All of the queue, as it was told last, in parts."""
        shown = iter(list(self._shown.values()))
        while some := list(islice(shown, SLICE)):
            yield _part(some, [])

    def _look(self, queued: QueuedPod, put: list[_Shown]) -> None:
        if queued.place is Place.NOWHERE:
            return
        shown = self._shown.get(queued.pod.uid)
        if shown is not None:
            shown.seen = self._looks
            if _is_unchanged(shown, queued):
                return
        if len(put) < self._most_put:
            number = next(self._numbers) if shown is None else shown.number
            shown = self._shown[queued.pod.uid] = _show(number, queued, self._looks)
            put.append(shown)


def describe_wait(queued: QueuedPod) -> str:
    """Why a pod waits; empty if it only waits for its turn."""
    if queued.refusal is not None:
        return f"{queued.gated_by}: {queued.refusal.message}"
    if queued.message or not queued.blamed:
        return queued.message
    return f"rejected by {', '.join(sorted(queued.blamed))}"


def _is_unchanged(shown: _Shown, queued: QueuedPod) -> bool:
    return (
        shown.place is queued.place
        and shown.attempts == queued.attempts
        and shown.message == queued.message
        and shown.refusal is queued.refusal
    )


def _show(number: int, queued: QueuedPod, look: int) -> _Shown:
    return _Shown(
        number,
        queued.pod.key,
        queued.place,
        queued.attempts,
        describe_wait(queued),
        queued.message,
        queued.refusal,
        look,
    )


def _part(shown: Iterable[_Shown], gone: list[int]) -> QueuePart:
    reasons: dict[str, int] = {}
    put: list[Put] = [
        (
            each.number,
            each.key,
            each.place.value,
            reasons.setdefault(each.reason, len(reasons)),
            each.attempts,
        )
        for each in shown
    ]
    return QueuePart(put, gone, list(reasons))
