"""The order in which nodes are visited."""

from __future__ import annotations

from itertools import zip_longest

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moorage.cluster import Cluster
from moorage.objects.node import ZONE, Node
from tests.builders import cluster, node


def order(of: Cluster) -> list[str]:
    names = of.nodes.names(of.nodes.order.tolist())
    ranked = sorted(of.nodes.rows.tolist(), key=lambda row: int(of.nodes.ranks[row]))
    assert of.nodes.names(ranked) == names
    return names


def zoned(name: str, zone: str = "") -> Node:
    return node(name, labels={ZONE: zone} if zone else {})


@pytest.mark.parametrize(
    ("nodes", "visited"),
    [
        pytest.param("", "", id="none"),
        pytest.param("a1 b1 c1", "a1 b1 c1", id="one of each zone"),
        pytest.param("a1 a2 a3 b1", "a1 b1 a2 a3", id="exhausted zones are skipped"),
        pytest.param("b1 a1 b2 a2", "b1 a1 b2 a2", id="zones in order of their first node"),
        pytest.param("-1 a1 -2 a2", "-1 a1 -2 a2", id="no zone is a zone too"),
    ],
)
def test_zones_take_turns(nodes: str, visited: str) -> None:
    made = cluster()
    for name in nodes.split():
        made.put_node(zoned(name, name[0].strip("-")))

    assert order(made) == visited.split()


def test_moving_to_another_zone_reorders_only_when_a_node_comes_or_goes() -> None:
    made = cluster()
    for name in ("a1", "a2", "b1"):
        made.put_node(zoned(name, name[0]))
    assert order(made) == ["a1", "b1", "a2"]

    made.put_node(zoned("a1", "b"))
    assert order(made) == ["a1", "b1", "a2"]

    made.put_node(zoned("c1", "c"))
    assert order(made) == ["a2", "b1", "c1", "a1"]


def test_a_zone_that_was_empty_starts_anew() -> None:
    made = cluster()
    for name in ("a1", "b1"):
        made.put_node(zoned(name, name[0]))
    made.remove_node("a1")
    made.put_node(zoned("a2", "a"))

    assert order(made) == ["b1", "a2"]


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc"), st.integers(0, 4)), max_size=25))
def test_round_robin_over_arrivals(steps: list[tuple[bool, str, int]]) -> None:
    made = Cluster()
    zones: dict[str, list[str]] = {}
    for comes, zone, number in steps:
        name = f"{zone}{number}"
        if comes and name not in zones.get(zone, []):
            made.put_node(zoned(name, zone))
            zones.setdefault(zone, []).append(name)
        elif not comes and name in zones.get(zone, []):
            made.remove_node(name)
            zones[zone].remove(name)
            if not zones[zone]:
                del zones[zone]
        turns = zip_longest(*zones.values())
        assert order(made) == [name for turn in turns for name in turn if name is not None]
