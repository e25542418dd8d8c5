"""What Kubernetes 1.37 decides and writes otherwise about devices than 1.36."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from random import Random
from typing import Any

import pytest

from moorage.cluster import Cluster
from moorage.cluster.devices.pools import PoolStatus, SliceReading
from moorage.config import FeatureGates, default
from moorage.config.kubernetes_versions import VERSIONS, KubernetesVersion
from moorage.engine.settings import slice_reading
from moorage.framework.profile import known_plugins
from moorage.plugins import REGISTRY
from moorage.plugins.dynamic_resources.allocation_results import make_allocation
from moorage.plugins.dynamic_resources.claim_rows import ClaimRows
from moorage.plugins.dynamic_resources.device_allocation import AllocationFound
from moorage.plugins.dynamic_resources.dynamic_resources import DynamicResources
from moorage.plugins.dynamic_resources.preparation import ClaimPlans, PreparedClaims
from tests.builders import cluster, node, pod
from tests.device_builders import (
    DRIVER,
    claim,
    device,
    device_class,
    holding,
    request,
    resource_slice,
    result,
)

OLD, NEW = VERSIONS
NUMA = f"{DRIVER}/numa"
DISTINCT = [{"distinctAttribute": NUMA}]


def known(*objects: Any, reading: SliceReading | None = None) -> Cluster:
    made = cluster(node("n1"), node("n2"))
    if reading is not None:
        made = Cluster(reading=reading)
        for name in ("n1", "n2"):
            made.put_node(node(name))
    for each in (device_class(), *objects):
        made.put_device(each)
    return made


def find(made: Cluster, version: KubernetesVersion, *asked: Any, **parts: Any) -> list[str] | str:
    """Returns the devices that a claim gets on the first node, or what was found instead."""
    plan = ClaimPlans(FeatureGates(version)).plan(
        (claim("c", *asked, **parts).spec,), made.nodes.devices.classes
    )
    views = made.nodes.device_groups.views("n1", 0)
    outcome = plan.outcome_on(made.nodes.device_groups, 0)
    if outcome.found is not AllocationFound.DEVICES:
        return outcome.error or outcome.found.name
    return [views[pick.pool].names[pick.place] for pick in outcome.picks]


def with_values(*values: int) -> list[dict[str, Any]]:
    return [
        device(f"gpu-{at}", attributes={"numa": {"int": value}}) for at, value in enumerate(values)
    ]


def test_distinct_devices_differ_from_all_others() -> None:
    made = known(resource_slice("n1", with_values(1, 2, 1, 3)))

    asked = request(count=3)
    assert find(made, OLD, asked, constraints=DISTINCT) == ["gpu-0", "gpu-1", "gpu-2"]
    assert find(made, NEW, asked, constraints=DISTINCT) == ["gpu-0", "gpu-1", "gpu-3"]


@pytest.mark.parametrize("seed", range(3))
def test_distinct_devices_are_the_first_combination_that_differs(seed: int) -> None:
    random = Random(seed)
    for _ in range(60):
        values = [random.randrange(3) for _ in range(5)]
        made = known(resource_slice("n1", with_values(*values)))
        counts = [random.choice([1, 2]) for _ in range(random.choice([1, 2]))]
        asked = [request(f"r{at}", count=count) for at, count in enumerate(counts)]

        found = find(made, NEW, *asked, constraints=DISTINCT)

        assert found == first_distinct(values, counts)


def first_distinct(values: list[int], counts: list[int]) -> list[str] | str:
    """Returns the first choice of devices, each request's in order, that all differ."""
    for chosen in permutations(range(len(values)), sum(counts)):
        parts = [chosen[: counts[0]], chosen[counts[0] :]]
        if any(sorted(part) != [*part] for part in parts):
            continue
        if len({values[at] for at in chosen}) == len(chosen):
            return [f"gpu-{at}" for at in chosen]
    return "NOTHING"


def test_all_devices_include_those_that_are_full() -> None:
    shared = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "8Gi"}}}
    full = result("n1", "gpu-0", shareID="s", consumedCapacity={"memory": "8Gi"})
    made = known(
        resource_slice("n1", [device("gpu-0", **shared), device("gpu-1", **shared)]),
        holding("held", full),
    )
    asked = request(allocationMode="All", count=0, capacity={"requests": {"memory": "4Gi"}})

    assert find(made, OLD, asked) == ["gpu-1"]
    assert find(made, NEW, asked) == "NOTHING"


def test_all_devices_leave_out_those_that_are_too_small_in_either_version() -> None:
    sizes = {"gpu-0": "2Gi", "gpu-1": "8Gi"}
    devices = [device(name, capacity={"memory": {"value": size}}) for name, size in sizes.items()]
    made = known(resource_slice("n1", devices))
    asked = request(allocationMode="All", count=0, capacity={"requests": {"memory": "4Gi"}})

    assert find(made, OLD, asked) == find(made, NEW, asked) == ["gpu-1"]


