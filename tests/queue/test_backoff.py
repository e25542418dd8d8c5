"""How long a failed pod is left alone."""

from __future__ import annotations

import pytest

from moorage.queue import Backoff
from tests.builders import pod
from tests.queue.driver import BOTH, drained, fail, make_queue, places, ranked


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (5000, 10)]
)
def test_backoff_doubles_up_to_its_maximum(failures: int, seconds: float) -> None:
    assert Backoff().seconds(failures) == seconds


@pytest.mark.parametrize(
    ("failed_at", "asked_at", "backs_off"),
    [
        pytest.param(5.0, 6.9, True, id="the second of the expiry is not over"),
        pytest.param(5.0, 7.0, False, id="it is"),
        pytest.param(5.9, 6.99, True, id="the expiry is cut to whole seconds"),
        pytest.param(5.9, 7.0, False, id="so that it ends earlier than a second"),
    ],
)
def test_backoff_ends_with_the_second_of_its_expiry(
    failed_at: float, asked_at: float, backs_off: bool
) -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    fail(queue, now=0.0, at=failed_at)
    queue.flush(asked_at)

    assert places(queue) == {"a": "error backoff" if backs_off else "active"}


def test_a_maximum_of_zero_is_no_backoff() -> None:
    queue = make_queue(backoff=Backoff(maximum=0.0))
    queue.add(pod("a"), 0.0)
    fail(queue, "Fit", now=0.0)
    queue.wake(BOTH, None, None, 0.0)
    assert places(queue) == {"a": "active"}

    fail(queue, now=0.0)
    assert places(queue) == {"a": "active"}


def test_errors_and_rejections_are_counted_apart() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    counts = []
    for moment, rejectors in ((100.0, ()), (200.0, ()), (300.0, ("Fit",)), (900.0, ())):
        queued = fail(queue, *rejectors, now=moment)
        queue.wake(BOTH, None, None, moment + 50.0)
        counts.append((queued.consecutive_errors, queued.unschedulable_count, queued.expiry))

    assert counts == [(1, 0, 101), (2, 0, 202), (0, 1, 301), (1, 1, 901)]


def test_the_backoff_queue_is_ordered_by_expiry_then_by_the_sort_key() -> None:
    queue = make_queue()
    for name, priority in (("low", 1), ("high", 3), ("early", 0)):
        queue.add(ranked(name, priority), 0.0)
    fail(queue, "Fit", now=0.0, at=5.2)
    fail(queue, "Fit", now=0.0, at=5.0)
    fail(queue, "Fit", now=0.0, at=3.0)
    queue.wake(BOTH, None, None, 4.0)
    assert set(places(queue).values()) == {"backoff"}

    assert drained(queue, 4.0) == ["early", "high", "low"]


def test_a_rejected_pod_is_popped_early_when_nothing_is_active() -> None:
    queue = make_queue()
    queue.add(pod("rejected"), 0.0)
    fail(queue, "Fit", now=0.0)
    queue.wake(BOTH, None, None, 0.0)
    queue.add(pod("active"), 0.0)

    assert drained(queue, 0.0) == ["active", "rejected"]


def test_a_pod_that_met_an_error_is_never_popped_early() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    fail(queue, now=0.0)

    assert drained(queue, 1.99) == []
    assert drained(queue, 2.0) == ["a"]


def test_without_early_pops_the_backoff_is_waited_for() -> None:
    queue = make_queue(backoff=Backoff(pops_early=False))
    queue.add(pod("a"), 0.0)
    fail(queue, "Fit", now=0.0)
    queue.wake(BOTH, None, None, 0.0)

    assert queue.next_flush(0.0) == 2.0
    assert drained(queue, 1.99) == []
    assert drained(queue, 2.0) == ["a"]
