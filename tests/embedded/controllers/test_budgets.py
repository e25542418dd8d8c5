"""Budgets know how many of their pods may go."""

from __future__ import annotations

import pytest

from moorage.embedded.api.request_options import WriteOptions
from moorage.embedded.kinds.subresources import evict
from moorage.embedded.request_refusals import RequestRefused
from tests.embedded.controllers.playing import Json, Play, played, workload
from tests.embedded.serving import pod

BUDGETS = "poddisruptionbudgets.policy"
SELECTOR = {"selector": {"matchLabels": {"app": "web"}}}


def counts(cluster: Play) -> tuple[int, int, int, int]:
    """Expected, healthy, to be healthy, allowed to go."""
    status = cluster.get(BUDGETS, "b")["status"]
    names = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
    expected, healthy, desired, allowed = (status[name] for name in names)
    return expected, healthy, desired, allowed


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"minAvailable": 2}, (5, 3, 2, 1), id="a number must stay"),
        pytest.param({"minAvailable": 9}, (5, 3, 9, 0), id="more than there are"),
        pytest.param({"minAvailable": "50%"}, (5, 3, 3, 0), id="a share must stay, rounded up"),
        pytest.param({"maxUnavailable": 3}, (5, 3, 2, 1), id="a number may miss"),
        pytest.param({"maxUnavailable": "30%"}, (5, 3, 3, 0), id="a share may miss, rounded up"),
        pytest.param({"maxUnavailable": "90%"}, (5, 3, 0, 3), id="nearly all may miss"),
    ],
)
@played
async def test_a_budget_counts(cluster: Play, spec: Json, expected: tuple[int, ...]) -> None:
    cluster.create("deployments.apps", "web", workload(replicas=5))
    cluster.create(BUDGETS, "b", {**SELECTOR, **spec})
    await cluster.wait(5)
    first, *rest = cluster.pods()
    cluster.run(rest[:3])
    cluster.end([first], "Failed")
    await cluster.settle()
    assert counts(cluster) == expected
    status = cluster.get(BUDGETS, "b")["status"]
    (condition,) = status["conditions"]
    assert condition["status"] == ("True" if expected[3] else "False")
    assert status["observedGeneration"] == 1


@played
async def test_an_eviction_spends_the_budget_until_the_pod_is_replaced(cluster: Play) -> None:
    cluster.create("deployments.apps", "web", workload(replicas=2))
    cluster.create(BUDGETS, "b", {**SELECTOR, "minAvailable": 1})
    await cluster.settle()
    for each in cluster.pods():
        cluster.bind(each, "n")
    cluster.run()
    await cluster.settle()
    assert counts(cluster) == (2, 2, 1, 1)
    first, second = (each["metadata"]["name"] for each in cluster.pods())

    evict(cluster.api, "default", first, {"metadata": {"name": first}}, WriteOptions())
    await cluster.settle()
    assert counts(cluster)[3] == 0
    with pytest.raises(RequestRefused):
        evict(cluster.api, "default", second, {"metadata": {"name": second}}, WriteOptions())

    cluster.sweep()
    cluster.run()
    await cluster.settle()
    assert counts(cluster) == (2, 2, 1, 1)
    assert "disruptedPods" not in cluster.get(BUDGETS, "b")["status"]


@played
async def test_an_eviction_that_never_comes_is_forgotten(cluster: Play) -> None:
    cluster.create("deployments.apps", "web", workload(replicas=2))
    cluster.create(BUDGETS, "b", {**SELECTOR, "minAvailable": 1})
    await cluster.settle()
    cluster.run()
    await cluster.settle()
    budget = cluster.get(BUDGETS, "b")
    name = cluster.pods()[0]["metadata"]["name"]
    cluster.set_status(BUDGETS, budget, disruptedPods={name: "2026-01-01T00:00:00Z"})
    await cluster.settle()
    assert counts(cluster) == (2, 1, 1, 0)

    await cluster.wait(121)
    assert counts(cluster) == (2, 2, 1, 1)


@played
async def test_a_share_of_what_nobody_can_count_lets_nothing_go(cluster: Play) -> None:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "controller": True}
    uid = cluster.create("configmaps", "c")["metadata"]["uid"]
    metadata = {"labels": {"app": "web"}, "ownerReferences": [{**reference, "uid": uid}]}
    cluster.create("pods", "p", pod("p")["spec"], metadata=metadata)
    cluster.create(BUDGETS, "b", {**SELECTOR, "maxUnavailable": "50%"})
    cluster.run()
    await cluster.settle()

    status = cluster.get(BUDGETS, "b")["status"]
    assert status["disruptionsAllowed"] == 0
    assert status["conditions"][0]["reason"] == "SyncFailed"


@played
async def test_pods_that_change_their_labels_leave_and_enter(cluster: Play) -> None:
    cluster.create(BUDGETS, "b", {**SELECTOR, "minAvailable": 1})
    cluster.create("pods", "p", pod("p")["spec"], metadata={"labels": {"app": "web"}})
    await cluster.settle()
    assert counts(cluster)[0] == 1
    for label, expected in (("db", 0), ("web", 1)):
        changed = cluster.get("pods", "p")
        changed["metadata"]["labels"]["app"] = label
        cluster.update("pods", changed)
        await cluster.settle()
        assert counts(cluster)[0] == expected