@pytest.mark.parametrize(
    ("capacity", "old"),
    [
        pytest.param({}, "NOTHING", id="without capacities"),
        pytest.param({"memory": {"value": "8Gi"}}, ["gpu-0"], id="with a capacity"),
    ],
)
def test_a_further_claim_to_a_shared_device_takes_no_counters(capacity: Any, old: Any) -> None:
    asked = request(capacity={"requests": dict.fromkeys(capacity, "1Gi")})
    consumed: dict[str, Any] = {"consumedCapacity": {"memory": "1Gi"}} if capacity else {}
    shared = device(
        "gpu-0",
        allowMultipleAllocations=True,
        capacity=capacity,
        consumesCounters=[{"counterSet": "set", "counters": {"memory": {"value": "5Gi"}}}],
    )
    made = known(
        counters("n1-counters", nodeName="n1"),
        resource_slice("n1", [shared], pool=PAIR),
        holding("held", result("n1", "gpu-0", shareID="s", **consumed)),
    )

    assert find(made, OLD, asked) == old
    assert find(made, NEW, asked) == ["gpu-0"]


HINT = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with "
    "has() for optional fields"
)


@pytest.mark.parametrize(
    ("expression", "mode", "old", "new"),
    [
        pytest.param(
            'device.attributes["a"].b == 1',
            "ExactCount",
            ": CEL runtime error: no such key: b",
            f" on device {DRIVER}/n2/gpu-0: CEL runtime error: no such key: b{HINT}",
            id="an attribute that is not there",
        ),
        pytest.param(
            'device.attributes["a"].b == 1',
            "All",
            ": CEL runtime error: no such key: b",
            f" on device {DRIVER}/n2/gpu-0: CEL runtime error: no such key: b{HINT}",
            id="where all devices are wanted",
        ),
        pytest.param(
            "1 / 0 == 1",
            "ExactCount",
            ": CEL runtime error: division by zero",
            f" on device {DRIVER}/n2/gpu-0: CEL runtime error: division by zero",
            id="another error",
        ),
    ],
)
def test_the_message_of_an_expression_names_the_device(
    expression: str, mode: str, old: str, new: str
) -> None:
    wanted = request(
        selectors=[{"cel": {"expression": expression}}],
        allocationMode=mode,
        count=int(mode == "ExactCount"),
    )
    made = known(resource_slice("n1", 1), resource_slice("n2", 1), claim("c", wanted))

    def describe(version: KubernetesVersion) -> str:
        plugin = DynamicResources.create(None, FeatureGates(version))
        asking = pod("p", spec={"resourceClaims": [{"name": "g", "resourceClaimName": "c"}]})
        prepared = plugin.pre_filter(asking, made.nodes)
        assert isinstance(prepared, PreparedClaims)
        return ClaimRows(prepared, made.nodes, made.nodes.rows).describe(1)

    assert describe(OLD) == f"claim default/c: selector #0{old}"
    assert describe(NEW) == f"claim default/c: selector #0{new}"


def opaque(name: str, *requests: str) -> dict[str, Any]:
    named = {"requests": [*requests]} if requests else {}
    return {**named, "opaque": {"driver": DRIVER, "parameters": {"name": name}}}


def write_config(
    version: KubernetesVersion, *asked: Any, of_class: Any = (), config: Any = ()
) -> list[tuple[str, tuple[str, ...]]]:
    """Returns the configuration of a claim: where it is from, and for which requests."""
    made = known(resource_slice("n1", 4))
    made.put_device(device_class(config=[*of_class]))
    spec = claim("c", *asked, config=[*config]).spec
    plan = ClaimPlans(FeatureGates(version)).plan((spec,), made.nodes.devices.classes)
    views = made.nodes.device_groups.views("n1", 0)
    picks = plan.outcome_on(made.nodes.device_groups, 0).picks
    allocation = make_allocation(plan.claims[0], picks, views, "n1", "uid")
    return [(each.source, each.requests or ()) for each in allocation.devices.config or ()]


TWO = (request("a"), request("b"))
CHOICE = {
    "name": "c",
    "firstAvailable": [{"name": each, "deviceClassName": "gpu", "count": 1} for each in "xy"],
}
CLASS, CLAIM = "FromClass", "FromClaim"


