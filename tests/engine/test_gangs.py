"""Groups of pods in the engine: queued, decided, bound and repaired as one."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from moorage.cluster import Nodes, NodeView
from moorage.config.kubernetes_versions import KubernetesVersion
from moorage.engine.actions import Action, BindPod, EvictPod, PatchPodGroupStatus, RecordEvent
from moorage.engine.events import BindingFailed
from moorage.framework.plugin import NodeFilter, Sign
from moorage.objects.pod import Pod
from moorage.objects.pod_group import COSCHEDULING, GROUP_LABEL, V1ALPHA2
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.testing.builders import node, pod
from moorage.testing.driver import (
    bindings,
    conditions,
    evictions,
    nominations,
    only,
)
from tests.engine.gangs import IN_EACH_VERSION, NEW, OLD, drive_gangs, gang, members

pytestmark = IN_EACH_VERSION

NODES = [node(f"n{number}", cpu=2) for number in range(2)]


def test_a_gang_is_bound_in_one_step() -> None:
    driver = drive_gangs(*NODES, gang("g", 4), *members("g", 4, cpu=1))

    actions = driver.step()

    assert sorted(bindings(actions)) == ["g-0", "g-1", "g-2", "g-3"]
    (patch,) = only(actions, PatchPodGroupStatus)
    assert patch.condition.type == "PodGroupInitiallyScheduled"
    assert (patch.condition.status, patch.condition.reason) == ("True", "Scheduled")


def test_nothing_of_a_gang_is_assumed_if_one_member_finds_no_node() -> None:
    driver = drive_gangs(*NODES, gang("g", 5), *members("g", 5, cpu=1), topology=False)

    actions = driver.step()

    assert bindings(actions) == {}
    assert not driver.engine.cluster.pods
    told = conditions(actions)
    text = "minCount (5) cannot be satisfied: 4 scheduled, 0 remaining"
    hopeless = f"{text}, pod group preemption: No preemption victims found for incoming preemptor"
    assert told["g-0"].message == f"pod group is unschedulable, {hopeless}"
    assert told["g-4"].message == "0/2 nodes are available: 2 Insufficient cpu."
    (patch,) = only(actions, PatchPodGroupStatus)
    assert patch.condition.message == hopeless


def test_members_above_the_minimum_are_placed_as_room_allows() -> None:
    driver = drive_gangs(*NODES, gang("g", 2), *members("g", 5, cpu=1))

    actions = driver.step()

    assert len(bindings(actions)) == 4
    # What is left over is tried at once, on its own.
    driver.bind(actions)
    assert driver.place("g-4") == "active"
    assert conditions(driver.step())["g-4"].reason == "Unschedulable"
    # That the gang was placed stays true, also before the API server shows it.
    assert [each.condition.status for each in only(driver.story, PatchPodGroupStatus)] == ["True"]


def test_a_gang_waits_for_its_group_and_for_enough_members() -> None:
    driver = drive_gangs(*NODES, *members("g", 2, cpu=1))
    assert {driver.place("g-0"), driver.place("g-1")} == {"incomplete"}

    driver.apply(gang("g", 3))
    assert {driver.place("g-0"), driver.place("g-1")} == {"gated"}
    assert driver.step() == []

    driver.apply(*members("g", 1, start=2, cpu=1))
    assert sorted(bindings(driver.step())) == ["g-0", "g-1", "g-2"]


def test_what_holds_a_gang_back_may_change_and_is_counted() -> None:
    driver = drive_gangs(node("n", cpu=4), gang("g", 3))
    queue = driver.engine.queue
    gate = {"schedulingGates": [{"name": "quota"}]}
    gated = members("g", 1, spec=gate, cpu=1)
    driver.apply(*gated, *members("g", 1, start=1, cpu=1))
    assert queue.sizes()["gated"] == 2
    assert dict(queue.entities())["gated", "podgroup"] == 1
    assert dict(queue.entities())["gated", "pod"] == 0

    last = members("g", 1, start=2, cpu=1)
    driver.apply(*last)
    assert not bindings(driver.step())
    assert queue.sizes()["gated"] == 3
    driver.remove(*last)
    driver.apply(*members("g", 1, cpu=1))
    assert not bindings(driver.step())
    assert queue.sizes()["gated"] == 2
    assert {each.pod.name for each in queue} == {"g-0", "g-1"}

    driver.apply(*last)
    assert len(bindings(driver.step())) == 3
    assert dict(queue.entities())["gated", "podgroup"] == 0


def test_one_gated_member_holds_back_all() -> None:
    held = pod(
        "g-1",
        cpu=1,
        spec={"schedulingGroup": {"podGroupName": "g"}, "schedulingGates": [{"name": "wait"}]},
    )
    driver = drive_gangs(*NODES, gang("g", 2), *members("g", 1, cpu=1), held)
    assert {driver.place("g-0"), driver.place("g-1")} == {"gated"}

    driver.apply(replace(held, spec=replace(held.spec, scheduling_gates=None)))

    assert sorted(bindings(driver.step())) == ["g-0", "g-1"]


def test_a_smaller_minimum_lets_a_gang_go() -> None:
    driver = drive_gangs(*NODES, gang("g", 3), *members("g", 2, cpu=1))
    assert driver.place("g-0") == "gated"

    driver.apply(gang("g", 2, generation=2))

    assert len(bindings(driver.step())) == 2


def test_a_group_that_is_deleted_leaves_its_pods_waiting_for_it() -> None:
    group = gang("g", 3)
    driver = drive_gangs(*NODES, group, *members("g", 2, cpu=1))

    driver.remove(group)
    assert driver.place("g-0") == "incomplete"

    driver.apply(gang("g", 2))
    assert len(bindings(driver.step())) == 2


def test_a_refused_gang_backs_off_the_longer_the_more_members_it_has() -> None:
    driver = drive_gangs(*NODES, gang("g", 9), *members("g", 9, cpu=1))
    waits = []
    for turn in range(7):
        driver.apply(node("n0", cpu=2, labels={"turn": str(turn)}))
        assert driver.step()
        began = driver.now
        driver.now = driver.engine.next_step(driver.now) or began
        waits.append(driver.now - began)

    # Doubling up to the maximum of 10 s times the root of the number of members.
    assert [round(each) for each in waits] == [2, 3, 5, 9, 17, 31, 31]


def test_a_refused_gang_is_not_tried_again_before_something_may_help() -> None:
    driver = drive_gangs(*NODES, gang("g", 5), *members("g", 5, cpu=1))
    assert driver.step()
    driver.apply(pod("other", cpu=1))
    driver.settle()
    for _ in range(20):
        driver.now += 10
        assert driver.step() == []

    driver.remove(driver.pods["default/other"])
    driver.apply(node("n2", cpu=2))
    driver.now += 60

    assert len(bindings(driver.step())) == 5


def test_pods_of_a_group_without_a_priority_must_have_none() -> None:
    driver = drive_gangs(
        *NODES, gang("g", 2), *members("g", 2, cpu=1, spec={"priority": 5}), version=NEW
    )

    told = conditions(driver.step())

    assert told["g-0"].reason == "SchedulerError"
    assert "the same priority as the pod group's priority, got 5 and 0" in told["g-0"].message


def test_no_topology_domain_takes_part_of_a_gang() -> None:
    racks = [node(f"n{number}", cpu=2, labels={"rack": f"r{number // 2}"}) for number in range(4)]
    group = gang("g", 4, topology_key="rack")
    driver = drive_gangs(*racks, pod("x", cpu=1, node="n0"), group, *members("g", 4, cpu=1))

    bound = bindings(driver.step())

    assert set(bound.values()) == {"n2", "n3"}


def test_of_members_in_several_domains_two_are_named() -> None:
    racks = [node(f"n{number}", cpu=2, labels={"rack": f"r{number}"}) for number in range(3)]
    placed = [
        pod(
            f"g-{number}", cpu=1, node=f"n{number}", spec={"schedulingGroup": {"podGroupName": "g"}}
        )
        for number in range(3)
    ]
    group = gang("g", 4, topology_key="rack")
    driver = drive_gangs(*racks, *placed, group, *members("g", 1, start=3, cpu=1))

    told = conditions(driver.step())["g-3"]

    assert (told.reason, told.message) == (
        "SchedulerError",
        "cannot determine domain for already scheduled pods: "
        "more than 1 domain found for pod group: r0, r1",
    )


@pytest.mark.parametrize(
    ("key", "says"),
    [("", "deallocation and deletion of ResourceClaims completed, "), ("rack", "")],
    ids=["anywhere", "in one domain"],
)
def test_claims_are_spoken_of_where_a_group_may_go_anywhere(key: str, says: str) -> None:
    rack = node("n", cpu=2, labels={"rack": "r"})
    group = gang("g", 3, priority=10, topology_key=key)
    low, high = pod("low", cpu=1, node="n"), members("g", 3, cpu=1, spec={"priority": 10})
    driver = drive_gangs(rack, low, group, *high, version=NEW)

    (patch,) = only(driver.step(), PatchPodGroupStatus)

    refused = (
        "pod group is unschedulable, 0/1 placements are available, first placement status: "
        "minCount (3) cannot be satisfied: {} scheduled, {} remaining"
    )
    without = refused.format(2, 0)
    assert patch.condition.message == (
        f"{refused.format(1, 1)}, {says}pod group preemption: {without}"
    )


class OwnFit(NodeResourcesFit):
    """Counts room under another name."""

    name = "OwnFit"


@pytest.mark.parametrize(
    ("enabled", "scored"),
    [
        pytest.param(["OwnFit"], {"OwnFit", "PodGroupPodsCount"}, id="a plugin counts room"),
        pytest.param([], {"PodGroupPodsCount"}, id="no plugin does"),
    ],
)
def test_domains_are_scored_under_the_name_of_the_plugin_that_counts_room(
    enabled: list[str], scored: set[str]
) -> None:
    plugins = {
        "enabled": [{"name": name} for name in enabled],
        "disabled": [{"name": "NodeResourcesFit"}],
    }
    profile = {"schedulerName": "default-scheduler", "plugins": {"multiPoint": plugins}}
    racks = [node(f"n{number}", cpu=2, labels={"rack": f"r{number}"}) for number in range(2)]
    group, pods = gang("g", 2, topology_key="rack"), members("g", 2, cpu=1)
    engine = drive_gangs(*racks, group, plugins=(OwnFit,), profiles=[profile]).engine

    # To be literal is to try all domains and to weigh them.
    profile_built = engine.profiles["default-scheduler"]
    decision = engine.gangs.decide(
        group, pods, profile_built, engine.decide_member, is_literal=True
    )

    assert decision.result.scores is not None
    assert decision.result.scores.keys() == scored


def test_resources_that_are_ignored_keep_no_gang_from_a_domain() -> None:
    args = {"ignoredResources": ["example.com/seat"]}
    fit = {"name": "NodeResourcesFit", "args": args}
    profile = {"schedulerName": "default-scheduler", "pluginConfig": [fit]}
    seats: dict[str, Any] = {"example.com/seat": 1}
    racks = [node(f"n{cpu}", cpu=cpu, labels={"rack": f"r{cpu}"}, **seats) for cpu in (1, 4)]
    group = gang("g", 3, topology_key="rack")
    driver = drive_gangs(*racks, group, *members("g", 3, cpu=1, **seats), profiles=[profile])

    assert len(bindings(driver.step())) == 3


def test_a_refused_gang_is_told_what_it_lacks() -> None:
    racks = [node(f"n{number}", cpu=2, labels={"rack": f"r{number // 2}"}) for number in range(4)]
    group = gang("g", 5, topology_key="rack")
    driver = drive_gangs(*racks, pod("x", cpu=1, node="n0"), group, *members("g", 5, cpu=1))

    told = [each for each in only(driver.step(), RecordEvent) if each.pod.kind == "PodGroup"]

    assert [(each.reason, each.note) for each in told] == [
        (
            "GangDiagnosis",
            "5 x 1 cpu: 5 wait, 0 have a node, minCount is 5. In one rack: best is r1 with room "
            "for 4, 1 short. It fits over 2 of them: r1, r0. Anywhere: room for 7.",
        )
    ]


def test_a_failed_binding_is_made_good_in_the_domain_of_the_gang() -> None:
    racks = [node(f"n{number}", cpu=2, labels={"rack": f"r{number // 2}"}) for number in range(4)]
    driver = drive_gangs(*racks, gang("g", 4, topology_key="rack"), *members("g", 4, cpu=1))
    first, *others = only(driver.step(), BindPod)
    driver.bind(others)
    driver.tell(BindingFailed(first.pod.uid, "no"))

    driver.now += 3
    again = bindings(driver.step())

    assert list(again) == [first.pod.name]
    rack = {"n0": 0, "n1": 0, "n2": 1, "n3": 1}
    assert {rack[node_name] for node_name in again.values()} == {rack[others[0].node]}


def test_a_gang_evicts_only_if_all_of_it_then_fits() -> None:
    running = [pod(f"low-{number}", cpu=1, node=f"n{number % 2}") for number in range(4)]
    high = {"priority": 10}
    too_large = drive_gangs(
        *NODES, *running, gang("g", 5, priority=10), *members("g", 5, cpu=1, spec=high)
    )
    assert evictions(too_large.step()) == []

    driver = drive_gangs(
        *NODES, *running, gang("g", 3, priority=10), *members("g", 3, cpu=1, spec=high)
    )
    actions = driver.step()

    assert len(evictions(actions)) == 3
    assert len(nominations(actions)) == 3
    assert driver.place("g-0") == "gated"
    message = {action.message for action in only(actions, EvictPod)}
    assert message == {"default-scheduler: preempting to accommodate a higher priority podgroup"}
    driver.evict(actions)
    driver.now += 5
    assert len(bindings(driver.step())) == 3


@pytest.mark.parametrize(
    ("version", "point"),
    [
        pytest.param(OLD, "postFilter", id="1.36, for pods"),
        pytest.param(NEW, "podGroupPostFilter", id="1.37, for groups"),
    ],
)
def test_no_pod_is_evicted_for_a_gang_where_that_is_switched_off(
    version: KubernetesVersion, point: str
) -> None:
    actions = _crowd_out(version, point)

    assert evictions(actions) == []
    assert nominations(actions) == {}
    assert "preemption" not in " ".join(each.message for each in conditions(actions).values())


def test_since_1_37_pods_are_evicted_for_gangs_though_not_for_pods() -> None:
    assert len(evictions(_crowd_out(NEW, "postFilter"))) == 3


def _crowd_out(version: KubernetesVersion, point: str) -> list[Action]:
    """Returns what is done for an important gang on full nodes, with no plugin at a point."""
    running = [pod(f"low-{number}", cpu=1, node=f"n{number % 2}") for number in range(4)]
    disabled = {point: {"disabled": [{"name": "*"}]}}
    profile = {"schedulerName": "default-scheduler", "plugins": disabled}
    pods = members("g", 3, cpu=1, spec={"priority": 10})
    group = gang("g", 3, priority=10)
    driver = drive_gangs(*NODES, *running, group, *pods, profiles=[profile], version=version)
    return driver.step()


@pytest.mark.parametrize("version", [V1ALPHA2, COSCHEDULING])
def test_other_versions_of_the_api_are_served(version: str) -> None:
    if version == COSCHEDULING:
        pods = [pod(f"g-{number}", cpu=1, labels={GROUP_LABEL: "g"}) for number in range(3)]
    else:
        pods = members("g", 3, cpu=1)
    driver = drive_gangs(*NODES, gang("g", 3, api_version=version), *pods[:2])
    assert driver.step() == []

    driver.apply(pods[2])
    actions = driver.step()

    assert len(bindings(actions)) == 3
    written = [each.condition.type for each in only(actions, PatchPodGroupStatus)]
    assert written == (["PodGroupScheduled"] if version == V1ALPHA2 else [])


def test_a_gang_with_a_failed_binding_waits_until_there_is_room() -> None:
    driver = drive_gangs(node("n", cpu=2), gang("g", 2), *members("g", 2, cpu=1))
    first, second = only(driver.step(), BindPod)
    driver.bind([second])
    driver.tell(BindingFailed(first.pod.uid, "no"))
    driver.apply(pod("other", cpu=1, node="n", spec={"priority": 5}))
    driver.now += 5
    driver.settle()
    for _ in range(60):
        driver.now += 60
        driver.settle()
    assert evictions(driver.story) == []

    driver.remove(driver.pods["default/other"])
    driver.now += 60
    driver.settle()

    assert len([each for each in driver.pods.values() if each.node_name]) == 2


class Speechless(NodeFilter, Sign):
    """Fails to say what it reads of a pod."""

    name: ClassVar[str] = "Speechless"

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        raise ValueError("no idea")

    def filter_node(self, pod: Pod, node: NodeView) -> None:
        return None


def test_a_gang_is_placed_though_a_plugin_cannot_sign_its_members() -> None:
    racks = [node(f"n{at}", cpu=2, labels={"rack": f"r{at}"}) for at in range(2)]
    driver = drive_gangs(
        *racks,
        gang("g", 2, topology_key="rack"),
        *members("g", 2, cpu=1, labels={"app": "g"}),
        plugins=(Speechless,),
    )

    assert len(bindings(driver.step())) == 2
    assert not driver.engine.caught
