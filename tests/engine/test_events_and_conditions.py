"""The events and conditions that the engine writes, and those that it does not repeat."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moorage.engine.actions import (
    PatchPodStatus,
    PodRef,
    PodScheduledCondition,
    RecordEvent,
    encode,
    truncate,
)
from moorage.objects.coexist import ANNOTATION
from tests.builders import node, pod
from tests.engine.driver import conditions, driver, notes, only

P = PodRef("default", "p", "default/p")
UNHELPFUL = "1 Preemption is not helpful for scheduling"
TOO_SMALL = (
    "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
    f"preemption: 0/1 nodes are available: {UNHELPFUL}."
)
TAINTED = {"taints": [{"key": "k", "effect": "NoSchedule"}]}


def test_a_pod_that_fits_nowhere() -> None:
    run = driver(node("one", cpu=1), pod("p", cpu=2, metadata={"generation": 3}))

    assert run.step() == [
        RecordEvent(P, "Warning", "FailedScheduling", "Scheduling", TOO_SMALL, "default-scheduler"),
        PatchPodStatus(P, PodScheduledCondition("Unschedulable", TOO_SMALL, 3)),
    ]


@pytest.mark.parametrize(
    ("nodes", "asks", "told"),
    [
        pytest.param([], {}, "no nodes available to schedule pods", id="no nodes"),
        pytest.param(
            [node("a", cpu=1), node("b", cpu=1), node("c", spec=TAINTED)],
            {"cpu": 2},
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. "
            "no new claims to deallocate, preemption: 0/3 nodes are available: "
            "3 Preemption is not helpful for scheduling.",
            id="reasons are counted",
        ),
        pytest.param(
            [node(f"n{at}", cpu=1, memory="1Mi" if at < 2 else "8Gi") for at in range(11)],
            {"cpu": 2, "memory": "1Gi"},
            "0/11 nodes are available: 11 Insufficient cpu, 2 Insufficient memory. "
            "no new claims to deallocate, preemption: 0/11 nodes are available: "
            "11 Preemption is not helpful for scheduling.",
            id="sorted as texts, several reasons per node",
        ),
        pytest.param(
            [node("a"), node("b")],
            {"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}},
            '0/2 nodes are available: persistentvolumeclaim "c" not found. not found',
            id="rejected as a whole",
        ),
        pytest.param(
            [node("a")],
            {"metadata": {"annotations": {ANNOTATION: "Alone"}}},
            f"0/1 nodes are available: pod failed CoexistPolicy: annotation {ANNOTATION} must be "
            'Any or DaemonsetAndStaticPods, got "Alone".',
            id="rejected as a whole by a plugin of ours",
        ),
    ],
)
def test_messages(nodes: list[Any], asks: dict[str, Any], told: str) -> None:
    run = driver(*nodes, pod("p", **asks))

    message = conditions(run.step())["p"].message
    assert message == told


def test_only_named_nodes_are_looked_at_and_the_others_counted() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    rule = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": rule}}
    run = driver(
        node("a", cpu=1), node("b"), node("c"), pod("p", cpu=2, spec={"affinity": affinity})
    )

    assert conditions(run.step())["p"].message.startswith(
        "0/3 nodes are available: 1 Insufficient cpu, "
        "2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
    )


def test_what_the_status_says_already_is_not_written_again() -> None:
    known = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": TOO_SMALL,
    }
    run = driver(node("one", cpu=1), pod("p", cpu=2, status={"conditions": [known]}))
    taken = run.step()

    assert only(taken, PatchPodStatus) == []
    assert notes(taken) == [TOO_SMALL]


@pytest.mark.parametrize(
    "changed", [{"status": "True"}, {"reason": "SchedulerError"}, {"message": "other"}]
)
def test_what_it_says_otherwise_is(changed: dict[str, str]) -> None:
    known = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": TOO_SMALL,
        **changed,
    }
    run = driver(node("one", cpu=1), pod("p", cpu=2, status={"conditions": [known]}))

    assert conditions(run.step())["p"].message == TOO_SMALL


def test_events_are_cut_conditions_are_not() -> None:
    names = [f"example.com/{'x' * 50}{at:02}" for at in range(30)]
    run = driver(node("one"), pod("p", **dict.fromkeys(names, 1)))
    taken = run.step()

    (note,) = notes(taken)
    message = conditions(taken)["p"].message
    assert len(note.encode()) == 1024
    assert note.endswith(" ...")
    assert message.startswith(note.removesuffix(" ..."))
    assert len(message) > 1024


@given(st.text(min_size=900, max_size=1200) | st.text("añ語🚢", min_size=250, max_size=1200))
def test_a_note_holds_as_much_as_fits(message: str) -> None:
    note = truncate(message)

    if len(message.encode()) <= 1024:
        assert note == message
    else:
        kept = note.removesuffix(" ...")
        assert message.startswith(kept)
        assert 1020 < len(note.encode()) + 4 <= 1028
        assert len(note.encode()) <= 1024


def test_actions_are_told_in_one_way() -> None:
    run = driver(node("one"), pod("p"))
    bind = encode(run.step())
    run.tell_bound("p")

    assert bind == (
        b'[{"do":"bindPod","pod":{"namespace":"default","name":"p","uid":"default/p"},'
        b'"node":"one","profile":"default-scheduler"}]'
    )
    assert b'"do":"recordEvent"' in encode(run.step())
