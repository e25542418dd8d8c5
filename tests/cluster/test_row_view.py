"""Values that follow the change log equal values that are computed again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

import moorage
from moorage.cluster import Change, Cluster, Nodes, Rows
from moorage.cluster.changes import EVERYWHERE
from moorage.cluster.row_view import EVERYTHING, Changed, RowView, RowViews
from moorage.objects.resources import CPU
from tests.builders import cluster, node, pod

NAMES = tuple(f"n{at}" for at in range(6))

#: One step of a random history: something that comes, goes or changes.
STEPS = st.one_of(
    st.tuples(st.just("place"), st.sampled_from(NAMES)),
    st.tuples(st.just("remove"), st.integers(0, 99)),
    st.tuples(st.just("grow"), st.sampled_from(NAMES)),
    st.tuples(st.just("drop"), st.sampled_from(NAMES)),
    st.tuples(st.just("note"), st.integers(EVERYWHERE, 3)),
    st.tuples(st.just("many"), st.sampled_from(NAMES)),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("look"), st.none()),
)


class History:
    """A cluster, and the random steps that change it."""

    def __init__(self) -> None:
        self.cluster: Cluster = cluster(*(node(name, cpu=90) for name in NAMES[:4]))
        self._placed: list[Any] = []
        self._count = 0

    def take(self, step: str, what: Any) -> None:
        steps: dict[str, Callable[[Any], object]] = {
            "place": self._place,
            "remove": self._remove,
            "grow": lambda name: self.cluster.put_node(node(name, cpu=90 + self._count)),
            "drop": self._drop,
            "note": lambda row: self.cluster.changes.note(row, int(Change.REQUESTED)),
            "many": self._place_many,
            "restart": lambda _: self.cluster.changes.restart(),
            "look": lambda _: None,
        }
        steps[step](what)

    def _place(self, name: str) -> None:
        self._count += 1
        self._placed.append(pod(f"p{self._count}", cpu=1, node=name))
        self.cluster.put_pod(self._placed[-1])

    def _place_many(self, name: str) -> None:
        for _ in range(70):
            self._place(name)

    def _remove(self, at: int) -> None:
        if self._placed:
            self.cluster.remove_pod(self._placed.pop(at % len(self._placed)).uid)

    def _drop(self, name: str) -> None:
        self.cluster.remove_node(name)


class Sum:
    """The sum of all values, as a follower keeps it."""

    def __init__(self) -> None:
        self.value = 0

    def move(self, row: int, before: int, after: int) -> None:
        self.value += after - before

    def renew(self, values: NDArray[np.int64]) -> None:
        self.value = int(values.sum())


def room(nodes: Nodes) -> Callable[[Rows], NDArray[np.int64]]:
    at = nodes.resources[CPU]
    return lambda rows: nodes.allocatable[at, rows] - nodes.requested[at, rows]


@given(st.lists(STEPS, max_size=25))
def test_a_view_equals_its_values_computed_again(steps: list[tuple[str, Any]]) -> None:
    history, total = History(), Sum()
    nodes = history.cluster.nodes
    kinds = Change.ALLOCATABLE | Change.REQUESTED
    view = RowView(nodes, kinds, room(nodes))
    view.follow(total)
    for step, what in steps:
        history.take(step, what)
        if step == "look":
            assert view.current().tolist() == room(nodes)(nodes.everything).tolist()
            assert total.value == view.current().sum()

    assert view.current().tolist() == room(nodes)(nodes.everything).tolist()
    assert total.value == view.current().sum()


def test_only_rows_with_a_change_that_matters_are_computed() -> None:
    history, asked = History(), Counter[int]()
    nodes = history.cluster.nodes

    def compute(rows: Rows) -> NDArray[np.int64]:
        asked.update(nodes.numbers(rows))
        return room(nodes)(rows)

    view = RowView(nodes, Change.REQUESTED, compute)
    asked.clear()
    history.take("place", "n1")
    history.cluster.changes.note(2, int(Change.CONDITIONS))

    assert view.current().tolist() == [90_000, 89_000, 90_000, 90_000]
    assert asked == {1: 1}
    assert view.current() is view.current()
    assert asked == {1: 1}


def test_all_rows_are_computed_when_a_node_comes_or_goes() -> None:
    history = History()
    nodes = history.cluster.nodes
    view = RowView(nodes, Change.NONE, room(nodes))
    history.take("grow", "n4")
    assert len(view.current()) == 5

    history.take("drop", "n4")
    assert view.current().tolist() == [90_000] * 4 + [0]


def test_all_rows_are_computed_after_a_change_of_the_whole_cluster_that_matters() -> None:
    history, value = History(), [1]
    nodes, log = history.cluster.nodes, history.cluster.changes
    view = RowView(nodes, Change.SERVICES, lambda rows: np.full(nodes.count(rows), value[0]))
    value[0] = 2
    log.note(EVERYWHERE, int(Change.NAMESPACES))
    assert view.current().tolist() == [1] * 4

    log.note(EVERYWHERE, int(Change.SERVICES))
    assert view.current().tolist() == [2] * 4


def test_a_view_cannot_be_written() -> None:
    nodes = cluster(node("a")).nodes

    with pytest.raises(ValueError, match="read-only"):
        RowView(nodes, Change.NONE, room(nodes)).current()[0] = 1


def follow_together(history: History, *kinds: Change) -> RowViews[RowView[np.int64]]:
    nodes = history.cluster.nodes
    return RowViews(history.cluster.changes, [RowView(nodes, each, room(nodes)) for each in kinds])


def test_views_read_each_change_once() -> None:
    history = History()
    views = follow_together(history)
    history.take("place", "n1")

    assert views.changed_only(1)
    assert not views.changed_only(2)
    history.cluster.changes.note(EVERYWHERE, int(Change.SERVICES))
    assert not views.changed_only(1)
    changed = views.read()
    assert list(changed.rows) == [1]
    assert changed.everywhere == Change.SERVICES
    assert views.read() == Changed({}, 0, 0, history.cluster.changes.generation)


def test_views_that_are_too_far_behind_may_have_missed_everything() -> None:
    history = History()
    views = follow_together(history)
    history.take("restart", None)

    assert views.read() is EVERYTHING
    assert views.read() == Changed({}, 0, 0, history.cluster.changes.generation)


def test_only_views_are_altered_that_watch_what_changed() -> None:
    views = follow_together(History(), Change.REQUESTED, Change.LABELS)

    assert [each.kinds for each in views.find_altered(Change.LABELS)] == [Change.LABELS]
    assert len(views.find_altered(Change.MEMBERSHIP)) == 2


def test_nothing_else_reads_the_log() -> None:
    source = Path(moorage.__file__).parent
    calls = re.compile(r"\b(_?log|changes)\.(since|unite_since|gather)\(")
    reading = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if calls.search(path.read_text())
    }

    assert reading == {
        "cluster/row_view.py",
        "testing/laws.py",
    }
