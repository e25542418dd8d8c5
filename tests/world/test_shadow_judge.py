"""Judging another scheduler: each placement by the state in which it was made."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.engine.events import Applied, Removed
from moorage.objects.pod import Pod
from moorage.world.shadow_judge import Shadow
from moorage.world.shadow_report import Agreement, describe
from tests.builders import node, pod
from tests.explain.building import engine

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


def test_the_report_reads_well() -> None:
    waiting = pod("p", cpu=1)
    made = shadow(BIG, SMALL, waiting)
    bind(made, waiting, "small")
    lines = list(describe(made.report()))

    assert lines[0] == "1 pod placed by the other scheduler, 0.00% on a node that is best here"
    assert lines[1].split(maxsplit=1) == ["1", "a node that scores less"]


def test_a_shadow_that_has_seen_no_placement_claims_no_agreement() -> None:
    report = shadow(BIG).report()

    assert report.agreement is None
    assert list(describe(report)) == [
        "the other scheduler has placed no pod since the shadow began: nothing to compare"
    ]