@pytest.mark.parametrize(
    ("asked", "parts", "old", "new"),
    [
        pytest.param(
            TWO,
            {"config": [opaque("one", "a", "b")]},
            [(CLAIM, ("a", "b")), (CLAIM, ("a", "b"))],
            [(CLAIM, ())],
            id="for all requests",
        ),
        pytest.param(
            (*TWO, request("c")),
            {"config": [opaque("one", "a", "b")]},
            [(CLAIM, ("a", "b")), (CLAIM, ("a", "b"))],
            [(CLAIM, ("a", "b"))],
            id="for some",
        ),
        pytest.param(
            TWO, {"config": [opaque("one")]}, [(CLAIM, ())], [(CLAIM, ())], id="for none by name"
        ),
        pytest.param(
            TWO,
            {"of_class": [opaque("one")]},
            [(CLASS, ("a", "b"))],
            [(CLASS, ())],
            id="of the class of all",
        ),
        pytest.param(
            (*TWO, CHOICE),
            {"of_class": [opaque("one")]},
            [(CLASS, ("a", "b", "c/x"))],
            [(CLASS, ())],
            id="of the class of all with an alternative",
        ),
        pytest.param(
            (request("a"), CHOICE),
            {"config": [opaque("one", "a", "c/y"), opaque("two", "a", "c/x")]},
            [(CLAIM, ("a", "c/y")), (CLAIM, ("a", "c/x")), (CLAIM, ("a", "c/x"))],
            [(CLAIM, ("a", "c/y")), (CLAIM, ())],
            id="for an alternative",
        ),
        pytest.param(
            (CHOICE,), {"config": [opaque("one", "c/y")]}, [], [], id="for one that is not taken"
        ),
    ],
)
def test_configuration_is_written_once(
    asked: Any, parts: dict[str, Any], old: Any, new: Any
) -> None:
    assert write_config(OLD, *asked, **parts) == old
    assert write_config(NEW, *asked, **parts) == new


LIKE_OLD = SliceReading()
LIKE_NEW = SliceReading(shows_counters_to_all=False, ignores_compatibility_groups=False)


def test_slices_are_read_as_the_version_says() -> None:
    plugins = known_plugins(REGISTRY)

    assert slice_reading(default(plugins)) == LIKE_OLD
    followed = slice_reading(default(plugins, FeatureGates(NEW)))
    assert followed == replace(LIKE_NEW, follows_taint_rules=True)


COUNTERS = {
    "sharedCounters": [{"name": "set", "counters": {"memory": {"value": "8Gi"}}}],
}
PAIR = {"name": "n1", "resourceSliceCount": 2}


def part(**more: Any) -> dict[str, Any]:
    taken = {"counterSet": "set", "counters": {"memory": {"value": "4Gi"}}, **more}
    return {"consumesCounters": [taken]}


def see(reading: SliceReading, name: str, *slices: Any) -> list[tuple[PoolStatus, tuple[str, ...]]]:
    made = known(*slices, reading=reading)
    row = made.nodes.row(name)
    assert row is not None
    return [(view.status, view.names) for view in made.nodes.device_groups.views(name, row)]


def counters(name: str, **spec: Any) -> Any:
    return resource_slice(name, [], pool=PAIR, **COUNTERS, **spec)


USABLE, INCOMPLETE = PoolStatus.USABLE, PoolStatus.INCOMPLETE


def test_slices_with_compatibility_groups_leave_their_pool_incomplete() -> None:
    grouped = device("gpu-0", **part(compatibilityGroups=["g"]))
    others = resource_slice("n1", [grouped], pool=PAIR, nodeName="n1")
    slices = (counters("n1-counters", nodeName="n1"), others)

    assert see(LIKE_OLD, "n1", *slices) == [(USABLE, ("gpu-0",))]
    assert see(LIKE_NEW, "n1", *slices) == [(INCOMPLETE, ())]


def test_a_pool_of_slices_with_compatibility_groups_is_not_seen() -> None:
    grouped = device("gpu-0", **part(compatibilityGroups=["g"]))
    slices = (resource_slice("n1", [grouped]),)

    assert see(LIKE_NEW, "n1", *slices) == []


def test_counters_of_another_node_are_not_seen() -> None:
    # The pool is being updated: its devices are not there yet.
    slices = (counters("n1-counters", nodeName="n1"),)

    assert see(LIKE_OLD, "n2", *slices) == [(INCOMPLETE, ())]
    assert see(LIKE_NEW, "n2", *slices) == []
    assert see(LIKE_NEW, "n1", *slices) == [(INCOMPLETE, ())]


def test_counters_are_found_wherever_their_slice_is() -> None:
    slices = (
        counters("counters", nodeName="n2"),
        resource_slice("n1", [device("gpu-0", **part()), device("gpu-1", **part())], pool=PAIR),
    )
    made = known(*slices, holding("held", result("n1", "gpu-0")), reading=LIKE_NEW)

    (view,) = made.nodes.device_groups.views("n1", 0)
    assert view.status is USABLE
    assert made.nodes.devices.use.state(view)[1] == (4 * 2**30 * 10**9,)
