"""A plugin that reads more than it declares is found, reported and asked about all nodes again."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import numpy as np

from moorage.cluster import Change, Nodes, RowFacts, Rows, Scope
from moorage.engine.actions import Report
from moorage.engine.classes.pod_class import is_checked
from moorage.engine.engine import Engine
from moorage.engine.events import Applied
from moorage.framework.plugin import (
    UPDATED,
    Reduction,
    Registry,
    Rescore,
    Score,
    Scores,
    Sign,
)
from moorage.objects.pod import Pod
from tests.builders import node, pod
from tests.exactness.four_ways import configuration, profile
from tests.exactness.test_reuse_limits import decide
from tests.registered import REGISTRY


class FarSighted(Score[Pod], Sign):
    """Says that a row depends on itself alone, and prefers those after a node with a label."""

    name: ClassVar[str] = "FarSighted"
    reads = Change.LABELS
    scope = Scope.ROW
    reduces = Reduction.NOTHING

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def score(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Scores:
        closed = ["closed" in nodes.node(row).labels for row in nodes.rows.tolist()]
        return np.array([100 * closed[row - 1] for row in nodes.numbers(rows)], np.int64)

    def rescore(self, prepared: Pod, nodes: Nodes, row: RowFacts, scores: Scores) -> Rescore:
        return UPDATED


def test_a_wrong_answer_heals() -> None:
    registry: Registry = {**REGISTRY, FarSighted.name: FarSighted}
    enabled = {"multiPoint": {"enabled": [{"name": FarSighted.name, "weight": 100}]}}
    engine = Engine(configuration(profile(plugins=enabled), registry), registry)
    for name in "ab":
        engine.handle(Applied(node(name, cpu=64)), 0.0)
    decide(engine, pod("first"))
    engine.handle(Applied(node("a", cpu=64, labels={"closed": ""})), 0.0)
    changes = engine.cluster.changes
    for _ in range(20_000):
        if is_checked(changes.generation):
            break
        changes.note(0, int(Change.PORTS))
    reports = []
    for at in range(3):
        engine.handle(Applied(pod(f"p{at}")), 0.0)
        actions = engine.step(0.0)
        reports += [each.message for each in actions if isinstance(each, Report)]
        placed = engine.cluster.pod(f"default/p{at}")
        assert placed is not None
        assert placed.node_name == "b"

    (told,) = reports
    assert FarSighted.name in told
    # From now on, nothing is wrong any more.
    engine.handle(Applied(node("a", cpu=64)), 0.0)
    engine.handle(Applied(node("b", cpu=64, labels={"closed": ""})), 0.0)
    assert decide(engine, pod("last")) == ["a"]
