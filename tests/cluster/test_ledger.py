"""Ledgers: however few or many rows a key has, its counts are those of a plain dictionary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from moorage.cluster import Change, Cluster, Counts, Ledger, Nodes, WhatIf, check
from moorage.objects.pod import Pod
from tests.builders import cluster, node, pod

CAPACITY = 24


class Tiers(Ledger[str]):
    """Pods by a label of theirs, and how much another says."""

    def entries(self, pod: Pod) -> Sequence[tuple[str, int]]:
        tier = pod.labels.get("tier")
        return [] if tier is None else [(tier, int(pod.labels.get("weight", "1")))]


TIERS = Tiers()
steps = st.tuples(st.sampled_from("ab"), st.integers(0, CAPACITY - 1), st.sampled_from([1, 2, -1]))


def expect_same(counts: Counts[str], model: dict[str, Counter[int]]) -> None:
    plain = {key: {row: many for row, many in rows.items() if many} for key, rows in model.items()}
    assert counts.by_key() == {key: rows for key, rows in plain.items() if rows}
    for key in "ab":
        rows = counts.of(key)
        assert {row: rows[row] for row in rows} == plain[key]
        assert len(rows) == len(plain[key])
        assert all((row in rows) is (row in plain[key]) for row in range(CAPACITY))
        assert counts.column(key).tolist() == [model[key][row] for row in range(counts.capacity)]


@given(st.lists(steps, max_size=60), st.lists(steps, max_size=60), st.data())
def test_counts_and_layers_are_those_of_a_dictionary(
    come: list[tuple[str, int, int]], tried: list[tuple[str, int, int]], data: st.DataObject
) -> None:
    counts, model = Counts[str](CAPACITY), {"a": Counter[int](), "b": Counter[int]()}
    for key, row, many in come:
        model[key][row] += many
        assert counts.add(key, row, many) == model[key][row]
    layer, other = counts.layer(), {key: rows.copy() for key, rows in model.items()}
    for key, row, many in tried:
        other[key][row] += many
        if data.draw(st.booleans()):
            layer.shift(key, np.array([row]), np.array([many]))
        else:
            layer.add(key, row, many)

    expect_same(layer, other)
    expect_same(counts, model)
    counts.grow(2 * CAPACITY)
    expect_same(counts, model)


def tiered(name: str, tier: str, on: str = "", **labels: str) -> Pod:
    return pod(name, node=on, labels={"tier": tier, **labels})


def on_rows(of: Cluster | Nodes) -> dict[str, dict[int, int]]:
    return (of.nodes if isinstance(of, Cluster) else of).ledger(TIERS).by_key()


@pytest.mark.parametrize("asked", [False, True], ids=["asked later", "asked at first"])
def test_a_ledger_follows_pods_from_when_it_is_asked_for(asked: bool) -> None:
    made = cluster(node("one"), node("two"))
    if asked:
        made.nodes.ledger(TIERS)
    made.put_pod(tiered("p", "db", "one", weight="3"))
    made.put_pod(tiered("q", "db", "two"))
    made.put_pod(pod("r", node="two"))
    assert on_rows(made) == {"db": {0: 3, 1: 1}}

    made.put_pod(tiered("p", "web", "one"))
    made.remove_pod("default/q")
    assert on_rows(made) == {"web": {0: 1}}
    made.remove_node("one")
    assert on_rows(made) == {}
    made.put_node(node("one"))
    assert on_rows(made) == {"web": {0: 1}}
    check(made)


def test_only_pods_with_entries_are_changes_of_a_ledger() -> None:
    made = cluster(node("one"))
    made.nodes.ledger(TIERS)
    made.put_pod(pod("q", node="one"))
    plain = made.changes.generation
    made.put_pod(tiered("p", "db", "one"))

    noted = made.changes.since(plain)
    assert noted is not None
    assert noted[0] & TIERS.change
    made.put_pod(pod("r", node="one"))
    last = made.changes.since(made.changes.generation - 1)
    assert last is not None
    assert not last[0] & TIERS.change


def test_what_if_pods_came_and_went() -> None:
    made = cluster(node("one"), node("two"), tiered("p", "db", "one"))
    made.nodes.ledger(TIERS)
    first = WhatIf(made.nodes)
    first.remove_pod(tiered("p", "db"), 0)
    second = WhatIf(first)
    second.add_pod(tiered("q", "db", weight="2"), 1)

    assert on_rows(first) == {}
    assert on_rows(second) == {"db": {1: 2}}
    assert on_rows(made) == {"db": {0: 1}}


def test_more_than_16_bits_count() -> None:
    counts = Counts[str](CAPACITY)
    for row in range(CAPACITY):
        counts.add("a", row, 2**15 + 1)

    assert counts.column("a").tolist() == [2**15 + 1] * CAPACITY


def test_check_finds_a_ledger_that_lost_count() -> None:
    made = cluster(node("one"), tiered("p", "db", "one"))
    made.nodes.ledger(TIERS).add("db", 0, 1)

    with pytest.raises(AssertionError, match="Tiers"):
        check(made)
    made.nodes.ledger(TIERS).add("db", 0, -1)


def test_changes_of_ledgers_are_told_apart() -> None:
    assert Tiers().change != Tiers().change
    assert Tiers().change & Change.LEDGERS
    assert Tiers(Change.PORTS).change == Change.PORTS
