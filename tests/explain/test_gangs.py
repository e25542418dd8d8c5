"""A gang, explained as a whole: where it goes, what it lacks, and that asking changes nothing."""

from __future__ import annotations

from typing import Any

from moorage.cluster import check
from moorage.engine.explain import GangExplanation, explain_gang
from moorage.testing.builders import node, pod
from tests.engine.gangs import drive_gangs, gang, members

HIGH = {"priority": 10}
APART = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "g"}}, "topologyKey": "host"}
            ]
        }
    }
}


def rack(name: str, nodes: int, cpu: int, **fields: Any) -> list[Any]:
    return [
        node(
            f"{name}-{number}",
            cpu=cpu,
            labels={"rack": name, "host": f"{name}-{number}"},
            **fields,
        )
        for number in range(nodes)
    ]


def explain(*objects: Any) -> GangExplanation:
    """Explains the gang `g`, and checks that the cluster is as it was."""
    driver = drive_gangs(*objects)
    cluster = driver.engine.cluster
    before = dict(cluster.pods), cluster.nodes.requested.copy().tolist()
    group = next(iter(cluster.groups))
    found = explain_gang(driver.engine, group)
    check(cluster)
    assert (dict(cluster.pods), cluster.nodes.requested.tolist()) == before
    return found


def test_what_is_missing_is_told_in_numbers() -> None:
    found = explain(
        *rack("rack-7", 26, 2),
        *[
            node(f"off-{number}", cpu=2, labels={"rack": "rack-7"}, spec={"unschedulable": True})
            for number in range(3)
        ],
        *rack("rack-2", 20, 2),
        gang("g", 64, topology_key="rack"),
        *members("g", 64, cpu=1),
    )

    assert found.state == "pending"
    assert found.arithmetic == (
        "64 x 1 cpu: 64 wait, 0 have a node, minCount is 64. In one rack: best is rack-7 with room "
        "for 52, 12 short; 3 cordoned nodes there would add 6. It fits over 2 of them: rack-7, "
        "rack-2. Anywhere: room for 92."
    )


def test_lesser_pods_in_the_way_are_counted_where_they_are_not_enough() -> None:
    found = explain(
        *rack("a", 2, 4),
        *[pod(f"low-{number}", cpu=1, node="a-0") for number in range(4)],
        gang("g", 9, topology_key="rack", priority=10),
        *members("g", 9, cpu=1, spec=HIGH),
    )

    assert found.state == "pending"
    assert "room for 4, 5 short; without pods of lower priority a has room for 8." in (
        found.arithmetic
    )


def test_a_gang_that_may_preempt_names_its_victims() -> None:
    found = explain(
        *rack("a", 2, 2),
        *[pod(f"low-{number}", cpu=1, node=f"a-{number}") for number in range(2)],
        gang("g", 3, priority=10),
        *members("g", 3, cpu=1, spec=HIGH),
    )

    assert found.state == "preempting"
    assert len(found.victims) == 1
    assert len(found.nodes) == 3


def test_members_that_mind_each_other_are_tried() -> None:
    spec: dict[str, Any] = {"spec": APART, "labels": {"app": "g"}, "cpu": 1}
    nodes = [*rack("a", 3, 4), *rack("b", 2, 4)]

    found = explain(*nodes, gang("g", 4, topology_key="rack"), *members("g", 4, **spec))

    assert found.state == "pending"
    assert found.room is not None
    assert not found.room.is_counted
    assert [(each.name, each.room) for each in found.room.domains] == [("a", 3), ("b", 2)]
    assert found.arithmetic.endswith("It fits over 2 of them: a, b. Anywhere: room for at least 4.")


def test_a_gang_that_fits_or_runs_has_a_place() -> None:
    nodes = rack("a", 2, 2)
    fits = explain(*nodes, gang("g", 3, topology_key="rack"), *members("g", 3, cpu=1))
    assert (fits.state, fits.domain, len(fits.nodes)) == ("fits", "a", 3)

    placed = members("g", 2, cpu=1, node="a-0")
    runs = explain(*nodes, gang("g", 2, topology_key="rack"), *placed)
    assert (runs.state, runs.domain, runs.has_place) == ("running", "a", True)


def test_a_gang_that_is_held_back_says_by_what_and_still_counts() -> None:
    found = explain(*rack("a", 1, 2), gang("g", 3), *members("g", 2, cpu=1))

    assert found.state == "gated"
    assert "waiting for minCount pods from a gang to appear" in found.message
    assert found.arithmetic.endswith("Anywhere: room for 2, 1 short.")


def test_a_gang_without_pods_of_ours_says_so() -> None:
    foreign = members("g", 1, spec={"schedulerName": "other"})

    found = explain(*rack("a", 1, 2), gang("g", 1), *foreign)

    assert (found.state, found.message) == ("gated", "no pod that is served here names this group")
