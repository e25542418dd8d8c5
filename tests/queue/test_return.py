"""What becomes of a failed pod: it hears what happened while it was in flight."""

from __future__ import annotations

import pytest

from moorage.framework.wakeups import ClusterEvent
from moorage.queue import FailedAttempt
from moorage.queue.entity import Entity
from moorage.queue.queue_events import InFlight, QueueEvent
from tests.builders import pod
from tests.queue.driver import (
    BOTH,
    NONE,
    PORTS_ONLY,
    PROFILE,
    UNHEARD,
    give_back,
    make_queue,
    places,
    popped,
)

FIT, PORTS = frozenset({"Fit"}), frozenset({"Ports"})


@pytest.mark.parametrize(
    ("events", "rejectors", "pending", "place"),
    [
        pytest.param([], NONE, NONE, "error backoff", id="no rejector: after backoff"),
        pytest.param([], FIT, NONE, "unschedulable", id="nothing happened"),
        pytest.param([BOTH], FIT, NONE, "backoff", id="its event happened"),
        pytest.param([PORTS_ONLY], FIT, NONE, "unschedulable", id="another's event happened"),
        pytest.param([UNHEARD], FIT, NONE, "unschedulable", id="an event without listeners"),
        pytest.param([BOTH], NONE, FIT, "active", id="a pending plugin agrees: at once"),
        pytest.param([BOTH], FIT, PORTS, "active", id="at once beats after backoff"),
        pytest.param([BOTH, PORTS_ONLY], FIT | PORTS, NONE, "backoff", id="two events"),
        pytest.param([PORTS_ONLY], PORTS, FIT, "backoff", id="only the one not pending agrees"),
    ],
)
def test_a_failed_pod_hears_what_it_missed(
    events: list[ClusterEvent], rejectors: frozenset[str], pending: frozenset[str], place: str
) -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    queue.wake(BOTH, None, None, 0.0)
    queued = popped(queue, 0.0)
    for event in events:
        queue.wake(event, None, None, 0.5)

    give_back(queue, queued, *rejectors, pending=pending, now=1.0)

    assert places(queue) == {"a": place}


def test_later_events_are_heard_when_a_pending_plugin_may_still_agree() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    queued = popped(queue, 0.0)
    queue.wake(PORTS_ONLY, None, None, 0.5)
    queue.wake(BOTH, None, None, 0.5)

    give_back(queue, queued, "Ports", pending=FIT, now=1.0)

    assert places(queue) == {"a": "active"}


def test_a_pod_hears_only_what_happened_since_its_own_pop() -> None:
    queue = make_queue()
    for name in ("first", "second"):
        queue.add(pod(name), 0.0)
    first = popped(queue, 0.0)
    queue.wake(BOTH, None, None, 0.0)
    second = popped(queue, 0.0)

    give_back(queue, second, "Fit", now=1.0)
    give_back(queue, first, "Fit", now=1.0)

    assert places(queue) == {"first": "backoff", "second": "unschedulable"}


def test_a_pod_that_is_done_comes_back_after_backoff() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    queued = popped(queue, 0.0)
    queue.done(queued.pod.uid)
    assert places(queue) == {}

    give_back(queue, queued, "Fit", now=1.0)

    assert places(queue) == {"a": "backoff"}


def test_the_fresh_object_is_queued() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    queued = popped(queue, 0.0)
    fresh = pod("a", labels={"fresh": "yes"})
    queue.give_back(queued, pod=fresh, attempt=FailedAttempt(FIT), now=1.0)

    assert [each.pod for each in queue] == [fresh]


def test_what_no_pod_in_flight_needs_is_forgotten() -> None:
    flight = InFlight()
    first, second = (Entity(name, pod(name), 0.0, 0) for name in ("first", "second"))
    one, two = (QueueEvent(event, None, None, {PROFILE: {}}) for event in (BOTH, PORTS_ONLY))
    remembered = []

    flight.record(one)
    remembered.append(flight.remembered)
    flight.start(first)
    flight.record(one)
    flight.start(second)
    flight.record(two)
    remembered.append(flight.remembered)
    missed = [flight.end(first.key)]
    remembered.append(flight.remembered)
    missed.append(flight.end(second.key))
    remembered.append(flight.remembered)

    assert remembered == [(), (one, two), (two,), ()]
    assert missed == [(one, two), (two,)]
    assert flight.end(second.key) is None
