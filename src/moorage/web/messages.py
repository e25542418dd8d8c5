"""The messages to viewers. Applied one after the other, they make up the picture.

Columns are base64 of little-endian numbers, which a browser reads as typed arrays.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.engine import Engine
from moorage.engine.classes.statistics import DecisionPath

#: A waiting pod: its number, namespace/name, place and attempts. Then indexes into `texts`: why it
#: waits, its owner, its group, and the node where others make room for it.
Put = tuple[int, str, str, int, int, int, int, int]

#: A moment: seconds of the wall clock, decisions, those by batch and by class, pods placed, and
#: pods that wait.
Sample = tuple[float, int, int, int, int, int]


class Detail(msgspec.Struct, frozen=True, rename="camel"):
    """The encoding of what the page asks for."""


class _Part(Detail, frozen=True, omit_defaults=True):
    """The encoding of messages: fields with their default are left out."""


class NodesPart(_Part, frozen=True):
    """Rows of nodes that changed, and their new values; `names` has new names."""

    rows: str
    states: str
    uses: list[str]
    names: dict[int, str]


class QueuePart(_Part, frozen=True):
    """Waiting pods that came or changed, and the numbers of those that do not wait any more."""

    put: list[Put] = []
    gone: list[int] = []
    #: The texts that `put` refers to: like pods have the same ones.
    texts: list[str] = []


class RecentEvent(_Part, frozen=True):
    """What happened to pods of one owner: the first of them, and how many there are."""

    #: Seconds of the wall clock.
    at: float
    #: preempting: others are evicted for it.
    kind: Literal["placed", "failed", "preempting"]
    owner: str
    #: Preempting may also be a group, which `owner` says.
    pod: str
    #: The node, or the reason; empty where a group preempts, on whichever nodes.
    text: str
    count: int = 1
    #: The first pods that are evicted, and how many there are.
    victims: tuple[str, ...] = ()
    victim_count: int = 0


class Figures(_Part, frozen=True, kw_only=True):
    """Counts at one moment. Rates are for the reader to take."""

    sample: Sample
    nodes: int
    pods: int
    #: By place: active, backoff, unschedulable, gated.
    waiting: dict[str, int]
    in_flight: int


class Message(_Part, frozen=True, kw_only=True):
    """A step from one picture to the next."""

    #: The picture begins anew: forget everything.
    reset: bool = False
    #: The nodes begin anew, with these resources as columns.
    resources: list[str] | None = None
    nodes: NodesPart | None = None
    #: What is requested and allocatable of each resource on all nodes, if that has changed.
    totals: list[tuple[float, float]] | None = None
    queue: QueuePart | None = None
    #: Pods that were placed just now, as namespace/name and row; not all of them if there are many.
    arrivals: list[tuple[str, int]] = []
    #: What happened since the last message, or lately.
    events: list[RecentEvent] = []
    figures: Figures | None = None
    #: What was before.
    history: list[Sample] = []


def pack(values: NDArray[Any], kind: str) -> str:
    """Encodes numbers of a type such as `<u2` in base64."""
    return b64encode(np.ascontiguousarray(values, np.dtype(kind)).tobytes()).decode()


def encode_line(message: Message) -> bytes:
    """Encodes a message as one line of JSON."""
    return msgspec.json.encode(message) + b"\n"


def count_figures(engine: Engine, wall: float, placed: int) -> Figures:
    """Returns the counts of an engine at a time of the wall clock."""
    sizes = engine.queue.sizes()
    return Figures(
        sample=_sample(engine, wall, placed, sum(sizes.values())),
        nodes=len(engine.cluster.nodes),
        pods=len(engine.cluster.pods),
        waiting=sizes,
        in_flight=len(engine.queue.in_flight),
    )


def _sample(engine: Engine, wall: float, placed: int, waiting: int) -> Sample:
    decisions = by_batch = by_class = 0
    for reuse in engine.classes.values():
        statistics = reuse.statistics
        decisions += statistics.decisions
        by_batch += statistics.paths[DecisionPath.BATCH]
        by_class += statistics.reused - statistics.paths[DecisionPath.BATCH]
    return round(wall, 3), decisions, by_batch, by_class, placed, waiting
