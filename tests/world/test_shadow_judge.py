"""Judging another scheduler: each placement by the state in which it was made."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.engine.events import Applied, Removed
from moorage.objects.kinds import Object
from moorage.objects.pod import Pod
from moorage.simulate.rescheduling import place_anew
from moorage.world.shadow_judge import Shadow
from moorage.world.shadow_report import Agreement, describe
from tests.builders import node, pod
from tests.engine.gangs import GATES, gang, members
from tests.explain.building import configuration, engine

replace = msgspec.structs.replace

ZONE = "topology.kubernetes.io/zone"


def shadow(*objects: Any) -> Shadow:
    made = Shadow(engine(), lambda: 0.0)
    for item in objects:
        made.handle(Applied(item), 0.0)
    return made


def bind(made: Shadow, waiting: Pod, name: str, now: float = 1.0) -> None:
    made.handle(Applied(replace(waiting, node_name=name)), now)


BIG, SMALL = node("big", cpu=8), node("small", cpu=2)


@pytest.mark.parametrize(
    ("nodes", "theirs", "agreement"),
    [
        pytest.param((BIG, SMALL), "big", Agreement.SAME, id="same"),
        pytest.param((node("a"), node("b")), "b", Agreement.EQUAL, id="equal"),
        pytest.param((BIG, SMALL), "small", Agreement.LOWER, id="lower"),
        pytest.param(
            (BIG, node("x", spec={"unschedulable": True})), "x", Agreement.REFUSED, id="no"
        ),
        pytest.param((node("tiny", cpu="100m"),), "tiny", Agreement.NOWHERE, id="nowhere"),
    ],
)
def test_a_placement(nodes: tuple[Any, ...], theirs: str, agreement: Agreement) -> None:
    waiting = pod("p", cpu=1)
    made = shadow(*nodes, waiting)
    bind(made, waiting, theirs)

    assert made.counts == {agreement: 1}
    assert len(made.differences) == (agreement not in (Agreement.SAME, Agreement.EQUAL))


def test_after_a_difference_the_truth_counts() -> None:
    first, second = pod("first", cpu=1), pod("second", cpu=7)
    made = shadow(BIG, SMALL, first, second)
    bind(made, first, "small")
    bind(made, second, "big", now=60.0)

    assert made.counts == {Agreement.LOWER: 1, Agreement.SAME: 1}


def test_pods_that_wait_there_and_would_be_placed_here() -> None:
    failed = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no"}]}
    waiting, hopeless = pod("p", cpu=1, status=failed), pod("q", cpu=99, status=failed)
    made = shadow(BIG, waiting, hopeless)

    assert made.report().placeable == {"default/p": "big"}
    bind(made, waiting, "big")
    assert made.report().placeable == {}


def test_pods_of_other_profiles_and_pods_that_go_are_left_alone() -> None:
    other = pod("p", cpu=1, spec={"schedulerName": "volcano"})
    gone = pod("g", cpu=1)
    made = shadow(BIG, other, gone)
    bind(made, other, "big")
    made.handle(Removed(gone), 1.0)

    assert made.report().placed == 0


GPU = "nvidia.com/gpu"
ALONE = {"scheduling.moorage.dev/coexist-policy": "DaemonsetAndStaticPods"}


def on(name: str, there: str, **rest: Any) -> Pod:
    return pod(name, node=there, **rest)


def test_how_the_cluster_is_used_under_either() -> None:
    """Two pods take what a GPU needs, and one is not alone although it asks to be."""
    gpu = node("gpu", cpu=8, **{GPU: 2})
    plain = [node("n0", cpu=8), node("n1", cpu=8)]
    resources = {"requests": {"cpu": "4", GPU: "1"}, "limits": {GPU: "1"}}
    container = {"name": "main", "image": "app", "resources": resources}
    asks = on("g", "gpu", spec={"containers": [container]})
    others = [on("a", "gpu", cpu=2), on("b", "gpu", cpu=2), on("c", "n0", cpu=1)]
    alone = on("alone", "n0", cpu=2, metadata={"annotations": ALONE}, spec={"priority": 9})
    made = shadow(gpu, *plain, asks, *others, alone, pod("waits", cpu=64))

    there = made.measure_use()
    assert (there.nodes, there.nodes_in_use, there.pods, there.waiting) == (3, 2, 5, 1)
    assert there.use["cpu"] == pytest.approx(100 * 11 / 24)
    assert (there.gpus, there.free_gpus, there.stranded_gpus) == (2, 1, 1)
    assert (there.pods_beside_gpus, there.exclusive_pods_that_share) == (2, 1)

    aware = engine(config=configuration("GPUAware"))
    anew = place_anew("anew", aware, made.objects.values())
    assert (anew.pods, anew.waiting, anew.exclusive_pods) == (5, 1, 1)
    assert (anew.stranded_gpus, anew.pods_beside_gpus) == (0, 0)
    assert anew.exclusive_pods_that_share == 0
    # The shadow's own cluster is as it was.
    assert made.measure_use() == there

    lines = list(describe(replace(made.report(), use=(there, anew))))
    assert lines[-2].split()[-2:] == ["2", "0"]
    assert lines[-1].split()[-6:] == ["1", "of", "1", "0", "of", "1"]


def test_gangs_that_are_placed_in_part() -> None:
    places = ("big", "", "")
    waiting = members("g", 3, cpu=1)
    pods = [replace(each, node_name=name) for each, name in zip(waiting, places, strict=True)]
    made = Shadow(engine(gates=GATES), lambda: 0.0)
    objects: list[Object] = [BIG, gang("g", 3), *pods]
    for item in objects:
        made.handle(Applied(item), 0.0)

    assert (made.measure_use().gangs, made.measure_use().partial_gangs) == (1, 1)
    anew = place_anew("anew", engine(gates=GATES), made.objects.values())
    assert (anew.pods, anew.partial_gangs) == (3, 0)


def test_the_report_reads_well() -> None:
    waiting = pod("p", cpu=1)
    made = shadow(BIG, SMALL, waiting)
    bind(made, waiting, "small")
    lines = list(describe(made.report()))

    assert lines[0] == "1 pods placed by the other scheduler, 0.00% on a node that is best here"
    assert lines[1].split(maxsplit=1) == ["1", "a node that scores less"]
