"""Pods that a plugin holds back before they are queued."""

from __future__ import annotations

import pytest

from moorage.framework.status import Rejected, unresolvable
from moorage.framework.wakeups import Action, ClusterEvent, Resource
from moorage.objects.pod import Pod
from moorage.queue import Backoff, FailedAttempt, Queue
from tests.builders import pod
from tests.queue.driver import BOTH, PORTS_ONLY, fail, make_queue, places, popped

LABEL = ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE_POD_LABEL, "label")


class Door:
    """Says no in the name of one plugin until it is opened, and keeps who was to be asked first."""

    def __init__(self) -> None:
        self.closed_by = ""
        self.asked: list[str] = []

    def __call__(self, of: Pod, first: str) -> tuple[str, Rejected] | None:
        self.asked.append(first)
        return (self.closed_by, unresolvable("closed")) if self.closed_by else None


@pytest.fixture
def door() -> Door:
    return Door()


@pytest.fixture
def queue(door: Door) -> Queue:
    return make_queue(admit=door)


def test_a_gated_pod_says_who_holds_it_and_why(queue: Queue, door: Door) -> None:
    door.closed_by = "Gate"
    queue.add(pod("a"), 0.0)
    queued = queue.get(pod("a").uid)

    assert queued is not None
    assert (queued.place, queued.gated_by, queued.rejectors) == (
        "gated",
        "Gate",
        frozenset({"Gate"}),
    )
    assert queued.refusal == unresolvable("closed")
    assert queue.pop(0.0) is None


def test_the_plugin_that_held_it_is_asked_first(queue: Queue, door: Door) -> None:
    door.closed_by = "Gate"
    queue.add(pod("a"), 0.0)
    door.closed_by = ""
    queue.wake(LABEL, None, None, 1.0)
    fail(queue, "Fit", now=1.0)
    queue.wake(BOTH, None, None, 9.0)

    assert door.asked == ["", "Gate", ""]
    assert places(queue) == {"a": "active"}


@pytest.mark.parametrize(
    ("event", "asked"),
    [
        pytest.param(LABEL, True, id="an event of the gating plugin"),
        pytest.param(BOTH, False, id="an event of a plugin that rejected it earlier"),
        pytest.param(PORTS_ONLY, False, id="an event of others"),
    ],
)
def test_only_events_of_the_gating_plugin_reach_a_gated_pod(
    queue: Queue, door: Door, event: ClusterEvent, asked: bool
) -> None:
    queue.add(pod("a"), 0.0)
    fail(queue, "Fit", now=0.0)
    door.closed_by = "Gate"
    queue.activate(pod("a").uid, 1.0)
    assert places(queue) == {"a": "gated"}
    door.asked.clear()

    queue.wake(event, None, None, 20.0)

    assert door.asked == (["Gate"] if asked else [])
    assert places(queue) == {"a": "gated"}


def test_a_pod_is_asked_on_its_way_into_backoff_but_not_out_of_it(queue: Queue, door: Door) -> None:
    queue.add(pod("a"), 0.0)
    fail(queue, now=0.0)
    assert door.asked == ["", ""]
    door.closed_by = "Gate"

    queue.flush(5.0)

    assert places(queue) == {"a": "active"}
    assert door.asked == ["", ""]


def test_without_early_pops_a_pod_is_asked_when_its_backoff_is_over(door: Door) -> None:
    queue = make_queue(admit=door, backoff=Backoff(pops_early=False))
    queue.add(pod("a"), 0.0)
    door.closed_by = "Gate"
    fail(queue, "Fit", now=0.0, at=0.0)
    queue.wake(BOTH, None, None, 0.0)
    assert places(queue) == {"a": "backoff"}

    queue.flush(5.0)

    assert places(queue) == {"a": "gated"}


def test_a_failed_pod_can_be_gated_on_return(queue: Queue, door: Door) -> None:
    queue.add(pod("a"), 0.0)
    queued = popped(queue, 0.0)
    door.closed_by = "Gate"
    queue.give_back(queued, pod=queued.pod, attempt=FailedAttempt(), now=0.0)

    assert places(queue) == {"a": "gated"}
    assert queued.waking_plugins == {"Gate"}


def test_a_gated_pod_that_hears_of_the_same_again_stays_as_it_is(queue: Queue, door: Door) -> None:
    door.closed_by = "Gate"
    queue.add(pod("a"), 0.0)
    for _ in range(3):
        queue.wake(LABEL, None, None, 1.0)

    assert door.asked == ["", "Gate", "Gate", "Gate"]
    assert queue.incoming["unschedulable", LABEL.label] == 3
    queue.check()
    assert places(queue) == {"a": "gated"}


def test_a_gated_pod_may_be_held_by_another_plugin_later(queue: Queue, door: Door) -> None:
    door.closed_by = "Gate"
    queue.add(pod("a"), 0.0)
    door.closed_by = "Other"
    queue.wake(LABEL, None, None, 1.0)

    queued = queue.get(pod("a").uid)
    assert queued is not None
    assert (queued.gated_by, set(queued.waking_plugins)) == ("Other", {"Gate", "Other"})
    queue.check()
