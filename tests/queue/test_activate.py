"""Pods that are made active by force."""

from __future__ import annotations

from tests.builders import pod
from tests.queue.driver import BOTH, fail, give_back, make_queue, places, popped


def test_unschedulable_and_backing_off_pods_become_active_whatever_their_backoff() -> None:
    queue = make_queue()
    pods = [pod(name) for name in ("unschedulable", "backoff", "errors")]
    for each in pods:
        queue.add(each, 0.0)
    unschedulable, backing = popped(queue, 0.0), popped(queue, 0.0)
    queue.wake(BOTH, None, None, 0.0)
    give_back(queue, backing, "Fit", now=0.0)
    queue.done(unschedulable.pod.uid)
    queue.delete(pods[0])
    fail(queue, now=0.0)
    queue.add(pods[0], 0.0)
    fail(queue, "Fit", now=0.0)
    assert places(queue) == {
        "unschedulable": "unschedulable",
        "backoff": "backoff",
        "errors": "error backoff",
    }

    for each in pods:
        queue.activate(each.uid, 0.0)

    assert set(places(queue).values()) == {"active"}
    assert queue.incoming["active", "ForceActivate"] == 3


def test_a_gated_pod_stays_gated() -> None:
    queue = make_queue()
    held = pod("a", labels={"held": "Gate"})
    queue.add(held, 0.0)
    queue.activate(held.uid, 1.0)

    assert places(queue) == {"a": "gated"}


def test_a_pod_in_flight_is_tried_again_on_return_and_no_other() -> None:
    queue = make_queue()
    for name in ("meant", "other"):
        queue.add(pod(name), 0.0)
    meant, other = popped(queue, 0.0), popped(queue, 0.0)
    queue.activate(pod("meant").uid, 0.0)

    give_back(queue, meant, "Fit", now=1.0)
    give_back(queue, other, "Fit", now=1.0)

    assert places(queue) == {"meant": "backoff", "other": "unschedulable"}


def test_unknown_and_active_pods_are_left_alone() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    for name in ("a", "unknown"):
        queue.activate(pod(name).uid, 1.0)

    assert places(queue) == {"a": "active"}
    assert queue.incoming["active", "ForceActivate"] == 0
