"""Sums of amounts: the columns hold what exact integers say, however large those are."""

from __future__ import annotations

from collections.abc import Sequence

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from moorage.cluster import Cluster, WhatIf, check
from moorage.cluster.arrays import MOST_SUM, Sums
from moorage.objects.pod import Pod
from moorage.objects.quantity import MOST_AMOUNT
from tests.builders import cluster, node, pod

KINDS, PLACES = 2, 3
Exact = dict[tuple[int, int], int]

amounts = st.sampled_from([0, 1, 7, 2**40, 2**53 + 1, MOST_AMOUNT, MOST_SUM - 1, MOST_SUM])
at = st.tuples(st.integers(0, KINDS - 1), st.integers(0, PLACES - 1))
#: Amounts that come, by kind and place, and which of them leave again.
histories = st.lists(st.tuples(at, amounts, st.booleans()), max_size=12)


def added(history: Sequence[tuple[tuple[int, int], int, bool]]) -> tuple[Sums, Exact]:
    """The sums after some amounts came and some left, and the same in exact integers."""
    sums, exact = Sums.zeros((KINDS, PLACES)), dict.fromkeys(np.ndindex(KINDS, PLACES), 0)
    for place, amount, _ in history:
        sums.add(*place, amount)
        exact[place] += amount
    for place, amount, leaves in history:
        if leaves:
            sums.add(*place, -amount)
            exact[place] -= amount
    return sums, exact


def held(exact: Exact, places: Sequence[int] = range(PLACES)) -> list[list[int]]:
    """What columns hold of exact sums."""
    return [
        [max(-MOST_SUM, min(exact[kind, place], MOST_SUM)) for place in places]
        for kind in range(KINDS)
    ]


@given(histories)
def test_a_sum_is_exact_again_when_amounts_leave(
    history: list[tuple[tuple[int, int], int, bool]],
) -> None:
    sums, exact = added(history)

    assert sums.array.tolist() == held(exact)


@given(histories, st.lists(st.tuples(at, amounts, st.booleans()), max_size=12))
def test_a_copy_is_exact_or_full(
    history: list[tuple[tuple[int, int], int, bool]],
    more: list[tuple[tuple[int, int], int, bool]],
) -> None:
    """What leaves a place that was full leaves it full; other places are exact."""
    sums, exact = added(history)
    tried = sums.copy()
    full = {place for place, total in exact.items() if total >= MOST_SUM}
    for place, amount, _ in history:
        taken = np.zeros((KINDS, 1), np.int64)
        taken[place[0]] = min(amount, exact[place])
        exact[place] -= int(taken[place[0], 0])
        tried.shift(np.array([place[1]], np.intp), -Sums(taken))
    for place, amount, by_shift in more:
        exact[place] += amount
        if by_shift:
            came = np.zeros((KINDS, 1), np.int64)
            came[place[0]] = amount
            tried.shift(np.array([place[1]], np.intp), Sums(came))
        else:
            tried.add(*place, amount)

    expected = {place: MOST_SUM if place in full else total for place, total in exact.items()}
    assert tried.array.tolist() == held(expected)
    assert sums.array.tolist() == held(added(history)[1])


@given(histories, histories)
def test_totals_are_exact_or_full(
    history: list[tuple[tuple[int, int], int, bool]],
    more: list[tuple[tuple[int, int], int, bool]],
) -> None:
    (sums, exact), (others, exact_others) = added(history), added(more)

    total = sums + others

    expected = {key: each + exact_others[key] for key, each in exact.items()}
    assert total.array.tolist() == held(expected)


@given(histories, st.lists(st.integers(0, PLACES - 1), min_size=1, max_size=9), st.data())
def test_summed_from_each_beginning_to_the_next(
    history: list[tuple[tuple[int, int], int, bool]], places: list[int], data: st.DataObject
) -> None:
    sums, exact = added(history)
    later = data.draw(st.sets(st.integers(1, len(places) - 1))) if len(places) > 1 else set()
    begins = [0, *sorted(later)]

    reduced = sums.at(np.array(places, np.intp)).sum_groups(np.array(begins, np.intp))

    groups = [places[begin:end] for begin, end in zip(begins, [*begins[1:], None], strict=True)]
    expected = {
        (kind, at): sum(exact[kind, place] for place in group)
        for kind in range(KINDS)
        for at, group in enumerate(groups)
    }
    assert reduced.array.tolist() == held(expected, range(len(groups)))


