"""Plugins of others that read what changes after a class was made, and engines with them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np

from moorage.cluster import Change, Nodes, NodeView, Rows, Scope
from moorage.cluster.labels import ABSENT
from moorage.config import Configuration
from moorage.framework.attempt import Failed
from moorage.framework.plugin import (
    UNSIGNABLE,
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
)
from moorage.framework.profile import Profile
from moorage.framework.status import Code, Reason, Rejected, unresolvable
from moorage.framework.verdict import Verdict
from moorage.objects.pod import Pod
from tests.builders import pod
from tests.exactness.four_ways import FourWays, configuration, profile
from tests.exactness.honest_plugins import Ordinals
from tests.exactness.test_traps import Told
from tests.registered import REGISTRY


class Curfew(Filter[Pod], Sign):
    """Keeps pods off noisy nodes while a budget says so."""

    name: ClassVar[str] = "Curfew"
    reads = Change.BUDGETS | Change.LABELS
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def filter(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Verdict:
        closed = any(each.name == "curfew" for each in nodes.workloads.budgets)
        noisy = nodes.label("noisy").codes[rows] != ABSENT
        return Verdict.rejecting(noisy & closed, Reason("curfew"))


class Repairs(NodeFilter, Sign):
    """Keeps pods off nodes that are being repaired, and says what of them."""

    name: ClassVar[str] = "Repairs"
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return node.labels.get("repairs")


class Strict(Filter[Pod], Sign):
    """Keeps pods off strict nodes under pressure, which it reads if any node is strict."""

    name: ClassVar[str] = "Strict"
    reads = Change.LABELS | Change.CONDITIONS
    scope = Scope.CLUSTER

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def watch(self, pod: Pod, nodes: Nodes) -> Change:
        return self.reads if nodes.label("strict").filled else Change.LABELS

    def filter(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Verdict:
        return Verdict.rejecting(
            np.array([_is_pressed(nodes, row) for row in nodes.numbers(rows)]), Reason("pressed")
        )


def _is_pressed(nodes: Nodes, row: int) -> bool:
    if not nodes.alive[row]:
        return False
    told = nodes.node(row)
    if "strict" not in told.labels:
        return False
    return any(each.type == "DiskPressure" for each in told.conditions)


class Minority(PreScore[int], Score[int], Sign):
    """Scores by how many rows are feasible, if these are few; its numbers are used as they are."""

    name: ClassVar[str] = "Minority"
    reduces = Reduction.NOTHING

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def pre_score(self, pod: Pod, nodes: Nodes, rows: Any) -> int | None:
        return None if 2 * len(rows) > len(nodes) else len(rows)

    def score(self, prepared: int, nodes: Nodes, rows: Rows) -> Scores:
        return np.array(nodes.numbers(rows), np.int64) % 3 * 30 + prepared


class Quota(PreFilter[int], Filter[int], Sign):
    """Lets no more than two small pods into the cluster, those included that are nominated."""

    name: ClassVar[str] = "Quota"
    reads = Change.PODS | Change.REQUESTED
    scope = Scope.CLUSTER

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def pre_filter(self, pod: Pod, nodes: Nodes) -> int:
        return int(nodes.requested[0].sum()) // 100

    def filter(self, prepared: int, nodes: Nodes, rows: Rows) -> Verdict:
        full = np.full(nodes.count(rows), prepared > 2)
        return Verdict.rejecting(full, Reason("the cluster is full"))

    def add_pod(self, prepared: int, nodes: Nodes, pod: Pod, row: int) -> int:
        return prepared + 1

    def remove_pod(self, prepared: int, nodes: Nodes, pod: Pod, row: int) -> int:
        return prepared - 1


class Doorkeeper(PreFilter[int], Sign):
    """Rejects every pod while a budget says so."""

    name: ClassVar[str] = "Doorkeeper"
    reads = Change.BUDGETS

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def pre_filter(self, pod: Pod, nodes: Nodes) -> Rejected | None:
        closed = any(each.name == "closed" for each in nodes.workloads.budgets)
        return unresolvable("the door is closed") if closed else None


class Clerk(PostFilter, Sign):
    """Tells pods that fit nowhere how many nodes are under pressure, which no filter reads."""

    name: ClassVar[str] = "Clerk"
    reads = Change.CONDITIONS

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def post_filter(
        self, pod: Pod, failed: Failed, nodes: Nodes, profile: Profile
    ) -> Remedy | NoRemedy:
        pressed = sum(bool(nodes.node(row).conditions) for row in nodes.rows.tolist())
        return NoRemedy(Code.UNSCHEDULABLE, (f"{pressed} are pressed",))


class Secretive(PostFilter, Sign):
    """Tells the team of a pod that fits nowhere, and signs no pod."""

    name: ClassVar[str] = "Secretive"
    reads = Change.NONE

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return UNSIGNABLE

    def post_filter(
        self, pod: Pod, failed: Failed, nodes: Nodes, profile: Profile
    ) -> Remedy | NoRemedy:
        return NoRemedy(Code.UNSCHEDULABLE, (f"ask team {pod.annotations.get('team')}",))


PLUGINS: tuple[type[Plugin], ...] = (
    Curfew,
    Repairs,
    Strict,
    Minority,
    Ordinals,
    Quota,
    Doorkeeper,
    Clerk,
    Secretive,
)
WITH_THEM: Registry = {**REGISTRY, **{plugin.name: plugin for plugin in PLUGINS}}


class Following(Told):
    """Engines with plugins of this page."""

    def __init__(self, using: Configuration, *objects: Any) -> None:
        self.ways = FourWays(using, WITH_THEM)
        self.now = 0.0
        self.apply(*objects)


def using(*names: str, **more: Any) -> Configuration:
    enabled = [{"name": name, "weight": 50} for name in names]
    return configuration(profile(plugins={"multiPoint": {"enabled": enabled}}, **more), WITH_THEM)


def few_plugins() -> Configuration:
    """A filter that reads nothing of the cluster, and one score."""
    enabled = [{"name": name} for name in ("PrioritySort", "DefaultBinder", "Ordinals")]
    plugins = {
        "multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled},
        "score": {"enabled": [{"name": "NodeResourcesBalancedAllocation"}]},
    }
    return configuration(profile(plugins=plugins), WITH_THEM)


def small(count: int, prefix: str = "p", **given: Any) -> list[Pod]:
    return [pod(f"{prefix}{at}", cpu="100m", **given) for at in range(count)]
