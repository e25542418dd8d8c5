"""The scoring strategies of NodeResourcesFit."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from tests.builders import cluster, node, pod
from tests.plugins.asking import scores

RATIO = "RequestedToCapacityRatio"
TENTHS = {"cpu": 10, "memory": 1000}


def scoring(kind: str, weights: dict[str, int] | None = None, *points: tuple[int, int]) -> Any:
    strategy: dict[str, Any] = {"type": kind}
    if weights is not None:
        strategy["resources"] = [{"name": name, "weight": w} for name, w in weights.items()]
    if points:
        shape = [{"utilization": x, "score": y} for x, y in points]
        strategy["requestedToCapacityRatio"] = {"shape": shape}
    args = msgspec.convert({"scoringStrategy": strategy}, NodeResourcesFitArgs)
    assert list(args.problems()) == []
    return NodeResourcesFit(args)


def score(plugin: NodeResourcesFit, asks: Pod, *items: Node | Pod) -> int:
    answer = scores(plugin, asks, cluster(*items))
    assert answer is not None
    return answer["n"]


@pytest.mark.parametrize(
    ("kind", "cpu", "memory", "expected"),
    [
        pytest.param("LeastAllocated", 0, 0, 100, id="least: empty"),
        pytest.param("LeastAllocated", 5, 500, 50, id="least: half"),
        pytest.param("LeastAllocated", 10, 1000, 0, id="least: full"),
        pytest.param("LeastAllocated", 11, 0, 50, id="least: beyond full is full"),
        pytest.param("LeastAllocated", 1, 333, 78, id="least: shares and mean are rounded down"),
        pytest.param("MostAllocated", 0, 0, 0, id="most: empty"),
        pytest.param("MostAllocated", 5, 500, 50, id="most: half"),
        pytest.param("MostAllocated", 11, 1000, 100, id="most: beyond full is full"),
        pytest.param("MostAllocated", 1, 333, 21, id="most: rounded down"),
    ],
)
def test_least_and_most_allocated(kind: str, cpu: int, memory: int, expected: int) -> None:
    asks = pod(cpu=cpu, memory=memory)

    assert score(scoring(kind), asks, node("n", **TENTHS)) == expected


def test_least_allocated_is_the_default() -> None:
    asks = pod(cpu=1, memory=333)

    assert score(NodeResourcesFit(), asks, node("n", **TENTHS)) == 78
    assert score(scoring("LeastAllocated", {}), asks, node("n", **TENTHS)) == 78


def test_weights() -> None:
    asks = pod(cpu=1, memory=800)

    assert (
        score(scoring("LeastAllocated", {"cpu": 3, "memory": 1}), asks, node("n", **TENTHS)) == 72
    )
    assert (
        score(scoring("LeastAllocated", {"cpu": 0, "memory": 1}), asks, node("n", **TENTHS)) == 55
    )


@pytest.mark.parametrize(
    ("asks", "expected"),
    [
        pytest.param(pod(cpu=0, memory=0), 100, id="an explicit zero is zero"),
        pytest.param(pod(), 75, id="silence counts 100m and 200Mi"),
        pytest.param(
            pod(spec={"resources": {"requests": {"cpu": "900m", "memory": "900Mi"}}}),
            75,
            id="requests of the pod as a whole are not looked at",
        ),
    ],
)
def test_what_an_incoming_pod_counts_for(asks: Pod, expected: int) -> None:
    empty = node("n", cpu="500m", memory="700Mi")

    assert score(scoring("LeastAllocated"), asks, empty) == expected


def test_a_silent_pod_on_the_node_counts_the_defaults_too() -> None:
    nothing = pod(cpu=0, memory=0)
    occupied = (node("n", cpu="500m", memory="400Mi"), pod("other", node="n"))

    assert score(scoring("LeastAllocated"), nothing, *occupied) == (80 + 50) // 2


GPU = "example.com/gpu"


@pytest.mark.parametrize(
    ("asks", "has", "expected"),
    [
        pytest.param(pod(cpu=5, gpu=1), {"gpu": 4}, (50 + 75) // 2, id="asked for"),
        pytest.param(pod(cpu=5), {"gpu": 4}, 50, id="not asked for"),
        pytest.param(pod(cpu=5, gpu=1), {}, 50, id="not there"),
        pytest.param(pod(cpu=5, gpu=1), {"gpu": 0}, 50, id="none of it there"),
    ],
)
def test_other_resources_count_where_asked_for(
    asks: Pod, has: dict[str, int], expected: int
) -> None:
    plugin = scoring("LeastAllocated", {"cpu": 1, GPU: 1})

    assert score(plugin, asks, node("n", cpu=10, **has), node("other", gpu=1)) == expected


def test_storage_counts_even_if_not_asked_for() -> None:
    plugin = scoring("LeastAllocated", {"cpu": 1, "ephemeral-storage": 1})
    storing = pod("other", node="n", cpu=0, ephemeral=50)

    assert score(plugin, pod(cpu=5), node("n", cpu=10, ephemeral=100), storing) == 50
    assert score(plugin, pod(cpu=5), node("n", cpu=10, ephemeral=100)) == (50 + 100) // 2


@pytest.mark.parametrize("kind", ["LeastAllocated", "MostAllocated", RATIO])
def test_a_node_without_any_of_it_scores_zero(kind: str) -> None:
    points = [(0, 10), (100, 10)] if kind == RATIO else []

    assert score(scoring(kind, {"cpu": 1}, *points), pod(cpu=1), node("n", cpu=0)) == 0
    assert score(scoring(kind, {"pods": 1}, *points), pod(cpu=1), node("n")) == 0


@pytest.mark.parametrize(
    ("points", "cpu", "expected"),
    [
        pytest.param([(0, 0), (100, 10)], 3, 30, id="rising"),
        pytest.param([(0, 10), (100, 0)], 3, 70, id="falling"),
        pytest.param([(20, 2), (80, 7)], 1, 20, id="before the first point"),
        pytest.param([(20, 2), (80, 7)], 9, 70, id="after the last point"),
        pytest.param([(20, 2), (80, 7)], 4, 36, id="between, towards zero"),
        pytest.param([(20, 7), (80, 2)], 4, 54, id="between on a falling line, towards zero"),
        pytest.param([(0, 0), (50, 10), (100, 0)], 5, 100, id="a peak"),
        pytest.param([(0, 0), (100, 10)], 15, 100, id="beyond full"),
    ],
)
def test_shapes(points: list[tuple[int, int]], cpu: int, expected: int) -> None:
    plugin = scoring(RATIO, {"cpu": 1}, *points)

    assert score(plugin, pod(cpu=cpu), node("n", cpu=10)) == expected


@pytest.mark.parametrize(
    ("cpu", "memory", "expected"),
    [
        pytest.param(5, 0, 50, id="a resource that scores nothing does not count"),
        pytest.param(1, 150, 13, id="a half is rounded up"),
        pytest.param(0, 0, 0, id="none scores"),
    ],
)
def test_mean_of_shapes(cpu: int, memory: int, expected: int) -> None:
    plugin = scoring(RATIO, {"cpu": 1, "memory": 1}, (0, 0), (100, 10))

    assert score(plugin, pod(cpu=cpu, memory=memory), node("n", **TENTHS)) == expected


@pytest.mark.parametrize("kind", ["LeastAllocated", "MostAllocated"])
@pytest.mark.parametrize("size", [2**46, 2**46 + 12_345, 3 * 2**52 + 1, 2**56])
@pytest.mark.parametrize("percent", [1, 29, 50, 57, 99])
@pytest.mark.parametrize("off", [-1, 0, 1])
def test_shares_are_exact_whatever_the_size(kind: str, size: int, percent: int, off: int) -> None:
    taken = size * percent // 100 + off
    shared = size - taken if kind == "LeastAllocated" else taken

    answer = score(scoring(kind, {"memory": 1}), pod(memory=taken), node("n", memory=size))

    assert answer == shared * 100 // size


def test_rows_without_a_node_do_no_harm() -> None:
    shrunk = cluster(node("gone"), node("n", **TENTHS))
    shrunk.remove_node("gone")

    for kind, points in (
        ("LeastAllocated", []),
        ("MostAllocated", []),
        (RATIO, [(0, 0), (100, 10)]),
    ):
        plugin = scoring(kind, {"cpu": 1, "memory": 1}, *points)
        assert scores(plugin, pod(cpu=5, memory=500), shrunk) == {"n": 50}
