"""Changes of pods that have no node yet."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.framework.wakeups import Action, Resource, Wakeup, on
from moorage.objects.pod import Pod
from moorage.queue import FailedAttempt
from tests.builders import pod
from tests.queue.driver import (
    BOTH,
    PROFILE,
    drained,
    fail,
    give_back,
    make_queue,
    places,
    popped,
    ranked,
)

PLAIN, LABELLED = pod("a"), pod("a", labels={"app": "web"})
WAKEUPS = {
    PROFILE: {
        "Labels": (on(Resource.POD, Action.UPDATE_POD_LABEL, lambda of, old, new: of is new),),
        "Anything": (on(Resource.POD, Action.UPDATE),),
        "Nodes": (on(Resource.NODE, Action.ADD),),
    }
}


def test_an_unknown_pod_becomes_active() -> None:
    queue = make_queue()
    queue.update(PLAIN, LABELLED, 3.0)

    assert places(queue) == {"a": "active"}
    assert [each.pod for each in queue] == [LABELLED]
    assert queue.incoming == {("active", "UnschedulablePodUpdate"): 1}


def test_an_active_pod_is_replaced_in_place_and_ordered_anew() -> None:
    queue = make_queue()
    queue.add(ranked("a", 1), 0.0)
    queue.add(ranked("b", 2), 0.0)
    queue.update(ranked("a", 1), ranked("a", 3), 5.0)

    assert [each.timestamp for each in queue] == [0.0, 0.0]
    assert drained(queue, 5.0) == ["a", "b"]


def test_a_pod_that_backs_off_stays_so_and_is_ordered_anew() -> None:
    queue = make_queue()
    queue.add(ranked("a", 1), 0.0)
    queue.add(ranked("b", 2), 0.0)
    for _ in range(2):
        fail(queue, "Fit", now=0.0)
    queue.wake(BOTH, None, None, 0.0)
    queue.update(ranked("a", 1), ranked("a", 3), 0.0)

    assert places(queue) == {"a": "backoff", "b": "backoff"}
    assert drained(queue, 0.0) == ["a", "b"]


@pytest.mark.parametrize(
    ("rejector", "new", "place"),
    [
        pytest.param("Labels", LABELLED, "active", id="what its rejector listens to"),
        pytest.param("Nodes", LABELLED, "unschedulable", id="what its rejector does not"),
        pytest.param("Labels", PLAIN, "unschedulable", id="nothing in particular"),
        pytest.param("Anything", PLAIN, "active", id="nothing in particular, but it hears all"),
    ],
)
def test_an_unschedulable_pod_is_woken_by(rejector: str, new: Pod, place: str) -> None:
    queue = make_queue(wakeups=WAKEUPS)
    queue.add(PLAIN, 0.0)
    fail(queue, rejector, now=0.0)
    queue.update(PLAIN, new, 5.0)

    assert places(queue) == {"a": place}
    assert [each.pod for each in queue] == [new]


def test_a_woken_pod_backs_off_first() -> None:
    queue = make_queue(wakeups=WAKEUPS)
    queue.add(PLAIN, 0.0)
    fail(queue, "Labels", now=0.0)
    queue.update(PLAIN, LABELLED, 1.0)

    assert places(queue) == {"a": "backoff"}
    assert queue.incoming["backoff", "UnschedulablePodUpdatePodLabel"] == 1


def test_a_pod_in_flight_hears_of_its_change_on_return() -> None:
    queue = make_queue(wakeups=WAKEUPS)
    queue.add(PLAIN, 0.0)
    queued = popped(queue, 0.0)
    queue.update(PLAIN, LABELLED, 1.0)
    assert places(queue) == {"a": "in flight"}
    assert queued.pod is PLAIN

    attempt = FailedAttempt(frozenset({"Labels"}))
    queue.give_back(queued, pod=LABELLED, attempt=attempt, now=2.0)

    assert places(queue) == {"a": "backoff"}


def test_a_change_of_a_pod_in_flight_that_nobody_listens_to_wakes_nothing() -> None:
    queue = make_queue(wakeups=WAKEUPS)
    queue.add(PLAIN, 0.0)
    queued = popped(queue, 0.0)
    queue.update(PLAIN, LABELLED, 1.0)
    give_back(queue, queued, "Nodes", now=2.0)

    assert places(queue) == {"a": "unschedulable"}


def test_each_change_is_told_until_one_wakes_the_pod() -> None:
    told: list[str] = []

    def telling(name: str, wakes: bool) -> Wakeup:
        def asked(of: Pod, old: Any, new: Any) -> bool:
            told.append(name)
            return wakes

        return on(Resource.POD, Action[name], asked)

    names = {
        "UPDATE_POD_LABEL": False,
        "UPDATE_POD_SCALE_DOWN": True,
        "UPDATE_POD_TOLERATION": True,
    }
    hints = tuple(telling(name, wakes) for name, wakes in names.items())
    queue = make_queue(wakeups={PROFILE: {"All": hints}})
    old = pod("a", cpu=2)
    queue.add(old, 0.0)
    fail(queue, "All", now=0.0)
    tolerant = {"tolerations": [{"operator": "Exists"}]}
    queue.update(old, pod("a", cpu=1, labels={"app": "web"}, spec=tolerant), 9.0)

    assert told == ["UPDATE_POD_LABEL", "UPDATE_POD_SCALE_DOWN"]
    assert places(queue) == {"a": "active"}
