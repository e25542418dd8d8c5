"""What is decided about groups in one version of Kubernetes and not in another."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from moorage.config.kubernetes_versions import VERSIONS, KubernetesVersion
from moorage.engine.actions import PatchPodGroupStatus, RecordEvent
from moorage.engine.events import Evicted
from moorage.objects.pod import Pod
from moorage.objects.pod_group import COSCHEDULING, GROUP_LABEL, V1ALPHA2, V1BETA1
from moorage.testing.builders import node, pod
from moorage.testing.driver import Driver, bindings, conditions, evictions, only
from tests.engine.gangs import NEW, OLD, drive_gangs, gang, members

BOTH = pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
NODES = [node(f"n{number}", cpu=2, labels={"rack": "r"}) for number in range(2)]
API = {OLD: V1ALPHA2, NEW: V1BETA1}


def ranked(priority: int, **spec: Any) -> dict[str, Any]:
    return {"spec": {"priority": priority, **spec}}


def test_a_group_of_1_36_without_a_priority_is_placed_whatever_its_pods_have() -> None:
    """Its API server drops the priority of groups by default."""
    driver = drive_gangs(
        *NODES,
        gang("g", 3, api_version=V1ALPHA2),
        *members("g", 2, cpu=1, **ranked(100)),
        *members("g", 1, start=2, cpu=1, **ranked(7, preemptionPolicy="Never")),
        version=OLD,
    )

    assert len(bindings(driver.step())) == 3


def test_pods_of_scheduler_plugins_may_differ_in_priority() -> None:
    labels = {GROUP_LABEL: "g"}
    pods = [pod(f"g-{at}", cpu=1, labels=labels, **ranked(at)) for at in range(2)]
    driver = drive_gangs(*NODES, gang("g", 2, api_version=COSCHEDULING), *pods)

    assert len(bindings(driver.step())) == 2


def test_a_group_without_a_priority_waits_in_line_as_its_pods_would() -> None:
    lone = pod("lone", cpu=1, **ranked(50))
    driver = drive_gangs(
        node("n", cpu=2),
        lone,
        gang("g", 2, api_version=V1ALPHA2),
        *members("g", 2, cpu=1, **ranked(100)),
        version=OLD,
    )

    assert sorted(bindings(driver.step())) == ["g-0", "g-1"]


@pytest.mark.parametrize("comes_later", [False, True])
def test_the_most_important_member_ranks_a_group_that_has_no_priority(comes_later: bool) -> None:
    group = gang("g", 2, api_version=V1ALPHA2)
    low = members("g", 1, cpu=1, **ranked(1))
    high = members("g", 1, start=1, cpu=1, **ranked(100))
    driver = drive_gangs(node("n", cpu=2), pod("lone", cpu=1, **ranked(50)), version=OLD)
    driver.apply(*([group, *low] if comes_later else low), *high)
    driver.apply(group)

    assert sorted(bindings(driver.step())) == ["g-0", "g-1"]


@pytest.mark.parametrize(
    ("least", "evicted"), [(100, ["low-0", "low-1"]), (10, [])], ids=["all above", "one equal"]
)
def test_no_pod_is_evicted_that_is_as_important_as_one_of_the_members(
    least: int, evicted: list[str]
) -> None:
    running = [pod(f"low-{at}", cpu=2, node=f"n{at}", **ranked(10)) for at in range(2)]
    driver = drive_gangs(
        *NODES,
        *running,
        gang("g", 2, api_version=V1ALPHA2),
        *members("g", 1, cpu=2, **ranked(100)),
        *members("g", 1, start=1, cpu=2, **ranked(least)),
        version=OLD,
    )

    assert sorted(evictions(driver.step())) == evicted


@BOTH
def test_pods_are_evicted_for_a_group_of_one_domain_since_1_37(version: KubernetesVersion) -> None:
    running = [pod(f"low-{at}", cpu=2, node=f"n{at}") for at in range(2)]
    group = gang("g", 2, topology_key="rack", priority=10, api_version=API[version])
    driver = drive_gangs(
        *NODES, *running, group, *members("g", 2, cpu=2, **ranked(10)), version=version
    )

    actions = driver.step()

    assert bool(evictions(actions)) is (version is NEW)
    (patch,) = only(actions, PatchPodGroupStatus)
    refused = "workload aware preemption is not supported for pod groups with scheduling constraint"
    assert (refused in patch.condition.message) is (version is OLD)


@BOTH
def test_pods_are_evicted_for_a_group_that_may_go_anywhere(version: KubernetesVersion) -> None:
    running = [pod(f"low-{at}", cpu=2, node=f"n{at}") for at in range(2)]
    group = gang("g", 2, priority=10, api_version=API[version])
    driver = drive_gangs(
        *NODES, *running, group, *members("g", 2, cpu=2, **ranked(10)), version=version
    )

    assert len(evictions(driver.step())) == 2


@pytest.mark.parametrize(
    ("on", "own", "of_pods", "evicts"),
    [
        pytest.param(True, "Never", "Never", False, id="the group's policy"),
        pytest.param(True, "PreemptLowerPriority", "", True, id="which the pods have, too"),
        pytest.param(True, "", "", True, id="by default"),
        pytest.param(False, "Never", "", True, id="without the gate it has none"),
        pytest.param(False, "", "Never", False, id="without the gate that of the pods"),
    ],
)
def test_pods_are_evicted_for_a_group_as_its_policy_says(
    on: bool, own: str, of_pods: str, evicts: bool
) -> None:
    policy = {"preemptionPolicy": of_pods} if of_pods else {}
    driver = drive_gangs(
        NODES[0],
        pod("low", cpu=2, node="n0"),
        gang("g", 1, priority=10, preemption_policy=own or None),
        *members("g", 1, cpu=2, **ranked(10, **policy)),
        gates={"PodGroupPreemptionPolicy": on},
    )

    assert bool(evictions(driver.step())) is evicts


@pytest.mark.parametrize("own", ["Never", None])
def test_pods_with_another_policy_than_their_group_are_not_placed(own: str | None) -> None:
    other = {"Never": "PreemptLowerPriority", None: "Never"}[own]
    driver = drive_gangs(
        *NODES,
        gang("g", 1, priority=10, preemption_policy=own),
        *members("g", 1, cpu=1, **ranked(10, preemptionPolicy=other)),
        gates={"PodGroupPreemptionPolicy": True},
    )

    told = conditions(driver.step())["g-0"]

    assert (told.reason, told.message) == (
        "SchedulerError",
        "all pods in a single pod group should have the same preemption policy as the pod group's "
        f"preemption policy, got {other} and {own or 'PreemptLowerPriority'}",
    )


def leave(driver: Driver, victim: Pod) -> None:
    """Lets a victim begin to terminate, as the API server shows it."""
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    leaving = pod(
        victim.name,
        cpu=2,
        node=victim.node_name,
        status={"phase": "Running", "conditions": [condition]},
        metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"},
    )
    driver.apply(leaving)


@BOTH
def test_what_a_group_evicts_is_said_until_the_victims_are_gone(
    version: KubernetesVersion,
) -> None:
    victim = pod("low", cpu=2, node="n0")
    driver = drive_gangs(
        NODES[0],
        victim,
        gang("g", 1, priority=10, api_version=API[version]),
        *members("g", 1, cpu=2, **ranked(10)),
        version=version,
    )
    actions = driver.step()
    assert evictions(actions) == ["low"]
    (patch,) = only(actions, PatchPodGroupStatus)
    assert patch.condition.message.endswith("found a placement for podgroup, preempting 1 victims")
    (member,) = members("g", 1, cpu=2, status={"nominatedNodeName": "n0"}, **ranked(10))
    driver.apply(member)

    driver.tell(Evicted(victim.uid, "pg.g"))
    leave(driver, victim)
    later = []
    for _ in range(4):
        driver.now += 20
        later += driver.step()

    assert not only(later, PatchPodGroupStatus)
    assert conditions(later) == {}
    assert "FailedScheduling" not in {each.reason for each in only(later, RecordEvent)}
    driver.remove(victim)
    driver.now += 20
    assert bindings(driver.step()) == {"g-0": "n0"}


def refused_for_room() -> Driver:
    """One node has room for four of five members."""
    driver = drive_gangs(node("n", cpu=4), gang("g", 5), *members("g", 5, cpu="900m"))
    assert bindings(driver.step()) == {}
    return driver


def settle_later(driver: Driver) -> dict[str, str]:
    """Returns what is bound within a minute, which is before the queue is flushed."""
    found: dict[str, str] = {}
    for _ in range(60):
        driver.now += 1
        found |= bindings(driver.step())
    return found


def test_a_gang_is_tried_again_once_its_minimum_is_smaller() -> None:
    driver = refused_for_room()
    assert settle_later(driver) == {}

    driver.apply(gang("g", 4, generation=2, resource_version="2"))

    assert len(settle_later(driver)) == 4


def test_a_gang_is_tried_again_once_a_member_asks_for_less() -> None:
    driver = refused_for_room()
    assert settle_later(driver) == {}

    driver.apply(*members("g", 1, cpu="400m"))

    assert len(settle_later(driver)) == 5


def test_a_refused_gang_is_not_tried_again_because_its_status_was_written() -> None:
    driver = refused_for_room()
    known = driver.engine.cluster.groups.find("default/g")
    assert known is not None
    (patch,) = only(driver.story, PatchPodGroupStatus)
    driver.story.clear()

    driver.apply(replace(known, resource_version="2", phase="Pending", generation=3))

    assert patch.condition.status == "False"
    settle_later(driver)
    assert only(driver.story, RecordEvent) == []
