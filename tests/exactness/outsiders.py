"""Plugins from elsewhere: those that say nothing of themselves, a little, or everything."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, Nodes, NodeView, Rows, Scope
from moorage.framework.plugin import (
    Filter,
    Narrowed,
    NodeFilter,
    NodeScore,
    Plugin,
    PreFilter,
    PreScore,
    Reduction,
    Registry,
    Score,
    Scores,
    Sign,
    normalize_scores,
)
from moorage.framework.status import Reason, Rejected, unresolvable
from moorage.framework.verdict import Verdict
from moorage.objects.pod import Pod
from tests.registered import REGISTRY


class Unsigned(NodeFilter, NodeScore):
    """In plain Python and without a signature; it even reads the pod's name."""

    name: ClassVar[str] = "Unsigned"

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return "an unlucky pair" if hash_of(pod.name + node.name) % 5 == 0 else None

    def score_node(self, pod: Pod, node: NodeView) -> int:
        return hash_of(node.name + pod.name) % 100


class Crowds(NodeScore, Sign):
    """Signed and no more: it says neither what it reads nor how far that reaches."""

    name: ClassVar[str] = "Crowds"
    reduces = Reduction.EVERYTHING

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return pod.labels.get("index")

    def score_node(self, pod: Pod, node: NodeView) -> int:
        same = [other for other in node.pods if other.labels.get("index") == "1"]
        return min(
            100, 10 * len(same) + len(node.node.annotations) + len(pod.labels.get("index", ""))
        )

    def normalize(self, prepared: Pod, scores: Scores) -> Scores:
        return normalize_scores(scores)


class Doorkeeper(PreFilter[None], Sign):
    """Has no filter, yet turns pods away, or sends them somewhere, by what is in the cluster."""

    name: ClassVar[str] = "Doorkeeper"

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def pre_filter(self, pod: Pod, nodes: Nodes) -> Narrowed[None] | Rejected | None:
        cordoned = int(np.count_nonzero(nodes.unschedulable))
        if cordoned == 1:
            return unresolvable("one node is cordoned")
        if cordoned == 2:
            return Narrowed(None, frozenset(map(nodes.name, nodes.rows.tolist()[:3])))
        return None


class Majority(PreScore[int], Score[int], Sign):
    """What it prepares, and whether it scores at all, depends on how many rows are feasible."""

    name: ClassVar[str] = "Majority"

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def pre_score(self, pod: Pod, nodes: Nodes, rows: NDArray[np.intp]) -> int | None:
        return None if 2 * len(rows) > len(nodes) else len(rows)

    def score(self, prepared: int, nodes: Nodes, rows: Rows) -> Scores:
        numbers = np.array(nodes.numbers(rows), np.int64)
        return (numbers * 37 + prepared) % 100


class Columnar(Filter[Pod], Score[Pod], Sign):
    """In columns, with everything said, as an author who has read the manual does it."""

    name: ClassVar[str] = "Columnar"
    reads = Change.UNSCHEDULABLE | Change.REQUESTED
    scope = Scope.ROW
    reduces = Reduction.LARGEST

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return pod.priority

    def filter(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Verdict:
        full = nodes.requested[0][rows] > 1_500 + 100 * prepared.priority
        return Verdict.rejecting(full, Reason("cpu is for others"))

    def score(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Scores:
        return nodes.requested[0][rows] // 10

    def normalize(self, prepared: Pod, scores: Scores) -> Scores:
        return normalize_scores(scores, reverse=True)


class Fragile(Filter[Pod], Score[Pod], Sign):
    """Raises when it sees what it does not expect, and scores out of range when it is full."""

    name: ClassVar[str] = "Fragile"
    reads = Change.REQUESTED | Change.ALLOCATABLE
    scope = Scope.ROW
    reduces = Reduction.NOTHING

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        if pod.labels.get("tier") == "y":
            raise ValueError("no tier y")
        return None

    def filter(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Verdict:
        if (nodes.requested[0][rows] > 3_000).any():
            raise RuntimeError("too much to count")
        return Verdict.accepting(nodes.count(rows))

    def score(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Scores:
        if (nodes.allocatable[nodes.resources["pods"]][rows] == 3).any():
            raise LookupError("too few pods")
        scores: Scores = nodes.requested[0][rows] // 20
        return scores


class Relative(NodeScore, Sign):
    """Signed, with scores out of range now and then."""

    name: ClassVar[str] = "Relative"

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def score_node(self, pod: Pod, node: NodeView) -> int:
        return node.requested("cpu") // 15


OUTSIDERS: tuple[type[Plugin], ...] = (
    Unsigned,
    Crowds,
    Doorkeeper,
    Majority,
    Columnar,
    Fragile,
    Relative,
)

WITH_OUTSIDERS: Registry = {**REGISTRY, **{plugin.name: plugin for plugin in OUTSIDERS}}


def hash_of(text: str) -> int:
    """The same in every run."""
    return sum(ord(letter) * (at + 1) for at, letter in enumerate(text))
