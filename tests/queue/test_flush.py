"""What time alone does to waiting pods."""

from __future__ import annotations

import pytest

from tests.builders import pod
from tests.queue.driver import BOTH, fail, give_back, make_queue, places, popped


@pytest.mark.parametrize(
    ("since", "now", "place"),
    [
        pytest.param(0.0, 300.0, "unschedulable", id="not longer than five minutes"),
        pytest.param(0.0, 329.9, "unschedulable", id="pods are looked at every 30 seconds"),
        pytest.param(0.0, 330.0, "active", id="longer than five minutes"),
        pytest.param(29.0, 330.0, "active", id="by a second"),
        pytest.param(30.0, 330.0, "unschedulable", id="by nothing"),
        pytest.param(31.0, 1000.0, "active", id="long ago"),
    ],
)
def test_pods_that_waited_too_long_are_woken(since: float, now: float, place: str) -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    fail(queue, "Fit", now=0.0, at=since)
    queue.flush(now)

    assert places(queue) == {"a": place}


def test_the_queue_says_when_somebody_has_waited_too_long() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    fail(queue, "Fit", now=0.0)

    assert queue.next_flush(0.0) == 330.0
    queue.flush(330.0)
    assert places(queue) == {"a": "active"}


def test_a_gated_pod_is_asked_again_only_after_another_five_minutes() -> None:
    queue = make_queue()
    queue.add(pod("a", labels={"held": "Gate"}), 0.0)
    wakes = []
    for moment in range(0, 1000, 10):
        before = queue.incoming.total()
        queue.flush(float(moment))
        if queue.incoming.total() > before:
            wakes.append(moment)

    assert wakes == [330, 660, 990]
    assert places(queue) == {"a": "gated"}


def test_pods_in_flight_hear_of_the_timeout() -> None:
    queue = make_queue()
    for name in ("waits", "flies"):
        queue.add(pod(name), 0.0)
    fail(queue, "Fit", now=0.0)
    flying = popped(queue, 0.0)
    queue.flush(330.0)

    give_back(queue, flying, "Fit", now=331.0)

    assert places(queue) == {"waits": "active", "flies": "backoff"}


def test_time_can_jump_to_the_next_flush() -> None:
    queue = make_queue()
    assert queue.next_flush(0.0) is None

    queue.add(pod("a"), 0.0)
    assert queue.next_flush(0.5) == 0.5

    fail(queue, now=0.5)
    assert queue.next_flush(0.5) == 2.0
    assert queue.next_flush(7.0) == 7.0

    fail(queue, "Fit", now=7.0)
    assert queue.next_flush(7.0) == 330.0

    queue.wake(BOTH, None, None, 7.0)
    assert queue.next_flush(7.0) == 7.0

    popped(queue, 7.0)
    assert queue.next_flush(7.0) is None


def test_nothing_is_to_be_had_before_the_next_flush() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.25)
    queued = fail(queue, now=0.25)
    for _ in range(6):
        moment = queue.next_flush(queued.timestamp)
        assert moment is not None
        assert queue.pop(moment - 0.01) is None
        fail(queue, now=moment)
    assert queued.attempts == 7
