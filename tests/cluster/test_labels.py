"""Label columns, and label rules over rows."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from moorage.cluster import Cluster
from moorage.cluster.labels import ABSENT
from moorage.objects.node import Node
from moorage.objects.node_selector import NodeSelectorTerm, NodeTerm, compile_term
from tests.builders import cluster, node

OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
VALUES = st.sampled_from(["", "a", "b", "1", "-2", "30", "x1"])


def term(*expressions: dict[str, Any], fields: tuple[dict[str, Any], ...] = ()) -> NodeTerm:
    raw = {"matchExpressions": list(expressions), "matchFields": list(fields)}
    compiled = compile_term(msgspec.convert(raw, NodeSelectorTerm))
    assert isinstance(compiled, NodeTerm)
    return compiled


def test_a_column_follows_the_labels_whenever_it_was_asked_for() -> None:
    early, late = cluster(), cluster()
    early.nodes.label("zone")
    for each in (early, late):
        each.put_node(node("one", labels={"zone": "a"}))
        each.put_node(node("two"))
        each.put_node(node("three", labels={"zone": "b"}))
        each.put_node(node("two", labels={"zone": "a"}))
        each.remove_node("three")

    for each in (early, late):
        column = each.nodes.label("zone")
        assert [column.value(row) for row in range(3)] == ["a", "a", None]
        assert column.codes[2] == ABSENT
        assert column.filled == 2


def test_a_code_is_free_when_the_last_row_leaves_it() -> None:
    made = cluster(node("one", labels={"zone": "a"}))
    column = made.nodes.label("zone")
    made.put_node(node("one", labels={"zone": "b"}))

    assert column.vocabulary.in_use() == {"b": int(column.codes[0])}


def test_columns_grow_with_the_cluster() -> None:
    made = cluster(node("n0", labels={"zone": "a"}))
    made.nodes.label("zone")
    for at in range(1, 130):
        made.put_node(node(f"n{at}", labels={"zone": f"z{at % 3}"}))

    column = made.nodes.label("zone")
    assert [column.value(row) for row in (0, 1, 128)] == ["a", "z1", "z2"]
    assert (column.codes[130:] == ABSENT).all()


def test_names() -> None:
    made = cluster(node("one"), node("two"))
    everything = made.nodes.everything

    assert made.nodes.named("two", everything).tolist() == [False, True]
    assert made.nodes.named("none", everything).tolist() == [False, False]
    assert made.nodes.named("two", made.nodes.rows[::-1]).tolist() == [True, False]


@pytest.mark.parametrize(
    ("selector", "rows"),
    [
        ({}, [True, True, True]),
        ({"zone": "a"}, [True, False, False]),
        ({"zone": "a", "disk": "ssd"}, [True, False, False]),
        ({"zone": "b", "disk": "ssd"}, [False, False, False]),
        ({"zone": "nowhere"}, [False, False, False]),
    ],
)
def test_selected(selector: dict[str, str], rows: list[bool]) -> None:
    made = cluster(
        node("one", labels={"zone": "a", "disk": "ssd"}),
        node("two", labels={"zone": "b"}),
        node("three", labels={"disk": "ssd"}),
    )

    assert made.nodes.selected(selector, made.nodes.everything).tolist() == rows


def test_any_of_the_terms_that_can_be_read() -> None:
    made = cluster(node("one", labels={"a": "1"}), node("two", labels={"a": "2"}), node("three"))
    ones = term({"key": "a", "operator": "In", "values": ["1"]})
    absent = term({"key": "a", "operator": "DoesNotExist"})
    everything = made.nodes.everything

    assert made.nodes.satisfying_any([ones, None, absent], everything).tolist() == [
        True,
        False,
        True,
    ]
    assert not made.nodes.satisfying_any([None], everything).any()


@st.composite
def expressions(draw: st.DrawFn) -> dict[str, Any]:
    operator = draw(OPERATORS)
    values: list[str] = []
    if operator in ("In", "NotIn"):
        values = draw(st.lists(VALUES, min_size=1, max_size=7, unique=True))
    elif operator in ("Gt", "Lt"):
        values = [str(draw(st.integers(-3, 31)))]
    return {"key": draw(st.sampled_from("ab")), "operator": operator, "values": values}


NAMES = st.sampled_from(["n0", "n1", "n2", "n9"])


@given(
    st.lists(st.dictionaries(st.sampled_from("ab"), VALUES), max_size=7),
    st.lists(expressions(), max_size=3),
    st.lists(st.tuples(st.sampled_from(["In", "NotIn"]), NAMES), max_size=2),
    st.sets(st.integers(0, 6)),
)
def test_rules_over_rows_agree_with_asking_node_by_node(
    labels: list[dict[str, str]],
    written: list[dict[str, Any]],
    names: list[tuple[str, str]],
    gone: set[int],
) -> None:
    nodes = [Node(name=f"n{at}", labels=each) for at, each in enumerate(labels)]
    made = Cluster()
    for each in nodes:
        made.put_node(each)
    for at in gone:
        made.remove_node(f"n{at}")
    fields = tuple({"key": "metadata.name", "operator": op, "values": [n]} for op, n in names)
    if not written and not fields:
        return
    rule = term(*written, fields=fields)

    holds = made.nodes.satisfying(rule, made.nodes.rows)

    kept = [each for at, each in enumerate(nodes) if at not in gone]
    assert holds.tolist() == [rule.matches(each.labels, each.name) for each in kept]
