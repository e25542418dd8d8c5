"""Answers for many rows at once are the answers for each of them."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from moorage.cluster import Cluster, Figures, check
from moorage.framework.plugin import Plugin
from moorage.objects.pod import Pod
from moorage.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.testing import (
    check_feasible_rows,
    check_filter_rows,
    check_moved_pod,
    check_normal_scores,
    check_score_rows,
    collect_answers,
)
from moorage.testing.laws import (
    NotAsked,
    filter_answers,
    prepare_filter,
    prepare_score,
    score_answers,
)
from tests.builders import node
from tests.laws.answers import EITHER, FILTERS, SCORES, build
from tests.strategies import clusters, columns_of, pods

ALLOCATABLE = [node(cpu=cpu).allocatable for cpu in ("2", "4")]
QUICK = settings(max_examples=12)
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
    count = len(made.nodes.rows)
    some = data.draw(st.permutations(range(count))) if count else []
    some = some[: data.draw(st.integers(0, count))]
    check_filter_rows(build(kind), asks, made.nodes, some)


@scores
@given(data=st.data())
@QUICK
def test_score(kind: type[Plugin], data: st.DataObject) -> None:
    """The same for scores, whichever rows are feasible; permuting goes through normalising."""
    made, asks = case(kind, data)
    feasible = made.nodes.rows[[data.draw(st.booleans()) for _ in made.nodes.rows]]
    order = data.draw(st.permutations(range(len(feasible))))
    check_score_rows(build(kind), asks, made.nodes, feasible, order)


@pytest.mark.parametrize(
    "kind", [NodeResourcesFit, NodeResourcesBalancedAllocation], ids=lambda kind: kind.name
)
@given(data=st.data())
def test_rows_with_equal_figures_are_told_the_same(kind: type[Plugin], data: st.DataObject) -> None:
    """Taints, labels and names may differ, and so may the pods that add up to the figures."""
    made, asks = case(kind, data)
    for row in made.nodes.rows.tolist():
        has = data.draw(st.sampled_from(ALLOCATABLE))
        made.put_node(msgspec.structs.replace(made.nodes.node(row), allocatable=has))
    said = collect_answers(build(kind), asks, made.nodes)

    by_figures: dict[Figures, tuple[Any, ...]] = {}
    for row in made.nodes.rows.tolist():
        answer = said[made.nodes.name(row)]
        assert by_figures.setdefault(made.nodes.facts(row).figures, answer) == answer


@scores
@given(data=st.data())
@QUICK
def test_scores_are_normal(kind: type[Plugin], data: st.DataObject) -> None:
    made, asks = case(kind, data)
    check_normal_scores(build(kind), asks, made.nodes)


@scores
@given(data=st.data())
@QUICK
def test_the_feasible_rows_do_not_decide_whether_a_score_is_skipped(
    kind: type[Plugin], data: st.DataObject
) -> None:
    made, asks = case(kind, data)
    few = made.nodes.rows[: data.draw(st.integers(0, len(made.nodes)))]
    check_feasible_rows(build(kind), asks, made.nodes, few)


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
        first = filter_answers(plugin, prepared, nodes, nodes.rows)
        if len(nodes) and not isinstance(prepared, NotAsked) and hasattr(plugin, "add_pod"):
            row = int(data.draw(st.sampled_from(nodes.rows.tolist())))
            plugin.add_pod(prepared, nodes, guest, row)
        assert filter_answers(plugin, prepared, nodes, nodes.rows) == first
    if kind in SCORES:
        prepared = prepare_score(plugin, asks, nodes, nodes.rows)
        score_answers(plugin, prepared, nodes, nodes.rows)

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
@settings(max_examples=20)
def test_a_prepared_value_moves_as_the_cluster_would(
    kind: type[Plugin], data: st.DataObject
) -> None:
    """What preemption asks: the answer for a row with one pod more is that of such a cluster."""
    made, asks = case(kind, data)
    guest = data.draw(pods("guest", focus=kind.name))
    if len(made.nodes):
        row = int(data.draw(st.sampled_from(made.nodes.rows.tolist())))
        check_moved_pod(build(kind), asks, made, guest, row)
