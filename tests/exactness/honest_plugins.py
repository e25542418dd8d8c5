"""Plugins of others that keep every promise, and read what the built-in ones do not.

Each declares what it reads, and signs what it reads of the pod.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, Nodes, NodeView, Rows, Scope
from moorage.cluster.labels import ABSENT
from moorage.framework.attempt import Failed
from moorage.framework.plugin import (
    Filter,
    NodeFilter,
    NoRemedy,
    Plugin,
    PostFilter,
    PreFilter,
    PreScore,
    Reduction,
    Registry,
    Remedy,
    Score,
    Scores,
    Sign,
    normalize_scores,
)
from moorage.framework.profile import Profile
from moorage.framework.status import Code, Reason
from moorage.framework.verdict import Verdict
from moorage.objects.pod import Pod
from tests.registered import REGISTRY


class Registrar(PostFilter):
    """Tells the team of a pod that fits nowhere, which nobody else reads."""

    name: ClassVar[str] = "Registrar"

    def post_filter(
        self, pod: Pod, failed: Failed, nodes: Nodes, profile: Profile
    ) -> Remedy | NoRemedy:
        return NoRemedy(Code.UNSCHEDULABLE, (f"ask team {pod.annotations.get('team')}",))


class Maintenance(PreScore[Pod], Score[Pod], Sign):
    """Prefers nodes that stay, and skips itself while no node is to be maintained."""

    name: ClassVar[str] = "Maintenance"
    reads = Change.LABELS
    scope = Scope.CLUSTER
    reduces = Reduction.LARGEST

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def pre_score(self, pod: Pod, nodes: Nodes, rows: NDArray[np.intp]) -> Pod | None:
        return pod if nodes.label("maintenance").filled else None

    def score(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Scores:
        return (nodes.label("maintenance").codes[rows] != ABSENT).astype(np.int64)

    def normalize(self, prepared: Pod, scores: Scores) -> Scores:
        return normalize_scores(scores, reverse=True)


class PlainMaintenance(Maintenance):
    """The same with scores that need no normalising; they are not 0 where it would be skipped."""

    name: ClassVar[str] = "PlainMaintenance"
    reduces = Reduction.NOTHING

    def score(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Scores:
        leaving = nodes.label("maintenance").codes[rows] != ABSENT
        odd = np.array(nodes.numbers(rows), np.int64) % 2
        return np.where(leaving, 0, 90 + odd)

    def normalize(self, prepared: Pod, scores: Scores) -> Scores:
        return scores


class Freeze(PreFilter[Pod], Filter[Pod], Sign):
    """Rejects old nodes while any node says that old ones are frozen."""

    name: ClassVar[str] = "Freeze"
    reads = Change.LABELS
    scope = Scope.CLUSTER

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def pre_filter(self, pod: Pod, nodes: Nodes) -> Pod | None:
        return pod if nodes.label("freeze").filled else None

    def filter(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Verdict:
        return Verdict.rejecting(nodes.label("old").codes[rows] != ABSENT, Reason("frozen"))


class Gossip(NodeFilter, Sign):
    """Keeps pods off nodes where a pod's annotation says so."""

    name: ClassVar[str] = "Gossip"
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        noisy = any(other.annotations.get("noisy") == "yes" for other in node.pods)
        return "a pod there is noisy" if noisy else None


class Starting(NodeFilter, Sign):
    """Keeps pods off nodes where a pod has not begun to run."""

    name: ClassVar[str] = "Starting"
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        late = any(other.status.phase == "Pending" for other in node.pods)
        return "a pod there is starting" if late else None


class Owners(NodeFilter, Sign):
    """Keeps pods off nodes where a pod belongs to a batch."""

    name: ClassVar[str] = "Owners"
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        batch = any(other.owner is not None and other.owner.name == "batch" for other in node.pods)
        return "a batch runs there" if batch else None


class Pressure(NodeFilter, Sign):
    """Keeps pods off nodes whose disk is full, as a condition tells."""

    name: ClassVar[str] = "Pressure"
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        full = any(
            each.type == "DiskPressure" and each.status == "True" for each in node.node.conditions
        )
        return "the disk is full" if full else None


class Identity(NodeFilter, Sign):
    """Keeps pods off a node that is another one by the same name."""

    name: ClassVar[str] = "Identity"
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return "an impostor" if node.node.uid == "impostor" else None


class Ordinals(NodeFilter, Sign):
    """Keeps the pods of a stateful set off some nodes by their ordinals, which it signs."""

    name: ClassVar[str] = "Ordinals"
    reads = Change.MEMBERSHIP
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return pod.name[-1]

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return "the node is for other ordinals" if pod.name[-1] == node.name[-1] else None


class Statuses(NodeFilter, Sign):
    """Reads, and signs, what is reported about the pod itself."""

    name: ClassVar[str] = "Statuses"
    reads = Change.MEMBERSHIP
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return bool(pod.status.conditions)

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        failed = bool(pod.status.conditions) and node.name.endswith("1")
        return "not for pods that failed before" if failed else None


class Tired(NodeFilter, Sign):
    """Cannot sign pods of one team."""

    name: ClassVar[str] = "Tired"
    reads = Change.NONE
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        if pod.labels.get("team") == "odd":
            raise ValueError("no idea")
        return cast(Hashable, [1]) if pod.labels.get("team") == "list" else None

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return None


HONEST: tuple[type[Plugin], ...] = (
    Registrar,
    Maintenance,
    PlainMaintenance,
    Freeze,
    Gossip,
    Starting,
    Owners,
    Pressure,
    Identity,
    Ordinals,
    Statuses,
    Tired,
)
WITH_HONEST: Registry = {**REGISTRY, **{plugin.name: plugin for plugin in HONEST}}
