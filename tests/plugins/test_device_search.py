"""What is told without a search is what a search would find."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from moorage.cluster import Cluster
from moorage.plugins.dynamic_resources.device_allocation import AllocationFound, ClaimsPlan
from moorage.plugins.dynamic_resources.preparation import ClaimPlans
from moorage.plugins.dynamic_resources.search import DeviceSearch
from tests.builders import node
from tests.device_builders import (
    claim,
    device,
    device_class,
    holding,
    request,
    resource_slice,
    result,
)

FAST = 'device.attributes["gpu.example.com"].model == "fast"'
NUMA, UUID = "gpu.example.com/numa", "gpu.example.com/uuid"


def make_cluster(random: Random) -> Cluster:
    cluster = Cluster()
    cluster.put_device(device_class())
    cluster.put_device(device_class("fast", FAST))
    for name in ("n1", "n2"):
        cluster.put_node(node(name))
        cluster.put_device(resource_slice(name, [gpu(random, at) for at in range(4)]))
    cluster.put_device(resource_slice("net", [gpu(random, at) for at in range(2)], allNodes=True))
    taken = result(random.choice(["n1", "net"]), f"gpu-{random.randrange(2)}")
    cluster.put_device(holding("held", taken))
    return cluster


def gpu(random: Random, at: int) -> dict[str, Any]:
    attributes: dict[str, Any] = {"uuid": {"string": f"{random.random()}"}}
    if random.random() < 0.9:
        attributes["numa"] = {"int": random.randrange(2)}
    if random.random() < 0.95:
        attributes["model"] = {"string": random.choice(["fast", "slow"])}
    more: dict[str, Any] = {}
    if random.random() < 0.05:
        more["taints"] = [{"key": "bad", "effect": "NoSchedule"}]
    if random.random() < 0.02:
        more["allowMultipleAllocations"] = True
    return device(f"gpu-{at}", attributes=attributes, **more)


def make_plan(random: Random, cluster: Cluster) -> ClaimsPlan:
    specs = []
    for number in range(random.choice([1, 1, 2])):
        asked = [
            request(f"r{at}", random.choice(["gpu", "fast"]), count=random.choice([1, 1, 2, 3]))
            for at in range(random.choice([1, 2, 2, 3]))
        ]
        constraint: dict[str, Any] = {"matchAttribute": random.choice([NUMA, NUMA, UUID])}
        if random.random() < 0.3:
            constraint["requests"] = ["r0"]
        limits = [constraint]
        if random.random() < 0.2:
            limits.append({"distinctAttribute": UUID})
        specs.append(claim(f"c{number}", *asked, constraints=limits).spec)
    return ClaimPlans().plan(tuple(specs), cluster.nodes.devices.classes)


@pytest.mark.parametrize("seed", range(4))
def test_claims_get_what_a_search_finds(seed: int) -> None:
    random = Random(seed)
    told = 0
    for _ in range(60):
        cluster = make_cluster(random)
        plan = make_plan(random, cluster)
        groups = cluster.nodes.device_groups
        for row in cluster.nodes.rows.tolist():
            pools = groups.pools(
                groups.group(groups.local.item(row)), groups.pattern(groups.patterns.item(row))
            )
            outcome = plan.search(pools)
            if outcome.found is AllocationFound.ERROR:
                continue
            expected = DeviceSearch(plan.claims, pools).run()
            assert (outcome.picks or None) == expected
            told += outcome.found is AllocationFound.NOTHING and outcome.steps < 2
    assert told > 10, "some were told without a search"


def test_many_devices_that_all_differ_are_told_apart_at_once() -> None:
    cluster = Cluster()
    cluster.put_device(device_class())
    cluster.put_node(node("n1"))
    devices = [device(f"gpu-{at}", attributes={"uuid": {"string": str(at)}}) for at in range(64)]
    cluster.put_device(resource_slice("n1", devices))
    wanted = [request(f"r{at}") for at in range(8)]
    spec = claim("c", *wanted, constraints=[{"matchAttribute": UUID}]).spec
    plan = ClaimPlans().plan((spec,), cluster.nodes.devices.classes)

    outcome = plan.outcome_on(cluster.nodes.device_groups, cluster.nodes.rows.item(0))

    assert (outcome.found, outcome.steps) == (AllocationFound.NOTHING, 8)


def test_steps_count_for_what_rows_see_now() -> None:
    cluster = Cluster()
    cluster.put_device(device_class())
    cluster.put_node(node("n1"))
    cluster.put_device(resource_slice("n1", 8))
    spec = claim("c", *(request(f"r{at}") for at in range(4))).spec
    plan = ClaimPlans().plan((spec,), cluster.nodes.devices.classes)
    most = plan.outcome_on(cluster.nodes.device_groups, 0).steps + 1
    found = []
    for at in range(4):
        cluster.put_device(holding("held", result("n1", f"gpu-{at}")))
        groups = cluster.nodes.device_groups
        found.append(plan.found(groups, most)[groups.local.item(0)])

    assert found == [AllocationFound.DEVICES.value] * 4


def test_a_constraint_is_asked_before_what_is_left_of_a_shared_device() -> None:
    cluster = Cluster()
    cluster.put_device(device_class())
    cluster.put_node(node("n1"))
    shared = device("gpu-0", allowMultipleAllocations=True, capacity={"memory": {"value": "10Gi"}})
    cluster.put_device(resource_slice("n1", [shared]))
    all_of_it: dict[str, Any] = {
        "allocationMode": "All",
        "count": 0,
        "capacity": {"requests": {"memory": "6Gi"}},
    }
    # The first request leaves too little memory, and no device has the attribute of the second.
    limit = {"matchAttribute": UUID, "requests": ["r1"]}
    asked = request("r0", **all_of_it), request("r1", **all_of_it)
    spec = claim("c", *asked, constraints=[limit]).spec
    plan = ClaimPlans().plan((spec,), cluster.nodes.devices.classes)

    outcome = plan.outcome_on(cluster.nodes.device_groups, cluster.nodes.rows.item(0))

    assert outcome.found is AllocationFound.ERROR
    assert "cannot add device gpu.example.com/n1/gpu-0" in outcome.error


def test_all_devices_are_looked_at_pool_by_pool() -> None:
    cluster = Cluster()
    cluster.put_device(device_class("fast", FAST))
    cluster.put_node(node("n1"))
    # No device of the first pool has a model, and the second pool is incomplete.
    cluster.put_device(resource_slice("n1", 1))
    cluster.put_device(resource_slice("net", 1, allNodes=True, pool={"resourceSliceCount": 2}))
    spec = claim("c", request("r0", "fast", allocationMode="All", count=0)).spec
    plan = ClaimPlans().plan((spec,), cluster.nodes.devices.classes)

    outcome = plan.outcome_on(cluster.nodes.device_groups, cluster.nodes.rows.item(0))

    assert outcome.found is AllocationFound.ERROR
    assert outcome.error.startswith("class fast: selector #0: CEL runtime error")


def test_a_shared_device_without_room_leaves_constraints_as_they_were() -> None:
    cluster = Cluster()
    cluster.put_device(device_class())
    cluster.put_node(node("n1"))
    shared = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "10Gi"}}}
    devices = [
        device("gpu-0", attributes={"uuid": {"string": "a"}}),
        device("gpu-1", attributes={"uuid": {"string": "b"}}, **shared),
        device("gpu-2", attributes={"uuid": {"string": "a"}}),
        device("gpu-3", attributes={"uuid": {"string": "c"}}),
    ]
    cluster.put_device(resource_slice("n1", devices))
    use: dict[str, Any] = {"shareID": "s", "consumedCapacity": {"memory": "10Gi"}}
    cluster.put_device(holding("held", result("n1", "gpu-1", **use)))
    spec = claim("c", request(count=2), constraints=[{"distinctAttribute": UUID}]).spec
    plan = ClaimPlans().plan((spec,), cluster.nodes.devices.classes)

    outcome = plan.outcome_on(cluster.nodes.device_groups, cluster.nodes.rows.item(0))

    assert [pick.place for pick in outcome.picks] == [0, 3]


_POLICY = {"default": "1Gi", "validRange": {"min": "1Gi"}}


@pytest.mark.parametrize(
    ("policy", "taken", "asked", "place"),
    [
        (None, {"memory": "1Gi"}, {}, 1),
        (None, {"memory": "1Gi"}, {"memory": "2Gi"}, 0),
        (None, {"memory": "1Gi"}, {"memory": "10Gi"}, 1),
        (None, {"cores": "1"}, {}, 0),
        (None, {}, {}, 0),
        (_POLICY, {"memory": "9Gi"}, {}, 0),
        (_POLICY, {"memory": "9Gi"}, {"memory": "2Gi"}, 1),
        (_POLICY, {"memory": "8Gi"}, {"memory": "2Gi"}, 0),
    ],
)
def test_a_device_that_cannot_be_shared_any_more_gives_what_its_shares_leave(
    policy: dict[str, Any] | None, taken: dict[str, str], asked: dict[str, str], place: int
) -> None:
    cluster = Cluster()
    cluster.put_device(device_class())
    cluster.put_node(node("n1"))
    memory: dict[str, Any] = {"value": "10Gi"}
    if policy is not None:
        memory["requestPolicy"] = policy
    devices = [device(f"gpu-{at}", capacity={"memory": memory}) for at in range(2)]
    cluster.put_device(resource_slice("n1", devices))
    share = result("n1", "gpu-0", shareID="s", consumedCapacity=taken)
    cluster.put_device(holding("held", share))
    spec = claim("c", request(capacity={"requests": asked})).spec
    plan = ClaimPlans().plan((spec,), cluster.nodes.devices.classes)

    outcome = plan.outcome_on(cluster.nodes.device_groups, cluster.nodes.rows.item(0))

    assert [pick.place for pick in outcome.picks] == [place]
    # As a whole: nobody else may have a share of it.
    assert [pick.amounts for pick in outcome.picks] == [None]
