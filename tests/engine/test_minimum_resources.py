"""Groups of scheduler-plugins that must find all their resources free before a pod starts."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.objects.decode import from_builtins
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.pod_group import COSCHEDULING, GROUP_LABEL, V1BETA1, PodGroup
from moorage.testing.builders import node, pod
from moorage.testing.driver import bindings, conditions, evictions
from tests.engine.gangs import IN_EACH_VERSION, drive_gangs

pytestmark = IN_EACH_VERSION

NODES = [node(f"n{number}", cpu=2, memory="4Gi") for number in range(2)]


def application(
    name: str, *, least: int = 1, api: str = COSCHEDULING, **resources: str
) -> PodGroup:
    """A group as the Spark operator writes it: its driver alone, with the room of all."""
    policy = {"schedulingPolicy": {"gang": {"minCount": least}}} if api == V1BETA1 else {}
    raw = {
        "apiVersion": api,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**policy, "minMember": least, "minResources": resources},
    }
    made = from_builtins("PodGroup", raw)
    assert isinstance(made, PodGroup)
    return made


def member(group: str, name: str = "driver", **fields: Any) -> Pod:
    return pod(f"{group}-{name}", labels={GROUP_LABEL: group}, **fields)


def test_drivers_start_while_there_is_room_for_the_executors_of_each() -> None:
    """What is free counts, not what the applications will need that have begun."""
    apps = [application(name, cpu="3", memory="3Gi") for name in "ab"]
    driver = drive_gangs(
        *NODES, *apps, member("a", cpu=1, memory="1Gi"), member("b", cpu=1, memory="1Gi")
    )

    actions = driver.step(2)

    assert list(bindings(actions)) == ["a-driver", "b-driver"]


def test_a_driver_starts_only_with_room_for_its_executors() -> None:
    apps = [application(name, cpu="4") for name in "ab"]
    driver = drive_gangs(*NODES, *apps, member("a", cpu=1), member("b", cpu=1))

    actions = driver.step(2)

    assert list(bindings(actions)) == ["a-driver"]
    told = conditions(actions)["b-driver"]
    assert told.reason == "Unschedulable"
    assert told.message == "pod group is unschedulable, resource gap: map[cpu:1]"
    driver.bind(actions)
    # Its executors are not asked for room again, although they alone do not need all of it.
    driver.apply(*(member("a", f"executor-{at}", cpu=1) for at in range(2)))
    actions = driver.step(2)
    assert sorted(bindings(actions)) == ["a-executor-0", "a-executor-1"]
    driver.bind(actions)

    for each in list(driver.pods.values()):
        if each.labels[GROUP_LABEL] == "a":
            driver.remove(each)
    driver.now += 60
    assert list(bindings(driver.step())) == ["b-driver"]


@pytest.mark.parametrize(
    ("resources", "gap"),
    [
        pytest.param({"cpu": "4"}, "", id="all of it"),
        pytest.param({"cpu": "4001m", "memory": "9Gi"}, "cpu:1m memory:1Gi", id="two"),
        pytest.param({"example.com/gpu": "1"}, "example.com/gpu:1", id="not offered"),
        pytest.param({"unheard-of": "1"}, "unheard-of:1", id="no resource"),
        pytest.param({"cpu": "0", "memory": "-1"}, "", id="nothing"),
        pytest.param({"cpu": "1E"}, "cpu:72057594037923936m", id="huge"),
        pytest.param({}, "", id="none given"),
    ],
)
def test_what_is_missing_is_named(resources: dict[str, Any], gap: str) -> None:
    driver = drive_gangs(*NODES, application("a", **resources), member("a", cpu=1))

    actions = driver.step()

    assert bool(bindings(actions)) is not bool(gap)
    if gap:
        assert conditions(actions)["a-driver"].message.endswith(f"resource gap: map[{gap}]")


def test_pods_must_find_room_as_well() -> None:
    crowded = [node(f"n{number}", cpu=8, pods=1) for number in range(2)]
    group = application("a", least=3, cpu="1")
    driver = drive_gangs(*crowded, group, *(member("a", str(at), cpu="100m") for at in range(3)))

    assert "resource gap: map[pods:1]" in conditions(driver.step())["a-0"].message


def test_nodes_count_that_take_no_pod_of_the_group() -> None:
    """It is a check of the cluster: whether its pods then fit is another question."""
    cordoned = node("n9", cpu=2, spec={"unschedulable": True})
    driver = drive_gangs(NODES[0], cordoned, application("a", cpu="4"), member("a", cpu=1))

    assert bindings(driver.step()) == {"a-driver": "n0"}


def test_what_is_too_much_on_one_node_is_missing_elsewhere() -> None:
    """As in Coscheduling: nodes are added up in turn, until there is enough."""
    full = [pod(f"x-{at}", cpu=3, node="n0") for at in range(2)]
    driver = drive_gangs(*NODES, *full, application("a", cpu="2"), member("a", cpu=1))

    assert "resource gap: map[cpu:4]" in conditions(driver.step())["a-driver"].message


def test_no_pod_is_evicted_for_resources_that_are_missing() -> None:
    low = [pod(f"low-{at}", cpu=2, node=f"n{at}") for at in range(2)]
    driver = drive_gangs(
        *NODES, *low, application("a", cpu="4"), member("a", cpu=1, spec={"priority": 10})
    )

    assert evictions(driver.step()) == []


def test_what_members_use_that_run_counts_as_free() -> None:
    """One of three members is on its node already."""
    group = application("a", least=3, cpu="4")
    driver = drive_gangs(*NODES, group, member("a", "0", cpu=1, node="n0"), member("a", "1", cpu=1))
    driver.apply(member("a", "2", cpu=1))

    assert sorted(bindings(driver.step())) == ["a-1", "a-2"]


def test_groups_of_kubernetes_have_no_such_field() -> None:
    group = application("a", api=V1BETA1, cpu="100")
    pods = pod("a-0", cpu=1, spec={"schedulingGroup": {"podGroupName": "a"}})
    driver = drive_gangs(*NODES, group, pods)

    assert list(bindings(driver.step())) == ["a-0"]


@pytest.mark.parametrize("amount", ["8E", "64P"])
def test_the_largest_amounts_are_added_up_without_overflow(amount: str) -> None:
    large: list[Node] = [node(f"n{number}", cpu=8, memory=amount) for number in range(300)]
    driver = drive_gangs(*large, application("a", memory="16E"), member("a", cpu=1))

    assert list(bindings(driver.step())) == ["a-driver"]
