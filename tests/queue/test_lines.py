"""Woken pods that are alike to decisions are tried one after another."""

from __future__ import annotations

from collections.abc import Hashable

import pytest
from msgspec import structs

from mooring.framework.status import unresolvable
from mooring.framework.wakeups import Action, Resource, Topics, on
from mooring.objects.pod import Pod
from mooring.queue import FailedAttempt, Queue, QueuedPod
from tests.builders import pod
from tests.queue.driver import BOTH, PROFILE, fail, make_queue, places, popped

SPEC = pod("any").spec
LATER = 100.0


def like_pods(*names: str, like: Hashable = "like", **given: str) -> Queue:
    """A queue in which pods wait that failed as all pods like them would."""
    queue = make_queue()
    for name in names:
        queue.add(structs.replace(pod(name, **given), spec=SPEC), 0.0)
        give_back(queue, popped(queue, 0.0), now=0.0, like=like)
    return queue


def give_back(queue: Queue, queued: QueuedPod, *, now: float, like: Hashable = "like") -> None:
    attempt = FailedAttempt(frozenset({"Fit"}), like=like)
    queue.give_back(queued, pod=queued.pod, attempt=attempt, now=now)


def active(queue: Queue) -> list[str]:
    return [name for name, place in places(queue).items() if place == "active"]


def test_one_of_many_is_woken() -> None:
    queue = like_pods("a", "b", "c")
    queue.wake(BOTH, None, None, LATER)

    assert active(queue) == ["a"]


def test_the_next_one_comes_when_the_first_is_placed() -> None:
    queue = like_pods("a", "b", "c")
    queue.wake(BOTH, None, None, LATER)
    for name, following in (("a", ["b"]), ("b", ["c"]), ("c", [])):
        queued = popped(queue, LATER)
        assert queued.pod.name == name
        queue.done(queued.pod.uid)
        assert active(queue) == following


def test_the_others_go_on_waiting_when_the_first_fails_as_they_would() -> None:
    queue = like_pods("a", "b")
    queue.wake(BOTH, None, None, LATER)
    give_back(queue, popped(queue, LATER), now=LATER)

    assert places(queue) == {"a": "unschedulable", "b": "unschedulable"}


def test_the_next_event_wakes_the_one_that_was_not_tried_lately() -> None:
    queue = like_pods("a", "b")
    queue.wake(BOTH, None, None, LATER)
    give_back(queue, popped(queue, LATER), now=LATER)
    queue.wake(BOTH, None, None, LATER)

    assert active(queue) == ["b"]


@pytest.mark.parametrize("like", [None, "another"])
def test_the_next_one_comes_when_the_first_fails_for_a_reason_of_its_own(like: Hashable) -> None:
    queue = like_pods("a", "b")
    queue.wake(BOTH, None, None, LATER)
    give_back(queue, popped(queue, LATER), now=LATER, like=like)

    assert places(queue) == {"a": "unschedulable", "b": "active"}


def test_the_next_one_comes_when_something_happened_while_the_first_was_tried() -> None:
    queue = like_pods("a", "b")
    queue.wake(BOTH, None, None, LATER)
    first = popped(queue, LATER)
    queue.wake(BOTH, None, None, LATER)
    give_back(queue, first, now=LATER)

    assert places(queue) == {"a": "backoff", "b": "active"}


def test_the_next_one_comes_when_the_first_is_deleted_or_replaced() -> None:
    queue = like_pods("a", "b", "c")
    queue.wake(BOTH, None, None, LATER)
    queue.delete(pod("a"))
    assert active(queue) == ["b"]

    queue.add(structs.replace(pod("b"), uid="newer"), LATER)
    assert sorted(active(queue)) == ["b", "c"]


def test_the_next_one_comes_when_the_first_is_held_back() -> None:
    queue = make_queue(
        admit=lambda of, first: (
            ("Gate", unresolvable("held")) if of.name == "a" and of.labels else None
        )
    )
    for name in ("a", "b"):
        queue.add(structs.replace(pod(name), spec=SPEC), 0.0)
        give_back(queue, popped(queue, 0.0), now=0.0)
    for queued in list(queue):
        queue._places.replace(queued, structs.replace(queued.pod, labels={"held": "now"}))
    queue.wake(BOTH, None, None, LATER)

    assert places(queue) == {"a": "gated", "b": "active"}


