"""A gang that starves: where a profile says so, room is kept for it after a while."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings, strategies as st

from moorage.engine.actions import RecordEvent
from moorage.objects.pod import Pod
from moorage.testing.builders import node, pod
from moorage.testing.driver import Driver, conditions, drive, only
from tests.engine.gangs import GATES, drive_gangs, gang, members

PROTECTED = {
    "schedulerName": "default-scheduler",
    "plugins": {"multiPoint": {"enabled": [{"name": "GangProtection"}]}},
    "pluginConfig": [{"name": "GangProtection", "args": {"afterSeconds": 60}}],
}


def racks(count: int = 2, nodes: int = 2) -> list[Any]:
    return [
        node(f"r{rack}.{at}", cpu=2, labels={"rack": f"r{rack}"})
        for rack in range(count)
        for at in range(nodes)
    ]


def starve(
    *objects: Any, profile: dict[str, Any] | None = None, priority: int = 0, count: int = 4
) -> Driver:
    """A gang that needs a whole rack, in which one pod runs; a minute has passed."""
    group = gang("g", count, topology_key="rack", priority=priority)
    pods = members("g", count, cpu=1, spec={"priority": priority})
    driver = drive_gangs(*objects, group, *pods, profiles=[profile or PROTECTED])
    driver.settle()
    driver.now += 61
    driver.settle()
    return driver


def busy(name: str, node_name: str, **fields: Any) -> Pod:
    return pod(
        name, cpu=1, node=node_name, spec={"priority": 10, **fields.pop("spec", {})}, **fields
    )


def run_small(driver: Driver, name: str, **fields: Any) -> str:
    """Where a small pod goes, if anywhere."""
    driver.apply(pod(name, cpu=1, **fields))
    driver.settle()
    return driver.node_of(name)


def test_small_work_no_longer_takes_the_room_of_a_gang() -> None:
    driver = starve(*racks(), busy("a", "r0.0"), busy("b", "r1.0"))
    told = [each for each in only(driver.story, RecordEvent) if each.reason == "GangProtected"]
    assert [each.note for each in told] == ["Room is kept for it on r0.1, r0.0"]

    # The other rack is free for all, and full soon.
    assert run_small(driver, "s0")[:2] == "r1"
    assert run_small(driver, "s1")[:2] == "r1"
    assert run_small(driver, "s2")[:2] == "r1"
    assert run_small(driver, "s3") == ""
    message = conditions(driver.story)["s3"].message
    assert "2 node(s) had room kept for pod group default/g" in message
    assert "2 Insufficient cpu" in message

    driver.remove(driver.pods["default/a"])
    driver.now += 60
    driver.settle()

    assert {driver.node_of(f"g-{number}")[:2] for number in range(4)} == {"r0"}
    assert driver.engine.cluster.nodes.kept_room is None


def test_without_the_plugin_a_gang_blocks_nobody() -> None:
    driver = starve(
        *racks(),
        busy("a", "r0.0"),
        busy("b", "r1.0"),
        profile={"schedulerName": "default-scheduler"},
    )

    assert [bool(run_small(driver, f"s{number}")) for number in range(6)] == [True] * 6


def test_room_is_used_by_what_the_gang_may_evict_and_by_what_is_more_important() -> None:
    driver = starve(*racks(1), busy("a", "r0.0"), priority=5)

    assert run_small(driver, "equal", spec={"priority": 5}) == ""
    assert run_small(driver, "lesser", spec={"priority": 4}) != ""
    assert run_small(driver, "greater", spec={"priority": 6}) != ""


def test_a_gang_that_never_evicts_is_kept_its_room_from_lesser_pods_too() -> None:
    spec = {"priority": 5, "preemptionPolicy": "Never"}
    group = gang("g", 4, topology_key="rack", priority=5)
    pods = members("g", 4, cpu=1, spec=spec)
    driver = drive_gangs(*racks(1), busy("a", "r0.0"), group, *pods, profiles=[PROTECTED])
    driver.settle()
    driver.now += 61
    driver.settle()

    assert run_small(driver, "lesser", spec={"priority": 4}) == ""


def test_pods_of_daemonsets_go_where_they_belong() -> None:
    driver = starve(*racks(1), busy("a", "r0.0"))
    owner = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": "d",
        "uid": "d",
        "controller": True,
    }

    assert run_small(driver, "d", metadata={"ownerReferences": [owner]}) != ""


def test_whoever_was_refused_goes_on_when_the_gang_is_gone() -> None:
    driver = starve(*racks(1), busy("a", "r0.0"))
    assert run_small(driver, "s") == ""

    driver.remove(driver.pods["default/g-0"])
    driver.settle()
    driver.now += 20
    driver.settle()

    assert driver.node_of("s") != ""
    assert driver.engine.cluster.nodes.kept_room is None


def test_room_is_kept_for_the_most_important_gang_only_and_then_for_the_next() -> None:
    other = gang("h", 4, topology_key="rack", priority=1)
    pods = members("h", 4, cpu=1, spec={"priority": 1})
    driver = starve(*racks(1), busy("a", "r0.0"), other, *pods)
    kept = driver.engine.cluster.nodes.kept_room
    assert kept is not None
    assert kept.group[1] == "default/h"

    driver.remove(*(driver.pods[f"default/h-{number}"] for number in range(4)))
    driver.settle()
    driver.now += 2
    driver.settle()

    kept = driver.engine.cluster.nodes.kept_room
    assert kept is not None
    assert kept.group[1] == "default/g"


def test_no_room_is_kept_for_what_would_not_fit_an_empty_rack() -> None:
    driver = starve(*racks(), count=5)

    assert driver.engine.cluster.nodes.kept_room is None
    assert run_small(driver, "s") != ""


def test_a_gang_without_a_topology_is_kept_no_more_nodes_than_it_needs() -> None:
    nodes = [node(f"n{number}", cpu=2) for number in range(4)]
    running = [busy(f"b{number}", f"n{number}") for number in range(4)]
    driver = drive_gangs(
        *nodes, *running, gang("g", 5), *members("g", 5, cpu=1), profiles=[PROTECTED]
    )
    driver.settle()
    driver.now += 61
    driver.settle()

    kept = driver.engine.cluster.nodes.kept_room
    assert kept is not None
    # Five members fit on three empty nodes.
    assert len(kept.nodes) == 3
    assert run_small(driver, "s") != ""
    assert run_small(driver, "t") == ""


@given(
    st.lists(
        st.tuples(st.sampled_from(("small", "gang", "end")), st.integers(1, 4), st.integers(0, 2)),
        min_size=4,
        max_size=14,
    )
)
@settings(max_examples=25)
def test_what_is_kept_for_like_pods_changes_no_decision(
    happened: list[tuple[str, int, int]],
) -> None:
    alone = {"EquivalenceCache": False, "OpportunisticBatching": False}
    drivers = [
        drive(*racks(3), gates={**GATES, **gates}, profiles=[PROTECTED]) for gates in ({}, alone)
    ]
    for number, (what, count, priority) in enumerate(happened):
        for driver in drivers:
            name, spec = f"{what}{number}", {"priority": priority}
            if what == "small":
                driver.apply(pod(name, cpu=count % 2 + 1, spec=spec))
            elif what == "gang":
                group = gang(name, 2 * count, topology_key="rack", priority=priority)
                driver.apply(group, *members(name, 2 * count, cpu=1, spec=spec))
            else:
                placed = [each for each in driver.pods.values() if each.node_name]
                driver.remove(*placed[:count])
            driver.settle()
            driver.now += 40
            driver.settle()

    first, second = ({each.key: each.node_name for each in d.pods.values()} for d in drivers)
    assert first == second
