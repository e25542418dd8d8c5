"""What claims, classes and slices cost is bounded by the work, whatever it is made of."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cluster import Cluster
from moorage.cluster.devices import groups
from moorage.plugins.dynamic_resources.device_allocation import AllocationFound, AllocationOutcome
from moorage.plugins.dynamic_resources.preparation import ClaimPlans
from moorage.plugins.dynamic_resources.selectors import AnswersSpentError, SelectorAnswers
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

INDEX = 'device.attributes["gpu.example.com"].index'


def allocate(cluster: Cluster, *requests: dict[str, Any]) -> list[AllocationOutcome]:
    """What each row gives to a claim."""
    plan = ClaimPlans().plan((claim("c", *requests).spec,), cluster.nodes.devices.classes)
    found = cluster.nodes.device_groups
    return [plan.outcome_on(found, row) for row in cluster.nodes.rows.tolist()]


def test_devices_that_are_passed_over_count_as_work() -> None:
    cluster = Cluster()
    cluster.put_device(device_class())
    cluster.put_node(node("n1"))
    names = [f"gpu-{at}" for at in range(128)]
    cluster.put_device(resource_slice("n1", [device(name) for name in names]))
    cluster.put_device(holding("h", *(result("n1", name) for name in names)))
    distinct = {"distinctAttribute": "gpu.example.com/index"}
    spec = claim("c", request(), constraints=[distinct]).spec
    plan = ClaimPlans().plan((spec,), cluster.nodes.devices.classes)

    outcome = plan.outcome_on(cluster.nodes.device_groups, cluster.nodes.rows.item(0))

    assert outcome.found is AllocationFound.NOTHING
    assert outcome.steps > 32


def test_rows_beyond_what_can_be_seen_see_invalid_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MOST_SEEN", 100)
    names = [f"n{at}" for at in range(10)]
    cluster = Cluster()
    cluster.put_device(device_class())
    for name in names:
        cluster.put_node(node(name, labels={"name": name}))
    devices = [
        device(f"gpu-{name}", nodeSelector=_select("NotIn", name)) for name in (*names, "other")
    ]
    cluster.put_device(resource_slice("shared", devices, perDeviceNodeSelection=True))

    found = [outcome.found for outcome in allocate(cluster, request())]

    assert found.count(AllocationFound.DEVICES) == 5
    assert found.count(AllocationFound.INVALID) == 5


def test_devices_of_a_node_go_on_when_too_much_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MOST_SEEN", 0)
    cluster = Cluster()
    cluster.put_device(device_class())
    cluster.put_node(node("n1"))
    cluster.put_device(resource_slice("n1", 1))
    cluster.put_device(resource_slice("shared", 1, allNodes=True))

    [outcome] = allocate(cluster, request())

    assert outcome.found is AllocationFound.DEVICES


def test_compiling_counts_as_asking() -> None:
    answers = SelectorAnswers()
    long = [f"{INDEX} == 12345 || " * 100 + f"{INDEX} == {at}" for at in range(3)]
    answers.limit(5_000)

    with pytest.raises(AnswersSpentError):
        answers.join_reads(long)

    answers.limit(None)
    assert answers.join_reads(long) is not None


def _select(operator: str, name: str) -> dict[str, Any]:
    expression = {"key": "name", "operator": operator, "values": [name]}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
