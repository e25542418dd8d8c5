"""What the viewers of an engine know, and what has changed since."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from itertools import chain

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.cluster import Cluster
from moorage.engine import Engine
from moorage.objects.pod import Pod
from moorage.objects.workload import owner_text

from .messages import Figures, Message, NodesPart, RecentEvent, Sample, pack
from .queue_picture import MOST_PUT, WaitingPods

#: Use is sent in thousandths of what a node has; a node without the resource says so.
THOUSAND = 1_000
ABSENT = 0xFFFF
# Requests of pods that were placed by others may go beyond what a node has.
_MOST = 60_000

OPEN, CORDONED = 1, 2

# How many arrivals are sent by name: as many as an eye may follow.
_MOST_ARRIVALS = 40
# Events of one step, and those that a new viewer gets.
_MOST_EVENTS = 20
_EVENTS_KEPT = 100


class Picture:
    """A copy of the visible state of an engine, as of the last step.

    A viewer that applies the messages of `everything` and of all later steps has the same state.
    """

    def __init__(self, engine: Engine, *, limited: bool = True) -> None:
        self._engine = engine
        self._columns = NodeColumns(engine.cluster)
        self._waiting = WaitingPods(engine, MOST_PUT if limited else sys.maxsize)
        self._events: deque[RecentEvent] = deque(maxlen=_EVENTS_KEPT)
        self._preemptions = engine.evictions.count

    def advance(self, figures: Figures, arrived: list[Pod]) -> Generator[None, None, Message]:
        """Catches up with the engine, in slices; returns what has changed."""
        at = figures.sample[0]
        queue = yield from self._waiting.differences(at)
        anew, nodes = self._columns.differences()
        happened = self._list_preemptions(at), _list_placed(at, arrived), self._waiting.events
        events = merge_events(*happened)[:_MOST_EVENTS]
        self._events.extend(events)
        return Message(
            resources=self._columns.resources if anew else None,
            nodes=nodes,
            totals=self._columns.totals if nodes is not None else None,
            queue=queue,
            arrivals=self._locate(arrived),
            events=events,
            figures=figures,
        )

    def everything(self, now: Figures, history: list[Sample]) -> Iterator[Message]:
        """Yields the whole picture in parts."""
        yield Message(
            reset=True,
            resources=self._columns.resources,
            nodes=self._columns.everything(),
            totals=self._columns.totals,
            events=list(self._events),
            figures=now,
            history=history,
        )
        for part in self._waiting.everything():
            yield Message(queue=part)

    def _list_preemptions(self, at: float) -> list[RecentEvent]:
        preemptions, known = self._engine.evictions, self._preemptions
        self._preemptions = preemptions.count
        return [
            RecentEvent(
                at,
                "preempting",
                each.owner,
                each.preemptor,
                each.node,
                victims=each.victims,
                victim_count=each.count,
            )
            for each in preemptions.since(known)
        ]

    def _locate(self, arrived: list[Pod]) -> list[tuple[str, int]]:
        row = self._engine.cluster.nodes.row
        found = ((pod.key, row(pod.node_name)) for pod in arrived[:_MOST_ARRIVALS])
        return [(key, at) for key, at in found if at is not None]


def _list_placed(at: float, arrived: list[Pod]) -> Iterator[RecentEvent]:
    for pod in reversed(arrived):
        yield RecentEvent(at, "placed", owner_text(pod), pod.key, pod.node_name)


def merge_events(*events: Iterable[RecentEvent]) -> list[RecentEvent]:
    """Merges events: one per owner, kind and reason, with the first pod and the number of pods.

    Pods of one owner that were placed make up one event, whichever nodes they are on. Preemptions
    stay apart, because each has victims of its own.
    """
    found: dict[tuple[str, ...], list[RecentEvent]] = {}
    for each in chain(*events):
        why = {"failed": (each.text,), "preempting": (each.text, each.pod)}.get(each.kind, ())
        found.setdefault((each.kind, each.owner, *why), []).append(each)
    return [replace(same[0], count=len(same)) for same in found.values()]


class NodeColumns:
    """The rows as they were sent last."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        #: Another array when nodes came or went.
        self._order: NDArray[np.intp] | None = None
        self._names: dict[int, str] = {}
        self._states = np.zeros(0, np.uint8)
        #: uint16[resource, row]
        self._uses = np.zeros((0, 0), np.uint16)
        #: The resources that some node has, first of all those that every node has.
        self.resources: list[str] = []
        #: What is requested and allocatable of each of them.
        self.totals: list[tuple[float, float]] = []

    def differences(self) -> tuple[bool, NodesPart | None]:
        """Returns whether the nodes begin again, and the rows that differ from what was sent."""
        resources = self._resources()
        begins = self._order is None or resources != self.resources
        if begins:
            self._begin(resources)
        rows, renamed = self._take()
        if begins:
            return True, self.everything()
        return False, self._part(rows, renamed) if len(rows) else None

    def everything(self) -> NodesPart:
        """Returns all rows with a node, as they were sent last."""
        return self._part(np.flatnonzero(self._states), list(self._names))

    def list_nodes(self) -> Iterator[tuple[str, bool, dict[str, float]]]:
        """Yields each node as it was sent last: name, whether cordoned, and shares in use."""
        for row, name in self._names.items():
            uses = zip(self.resources, self._uses[:, row].tolist(), strict=True)
            shares = {each: use / THOUSAND for each, use in uses if use != ABSENT}
            yield name, bool(self._states[row] == CORDONED), shares

    def _resources(self) -> list[str]:
        nodes = self._cluster.nodes
        there = np.atleast_1d((nodes.allocatable[:, nodes.everything] > 0).any(axis=1))
        return [name for name, at in nodes.resources.items() if there[at]]

    def _begin(self, resources: list[str]) -> None:
        self.resources, self._order = resources, None
        self._names = {}
        self._states = np.zeros(0, np.uint8)
        self._uses = np.zeros((len(resources), 0), np.uint16)

    def _take(self) -> tuple[NDArray[np.intp], list[int]]:
        """Notes the present values; returns the rows that are new, and those with other names."""
        self._grow()
        nodes = self._cluster.nodes
        uses, states = self._read()
        new, renamed = (self._uses != uses).any(axis=0) | (self._states != states), []
        if nodes.order is not self._order:
            rows = nodes.rows.tolist()
            names = dict(zip(rows, nodes.names(rows), strict=True))
            renamed = [row for row, name in names.items() if self._names.get(row) != name]
            new[renamed] = True
            self._order, self._names = nodes.order, names
        self._uses, self._states, self.totals = uses, states, self._add_up()
        return np.flatnonzero(new), renamed

    def _read(self) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
        nodes = self._cluster.nodes
        columns = [nodes.resources[name] for name in self.resources]
        has, asked = nodes.allocatable[columns], nodes.requested[columns]
        shares = np.minimum(asked / np.maximum(has, 1) * THOUSAND, _MOST)
        uses = np.where(has > 0, shares, ABSENT).astype(np.uint16)
        states = np.where(nodes.unschedulable, CORDONED, OPEN) * nodes.alive
        return uses, states.astype(np.uint8)

    def _add_up(self) -> list[tuple[float, float]]:
        """Adds up as floats, because sums over all nodes may exceed 64 bits."""
        nodes = self._cluster.nodes
        columns = np.array([nodes.resources[name] for name in self.resources], np.intp)
        at = np.ix_(columns, nodes.rows)
        sums = [
            each[at].astype(np.float64).sum(axis=1) for each in (nodes.requested, nodes.allocatable)
        ]
        return [(float(asked), float(has)) for asked, has in zip(*sums, strict=True)]

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
