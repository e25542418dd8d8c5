"""Tallies: how many matching pods there are on each row and in each domain."""

from __future__ import annotations

import numpy as np
import pytest

from moorage.cluster import Cluster, PodMatch, tally as tally_module
from moorage.objects.selector import EVERYTHING, Selector, equality
from tests.builders import cluster, node, pod

WEB = equality({"app": "web"})


def match(selector: Selector = WEB, *namespaces: str, skip_terminating: bool = False) -> PodMatch:
    wanted = frozenset(namespaces) if namespaces else None
    return PodMatch(((wanted, selector),), skip_terminating)


def by_node(of: Cluster, wanted: PodMatch) -> dict[str, int]:
    counts = of.nodes.tally(wanted).by_row
    return {of.nodes.name(row): int(counts[row]) for row in of.nodes.rows if counts[row]}


def by_zone(of: Cluster, wanted: PodMatch) -> dict[str, int]:
    column = of.nodes.label("zone")
    counts = of.nodes.tally(wanted).in_domains(column).counts()
    assert len(counts) == len(column.vocabulary) + 1
    assert counts[-1] == 0
    return {value: int(counts[code]) for value, code in column.vocabulary.in_use().items()}


DYING = {"deletionTimestamp": "2024-01-01T00:00:00Z"}


@pytest.mark.parametrize("asked_early", [True, False])
@pytest.mark.parametrize(
    ("wanted", "nodes", "zones"),
    [
        pytest.param(match(), {"a1": 2, "b1": 2}, {"a": 2, "b": 2}, id="labels"),
        pytest.param(
            match(WEB, "default"), {"a1": 2, "b1": 1}, {"a": 2, "b": 1}, id="labels and namespace"
        ),
        pytest.param(
            match(EVERYTHING), {"a1": 2, "a2": 1, "b1": 2}, {"a": 3, "b": 2}, id="everybody"
        ),
        pytest.param(
            match(skip_terminating=True), {"a1": 1, "b1": 2}, {"a": 1, "b": 2}, id="who stays"
        ),
        pytest.param(
            PodMatch(((None, WEB), (frozenset({"other"}), EVERYTHING))),
            {"b1": 1},
            {"a": 0, "b": 1},
            id="several conditions at once",
        ),
        pytest.param(
            PodMatch(()), {"a1": 2, "a2": 1, "b1": 2}, {"a": 3, "b": 2}, id="no condition"
        ),
    ],
)
def test_counts(
    wanted: PodMatch, nodes: dict[str, int], zones: dict[str, int], asked_early: bool
) -> None:
    made = cluster(
        node("a1", labels={"zone": "a"}),
        node("a2", labels={"zone": "a"}),
        node("b1", labels={"zone": "b"}),
    )
    if asked_early:
        by_zone(made, wanted)
    web = {"app": "web"}
    made.put_pod(pod("p1", labels=web, node="a1"))
    made.put_pod(pod("p2", labels=web, node="a1", metadata=DYING))
    made.put_pod(pod("p3", labels=web, node="b1"))
    made.put_pod(pod("p4", labels=web, node="b1", namespace="other"))
    made.put_pod(pod("p5", labels={"app": "db"}, node="a2"))
    made.put_pod(pod("p6", labels=web, node="nowhere"))

    assert by_node(made, wanted) == nodes
    assert by_zone(made, wanted) == zones


def test_counts_follow_pods_nodes_and_labels() -> None:
    made = cluster(node("one", labels={"zone": "a"}), node("two", labels={"zone": "b"}))
    assert by_zone(made, match()) == {"a": 0, "b": 0}
    web = pod("p", labels={"app": "web"}, node="one")

    made.put_pod(web)
    assert by_zone(made, match()) == {"a": 1, "b": 0}
    made.put_node(node("one", labels={"zone": "c"}))
    assert by_zone(made, match()) == {"b": 0, "c": 1}
    made.put_pod(pod("p", labels={"app": "web"}, node="two"))
    assert by_zone(made, match()) == {"b": 1, "c": 0}
    made.remove_node("two")
    assert by_zone(made, match()) == {"c": 0}
    made.put_node(node("two"))
    assert (by_node(made, match()), by_zone(made, match())) == ({"two": 1}, {"c": 0})
    made.put_pod(pod("p", labels={"app": "db"}, node="two"))
    assert by_node(made, match()) == {}


def test_many_domains() -> None:
    made = cluster()
    by_zone(made, match())
    for at in range(150):
        made.put_node(node(f"n{at}", labels={"zone": f"z{at}"}))
        made.put_pod(pod(f"p{at}", labels={"app": "web"}, node=f"n{at}"))

    assert set(by_zone(made, match()).values()) == {1}
    assert made.nodes.tally(match()).in_domains(made.nodes.label("zone")).total == 150


def test_the_tally_that_was_asked_for_least_recently_goes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Two tallies of the 64 rows that a cluster begins with.
    monkeypatch.setattr(tally_module, "_MOST_BYTES", 2 * 64 * tally_module._BYTES_PER_ROW)
    made = cluster(node("one"))
    matches = [match(equality({"app": name})) for name in "abc"]
    first = made.nodes.tally(matches[0])
    second = made.nodes.tally(matches[1])
    assert made.nodes.tally(matches[0]) is first
    made.nodes.tally(matches[2])
    made.put_pod(pod("p", labels={"app": "b"}, node="one"))

    assert made.nodes.tally(matches[0]) is first
    assert made.nodes.tally(matches[1]) is not second
    assert by_node(made, matches[1]) == {"one": 1}


@pytest.mark.parametrize("asked_early", [True, False])
def test_counts_among_some_rows(*, asked_early: bool) -> None:
    made = cluster(*(node(name, labels={"zone": "a"}) for name in ("one", "two")))
    column, among = made.nodes.label("zone"), np.array([True, False])
    if asked_early:
        assert made.nodes.tally(match()).in_domains_among(column, among).total == 0
    made.put_pod(pod("p1", labels={"app": "web"}, node="one"))
    made.put_pod(pod("p2", labels={"app": "web"}, node="two"))

    counts = made.nodes.tally(match()).in_domains_among(column, among)
    assert (counts.total, counts.counts().tolist()) == (1, [1, 0])
