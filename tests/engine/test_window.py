"""Looking at a part of the nodes: how many, from where, and where the next search starts."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tests.builders import node, pod
from tests.engine.driver import Driver, bindings, driver

COUNT = 250
START = crc32(b"default-scheduler")


def fleet(
    percentage: int | None, *, count: int = COUNT, full: frozenset[int] = frozenset()
) -> Driver:
    config: dict[str, Any] = {} if percentage is None else {"percentageOfNodesToScore": percentage}
    return driver(
        *(node(f"n{at}", cpu=1 if at in full else 4) for at in range(count)),
        **config,
    )


def chosen(run: Driver, name: str, **asks: int) -> int:
    run.apply(pod(name, **asks))
    (where,) = bindings(run.step()).values()
    return int(where.removeprefix("n"))


@pytest.mark.parametrize("percentage", [None, 0, 100])
def test_all_nodes_are_looked_at_unless_told_otherwise(percentage: int | None) -> None:
    run = fleet(percentage)
    start = START % COUNT

    # A full round brings the search back to where it began; the first of the best is taken.
    assert chosen(run, "a", cpu=1) == start
    assert chosen(run, "b", cpu=1) == (start + 1) % COUNT


def test_the_search_stops_when_enough_were_found_and_goes_on_from_there() -> None:
    run = fleet(50)
    start = START % COUNT

    assert chosen(run, "a", cpu=1) == start
    assert chosen(run, "b", cpu=1) == (start + 125) % COUNT
    assert chosen(run, "c", cpu=1) == (start + 251) % COUNT


def test_a_hundred_are_looked_at_in_any_case() -> None:
    run = fleet(1)
    start = START % COUNT

    chosen(run, "a", cpu=1)
    assert chosen(run, "b", cpu=1) == (start + 100) % COUNT


def test_small_clusters_are_looked_at_as_a_whole() -> None:
    run = fleet(1, count=99)
    start = START % 99

    chosen(run, "a", cpu=1)
    assert chosen(run, "b", cpu=1) == (start + 1) % 99


def test_rejected_nodes_are_passed_and_counted() -> None:
    start = START % COUNT
    full = frozenset((start + at) % COUNT for at in range(50))
    run = fleet(40, full=full)

    assert chosen(run, "a", cpu=2) == (start + 50) % COUNT
    assert chosen(run, "b", cpu=1) == (start + 150) % COUNT


def test_a_nominated_node_needs_no_search() -> None:
    run = fleet(50)
    start = START % COUNT
    run.apply(pod("n", status={"nominatedNodeName": "n7"}))
    assert bindings(run.step()) == {"n": "n7"}

    assert chosen(run, "a", cpu=1) == start


def test_only_nodes_inside_the_window_are_chosen_from() -> None:
    run = fleet(40)
    start = START % COUNT
    best = (start + 180) % COUNT
    for at in range(COUNT):
        if at != best:
            run.apply(pod(f"load{at}", node=f"n{at}", cpu=1))

    assert chosen(run, "a", cpu=1) == start
    assert chosen(run, "b", cpu=1) == best


@given(
    st.integers(1, 100),
    st.sets(st.integers(0, 119), max_size=110),
    st.integers(1, 4),
)
@settings(max_examples=15)
def test_the_window_is_that_of_a_search_node_by_node(
    percentage: int, full: set[int], count: int
) -> None:
    run = fleet(percentage, count=120, full=frozenset(full))
    enough = max(120 * percentage // 100, 100)
    start = START % 120
    used: set[int] = set()
    for number in range(count):
        visited = [(start + at) % 120 for at in range(120)]
        found: list[int] = []
        looked = 0
        for at in visited:
            if at not in full and len(found) == enough:
                break
            looked += 1
            found += [] if at in full else [at]
        if not found:
            return
        # Every free node is as good as every other until it is used.
        fresh = [at for at in found if at not in used] or found
        if fresh is found:
            return
        where = chosen(run, f"p{number}", cpu=2)
        assert where == fresh[0]
        used.add(where)
        start = (start + looked) % 120


def test_ties_begin_at_the_next_node_after_sixteen_placements_per_node() -> None:
    """Otherwise all pods that ask for nothing would go to one of two full nodes."""
    run = driver(*(node(f"n{at}", cpu=0, memory=0) for at in range(2)))
    first = START % 2

    where = [chosen(run, f"p{at}") for at in range(96)]

    assert where == [first] * 32 + [1 - first] * 32 + [first] * 32
