"""Pods that are evicted for their devices, if DynamicResources is told to."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.config import default, load_mapping
from moorage.config.configuration import API_VERSION, KIND
from moorage.engine import Engine
from moorage.engine.actions import Action, EvictPod, PatchPodStatus
from moorage.engine.events import Evicted, Removed
from moorage.framework.profile import known_plugins
from moorage.objects.pod import Pod
from moorage.objects.resource_claim import ClaimUser, ResourceClaim
from moorage.plugins import REGISTRY
from moorage.world import World
from tests.builders import node, pod
from tests.device_builders import (
    claim,
    device,
    device_class,
    holding,
    request,
    resource_slice,
    result,
)

_ARGS = {"name": "DynamicResources", "args": {"preemptDevices": True}}


def make_engine(is_on: bool) -> Engine:
    known = known_plugins(REGISTRY)
    profiles = [{"pluginConfig": [_ARGS]}]
    raw = {"apiVersion": API_VERSION, "kind": KIND, "profiles": profiles}
    return Engine(load_mapping(raw, known=known) if is_on else default(known), REGISTRY)


def claiming(name: str, *claims: str, priority: int = 0, where: str = "") -> Pod:
    refs = [{"name": each, "resourceClaimName": each} for each in claims]
    return pod(name, node=where, spec={"resourceClaims": refs, "priority": priority})


def held(name: str, where: str, device: str, *users: str) -> ResourceClaim:
    """A claim with a device of a node, and the pods that use it."""
    field = {"key": "metadata.name", "operator": "In", "values": [where]}
    selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    made = {"devices": {"results": [result(where, device)]}, "nodeSelector": selector}
    reserved = [{"resource": "pods", "name": each, "uid": f"default/{each}"} for each in users]
    return claim(name, allocation=made, status={"reservedFor": reserved})


#: Two nodes with two devices each, all of them in use.
FULL: list[Any] = [
    *(node("n1"), node("n2"), device_class(), resource_slice("n1", 2), resource_slice("n2", 2)),
    *(held("a", "n1", "gpu-0", "a"), claiming("a", "a", priority=3, where="n1")),
    *(held("b", "n1", "gpu-1", "b"), claiming("b", "b", priority=1, where="n1")),
    *(held("c", "n2", "gpu-0", "c"), claiming("c", "c", priority=5, where="n2")),
    *(held("d", "n2", "gpu-1", "d"), claiming("d", "d", priority=5, where="n2")),
]


def play(objects: list[Any], is_on: bool = True) -> World:
    world = World(make_engine(is_on))
    for each in objects:
        world.apply(each, 0.0)
    return world


def run(world: World, rounds: int = 6) -> list[Action]:
    done: list[Action] = []
    for at in range(rounds):
        actions = world.engine.step(2.0 * at, 10)
        world.perform(actions, 2.0 * at)
        done += actions
    return done


def evicted(actions: list[Action]) -> list[str]:
    return [each.pod.name for each in actions if isinstance(each, EvictPod)]


def node_of(world: World, name: str) -> str:
    return next(each.node_name for each in world.pods.values() if each.name == name)


def test_the_least_important_pod_gives_its_device_to_a_more_important_one() -> None:
    world = play([*FULL, claim("wanted"), claiming("high", "wanted", priority=9)])

    assert evicted(run(world)) == ["b"]

    assert node_of(world, "high") == "n1"
    given = world.engine.cluster.nodes.devices.claims.get("default/wanted")
    assert given is not None
    assert given.allocation is not None
    assert [each.device for each in given.allocation.results] == ["gpu-1"]


def test_as_many_pods_go_as_devices_are_wanted() -> None:
    two = claim("wanted", {"name": "r", "exactly": _exactly(2)})
    world = play([*FULL, two, claiming("high", "wanted", priority=4)])

    assert sorted(evicted(run(world))) == ["a", "b"]
    assert node_of(world, "high") == "n1"


def _exactly(count: int) -> dict[str, Any]:
    return {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}


@pytest.mark.parametrize(
    ("priority", "is_on", "told"),
    [
        (9, False, "2 Preemption is not helpful for scheduling"),
        (1, True, "2 No preemption victims found for incoming pod"),
    ],
    ids=["off", "nobody is less important"],
)
def test_nobody_goes(priority: int, is_on: bool, told: str) -> None:
    world = play([*FULL, claim("wanted"), claiming("high", "wanted", priority=priority)], is_on)

    actions = run(world, 1)

    assert not evicted(actions)
    (message,) = [
        each.condition.message
        for each in actions
        if isinstance(each, PatchPodStatus) and each.condition is not None
    ]
    assert "0/2 nodes are available: 2 cannot allocate all claims." in message
    assert told in message


def test_a_claim_that_somebody_more_important_uses_as_well_keeps_its_device() -> None:
    objects = [each for each in FULL if getattr(each, "name", "") not in ("b", "n2", "c", "d")]
    shared = held("b", "n1", "gpu-1", "b", "boss")
    users = (
        claiming("b", "b", priority=1, where="n1"),
        claiming("boss", "b", priority=9, where="n1"),
    )
    wanted = claim("wanted"), claiming("high", "wanted", priority=5)
    world = play([*objects, shared, *users, *wanted])

    assert evicted(run(world)) == ["a"], "evicting b alone frees nothing"


def test_nobody_else_goes_while_devices_are_about_to_be_released() -> None:
    """The victim is gone, but the controller of claims has not freed its device yet."""
    world = play([*FULL, claim("wanted"), claiming("high", "wanted", priority=9)])
    (eviction,) = [each for each in world.engine.step(0.0, 10) if isinstance(each, EvictPod)]
    victim = world.pods.pop(eviction.pod.uid)
    world.engine.handle(Evicted(victim.uid, eviction.preemptor.uid), 0.0)
    world.engine.handle(Removed(victim), 0.0)

    # Something else wakes it before.
    world.apply(node("n2", labels={"rack": "r1"}), 3.0)
    waiting = world.engine.step(3.0, 10)

    assert not evicted(waiting)
    told = [
        each.condition.message
        for each in waiting
        if isinstance(each, PatchPodStatus) and each.condition is not None
    ]
    assert len(told) == 1
    assert "waiting for devices of node n1 to be released" in told[0]

    freed = world.engine.cluster.nodes.devices.claims.get("default/b")
    assert freed is not None
    assert freed.reserved_for == (ClaimUser(resource="pods", name="b", uid="default/b"),)
    world.apply(freed.deallocated(), 4.0)
    for at in range(3):
        world.perform(world.engine.step(8.0 + at, 10), 8.0 + at)
    assert node_of(world, "high") == "n1"


def test_devices_that_are_shared_by_many_nodes_are_freed_too() -> None:
    around = [node("n1"), node("n2"), device_class(), resource_slice("net", 1, allNodes=True)]
    user = {"resource": "pods", "name": "low", "uid": "default/low"}
    low = holding("low", result("net", "gpu-0"), status={"reservedFor": [user]})
    pods = claiming("low", "low", where="n2"), claiming("high", "wanted", priority=9)
    world = play([*around, low, claim("wanted"), *pods])

    assert evicted(run(world)) == ["low"]
    assert node_of(world, "high") != ""


def free_victim(world: World, now: float) -> None:
    """Evicts the victim; it is gone, and the controller of claims has freed its device."""
    (eviction,) = [each for each in world.engine.step(now, 10) if isinstance(each, EvictPod)]
    victim = world.pods.pop(eviction.pod.uid)
    world.engine.handle(Evicted(victim.uid, eviction.preemptor.uid), now)
    world.engine.handle(Removed(victim), now)
    freed = world.engine.cluster.nodes.devices.claims.get(f"default/{victim.name}")
    assert freed is not None
    world.apply(freed.deallocated(), now)


def device_of(world: World, claim_name: str) -> str:
    known = world.engine.cluster.nodes.devices.claims.get(f"default/{claim_name}")
    assert known is not None
    return "" if known.allocation is None else known.allocation.results[0].device


@pytest.mark.parametrize(
    ("priority", "given", "more"),
    [
        pytest.param(0, ("gpu-1", ""), [], id="less important"),
        pytest.param(9, ("gpu-1", "gpu-0"), ["a"], id="as important"),
        pytest.param(10, ("gpu-0", "gpu-1"), ["a"], id="more important"),
    ],
)
def test_freed_devices_are_kept_for_who_evicted_somebody(
    priority: int, given: tuple[str, str], more: list[str]
) -> None:
    world = play([*FULL, claim("wanted"), claiming("high", "wanted", priority=9)])
    free_victim(world, 0.0)

    # It is tried first, while the other waits for its backoff to end.
    world.apply(claim("other"), 0.1)
    world.apply(claiming("late", "other", priority=priority), 0.1)
    done: list[Action] = []
    for now in (0.1, 0.2, 0.3, 8.0, 16.0, 24.0, 32.0, 40.0):
        actions = world.engine.step(now, 10)
        world.perform(actions, now)
        done += actions

    assert (device_of(world, "wanted"), device_of(world, "other")) == given
    # Two that are as important as each other may ask for the same victim.
    assert sorted(set(evicted(done))) == more


def test_another_pod_takes_a_device_that_is_not_kept() -> None:
    """Alone it would take the first one, which is the one that was freed."""
    models = {"gpu-0": "fast", "gpu-1": "slow"}
    devices = [device(name, attributes={"model": {"string": models[name]}}) for name in models]
    fast = 'device.attributes["gpu.example.com"].model == "fast"'
    world = play(
        [
            *(node("n1"), device_class(), resource_slice("n1", devices)),
            *(held("a", "n1", "gpu-0", "a"), claiming("a", "a", where="n1")),
            claim("wanted", request(selectors=[{"cel": {"expression": fast}}])),
            claiming("high", "wanted", priority=9),
        ]
    )
    free_victim(world, 0.0)

    world.apply(claim("other"), 0.1)
    world.apply(claiming("late", "other"), 0.1)
    for now in (0.1, 0.2, 0.3, 8.0, 9.0, 10.0):
        world.perform(world.engine.step(now, 10), now)

    assert (node_of(world, "late"), node_of(world, "high")) == ("n1", "n1")
    assert (device_of(world, "wanted"), device_of(world, "other")) == ("gpu-0", "gpu-1")
