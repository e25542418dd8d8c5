"""Answers for many rows at once are the answers for each of them."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from mooring.cluster import Cluster, check
from mooring.framework.plugin import MAX_SCORE, Plugin
from mooring.objects.pod import Pod
from tests.laws.answers import (
    FILTERS,
    SCORES,
    NotAsked,
    build,
    filtered,
    prepare_filter,
    prepare_score,
    scored,
)
from tests.strategies import clusters, columns_of, pods

QUICK = settings(max_examples=25)
filters = pytest.mark.parametrize("kind", FILTERS, ids=lambda kind: kind.name)
scores = pytest.mark.parametrize("kind", SCORES, ids=lambda kind: kind.name)


@filters
@given(made=clusters(), asks=pods(), data=st.data())
@QUICK
def test_filter(kind: type[Plugin], made: Cluster, asks: Pod, data: st.DataObject) -> None:
    """Row by row, as a slice, in another order and in part: always the same answers."""
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


@scores
@given(made=clusters(), asks=pods(), data=st.data())
@QUICK
def test_score(kind: type[Plugin], made: Cluster, asks: Pod, data: st.DataObject) -> None:
    """The same for scores, whichever rows are feasible; permuting goes through normalising."""
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


@scores
@given(made=clusters(), asks=pods())
@QUICK
def test_scores_are_normal(kind: type[Plugin], made: Cluster, asks: Pod) -> None:
    plugin, nodes = build(kind), made.nodes
    prepared = prepare_score(plugin, asks, nodes, nodes.rows)
    if isinstance(prepared, NotAsked):
        return
    raw = plugin.score(prepared, nodes, nodes.rows)
    before = raw.copy()

    normal = plugin.normalize(prepared, raw)

    assert normal.dtype == np.int64
    assert all(0 <= score <= MAX_SCORE for score in normal.tolist())
    # A better raw score is never worse in the end, or always: normalising does not shuffle.
    pairs = sorted(zip(before.tolist(), normal.tolist(), strict=True))
    ranked = [score for raw_score, score in pairs if raw_score >= 0]
    assert ranked in (sorted(ranked), sorted(ranked, reverse=True))


@pytest.mark.parametrize("kind", sorted({*FILTERS, *SCORES}, key=lambda k: k.name))
@given(made=clusters(), asks=pods(), guest=pods("guest"), data=st.data())
@QUICK
def test_inputs_are_left_alone(
    kind: type[Plugin], made: Cluster, asks: Pod, guest: Pod, data: st.DataObject
) -> None:
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
@given(made=clusters(), asks=pods(), guest=pods("guest"), data=st.data())
@QUICK
def test_a_prepared_value_moves_as_the_cluster_would(
    kind: type[Plugin], made: Cluster, asks: Pod, guest: Pod, data: st.DataObject
) -> None:
    """What preemption asks: the answer for a row with one pod more is that of such a cluster."""
    plugin, nodes = build(kind), made.nodes
    if not len(nodes):
        return
    row = int(data.draw(st.sampled_from(nodes.rows.tolist())))
    here = np.array([row])
    before = prepare_filter(plugin, asks, nodes)
    made.put_pod(guest.on(nodes.name(row)))
    after = prepare_filter(plugin, asks, nodes)
    if isinstance(before, NotAsked) or isinstance(after, NotAsked):
        return

    removed = plugin.remove_pod(after, nodes, guest.on(nodes.name(row)), row)
    restored = plugin.add_pod(removed, nodes, guest.on(nodes.name(row)), row)

    expected = filtered(plugin, after, nodes, here)
    assert filtered(plugin, restored, nodes, here) == expected
