"""Answers for many rows at once are the answers for each of them."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings

from mooring.cluster import Cluster, Figures, check
from mooring.framework.plugin import MAX_SCORE, Plugin, Reduction, Rescore
from mooring.objects.pod import Pod
from tests.builders import node
from tests.laws.answers import (
    EITHER,
    FILTERS,
    SCORES,
    NotAsked,
    build,
    everything_said,
    filtered,
    prepare_filter,
    prepare_score,
    scored,
)
from tests.strategies import clusters, columns_of, pods

ALLOCATABLE = [node(cpu=cpu).allocatable for cpu in ("2", "4")]
QUICK = settings(max_examples=20)
filters = pytest.mark.parametrize("kind", FILTERS, ids=lambda kind: kind.name)
scores = pytest.mark.parametrize("kind", SCORES, ids=lambda kind: kind.name)


def case(kind: type[Plugin], data: st.DataObject) -> tuple[Cluster, Pod]:
    """A cluster and a pod that give the plugin something to do."""
    return data.draw(clusters(focus=kind.name)), data.draw(pods(focus=kind.name))


@filters
@given(data=st.data())
@QUICK
def test_filter(kind: type[Plugin], data: st.DataObject) -> None:
    """Row by row, as a slice, in another order and in part: always the same answers."""
    made, asks = case(kind, data)
    plugin, nodes, rows = build(kind), made.nodes, made.nodes.rows
    prepared = prepare_filter(plugin, asks, nodes)
    if isinstance(prepared, NotAsked):
        return
    answers = filtered(plugin, prepared, nodes, rows)

    singly = [filtered(plugin, prepared, nodes, np.array([row])) for row in rows]
    assert [[answer] for answer in answers] == singly
    sliced = filtered(plugin, prepared, nodes, nodes.everything)
    assert [sliced[row] for row in rows] == answers
    some = data.draw(st.permutations(range(len(rows)))) if len(rows) else []
    some = some[: data.draw(st.integers(0, len(rows)))]
    chosen = np.array(rows[some], np.intp)
    assert filtered(plugin, prepared, nodes, chosen) == [answers[at] for at in some]
    for answer, row in zip(answers, rows.tolist(), strict=True):
        quick = plugin.recheck(prepared, nodes, nodes.facts(row))
        assert quick in (Rescore.UNKNOWN, Rescore.INFEASIBLE if answer else Rescore.UPDATED)


@scores
@given(data=st.data())
@QUICK
def test_score(kind: type[Plugin], data: st.DataObject) -> None:
    """The same for scores, whichever rows are feasible; permuting goes through normalising."""
    made, asks = case(kind, data)
    plugin, nodes = build(kind), made.nodes
    feasible = nodes.rows[[data.draw(st.booleans()) for _ in nodes.rows]]
    prepared = prepare_score(plugin, asks, nodes, feasible)
    if isinstance(prepared, NotAsked):
        return
    raw = scored(plugin, prepared, nodes, feasible)

    singly = [scored(plugin, prepared, nodes, np.array([row])) for row in feasible]
    assert [[score] for score in raw] == singly
    sliced = scored(plugin, prepared, nodes, nodes.everything)
    assert [sliced[row] for row in feasible] == raw
    turned = np.array(data.draw(st.permutations(range(len(feasible)))), np.intp)
    assert scored(plugin, prepared, nodes, feasible[turned]) == [raw[at] for at in turned]
    normal = plugin.normalize(prepared, np.array(raw, np.int64))
    assert plugin.normalize(prepared, np.array(raw, np.int64)[turned]).tolist() == [
        normal[at] for at in turned
    ]
    column = np.zeros(len(nodes.alive), np.int64)
    for score, row in zip(raw, feasible.tolist(), strict=True):
        answer = plugin.rescore(prepared, nodes, nodes.facts(row), column)
        assert answer in (Rescore.UNKNOWN, Rescore.UPDATED)
        if answer is Rescore.UPDATED:
            assert column[row] == score


@pytest.mark.parametrize(
    "kind", [kind for kind in EITHER if kind.reads_figures_only], ids=lambda kind: kind.name
)
@given(data=st.data())
def test_rows_with_equal_figures_are_told_the_same(kind: type[Plugin], data: st.DataObject) -> None:
    """Taints, labels and names may differ, and so may the pods that add up to the figures."""
    made, asks = case(kind, data)
    for row in made.nodes.rows.tolist():
        has = data.draw(st.sampled_from(ALLOCATABLE))
        made.put_node(msgspec.structs.replace(made.nodes.node(row), allocatable=has))
    said = everything_said(build(kind), asks, made.nodes)

    by_figures: dict[Figures, tuple[Any, ...]] = {}
    for row in made.nodes.rows.tolist():
        answer = said[made.nodes.name(row)]
        assert by_figures.setdefault(made.nodes.facts(row).figures, answer) == answer


@scores
@given(data=st.data())
@QUICK
def test_scores_are_normal(kind: type[Plugin], data: st.DataObject) -> None:
    made, asks = case(kind, data)
    plugin, nodes = build(kind), made.nodes
    prepared = prepare_score(plugin, asks, nodes, nodes.rows)
    if isinstance(prepared, NotAsked):
        return
    raw = plugin.score(prepared, nodes, nodes.rows)
    before = raw.copy()

    normal = plugin.normalize(prepared, raw)

    assert normal.dtype == np.int64
    assert all(0 <= score <= MAX_SCORE for score in normal.tolist())
    # The order of raw scores is kept or turned around; -1 stands for a node not compared.
    pairs = sorted(zip(before.tolist(), normal.tolist(), strict=True))
    ranked = [score for raw_score, score in pairs if raw_score >= 0]
    assert ranked in (sorted(ranked), sorted(ranked, reverse=True))
    # What normalising does not look at does not matter.
    if plugin.reduces is not Reduction.EVERYTHING:
        largest = [before.max()] if plugin.reduces is Reduction.LARGEST and len(before) else []
        for number, expected in zip(before.tolist(), normal.tolist(), strict=True):
            few = np.array([number, *largest], np.int64)
            assert plugin.normalize(prepared, few)[0] == expected


@scores
@given(data=st.data())
@QUICK
def test_the_feasible_rows_do_not_decide_whether_a_score_is_skipped(
    kind: type[Plugin], data: st.DataObject
) -> None:
    made, asks = case(kind, data)
    plugin, nodes = build(kind), made.nodes
    few = nodes.rows[: data.draw(st.integers(0, len(nodes)))]

    some, every = (prepare_score(plugin, asks, nodes, rows) for rows in (few, nodes.rows))
    assert isinstance(some, NotAsked) == isinstance(every, NotAsked)


@pytest.mark.parametrize("kind", EITHER, ids=lambda kind: kind.name)
@given(data=st.data())
@QUICK
def test_inputs_are_left_alone(kind: type[Plugin], data: st.DataObject) -> None:
    made, asks = case(kind, data)
    guest = data.draw(pods("guest", focus=kind.name))
    plugin: Any = build(kind)
    nodes = made.nodes
    made.nominate(guest, nodes.name(int(nodes.rows[0])) if len(nodes) else "")
    before = columns_of(nodes)

    if kind in FILTERS:
        prepared = prepare_filter(plugin, asks, nodes)
        first = filtered(plugin, prepared, nodes, nodes.rows)
        if len(nodes) and not isinstance(prepared, NotAsked) and hasattr(plugin, "add_pod"):
            row = int(data.draw(st.sampled_from(nodes.rows.tolist())))
            plugin.add_pod(prepared, nodes, guest, row)
        assert filtered(plugin, prepared, nodes, nodes.rows) == first
    if kind in SCORES:
        prepared = prepare_score(plugin, asks, nodes, nodes.rows)
        scored(plugin, prepared, nodes, nodes.rows)

    # Columns that were asked for the first time are new; all others are as they were.
    assert before.items() <= columns_of(nodes).items()
    check(made)


@given(made=clusters(), guest=pods("guest"), data=st.data())
def test_adding_then_removing_a_pod_restores_every_column(
    made: Cluster, guest: Pod, data: st.DataObject
) -> None:
    on = data.draw(st.sampled_from([*made.nodes.names(made.nodes.rows.tolist()), "nowhere"]))
    before = columns_of(made.nodes)

    made.put_pod(guest.on(on))
    assert (columns_of(made.nodes) == before) == (on == "nowhere")
    made.remove_pod(guest.uid)

    after = columns_of(made.nodes)
    assert {key: value for key, value in after.items() if key in before} == before
    # A topology key that only the pod's terms named keeps its column.
    assert all(key[0] == "label" for key in after.keys() - before.keys())


@pytest.mark.parametrize(
    "kind", [kind for kind in FILTERS if hasattr(kind, "add_pod")], ids=lambda kind: kind.name
)
@given(data=st.data())
@settings(max_examples=40)
def test_a_prepared_value_moves_as_the_cluster_would(
    kind: type[Plugin], data: st.DataObject
) -> None:
    """What preemption asks: the answer for a row with one pod more is that of such a cluster."""
    made, asks = case(kind, data)
    guest = data.draw(pods("guest", focus=kind.name))
    plugin, nodes = build(kind), made.nodes
    if not len(nodes):
        return
    row = int(data.draw(st.sampled_from(nodes.rows.tolist())))
    here = np.array([row])
    placed = guest.on(nodes.name(row))
    before = prepare_filter(plugin, asks, nodes)
    made.nominate(guest, "nowhere")
    added = before
    if not isinstance(before, NotAsked):
        added = plugin.add_pod(before, nodes, placed, row)
    made.put_pod(placed)
    after = prepare_filter(plugin, asks, nodes)
    if isinstance(before, NotAsked) or isinstance(after, NotAsked):
        return

    # The columns have the pod by now, and so have the prepared values.
    expected = filtered(plugin, after, nodes, here)
    assert filtered(plugin, added, nodes, here) == expected
    removed = plugin.remove_pod(after, nodes, placed, row)
    again = plugin.add_pod(removed, nodes, placed, row)
    assert filtered(plugin, again, nodes, here) == expected
