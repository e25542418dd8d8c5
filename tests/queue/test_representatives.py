"""Of like pods that fail alike, one is woken for all; another follows unless it fails again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import pytest

from moorage.framework.status import unresolvable
from moorage.framework.wakeups import Action, Resource, on
from moorage.objects.pod import Pod
from moorage.queue import Entity, FailedAttempt, Queue
from tests.builders import pod
from tests.queue.driver import BOTH, PORTS_ONLY, PROFILE, drained, make_queue, places, popped

ALIKE = on(Resource.NODE, Action.ADD, lambda *_: True, alike=True)
#: Long after every backoff.
LATER = 100.0
NAMES = "abcd"


def never(of: Pod, old: Any, new: Any) -> bool:
    return False


def return_failed(
    queue: Queue, queued: Entity, now: float, *rejectors: str, alike: Hashable = "alike"
) -> None:
    attempt = FailedAttempt(frozenset(rejectors or ("Fit",)), alike=alike)
    queue.give_back(queued, pod=queued.pod, attempt=attempt, now=now)


def waiting(alike: Hashable = "alike", **options: Any) -> Queue:
    """A queue in which like pods wait, each of which came and failed a second after the last."""
    wakeups = {"Fit": (ALIKE,), "Ports": (on(Resource.POD, Action.DELETE, never, alike=True),)}
    queue = make_queue(wakeups={PROFILE: wakeups}, **options)
    for now, name in enumerate(NAMES):
        queue.add(pod(name), float(now))
        return_failed(queue, popped(queue, float(now)), float(now), alike=alike)
    return queue


def waiting_names(queue: Queue) -> str:
    return "".join(sorted(name for name, at in places(queue).items() if at == "unschedulable"))


def test_one_is_woken_for_all_and_where_it_fails_the_others_go_on_waiting() -> None:
    queue = waiting()
    queue.wake(BOTH, None, None, LATER)
    assert waiting_names(queue) == "bcd"
    return_failed(queue, popped(queue, LATER), LATER)
    assert waiting_names(queue) == NAMES
    assert queue.next_flush(LATER) != LATER
    queue.wake(BOTH, None, None, LATER)
    # The first one backs off, so that it is the turn of the next.
    assert drained(queue, LATER)[0] == "b"


def test_a_second_event_does_not_wake_another_one_while_the_first_has_not_been_tried() -> None:
    queue = waiting()
    queue.wake(BOTH, None, None, LATER)
    queue.wake(BOTH, None, None, LATER)
    assert waiting_names(queue) == "bcd"
    popped(queue, LATER)
    queue.wake(BOTH, None, None, LATER)
    assert waiting_names(queue) == "cd", "what happens from here on, the first one does not see"


@pytest.mark.parametrize(("now", "first"), [(LATER, "a"), (1.0, "b")])
def test_it_is_the_one_that_would_be_tried_first(now: float, first: str) -> None:
    queue = make_queue(wakeups={PROFILE: {"Fit": (ALIKE,)}})
    for name in "aab":
        # The first one, which is the oldest, fails twice: its backoff ends later than the other's.
        queue.add(pod(name), 0.0)
        queue.activate(pod(name).uid, 0.0)
        return_failed(queue, popped(queue, 0.0), 0.0)
    queue.wake(BOTH, None, None, now)
    assert waiting_names(queue) == {"a": "b", "b": "a"}[first]


def place(queue: Queue, queued: Entity) -> None:
    queue.done(queued.pod.uid)


def fail_for_another_reason(queue: Queue, queued: Entity) -> None:
    return_failed(queue, queued, LATER, "Fit", "Ports")


def fail_like_others(queue: Queue, queued: Entity) -> None:
    return_failed(queue, queued, LATER, alike="otherwise")


def fail_alone(queue: Queue, queued: Entity) -> None:
    return_failed(queue, queued, LATER, alike=None)


def put_back(queue: Queue, queued: Entity) -> None:
    queue.put_back(queued, pod=queued.pod, now=LATER)


@pytest.mark.parametrize(
    "end", [place, fail_for_another_reason, fail_like_others, fail_alone, put_back]
)
def test_however_else_its_attempt_ends_the_next_one_follows(
    end: Callable[[Queue, Entity], None],
) -> None:
    queue = waiting()
    queue.wake(BOTH, None, None, LATER)
    end(queue, popped(queue, LATER))
    assert queue.next_flush(LATER) == LATER
    names = drained(queue, LATER)
    assert [name for name in names if name != "a"] == ["b", "c", "d"]


def test_another_one_follows_a_pod_that_is_deleted_or_replaced_before_it_was_tried() -> None:
    queue = waiting()
    queue.wake(BOTH, None, None, LATER)
    queue.delete(pod("a"))
    assert popped(queue, LATER).pod.name == "b"
    queue.wake(BOTH, None, None, LATER)
    queue.add(pod("c", metadata={"uid": "another"}), LATER)
    assert sorted(drained(queue, LATER)) == ["c", "d"]


def test_another_one_follows_a_pod_that_is_held_back() -> None:
    closed = False

    def hold(of: Pod, first: str) -> Any:
        return ("Gate", unresolvable("held")) if closed and of.name == "a" else None

    queue = waiting(admit=hold)
    closed = True
    queue.wake(BOTH, None, None, LATER)
    assert places(queue)["a"] == "gated"
    assert drained(queue, LATER) == ["b", "c", "d"]


def test_a_change_that_a_decision_may_see_ends_what_is_known_of_like_pods() -> None:
    queue = waiting()
    for name in NAMES:
        changed = pod(name, metadata={"annotations": {"of": name}})
        queue.update(pod(name), changed, LATER)
    queue.wake(BOTH, None, None, LATER)
    assert waiting_names(queue) == ""


def test_pods_of_which_nothing_is_known_are_all_woken() -> None:
    queue = waiting(alike=None)
    queue.wake(BOTH, None, None, LATER)
    assert waiting_names(queue) == ""


def test_an_event_for_some_pods_only_wakes_each_of_them() -> None:
    queue = waiting()
    queue.wake(BOTH, None, None, LATER, lambda of: of.name != "a")
    assert waiting_names(queue) == "a"


def test_hints_that_say_no_wake_nobody() -> None:
    queue = waiting()
    queue.wake(PORTS_ONLY, pod("x"), None, LATER)
    assert waiting_names(queue) == NAMES


def test_a_pod_that_changes_while_another_is_tried_for_it_is_tried_itself() -> None:
    queue = waiting()
    queue.wake(BOTH, None, None, LATER)
    queue.update(pod("c"), pod("c", metadata={"annotations": {"of": "c"}}), LATER)
    assert waiting_names(queue) == "bd"
