"""How much a request takes of a capacity, in whole units and in thousandths."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from moorage.cluster.devices.models import DeviceModel, DevicePlace, Models
from moorage.config import FeatureGates
from moorage.config.kubernetes_versions import VERSIONS
from moorage.objects.quantity import Quantity, format_quantity
from moorage.plugins.dynamic_resources.capacities import (
    CapacityRules,
    OddCapacityError,
    amounts_of,
)
from moorage.plugins.dynamic_resources.device_allocation import AllocationFound
from moorage.plugins.dynamic_resources.preparation import ClaimPlans
from tests.builders import cluster, node
from tests.device_builders import DRIVER, claim, device, device_class, request, resource_slice

_, NEW = VERSIONS
WHOLE, FRACTIONS = CapacityRules(refuses_odd=True), CapacityRules(True, refuses_odd=True)
ODD = "capacity request cannot be represented in the device's range arithmetic"
MOST = 2**63 - 1


def model(value: str, **policy: Any) -> DeviceModel:
    with_policy = {"requestPolicy": policy} if policy else {}
    made = device("gpu-0", capacity={"memory": {"value": value, **with_policy}})
    (found,) = resource_slice("n1", [made]).devices
    return Models().model(DRIVER, found, DevicePlace())


def take(wanted: str | None, rules: CapacityRules, value: str = "100", **policy: Any) -> str | None:
    """Returns how much a request takes of a capacity; None if it cannot get that."""
    requested = {} if wanted is None else {"memory": Quantity.parse(wanted)}
    amounts = amounts_of(requested, model(value, **policy), {}, rules)
    return None if amounts is None else format_quantity(amounts["memory"])


def within(least: str, step: str | None = None, most: str | None = None) -> dict[str, Any]:
    given = {"min": least, "max": most, "step": step}
    return {"validRange": {key: value for key, value in given.items() if value is not None}}


@pytest.mark.parametrize(
    ("wanted", "policy", "whole", "fractions"),
    [
        pytest.param("3", within("1", "2"), "3", "3", id="at a step"),
        pytest.param("4", within("1", "2"), "5", "5", id="between steps"),
        pytest.param("1500m", within("1", "1"), "2", "2", id="a fraction of a whole step"),
        pytest.param("600m", within("500m", "250m"), "1", "750m", id="steps of a fraction"),
        pytest.param("500m", within("500m", "250m"), "1", "500m", id="at a fraction"),
        pytest.param("250m", within("500m", "250m"), "500m", "500m", id="below the least"),
        pytest.param("2", within("500m", "500m", "1500m"), None, None, id="more than the most"),
        pytest.param("1600m", within("500m"), "1600m", "1600m", id="without steps"),
        pytest.param("3", within("1", "500u"), "3", "3", id="steps too small for thousandths"),
        pytest.param(
            None, {"default": "500m", **within("500m", "500m")}, "500m", "500m", id="none"
        ),
        pytest.param("101", {}, None, None, id="more than there is"),
    ],
)
def test_ranges_count_in_thousandths_where_the_gate_is_on(
    wanted: str | None, policy: dict[str, Any], whole: str | None, fractions: str | None
) -> None:
    assert take(wanted, WHOLE, **policy) == whole
    assert take(wanted, FRACTIONS, **policy) == fractions


@pytest.mark.parametrize(
    ("wanted", "policy", "rules", "told"),
    [
        pytest.param("-1", {}, WHOLE, "capacity value is negative", id="negative"),
        pytest.param(
            f"{MOST}",
            within("0", "2"),
            WHOLE,
            f"{ODD}: rounding request {MOST} up to the next step passes MaxInt64",
            id="beyond 64 bits",
        ),
        pytest.param(
            "1500u",
            within("1m", "1m"),
            FRACTIONS,
            f"{ODD}: request 1500000n is not a representable milli value",
            id="finer than thousandths",
        ),
        pytest.param(
            f"{MOST}m",
            within("0", "2m"),
            FRACTIONS,
            f"{ODD}: rounding request {MOST}m up to the next step passes the milli-value range",
            id="thousandths beyond 64 bits",
        ),
    ],
)
def test_odd_capacities_are_refused(
    wanted: str, policy: dict[str, Any], rules: CapacityRules, told: str
) -> None:
    with pytest.raises(OddCapacityError) as refused:
        take(wanted, rules, **policy)

    assert str(refused.value) == f'capacity "memory": {told}'
    if not rules.has_fractions:
        take(wanted, CapacityRules(), **policy)


def test_fractions_round_up_to_the_least_step_that_is_enough() -> None:
    random = Random(0)
    for _ in range(500):
        least, step = random.randrange(0, 3000), random.randrange(1, 900)
        wanted = random.randrange(0, 9000)
        expected = next(at for at in range(least, 20_000, step) if at >= wanted)

        found = take(f"{wanted}m", FRACTIONS, **within(f"{least}m", f"{step}m"))

        assert found == format_quantity(expected * 10**6)


@pytest.mark.parametrize(
    ("mode", "named"), [("ExactCount", f"{DRIVER}/n1/gpu-0"), ("All", "gpu-0")]
)
def test_an_attempt_that_meets_an_odd_capacity_fails(mode: str, named: str) -> None:
    made = cluster(node("n1"))
    made.put_device(device_class())
    capacity = {"memory": {"value": "8", "requestPolicy": {"default": "-1"}}}
    made.put_device(resource_slice("n1", [device("gpu-0", capacity=capacity)]))
    spec = claim("c", request(allocationMode=mode, count=int(mode != "All"))).spec

    def find(gates: FeatureGates) -> tuple[AllocationFound, str]:
        plan = ClaimPlans(gates).plan((spec,), made.nodes.devices.classes)
        outcome = plan.outcome_on(made.nodes.device_groups, 0)
        return outcome.found, outcome.error.rpartition(", ")[2]

    told = f'request r0: checking capacity for device {named}: capacity "memory": '
    assert find(FeatureGates()) == (AllocationFound.DEVICES, "")
    assert find(FeatureGates(NEW)) == (AllocationFound.ERROR, f"{told}capacity value is negative")
