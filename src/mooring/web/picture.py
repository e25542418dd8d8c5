"""What the viewers of an engine have been told, and the steps that bring it up to date."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator

from mooring.engine import Engine
from mooring.engine.statistics import Way
from mooring.objects.pod import Pod

from .node_columns import NodeColumns
from .waiting import MOST_PUT, Waiting
from .wire import Figures, Message, Sample

# Arrivals that are told by name, for as many as an eye may follow.
_MOST_ARRIVALS = 40


class Picture:
    """A copy of what can be seen of an engine, as of the last step.

    Whoever has applied the messages of `everything` and of all steps since sees the same.
    """

    def __init__(self, engine: Engine, *, limited: bool = True) -> None:
        self._engine = engine
        self._columns = NodeColumns(engine.cluster)
        self._waiting = Waiting(engine.queue, MOST_PUT if limited else sys.maxsize)

    def advance(self, figures: Figures, arrived: list[Pod]) -> Generator[None, None, Message]:
        """Catches up with the engine, in slices; returns what has changed."""
        queue = yield from self._waiting.differences()
        anew, nodes = self._columns.differences()
        return Message(
            resources=self._columns.resources if anew else None,
            nodes=nodes,
            queue=queue,
            arrivals=self._told(arrived),
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

    def _told(self, arrived: list[Pod]) -> list[tuple[str, int]]:
        row = self._engine.cluster.nodes.row
        found = ((pod.key, row(pod.node_name)) for pod in arrived[:_MOST_ARRIVALS])
        return [(key, at) for key, at in found if at is not None]


def figures(engine: Engine, wall: float, placed: int) -> Figures:
    """The counts of an engine at a time of the wall clock."""
    return Figures(
        sample=_sample(engine, wall, placed),
        nodes=len(engine.cluster.nodes),
        pods=len(engine.cluster.pods),
        waiting=engine.queue.sizes(),
        in_flight=len(engine.queue.in_flight),
    )


def _sample(engine: Engine, wall: float, placed: int) -> Sample:
    decisions = by_batch = by_class = 0
    for reuse in engine.reuse.values():
        statistics = reuse.statistics
        decisions += statistics.decisions
        by_batch += statistics.ways[Way.RANKED]
        by_class += statistics.reused - statistics.ways[Way.RANKED]
    return round(wall, 3), decisions, by_batch, by_class, placed
