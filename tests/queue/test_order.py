"""Which pod comes first, and what is remembered of it."""

from __future__ import annotations

import hypothesis.strategies as st
import msgspec
from hypothesis import given

from moorage.queue.entity import Entity, EntityKey
from moorage.queue.entity_heap import EntityHeap
from tests.builders import pod
from tests.queue.driver import drained, fail, give_back, make_queue, places, popped, ranked


def test_higher_priority_comes_first_then_the_earlier_timestamp() -> None:
    queue = make_queue()
    queue.add(ranked("late", 5), 2.0)
    queue.add(ranked("early", 5), 1.0)
    queue.add(pod("no-priority"), 0.0)
    queue.add(ranked("high", 9), 3.0)
    queue.add(ranked("negative", -1), 0.0)

    assert drained(queue, 4.0) == ["high", "early", "late", "no-priority", "negative"]


def test_equal_keys_keep_their_order_of_arrival() -> None:
    queue = make_queue()
    names = ["c", "a", "d", "b"]
    for name in names:
        queue.add(pod(name), 1.0)

    assert drained(queue, 1.0) == names


def test_the_timestamp_is_refreshed_when_a_failed_pod_returns() -> None:
    queue = make_queue()
    queue.add(pod("a"), 1.0)
    queued = fail(queue, "Fit", now=2.0, at=3.5)

    assert (queued.timestamp, queued.attempts) == (3.5, 1)


def test_pods_that_return_at_once_are_ordered_by_their_return() -> None:
    queue = make_queue()
    for name in ("a", "b"):
        queue.add(pod(name), 1.0)
    for queued in [popped(queue, 1.0), popped(queue, 1.0)][::-1]:
        give_back(queue, queued, "Fit", now=2.0)
    for name in ("a", "b"):
        queue.activate(pod(name).uid, 2.0)

    assert drained(queue, 2.0) == ["b", "a"]


def test_the_initial_attempt_is_the_first_admission() -> None:
    queue = make_queue()
    held = pod("a", labels={"held": "Gate"})
    queue.add(held, 1.0)
    queued = queue.get(held.uid)
    assert queued is not None
    moments = [queued.initial_attempt]
    queue.update(held, pod("a"), 7.0)
    moments.append(queued.initial_attempt)
    fail(queue, "Fit", now=8.0)
    queue.activate(pod("a").uid, 9.0)
    moments.append(queued.initial_attempt)

    assert moments == [None, 7.0, 7.0]


def test_verdicts_are_forgotten_when_a_pod_is_popped() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    fail(queue, "Fit", now=0.0, pending=frozenset({"Ports"}))
    queue.activate(pod("a").uid, 1.0)

    queued = popped(queue, 1.0)

    assert (queued.waking_plugins, queued.attempts, queued.unschedulable_count) == (
        frozenset(),
        2,
        1,
    )


def test_a_recreated_pod_replaces_the_older_of_its_name() -> None:
    queue = make_queue()
    old = pod("a")
    new = msgspec.structs.replace(old, uid="another")
    queue.add(old, 0.0)
    fail(queue, "Fit", now=0.0)
    queue.add(new, 1.0)

    assert places(queue) == {"a": "active"}
    assert old.uid not in queue
    queue.delete(old)
    assert "another" in queue


def test_an_update_to_another_uid_is_a_new_pod() -> None:
    queue = make_queue()
    old = pod("a")
    queue.add(old, 0.0)
    fail(queue, "Fit", now=0.0)
    queue.update(old, msgspec.structs.replace(old, uid="another"), 1.0)

    queued = popped(queue, 1.0)

    assert (queued.pod.uid, queued.attempts, len(queue)) == ("another", 1, 0)


def test_a_pod_whose_name_is_taken_by_another_is_not_taken_back() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    queued = popped(queue, 0.0)
    queue.add(msgspec.structs.replace(pod("a"), uid="another"), 1.0)

    give_back(queue, queued, "Fit", now=2.0)

    assert [each.pod.uid for each in queue] == ["another"]
    assert not queue.in_flight


def test_adding_a_known_pod_is_an_update() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    queue.add(ranked("a", 7), 1.0)
    assert [each.pod.priority for each in queue] == [7]

    popped(queue, 1.0)
    queue.add(pod("a"), 2.0)
    assert places(queue) == {"a": "in flight"}


def test_a_heap_forgets_the_items_of_removed_pods() -> None:
    heap = EntityHeap()
    waiting = [Entity(f"p{number}", pod("p"), 0.0, number) for number in range(1000)]
    for queued in waiting:
        heap.push(queued, 0)
    for queued in waiting[:-1]:
        heap.remove(queued.key)

    assert len(heap._items) < 100
    assert heap.head() is waiting[-1]


@given(st.lists(st.one_of(st.integers(0, 9), st.sampled_from(["pop", "remove"])), max_size=60))
def test_pods_leave_by_key_and_arrival_whichever_way_they_came(doings: list[int | str]) -> None:
    heap, waiting = EntityHeap(), dict[EntityKey, tuple[int, int]]()
    for arrival, doing in enumerate(doings):
        first = min(waiting, key=waiting.__getitem__, default=None)
        if doing == "pop":
            queued = heap.pop()
            assert (queued and queued.key) == first
            waiting.pop(first or "", None)
        elif doing == "remove" and waiting:
            heap.remove(waiting.popitem()[0])
        elif isinstance(doing, int):
            queued = Entity(f"p{arrival}", pod("p"), 0.0, arrival)
            heap.push(queued, doing)
            waiting[queued.key] = doing, arrival
    assert {key for key in waiting if key in heap} == waiting.keys()
    assert len(heap) == len(waiting)


def test_a_deleted_pod_is_gone_from_wherever_it_waits() -> None:
    queue = make_queue()
    for name in ("backoff", "parked", "active"):
        queue.add(pod(name), 0.0)
    fail(queue, now=0.0)
    fail(queue, "Fit", now=0.0)
    queue.add(pod("gated", labels={"held": "Gate"}), 0.0)
    assert len(queue) == 4

    for name in ("backoff", "parked", "active", "gated", "unknown"):
        queue.delete(pod(name))

    assert places(queue) == {}
    assert queue.next_flush(0.0) is None
