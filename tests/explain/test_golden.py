"""Explain agrees with recorded verdicts, and every "would fit if" is true when tried."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec
import pytest

from moorage.documents.errors import ConfigError
from moorage.engine import Engine
from moorage.engine.explain import Explanation, explain
from moorage.simulate import verdicts
from moorage.simulate.conformance import make_engine, strip_expression_errors, walk_steps
from moorage.simulate.verdicts import RecordedRefusal, RecordedScenario, RecordedStep
from tests.explain.frozen import columns
from tests.explain.trying import assert_holds, evicts
from tests.registered import REGISTRY

# Those with groups of pods are in the words of 1.37, and an explanation asks no extender.
RECORDED = sorted(
    path
    for path in (Path(__file__).parents[1] / "golden").glob("*.jsonl.gz")
    if not path.name.startswith(("gang", "extender"))
)

#: What the scenarios of a category must at least give rise to, so that the law is about something.
KINDS = {
    "interpod": {"pod-affinity", "pod-anti-affinity"},
    "mixed": {"several"},
    "nodeaffinity": {"node-labels"},
    "nodename": {"node-name"},
    "ports": {"ports"},
    "preemption": {"priority", "resources"},
    "resources": {"resources"},
    "spread": {"spread"},
    "taints": {"taint", "cordon"},
    "volumes": {"volumes"},
}


def recordings(path: Path) -> Iterator[tuple[RecordedScenario, Engine]]:
    """Every second one: each category has many that are alike."""
    for recording in islice(verdicts.read_scenarios(path), 0, None, 2):
        try:
            yield recording, make_engine(recording.scenario, REGISTRY)
        except ConfigError:
            continue


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_reasons_are_those_recorded_and_suggestions_are_true(path: Path) -> None:
    kinds: set[str] = set()
    for recording, engine in recordings(path):
        for at, (step, pod) in enumerate(walk_steps(recording, engine)):
            before = columns(engine)
            told = explain(engine.decider, pod)
            assert columns(engine) == before
            _assert_agrees(told, step)
            for suggestion in told.suggestions:
                kinds.add(suggestion.kind)
                there = _as_of(recording, at) if evicts(suggestion) else engine
                assert_holds(there, pod, suggestion)
    assert kinds >= KINDS.get(path.name.removesuffix(".jsonl.gz"), set())


def _as_of(recording: RecordedScenario, wanted: int) -> Engine:
    """Another engine before the same step, to be changed."""
    engine = make_engine(recording.scenario, REGISTRY)
    for at, _ in enumerate(walk_steps(recording, engine)):
        if at == wanted:
            return engine
    raise AssertionError("there is no such step")


def _assert_agrees(told: Explanation, step: RecordedStep) -> None:
    if step.pre_enqueue is not None:
        assert told.state == "gated"
        assert _reasons(told) == [_of(msgspec.convert(step.pre_enqueue, RecordedRefusal))]
        return
    assert (told.state == "error") == step.error
    if step.error:
        # Of several nodes that break, the first one that is visited tells; here that is the first.
        if not step.start:
            assert strip_expression_errors(told.message) == strip_expression_errors(step.message)
        return
    assert told.message == (step.message or "")
    rejected = step.prefilter
    if rejected is not None and rejected.rejected_by is not None:
        assert _reasons(told) == [
            (rejected.rejected_by, rejected.code, frozenset(rejected.reasons))
        ]
        return
    assert _by_node(told) == {name: _of(why) for name, why in (step.filter or {}).items()}
    _assert_narrowed(told, None if rejected is None else rejected.nodes)
    _assert_placed(told, step)


def _assert_narrowed(told: Explanation, nodes: tuple[str, ...] | None) -> None:
    beyond = set() if told.left_out is None else set(told.left_out.nodes)
    assert not beyond & set(nodes or ())
    looked_at = told.feasible_count + sum(each.count for each in told.rejections)
    assert looked_at + len(beyond) == told.node_count
    assert nodes is not None or not beyond


def _assert_placed(told: Explanation, step: RecordedStep) -> None:
    assert (told.state == "fits") == (step.chosen is not None)
    assert (told.preemption is not None) == (step.nominated is not None)
    for score in told.scores:
        assert score.total == (step.total or {})[score.node]
        for plugin, by_node in (step.scores or {}).items():
            assert score.by_plugin[plugin] == by_node[score.node]
    if step.chosen is not None and not step.nominated_path:
        assert told.chosen in (step.best or ())
        assert told.scores[0].node == told.chosen


def _by_node(told: Explanation) -> dict[str, tuple[str, str, frozenset[str]]]:
    return {
        name: (each.plugin, each.code, frozenset(each.reasons))
        for each in told.rejections
        for name in each.nodes
    }


def _reasons(told: Explanation) -> list[tuple[str, str, frozenset[str]]]:
    return [(each.plugin, each.code, frozenset(each.reasons)) for each in told.rejections]


def _of(recorded: RecordedRefusal) -> tuple[str, str, frozenset[str]]:
    return recorded.plugin, recorded.code, frozenset(recorded.reasons)
