"""What the queue counts for metrics."""

from __future__ import annotations

from tests.builders import pod
from tests.queue.driver import BOTH, PROFILE, fail, make_queue, popped


def test_sizes_tell_the_queues_apart() -> None:
    queue = make_queue()
    queue.add(pod("gated", labels={"held": "Gate"}), 0.0)
    for name in ("error", "unschedulable", "active"):
        queue.add(pod(name), 0.0)
    fail(queue, now=0.0)
    fail(queue, "Fit", now=0.0)
    assert queue.sizes() == {"active": 1, "backoff": 1, "unschedulable": 1, "gated": 1}

    queue.wake(BOTH, None, None, 0.0)
    assert queue.sizes() == {"active": 1, "backoff": 2, "unschedulable": 0, "gated": 1}

    queue.delete(pod("gated"))
    assert queue.sizes() == {"active": 1, "backoff": 2, "unschedulable": 0, "gated": 0}


def test_incoming_pods_are_counted_by_queue_and_event() -> None:
    queue = make_queue()
    queue.add(pod("gated", labels={"held": "Gate"}), 0.0)
    queue.add(pod("a"), 0.0)
    fail(queue, "Fit", now=0.0)
    queue.wake(BOTH, None, None, 1.0)
    fail(queue, now=1.0)
    queue.flush(9.0)
    fail(queue, "Fit", now=9.0)
    queue.flush(340.0)

    assert queue.incoming == {
        ("unschedulable", "UnschedulablePodAdd"): 1,
        ("active", "UnschedulablePodAdd"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 2,
        ("backoff", "NodeAdd"): 1,
        ("active", "PopFromBackoffQ"): 1,
        ("backoff", "ScheduleAttemptFailure"): 1,
        ("active", "BackoffComplete"): 1,
        ("unschedulable", "UnschedulableTimeout"): 1,
        ("active", "UnschedulableTimeout"): 1,
    }


def test_rejections_are_counted_by_plugin_and_profile_until_the_next_attempt() -> None:
    queue = make_queue()
    for name in ("a", "b"):
        queue.add(pod(name), 0.0)
    fail(queue, "Fit", now=0.0)
    fail(queue, "Fit", now=0.0, pending=frozenset({"Ports"}))
    assert queue.rejections() == {("Fit", PROFILE): 2, ("Ports", PROFILE): 1}

    queue.activate(pod("b").uid, 0.0)
    assert queue.rejections() == {("Fit", PROFILE): 2, ("Ports", PROFILE): 1}
    popped(queue, 0.0)
    assert queue.rejections() == {("Fit", PROFILE): 1}