def test_pods_of_several_templates_are_in_one_line_if_decisions_tell_them_alike() -> None:
    queue = make_queue()
    for name, cpu in (("a", 1), ("b", 2)):
        queue.add(pod(name, cpu=cpu), 0.0)
        give_back(queue, popped(queue, 0.0), now=0.0)
    queue.wake(BOTH, None, None, LATER)
    assert active(queue) == ["a"]

    queue.done(popped(queue, LATER).pod.uid)
    assert active(queue) == ["b"]


def test_who_backs_off_does_not_hold_up_who_does_not() -> None:
    queue = make_queue()
    for name, cpu in (("tired", 1), ("fresh", 2)):
        queue.add(pod(name, cpu=cpu), 0.0)
    tired = popped(queue, 0.0)
    tired.unschedulable_count = 9
    give_back(queue, tired, now=0.0)
    give_back(queue, popped(queue, 0.0), now=0.0)
    queue.wake(BOTH, None, None, 3.0)

    assert places(queue) == {"tired": "backoff", "fresh": "active"}
    queue.done(popped(queue, 3.0).pod.uid)
    assert places(queue) == {"tired": "backoff"}


def test_a_pod_that_changed_is_no_longer_alike() -> None:
    queue = like_pods("a", "b")
    for name, notes in (("a", {}), ("b", {"disk": "fast"})):
        old = structs.replace(pod(name), spec=SPEC)
        queue.update(old, structs.replace(old, annotations=notes), 1.0)
    queue.wake(BOTH, None, None, LATER)

    assert sorted(active(queue)) == ["a", "b"]


def test_pods_that_no_topic_of_the_event_concerns_are_not_asked() -> None:
    asked: list[str] = []

    def hint(of: Pod, old: object, new: object) -> bool:
        asked.append(of.name)
        return True

    topics = Topics(lambda old, new: new, lambda of: [of.labels["wants"]] if of.labels else None)
    queue = make_queue(
        wakeups={PROFILE: {"Fit": (on(Resource.NODE, Action.ADD, hint, topics=topics),)}}
    )
    for name, labels in (("x", {"wants": "x"}), ("y", {"wants": "y"}), ("any", {})):
        queue.add(pod(name, labels=labels), 0.0)
        fail(queue, "Fit", now=0.0)

    queue.wake(BOTH, None, [], LATER)
    assert asked == []
    queue.wake(BOTH, None, ["y"], LATER)
    assert sorted(asked) == ["any", "y"]
    queue.wake(BOTH, None, None, LATER)
    assert sorted(asked) == ["any", "x", "y"]


def test_topics_that_break_concern_everybody() -> None:
    def explode(*args: object) -> list[str]:
        raise ValueError("broken topics")

    for topics in (Topics(explode, explode), Topics(lambda old, new: ["x"], explode)):
        queue = make_queue(
            wakeups={PROFILE: {"Fit": (on(Resource.NODE, Action.ADD, topics=topics),)}}
        )
        queue.add(pod("a"), 0.0)
        fail(queue, "Fit", now=0.0)
        queue.wake(BOTH, None, None, LATER)

        assert active(queue) == ["a"]


def test_who_is_no_longer_alike_is_tried_although_the_first_failed() -> None:
    queue = make_queue()
    queue.lines.is_like = lambda of, like: of.name != "b"
    for name, cpu in (("a", 1), ("b", 2), ("c", 3)):
        queue.add(pod(name, cpu=cpu), 0.0)
        give_back(queue, popped(queue, 0.0), now=0.0)
    queue.wake(BOTH, None, None, LATER)
    give_back(queue, popped(queue, LATER), now=LATER)

    assert places(queue) == {"a": "unschedulable", "b": "active", "c": "unschedulable"}
