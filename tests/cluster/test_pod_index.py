"""Counting pods by namespace and labels."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moorage.cluster import PodMatch, label_index
from moorage.cluster.label_index import PodChange, PodIndex
from moorage.objects.pod import Pod
from moorage.objects.selector import Requirement, Selector, equality
from tests.builders import cluster, node, pod

KEYS, VALUES = st.sampled_from("abc"), st.sampled_from("xyz")
REQUIREMENTS = st.one_of(
    st.builds(
        Requirement,
        KEYS,
        st.sampled_from(["In", "NotIn"]),
        st.lists(VALUES, min_size=1, unique=True).map(lambda values: tuple(sorted(values))),
    ),
    st.builds(Requirement, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
)
SELECTORS = st.lists(REQUIREMENTS, max_size=3).map(lambda each: Selector(tuple(each)))
PAIRS = st.tuples(st.none() | st.frozensets(st.sampled_from("mno")), SELECTORS)


@st.composite
def pods(draw: st.DrawFn) -> tuple[int, Pod]:
    labels = draw(st.dictionaries(KEYS, VALUES))
    dying: dict[str, Any] = {}
    if draw(st.booleans()):
        dying = {"deletionTimestamp": "2024-01-01T00:00:00Z"}
    namespace = draw(st.sampled_from("mn"))
    return draw(st.integers(0, 4)), pod("p", namespace=namespace, labels=labels, metadata=dying)


@given(data=st.data())
def test_counts_agree_with_asking_pod_by_pod(data: st.DataObject) -> None:
    placed = data.draw(st.lists(pods(), max_size=8))
    index = PodIndex(placed)
    for _ in range(2):
        match = PodMatch(tuple(data.draw(st.lists(PAIRS, max_size=3))), data.draw(st.booleans()))
        expected = [0] * 8
        for row, each in placed:
            expected[row] += match.matches(each)
        counts = index.count(match.pairs, 8, skip_terminating=match.skip_terminating)
        assert counts.tolist() == expected

        for row, each in data.draw(st.lists(pods(), max_size=4)):
            placed.append((row, each))
            index.note(PodChange.of(each, row, 1))
        for _ in range(data.draw(st.integers(0, len(placed)))):
            row, each = placed.pop()
            index.note(PodChange.of(each, row, -1))


def test_a_new_tally_looks_at_each_set_of_labels_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = cluster(node("one"), node("two"))
    for at in range(300):
        made.put_pod(pod(f"p{at}", node="one", labels={"app": f"a{at % 3}"}))
    asked = 0
    matches = Requirement.matches

    def counting(self: Requirement, labels: Any) -> bool:
        nonlocal asked
        asked += 1
        return matches(self, labels)

    monkeypatch.setattr(Requirement, "matches", counting)
    tally = made.nodes.tally(PodMatch(((None, equality({"app": "a1"})),)))

    assert tally.by_row.tolist()[:2] == [100, 0]
    assert asked <= 3


def test_many_comings_and_goings_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_index, "_MOST_CHANGES", 8)
    made = cluster(node("one"))
    for at in range(50):
        made.nodes.tally(PodMatch(((None, equality({"app": f"x{at}"})),)))
        made.put_pod(pod("p", node="one", labels={"app": "a"}))
        made.remove_pod("default/p")
    made.put_pod(pod("p", node="one", labels={"app": "a"}))

    assert made.nodes.tally(PodMatch(((None, equality({"app": "a"})),))).by_row[0] == 1