@pytest.mark.parametrize("count", [1, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000])
def test_however_many_amounts_are_summed_no_total_wraps_around(count: int) -> None:
    each = Sums(np.full((1, count), MOST_AMOUNT))

    total = each.sum_groups(np.array([0], np.intp))

    assert total.array.tolist() == [[min(count * MOST_AMOUNT, MOST_SUM)]]


def test_what_is_shifted_is_not_known_exactly_afterwards() -> None:
    sums = Sums.zeros((1, 1))
    for _ in range(2):
        sums.add(0, 0, MOST_SUM)

    sums.shift(np.array([0], np.intp), Sums(np.array([[MOST_SUM]])))
    sums.add(0, 0, -MOST_SUM)
    sums.add(0, 0, -MOST_SUM)

    assert sums.array.tolist() == [[MOST_SUM]]


def test_a_place_is_cleared_with_what_is_beyond() -> None:
    sums = Sums.zeros((1, 2))
    for _ in range(3):
        sums.add(0, 1, MOST_SUM)

    sums.clear(1)

    assert sums.add(0, 1, 5) == 5


# Rows of a cluster

GREEDY = {"cpu": "9223372036854775", "memory": "8Ei", "example.com/gpu": "9223372036854775807"}


def greedy(number: int, priority: int = 0) -> Pod:
    return pod(f"greedy-{number}", node="node", spec={"priority": priority}, **GREEDY)


def with_greedy_pods(count: int) -> Cluster:
    return cluster(node("node", **GREEDY), *(greedy(number) for number in range(count)))


@pytest.mark.parametrize("known", [False, True], ids=["counted anew", "with known facts"])
def test_room_comes_back_after_pods_that_ask_for_everything(known: bool) -> None:
    made = cluster(node("node", **GREEDY), pod("small", node="node", cpu=1, memory=7))
    if known:
        made.nodes.facts(0)
    before = made.nodes.requested[:, 0].tolist()
    for number in range(300):
        made.put_pod(greedy(number))
    check(made)
    column = made.nodes.requested[made.nodes.resources["memory"]]
    assert column[0] == MOST_SUM
    assert made.nodes.facts(0).requested[made.nodes.resources["memory"]] == MOST_SUM

    for number in range(300):
        made.remove_pod(greedy(number).uid)

    assert made.nodes.requested[: len(before), 0].tolist() == before
    assert not made._state.columns.requested.beyond
    check(made)


@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
def test_a_node_that_is_full_beyond_measure_stays_so_in_what_if(at_once: bool) -> None:
    made = with_greedy_pods(200)
    what_if = WhatIf(made.nodes)

    evict_all(what_if, made, at_once)

    memory = made.nodes.resources["memory"]
    assert what_if.requested[memory, 0] == made.nodes.requested[memory, 0] == MOST_SUM


@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
def test_what_if_is_exact_up_to_the_largest_sum(at_once: bool) -> None:
    made = with_greedy_pods(63)
    what_if = WhatIf(made.nodes)

    evict_all(what_if, made, at_once)

    assert not what_if.requested[:, 0].any()


def evict_all(what_if: WhatIf, made: Cluster, at_once: bool) -> None:
    rows = np.array([0], np.intp)
    lesser = made.nodes.lesser_pods(1, rows)
    if at_once:
        what_if.shift(lesser.rows, -lesser.usage.sum_groups(lesser.begins))
        return
    for each in lesser.pods(0):
        what_if.remove_pod(each, 0)


def test_a_resource_that_returns_after_pods_asked_for_more_than_64_bits() -> None:
    made = with_greedy_pods(200)
    made.put_node(node("node", cpu=1))
    check(made)
    made.put_node(node("node", **GREEDY))
    check(made)

    for number in range(199):
        made.remove_pod(greedy(number).uid)

    check(made)
    assert made.nodes.requested[made.nodes.resources["example.com/gpu"], 0] == MOST_AMOUNT


def test_nominated_pods_that_ask_for_everything() -> None:
    made = cluster(node("node", **GREEDY))
    for number in range(200):
        made.nominate(greedy(number, priority=number % 3), "node")
    weight = made.nodes.nominated_weight(pod("other"))
    assert weight is not None
    assert weight.requests.array[made.nodes.resources["memory"], 0] == MOST_SUM

    for number in range(199):
        made.nominate(greedy(number, priority=number % 3), "")

    weight = made.nodes.nominated_weight(pod("other"))
    assert weight is not None
    assert weight.requests.array[made.nodes.resources["memory"], 0] == MOST_AMOUNT
