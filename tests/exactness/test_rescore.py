"""Answers for one row that changed are those that asking about all rows would give."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from moorage.cluster import Cluster
from moorage.framework.plugin import Filter, Plugin, Reduction, Rescore, Score
from moorage.objects.pod import Pod
from moorage.testing.laws import NotAsked, prepare_filter, prepare_score
from tests.laws.answers import build
from tests.registered import PLUGINS
from tests.strategies import clusters, nodes, pods

RECHECKING = [
    each for each in PLUGINS if issubclass(each, Filter) and each.recheck is not Filter.recheck
]
RESCORING = [
    each for each in PLUGINS if issubclass(each, Score) and each.rescore is not Score.rescore
]
QUICK = settings(max_examples=20)
named = {"ids": lambda kind: kind.name}


def change(made: Cluster, data: st.DataObject) -> None:
    """Pods come and go, nodes change; none is added or removed."""
    for at in range(data.draw(st.integers(1, 5))):
        name = made.nodes.name(data.draw(st.sampled_from(made.nodes.rows.tolist())))
        placed = sorted(made.pods)
        leaves, comes = data.draw(st.tuples(st.booleans(), st.booleans()))
        if placed and leaves:
            made.remove_pod(data.draw(st.sampled_from(placed)))
        elif comes:
            made.put_pod(data.draw(pods(f"new{at}", name)))
        else:
            made.put_node(data.draw(nodes(name)))


@pytest.mark.parametrize("kind", RECHECKING, **named)  # type: ignore[arg-type]
@given(made=clusters(least=2), asks=pods(), data=st.data())
@QUICK
def test_recheck_says_what_the_filter_would(
    kind: type[Plugin], made: Cluster, asks: Pod, data: st.DataObject
) -> None:
    """What was prepared before the change is good for after it, row by row."""
    plugin: Any = build(kind)
    prepared = prepare_filter(plugin, asks, made.nodes)
    if isinstance(prepared, NotAsked):
        return

    change(made, data)

    rejected = plugin.filter(prepared, made.nodes, made.nodes.everything).rejected
    for row in made.nodes.rows.tolist():
        answer = plugin.recheck(prepared, made.nodes, made.nodes.facts(row))
        if answer is not Rescore.UNKNOWN:
            assert (answer is Rescore.INFEASIBLE) == rejected[row]


@pytest.mark.parametrize("kind", RESCORING, **named)  # type: ignore[arg-type]
@given(made=clusters(least=2), asks=pods(), data=st.data())
@QUICK
def test_rescore_finds_what_scoring_anew_would(
    kind: type[Plugin], made: Cluster, asks: Pod, data: st.DataObject
) -> None:
    plugin: Any = build(kind)
    prepared = prepare_score(plugin, asks, made.nodes, made.nodes.rows)
    if isinstance(prepared, NotAsked):
        return
    scores = plugin.score(prepared, made.nodes, made.nodes.everything)

    change(made, data)

    anew = plugin.score(prepared, made.nodes, made.nodes.everything)
    for row in made.nodes.rows.tolist():
        others = np.delete(scores, row).tolist()
        answer = plugin.rescore(prepared, made.nodes, made.nodes.facts(row), scores)
        if answer is Rescore.UPDATED:
            assert scores[row] == anew[row]
        assert np.delete(scores, row).tolist() == others


def test_the_plugins_of_a_plain_pod_answer_row_by_row() -> None:
    """Without this, placing one pod after the other would ask about all nodes each time."""
    assert {"NodeResourcesFit", "NodePorts"} <= {kind.name for kind in RECHECKING}
    rescoring = {kind.name for kind in RESCORING}
    assert {"NodeResourcesFit", "NodeResourcesBalancedAllocation"} <= rescoring
    for kind in RESCORING:
        assert kind.reduces is not Reduction.EVERYTHING
