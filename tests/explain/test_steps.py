"""An explanation in steps: decisions are made meanwhile, and what it says is true all the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moorage.engine.explain import Explanation, explain, explain_in_steps
from moorage.objects.pod import Pod
from moorage.testing import Driver
from tests.builders import node, pod
from tests.engine.driver import driver

TAINTS = {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}
WAITING = pod("w", cpu=3, spec={"nodeSelector": {"disk": "ssd"}})


def scene() -> Driver:
    run = driver(
        node("small", cpu=2, labels={"disk": "ssd"}),
        node("other", cpu=4, labels={"disk": "hdd"}),
        node("tainted", cpu=4, labels={"disk": "ssd"}, spec=TAINTS),
        node("full", cpu=4, labels={"disk": "ssd"}),
        pod("r", node="full", cpu=3),
    )
    run.apply(WAITING)
    run.settle(10)
    return run


def follow(run: Driver, of: Pod, meanwhile: Callable[[int], None]) -> tuple[Explanation, int]:
    """The explanation, and how many steps it took; something happens after each of them."""
    steps, count = explain_in_steps(run.engine.decider, of), 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
        count += 1
        meanwhile(count)


def test_it_says_the_same_as_one_that_is_made_at_once() -> None:
    run = scene()
    told, steps = follow(run, WAITING, lambda _: None)
    assert told == explain(run.engine.decider, WAITING)
    assert steps > 8, "each piece of advice is asked for and tried in a step of its own"


def test_other_pods_are_placed_meanwhile() -> None:
    run = scene()

    def place(at: int) -> None:
        run.apply(pod(f"p{at}", cpu="100m", labels={"app": "x"}))
        run.settle(10)

    told, _ = follow(run, WAITING, place)
    assert told.state == "pending"
    assert told.message == explain(run.engine.decider, WAITING).message
    assert len(run.engine.cluster.pods) > 8


def test_nothing_is_said_to_help_where_a_node_has_room_by_now() -> None:
    run = scene()

    def make_room(at: int) -> None:
        if at == 2:
            run.remove(pod("r", node="full", cpu=3))

    told, _ = follow(run, WAITING, make_room)
    assert not any("full" in each.nodes for each in told.suggestions if each.effect == "fits")


def test_pods_that_were_to_be_evicted_may_leave_by_themselves() -> None:
    run = scene()
    apart = pod(
        "a",
        spec={
            "nodeSelector": {"disk": "ssd"},
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "topologyKey": "kubernetes.io/hostname",
                            "labelSelector": {"matchLabels": {"app": "db"}},
                        }
                    ]
                }
            },
        },
    )
    for name in ("small", "full"):
        run.apply(pod(f"db-{name}", node=name, labels={"app": "db"}))

    def leave(at: int) -> None:
        for name in ("small", "full"):
            run.remove(pod(f"db-{name}", node=name, labels={"app": "db"}))

    told, _ = follow(run, apart, leave)
    assert told.state == "pending"


@pytest.mark.parametrize("changes", [1, 1000])
def test_it_begins_anew_when_nodes_come_but_not_for_ever(changes: int) -> None:
    run = scene()

    def grow(at: int) -> None:
        if at <= changes:
            run.apply(node(f"new-{at}", cpu=1))

    told, steps = follow(run, WAITING, grow)
    # It is made of one moment, that of its last beginning.
    assert told.node_count == len(run.engine.cluster.nodes)
    assert steps < 40
