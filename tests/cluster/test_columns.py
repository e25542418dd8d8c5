"""Columns come with their users and go with them."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

from moorage.cluster import check
from moorage.cluster.tally import DomainCounts
from moorage.objects.node import HOSTNAME, ZONE
from moorage.objects.node_selector import NodeRequirement, NodeTerm
from tests.builders import cluster, node, pod


@pytest.fixture
def allocated() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def bytes_now() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def many(count: int) -> dict[str, int]:
    return {f"example.com/r{at}": 1 for at in range(count)}


def test_resources_that_no_node_offers_have_no_column() -> None:
    made = cluster(node("one", cpu=4), pod("p", node="one", gpu=3))
    assert made.nodes.resource("example.com/gpu") is None

    made.put_node(node("two", gpu=8))
    at = made.nodes.resources["example.com/gpu"]
    assert made.nodes.requested[at, :2].tolist() == [3, 0]
    assert made.nodes.allocatable[at, :2].tolist() == [0, 8]
    check(made)

    made.put_pod(pod("q", node="one", gpu=2))
    made.remove_node("two")
    assert made.nodes.resource("example.com/gpu") is None
    check(made)

    made.remove_pod("default/p")
    made.put_node(node("one", cpu=4, gpu=4))
    at = made.nodes.resources["example.com/gpu"]
    assert (made.nodes.requested[at, 0], made.nodes.allocatable[at, 0]) == (2, 4)
    check(made)


def test_another_resource_takes_the_place_of_one_that_is_gone() -> None:
    made = cluster(node("one", **{"example.com/a": 1}), node("two", **{"example.com/b": 2}))
    made.nodes.lesser_pods(1, np.array([0]))
    places = len(made.nodes.allocatable)
    for at in range(20):
        made.put_node(node("one", **{f"example.com/c{at}": 5}))
        assert made.nodes.facts(0).allocatable[made.nodes.resources[f"example.com/c{at}"]] == 5
        check(made)

    assert len(made.nodes.allocatable) == places
    assert set(made.nodes.resources) >= {"cpu", "memory", "pods", "example.com/b"}
    assert "example.com/a" not in made.nodes.resources


def test_nominated_pods_count_when_their_resource_gets_a_column() -> None:
    made = cluster(node("one", cpu=4))
    made.nominate(pod("p", gpu=3, priority=5), "one")
    made.put_node(node("two", gpu=8))
    weight = made.nodes.nominated_weight(pod("other"))

    assert weight is not None
    assert weight.requests.array[made.nodes.resources["example.com/gpu"], :2].tolist() == [3, 0]
    made.nominate(pod("p", gpu=3, priority=5), "")
    assert made.nodes.nominated_weight(pod("other")) is None


@pytest.mark.usefixtures("allocated")
def test_a_placed_pod_with_many_resources_takes_little_memory() -> None:
    made = cluster(*(node(f"n{at}", cpu=4) for at in range(1_000)))
    hostile = pod("hostile", node="n1", **many(2_000))
    assert hostile.held.requests
    before = bytes_now()
    made.put_pod(hostile)
    grown = bytes_now() - before
    made.remove_pod(hostile.uid)

    assert grown < 2_000_000
    assert bytes_now() - before < 100_000


@pytest.mark.usefixtures("allocated")
def test_keys_that_no_node_has_take_no_memory() -> None:
    made = cluster(*(node(f"n{at}") for at in range(1_000)))
    before = bytes_now()
    for operator, holds in (("DoesNotExist", True), ("NotIn", True), ("Exists", False)):
        requirements = tuple(
            NodeRequirement(f"key-{at}", operator, ("x",) if operator == "NotIn" else ())  # type: ignore[arg-type]
            for at in range(2_000)
        )
        found = made.nodes.satisfying(NodeTerm(requirements), made.nodes.everything)
        assert found.all() == found.any() == holds
    del found, requirements

    assert bytes_now() - before < 100_000


def test_a_column_lives_as_long_as_somebody_holds_it() -> None:
    made = cluster(node("one", labels={"zone": "a"}), node("two"))
    counts = DomainCounts(made.nodes.label("zone"))
    made.nodes.label("disk")
    for _ in range(2):
        made.sweep()
    assert "zone" in {column.key for column in made._state.labels.columns}
    assert "disk" not in {column.key for column in made._state.labels.columns}

    made.put_node(node("two", labels={"zone": "b"}))
    assert counts.column.value(1) == "b"
    assert made.nodes.label("zone") is counts.column
    del counts
    for _ in range(2):
        made.sweep()
    assert "zone" not in {column.key for column in made._state.labels.columns}
    assert made.nodes.label("zone").value(1) == "b"


@pytest.mark.parametrize("key", [HOSTNAME, ZONE])
def test_host_names_and_zones_have_a_column_before_anybody_asks(key: str) -> None:
    made = cluster(node("one", labels={key: "a"}))
    for _ in range(2):
        made.sweep()
    made.put_node(node("two", labels={key: "b"}))

    kept = {column.key: column for column in made._state.labels.columns}

    assert [kept[key].value(row) for row in range(2)] == ["a", "b"]
    assert made.nodes.label(key) is kept[key]


@pytest.mark.usefixtures("allocated")
def test_terms_of_a_placed_pod_take_memory_by_their_domains() -> None:
    made = cluster(*(node(f"n{at}") for at in range(1_000)))
    terms = [
        {
            "topologyKey": HOSTNAME,
            "labelSelector": {"matchLabels": {"app": f"x{at}"}},
        }
        for at in range(500)
    ]
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    hostile = pod("hostile", node="n999", spec={"affinity": {"podAntiAffinity": rule}})
    assert hostile.terms.anti_affinity
    before = bytes_now()
    made.put_pod(hostile)
    assert bytes_now() - before < 1_500_000
    made.remove_pod(hostile.uid)
    made.sweep()
    made.sweep()

    assert bytes_now() - before < 100_000
