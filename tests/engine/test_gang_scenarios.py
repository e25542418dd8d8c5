"""What is evicted for gangs, in scenes where one of many parts decides it."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.engine.gangs import group_preemption
from moorage.objects.pod import Pod
from moorage.testing.builders import node, pod
from moorage.testing.driver import bindings, evictions, nominations
from tests.engine.gangs import IN_EACH_VERSION, drive_gangs, gang, members

pytestmark = IN_EACH_VERSION

HIGH = {"priority": 10}
HOST = "kubernetes.io/hostname"


def apart(label: str) -> dict[str, Any]:
    """A spec with anti-affinity to pods of an app on the same node."""
    term = {"labelSelector": {"matchLabels": {"app": label}}, "topologyKey": HOST}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {**HIGH, "affinity": {"podAntiAffinity": rule}}


@pytest.mark.parametrize("work", [40_000_000, 2_000_000], ids=["with time", "in a hurry"])
def test_pods_that_have_no_room_beside_the_members_are_evicted_however_little_time_there_is(
    monkeypatch: pytest.MonkeyPatch, work: int
) -> None:
    """Of 24 pods four have to go: one of each node that takes a member."""
    monkeypatch.setattr(group_preemption, "MOST_GROUP_WORK", work)
    nodes = [node(f"n{at}", cpu=2) for at in range(12)]
    low = [pod(f"low-{at}", cpu=1, node=f"n{at % 12}") for at in range(24)]
    spec = apart("g")
    pods = members("g", 4, cpu=1, labels={"app": "g"}, spec=spec)
    driver = drive_gangs(*nodes, *low, gang("g", 4, priority=10), *pods)

    actions = driver.step()

    gone, places = evictions(actions), set(nominations(actions).values())
    assert len(gone) == len(places) == 4
    assert {each.node_name for each in low if each.name in gone} == places
    driver.evict(actions)
    driver.now += 20
    assert len(bindings(driver.step())) == 4


@pytest.mark.parametrize("needed", ["n0", "n1", "n2"])
def test_a_group_that_leaves_as_one_goes_whichever_of_its_nodes_is_needed(needed: str) -> None:
    nodes = [node(f"n{at}", cpu=2) for at in range(3)]
    whole = [
        pod(f"w-{at}", cpu=2, node=f"n{at}", spec={"schedulingGroup": {"podGroupName": "w"}})
        for at in range(3)
    ]
    spec = {**HIGH, "nodeSelector": {HOST: needed}}
    driver = drive_gangs(
        *nodes,
        gang("w", 3, is_evicted_whole=True),
        *whole,
        gang("g", 1, priority=10),
        *members("g", 1, cpu=1, spec=spec),
    )

    actions = driver.step()

    assert nominations(actions) == {"g-0": needed}
    assert sorted(evictions(actions)) == ["w-0", "w-1", "w-2"]


def leaving(name: str, node_name: str) -> Pod:
    return pod(
        name,
        cpu=2,
        node=node_name,
        spec={"schedulingGroup": {"podGroupName": "w"}},
        metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"},
    )


def test_a_pod_that_is_leaving_already_is_not_evicted_with_its_group() -> None:
    nodes = [node(f"n{at}", cpu=2) for at in range(2)]
    whole = [
        pod(f"w-{at}", cpu=2, node=f"n{at}", spec={"schedulingGroup": {"podGroupName": "w"}})
        for at in range(2)
    ]
    driver = drive_gangs(*nodes, gang("w", 2, is_evicted_whole=True), *whole)
    driver.apply(leaving("w-1", "n1"))

    driver.apply(gang("g", 2, priority=10), *members("g", 2, cpu=2, spec=HIGH))

    assert evictions(driver.step()) == ["w-0"]


def test_of_groups_that_leave_as_one_the_one_that_started_last_is_evicted() -> None:
    """When they started is known after they were placed."""

    def alone(group: str, **status: Any) -> Pod:
        spec = {"schedulingGroup": {"podGroupName": group}}
        return pod(f"{group}-0", cpu=1, node="n0", spec=spec, status=status)

    groups = [gang(name, 1, is_evicted_whole=True) for name in "ab"]
    driver = drive_gangs(node("n0", cpu=2), *groups, alone("a"), alone("b"))
    driver.apply(
        alone("a", phase="Running", startTime="2026-01-01T00:00:09Z"),
        alone("b", phase="Running", startTime="2026-01-01T00:00:03Z"),
    )

    driver.apply(gang("g", 1, priority=10), *members("g", 1, cpu=1, spec=HIGH))

    assert evictions(driver.step()) == ["a-0"]


@pytest.mark.parametrize("own", ["r0", "r1"])
def test_what_was_best_for_a_gang_decides_nothing_for_one_that_has_a_domain(own: str) -> None:
    """Two gangs alike but for a member of the second, which is on a node already."""
    nodes = [node(f"n{at}", cpu=4, labels={"rack": f"r{at}"}) for at in range(2)]
    rest = members("h", 2, start=1, cpu=1)
    driver = drive_gangs(*nodes, gang("g", 2, topology_key="rack"), *members("g", 2, cpu=1))
    first = set(bindings(driver.step()).values())
    assert len(first) == 1

    (there,) = members("h", 1, cpu=1, node=f"n{own[1]}")
    driver.apply(gang("h", 2, topology_key="rack"), there, *rest)

    assert set(bindings(driver.step()).values()) == {there.node_name}
