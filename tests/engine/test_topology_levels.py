"""Levels of topology that groups ask for by annotation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings, strategies as st

from moorage.objects.pod_group import (
    COSCHEDULING,
    GROUP_LABEL,
    PREFERRED_TOPOLOGY,
    REQUIRED_TOPOLOGY,
)
from moorage.testing.builders import node, pod
from moorage.testing.driver import Driver, bindings, conditions
from tests.engine.gangs import drive_gangs, gang, members

INDEX = "batch.kubernetes.io/job-completion-index"


def racks(*sizes: int, block: str = "b0", cpu: int = 2) -> list[Any]:
    """Racks of so many nodes each; the nodes are called `block.rack.number`."""
    return [
        node(f"{block}.r{rack}.{at}", cpu=cpu, labels={"block": block, "rack": f"{block}.r{rack}"})
        for rack, size in enumerate(sizes)
        for at in range(size)
    ]


def near(count: int, keys: str = "rack", **fields: Any) -> Any:
    return gang("g", count, annotations={PREFERRED_TOPOLOGY: keys}, **fields)


def by_rack(driver: Driver) -> dict[str, int]:
    """How many members go to each rack."""
    found: dict[str, int] = defaultdict(int)
    for node_name in bindings(driver.step()).values():
        found[node_name.rpartition(".")[0]] += 1
    return dict(found)


def test_the_smallest_rack_that_fits_is_taken() -> None:
    driver = drive_gangs(*racks(4, 2, 3), near(4), *members("g", 4, cpu=1))

    assert by_rack(driver) == {"b0.r1": 4}


def test_a_gang_that_fits_in_no_rack_takes_as_few_as_possible() -> None:
    # 4, 6 and 10 places: the roomiest, and the smallest that takes the rest.
    driver = drive_gangs(*racks(2, 3, 5), near(13), *members("g", 13, cpu=1))

    assert by_rack(driver) == {"b0.r2": 10, "b0.r0": 3}


def test_wide_levels_count_before_narrow_ones() -> None:
    nodes = [*racks(2, 2, 2), *racks(5, block="b1"), *racks(1, 1, block="b2")]
    # Twelve fit in one block over three racks, or in one rack and another block.
    driver = drive_gangs(*nodes, near(12, "block,rack"), *members("g", 12, cpu=1))

    assert by_rack(driver) == {"b0.r0": 4, "b0.r1": 4, "b0.r2": 4}


def test_a_required_key_is_kept_and_the_best_inside_it_taken() -> None:
    nodes = [*racks(3, 1), *racks(2, 2, block="b1")]
    group = near(6, "rack", topology_key="block")

    driver = drive_gangs(*nodes, group, *members("g", 6, cpu=1))

    assert by_rack(driver) == {"b0.r0": 6}


def test_a_required_key_can_be_given_by_annotation_where_the_api_has_none() -> None:
    group = gang("g", 4, api_version=COSCHEDULING, annotations={REQUIRED_TOPOLOGY: "rack"})
    pods = [pod(f"g-{number}", cpu=1, labels={GROUP_LABEL: "g"}) for number in range(4)]
    driver = drive_gangs(*racks(1, 1), group, *pods, topology=False)
    assert "0/2 placements are available" in conditions(driver.step())["g-3"].message
    assert not bindings(driver.story)

    driver.apply(*racks(0, 2))
    driver.now += 60

    assert by_rack(driver) == {"b0.r1": 4}


def test_neighbours_by_index_share_a_rack() -> None:
    pods = [
        each
        for number in (5, 0, 3, 1, 4, 2)
        for each in members("g", 1, number, cpu=1, labels={INDEX: str(number)})
    ]
    driver = drive_gangs(*racks(1, 2), near(6), *pods)

    bound = bindings(driver.step())

    at = {name: node_name.rpartition(".")[0] for name, node_name in bound.items()}
    assert [at[f"g-{number}"] for number in range(6)] == ["b0.r1"] * 4 + ["b0.r0"] * 2


def test_a_replacement_goes_where_the_others_are() -> None:
    running = [members("g", 1, at, cpu=1, node="b0.r0.0")[0] for at in range(3)]
    driver = drive_gangs(*racks(3, 1, 1), *running, near(4), *members("g", 1, start=3, cpu=1))

    assert by_rack(driver) == {"b0.r0": 1}


def test_members_that_mind_each_other_are_tried() -> None:
    apart = {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "labelSelector": {"matchLabels": {"app": "g"}},
                        "topologyKey": "kubernetes.io/hostname",
                    }
                ]
            }
        }
    }
    pods = members("g", 3, cpu=1, spec=apart, labels={"app": "g"})

    driver = drive_gangs(*racks(2, 4, 3), near(3), *pods)

    assert by_rack(driver) == {"b0.r2": 3}


def test_what_no_node_has_and_too_many_levels_do_no_harm() -> None:
    keys = ",".join(["nowhere", "", "rack", *(f"k{number}" for number in range(100))])
    group = near(4, keys)
    driver = drive_gangs(*racks(4, 2), group, *members("g", 4, cpu=1))

    assert group.preferred_keys == ("nowhere", "rack", "k0", "k1")
    assert by_rack(driver) == {"b0.r1": 4}


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=5),
    st.integers(1, 12),
    st.integers(0, 3),
    st.booleans(),
)
@settings(max_examples=40)
def test_preferences_refuse_nobody_and_use_the_fewest_racks(
    sizes: Sequence[int], count: int, extra: int, is_required: bool
) -> None:
    fields = {"topology_key": "rack"} if is_required else {}
    pods = members("g", count + extra, cpu=1)
    plain = drive_gangs(*racks(*sizes), gang("g", count, **fields), *pods)
    driver = drive_gangs(*racks(*sizes), near(count, **fields), *pods)

    placed = by_rack(driver)

    assert bool(placed) == bool(bindings(plain.step()))
    assert sum(placed.values()) in (0, *range(count, count + extra + 1))
    if placed:
        total, fewest = sum(placed.values()), 0
        rooms = sorted((2 * size for size in sizes), reverse=True)
        while total > 0:
            total -= rooms[fewest]
            fewest += 1
        assert len(placed) == fewest
