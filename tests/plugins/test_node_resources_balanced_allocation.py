"""NodeResourcesBalancedAllocation."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
)
from tests.builders import (
    EMPTY,
    cluster,
    node,
    pod,
)
from tests.plugins.asking import scores

PLUGIN = NodeResourcesBalancedAllocation()
GPU = "example.com/gpu"
HUGE = "hugepages-2Mi"
TENTHS = {"cpu": 10, "memory": 1000}


def args(*names: str, weight: int = 1) -> NodeResourcesBalancedAllocationArgs:
    resources = [{"name": name, "weight": weight} for name in names]
    return msgspec.convert({"resources": resources}, NodeResourcesBalancedAllocationArgs)


def over(*names: str) -> NodeResourcesBalancedAllocation:
    return NodeResourcesBalancedAllocation(args(*names))


def score(plugin: NodeResourcesBalancedAllocation, asks: Pod, *items: Node | Pod) -> int:
    answer = scores(plugin, asks, cluster(*items))
    assert answer is not None
    return answer["n"]


def balanced(with_pod: int, without: int) -> int:
    return 50 + (50 + with_pod - without) // 2


@pytest.mark.parametrize(
    ("asks", "there", "expected"),
    [
        pytest.param({"cpu": 2, "memory": 200}, {}, balanced(100, 100), id="even on an empty node"),
        pytest.param({"cpu": 4}, {}, balanced(80, 100), id="uneven on an empty node"),
        pytest.param({"cpu": 4}, {"memory": 400}, balanced(100, 80), id="evens out"),
        pytest.param({"cpu": 10}, {}, balanced(50, 100), id="as uneven as it gets"),
        pytest.param({"memory": 1000}, {"cpu": 10}, balanced(100, 50), id="as good as it gets"),
        pytest.param({"cpu": 9}, {"cpu": 9}, balanced(50, 55), id="beyond full is full"),
        pytest.param({"cpu": "333m"}, {}, balanced(98, 100), id="balance is rounded down"),
    ],
)
def test_two_resources(asks: dict[str, Any], there: dict[str, Any], expected: int) -> None:
    other = pod("other", node="n", **there)

    assert score(PLUGIN, pod(**asks), node("n", **TENTHS), other) == expected


def test_a_resource_that_nobody_has_changes_nothing() -> None:
    assert score(over(GPU), pod(gpu=1), node("n")) == 75


def test_silent_pods_count_nothing() -> None:
    silent = pod("silent", node="n")

    assert score(PLUGIN, pod(cpu=4), node("n", **TENTHS), silent) == balanced(80, 100)


def test_requests_of_the_pod_as_a_whole_count() -> None:
    asks = pod(spec={"resources": {"requests": {"cpu": "4"}}})

    assert score(PLUGIN, asks, node("n", **TENTHS)) == balanced(80, 100)


@pytest.mark.parametrize(
    ("names", "asks", "has", "expected"),
    [
        pytest.param(["cpu"], {"cpu": 4}, {}, 75, id="one resource is always balanced"),
        pytest.param(
            ["cpu", "memory", GPU],
            {"cpu": 7, "gpu": 7},
            {"gpu": 10},
            balanced(67, 100),  # 0.7, 0, 0.7: a deviation of 0.33
            id="three resources",
        ),
        pytest.param(
            ["cpu", "memory", GPU],
            {"cpu": 4},
            {"gpu": 10},
            balanced(80, 100),
            id="what is not asked for is left out",
        ),
        pytest.param(
            ["cpu", "memory", GPU],
            {"cpu": 4, "memory": 200, "gpu": 4},
            {"gpu": 0},
            balanced(90, 100),
            id="what is not there is left out",
        ),
        pytest.param(
            ["cpu", "memory", GPU],
            {"cpu": "7200m", "memory": 40},
            {"gpu": 10},
            balanced(66, 100),
            id="of two it is half the distance",
        ),
        pytest.param(
            ["cpu", "memory", GPU],
            {"cpu": "7200m", "memory": 40, "gpu": 1},
            {"gpu": 0},
            balanced(66, 100),
            id="also where the third is missing",
        ),
        pytest.param(
            ["cpu", "memory", GPU, HUGE],
            {"cpu": 4, "gpu": 1, HUGE: 1},
            {"memory": 0, "gpu": 0, HUGE: 0},
            75,
            id="only one of four is there",
        ),
        pytest.param(["cpu", GPU], {"cpu": 4, "gpu": 1}, {"gpu": 0}, 75, id="only one of two"),
    ],
)
def test_other_resources(
    names: list[str], asks: dict[str, Any], has: dict[str, Any], expected: int
) -> None:
    # The other node makes sure that every resource has a column.
    other = node("other", gpu=1, **{HUGE: 1})

    assert score(over(*names), pod(**asks), node("n", **{**TENTHS, **has}), other) == expected


@pytest.mark.parametrize(
    ("names", "asks"),
    [
        pytest.param(["cpu", "memory"], pod(), id="nothing is requested"),
        pytest.param(["cpu", "memory"], pod(cpu=0, gpu=1), id="nothing of these"),
        pytest.param([GPU], pod(cpu=1), id="nothing of others"),
    ],
)
def test_a_pod_without_such_requests_is_skipped(names: list[str], asks: Pod) -> None:
    assert scores(over(*names), asks, cluster(node("n", gpu=1))) is None


def test_rows_without_a_node_do_no_harm() -> None:
    shrunk = cluster(node("gone", gpu=1), node("n", **TENTHS, gpu=10))
    shrunk.remove_node("gone")

    assert scores(PLUGIN, pod(cpu=4), shrunk) == {"n": balanced(80, 100)}
    three = scores(over("cpu", "memory", GPU), pod(cpu=3, gpu=3), shrunk)
    assert three == {"n": balanced(85, 100)}


def test_requests_are_signed() -> None:
    assert PLUGIN.sign(pod(cpu=1), EMPTY) == PLUGIN.sign(pod("other", cpu="1000m"), EMPTY)
    assert PLUGIN.sign(pod(cpu=1), EMPTY) != PLUGIN.sign(pod(cpu=2), EMPTY)


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        pytest.param(NodeResourcesBalancedAllocationArgs(), [], id="the defaults are fine"),
        pytest.param(args("cpu", weight=0), [], id="weight 0 means 1"),
        pytest.param(args("cpu", weight=2), ["resources[0].weight"], id="weight 2"),
        pytest.param(args("cpu", "memory", "cpu"), ["resources[2].name"], id="given twice"),
    ],
)
def test_args(given: NodeResourcesBalancedAllocationArgs, paths: list[str]) -> None:
    assert [where for where, _ in given.problems()] == paths
