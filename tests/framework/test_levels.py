"""Scores by the few numbers that occur: what a plugin may answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moorage.cluster import Nodes, Rows
from moorage.framework.calls import ask_levels, find_occurring
from moorage.framework.plugin import Levelled, Levels, Score, Scores
from moorage.framework.status import PluginError
from tests.builders import cluster, node

NODES = cluster(node("a"), node("b"), node("c")).nodes
NUMBERS = np.array([5, 7, 9])
HALVES: Any = NUMBERS / 2


class Answering(Score[Any]):
    name = "Answering"

    def score(self, prepared: Any, nodes: Nodes, rows: Rows) -> Scores:
        return np.zeros(nodes.count(rows), np.int64)


class Prepared(Levelled):
    """Has the levels that a test gives it."""

    def __init__(self, answer: object) -> None:
        self._answer: Any = answer

    def find_levels(self) -> Levels | None:
        answer: Levels | None = self._answer
        return answer


def find(answer: object) -> list[int] | None:
    plugin = Answering()
    levels = ask_levels(plugin, Prepared(answer), NODES)
    return None if levels is None else find_occurring(plugin, levels, levels.places).tolist()


def test_the_numbers_that_rows_have_are_found_in_order() -> None:
    assert find(Levels(NUMBERS, np.array([2, 0, 2]))) == [0, 2]
    assert find(None) is None


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (NUMBERS, "returned ndarray, expected Levels"),
        (Levels(HALVES, np.zeros(3, np.intp)), "Levels of float64[3], expected int64"),
        (Levels(NUMBERS, np.zeros(2, np.intp)), "Levels over int64[2], expected intp[3]"),
        (Levels(NUMBERS, HALVES), "Levels over float64[3], expected intp[3]"),
        (Levels(NUMBERS, np.array([0, 3, 0])), "returned Levels with place 3 of 3"),
        (Levels(NUMBERS, np.array([0, -1, 0])), "negative"),
    ],
)
def test_other_answers_fail_the_attempt(answer: object, problem: str) -> None:
    with pytest.raises(PluginError) as caught:
        find(answer)
    assert str(caught.value).startswith('running Score plugin "Answering": ')
    assert problem in str(caught.value)
