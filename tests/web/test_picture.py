"""The picture: after every step, whoever applied all messages sees what a newcomer sees."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moorage.cluster import Cluster
from moorage.engine.events import Applied
from moorage.web import hub, queue_picture
from moorage.web.hub import Arrivals
from moorage.web.messages import Message, count_figures, encode_line
from moorage.web.picture import ABSENT, CORDONED, OPEN, Picture
from tests.builders import node, pod
from tests.engine.driver import Driver, driver, engines
from tests.engine.gangs import drive_gangs, gang, members
from tests.web.mirror import Mirror

T = TypeVar("T")

NAMES = ("a", "b", "c", "d")


def finished(steps: Generator[None, None, T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found


def advanced(picture: Picture, driven: Driver) -> Message:
    return finished(picture.advance(count_figures(driven.engine, 0.0, 0), []))


def anew(driven: Driver) -> dict[str, Any]:
    """What somebody sees who comes to look now."""
    picture, mirror = Picture(driven.engine, limited=False), Mirror()
    advanced(picture, driven)
    mirror.apply_all(map(encode_line, picture.everything(count_figures(driven.engine, 0.0, 0), [])))
    return mirror.seen()


def _put_node(driven: Driver, name: str, amount: int) -> None:
    cordoned = {"unschedulable": amount == 2}
    extra = {"gpu": amount} if amount else {}
    driven.apply(node(name, cpu=1 + amount, spec=cordoned, pods=3, **extra))


def _remove_node(driven: Driver, name: str, amount: int) -> None:
    driven.remove(node(name))


def _put_pod(driven: Driver, name: str, amount: int) -> None:
    if name in {key.removeprefix("default/") for key in driven.pods}:
        driven.remove(driven.pods[f"default/{name}"])
    else:
        gates = {"schedulingGates": [{"name": "later"}]} if amount == 3 else {}
        driven.apply(pod(name, cpu=amount, spec=gates))


def _decide(driven: Driver, name: str, amount: int) -> None:
    driven.bind(driven.step(amount))


def _decide_only(driven: Driver, name: str, amount: int) -> None:
    driven.step(1)


def _wait(driven: Driver, name: str, amount: int) -> None:
    driven.now += 40.0 * amount


HAPPENINGS = (_put_node, _remove_node, _put_pod, _put_pod, _decide, _decide_only, _wait)

story = st.lists(
    st.tuples(
        st.sampled_from(HAPPENINGS), st.sampled_from(NAMES), st.integers(0, 3), st.booleans()
    ),
    max_size=30,
)


@given(story)
def test_differences_add_up_to_a_fresh_picture(told: list[Any]) -> None:
    driven = driver()
    picture, mirror = Picture(driven.engine), Mirror()
    for happen, name, amount, looks in told:
        happen(driven, name, amount)
        if looks:
            mirror.apply_all([encode_line(advanced(picture, driven))])
            assert mirror.seen() == anew(driven)

    # Whoever joins now gets the same from what was told already.
    mirror.apply_all([encode_line(advanced(picture, driven))])
    late = Mirror()
    late.apply_all(map(encode_line, picture.everything(count_figures(driven.engine, 0.0, 0), [])))
    assert late.seen() == mirror.seen() == anew(driven)


def test_nodes_that_were_counted_anew_are_shown_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    driven = driver(*(node(name, cpu=cpu) for cpu, name in enumerate(NAMES, 1)))
    driven.remove(node("a"))
    picture, mirror = Picture(driven.engine), Mirror()
    mirror.apply_all([encode_line(advanced(picture, driven))])
    assert set(mirror.seen()["nodes"]) == {1, 2, 3}

    with monkeypatch.context() as failing:
        failing.setattr(Cluster, "put_pod", lambda *_: 1 // 0)
        driven.engine.handle(Applied(pod("x", node="b")), driven.now)
    engines.remove(driven.engine)
    mirror.apply_all([encode_line(advanced(picture, driven))])

    assert set(mirror.seen()["nodes"]) == {0, 1, 2}
    assert mirror.seen() == anew(driven)


def test_what_a_node_shows() -> None:
    driven = driver(
        node("full", cpu=2),
        node("closed", cpu=4, gpu=2, spec={"unschedulable": True}),
        pod("x", cpu="1500m", node="full"),
    )

    seen = anew(driven)

    assert seen["resources"] == ["cpu", "memory", "pods", "example.com/gpu"]
    assert seen["nodes"] == {
        0: ("full", OPEN, [750, 0, 9, ABSENT]),
        1: ("closed", CORDONED, [0, 0, 0, 0]),
    }


def test_what_all_nodes_have() -> None:
    driven = driver(node("a", cpu=2), node("b", cpu=4, gpu=2), pod("x", cpu="1500m", node="a"))

    assert anew(driven)["totals"][0] == [1500, 6000]
    driven.remove(node("b"))
    assert anew(driven)["totals"][0] == [1500, 2000]


def test_what_happens_is_told_once_and_by_owner() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    owned = {"ownerReferences": [owner]}
    low = pod("low", cpu=4, node="n")
    driven = driver(node("n", cpu=4), low, pod("before", cpu=9))
    driven.settle()
    picture, mirror = Picture(driven.engine), Mirror()
    mirror.apply_all([encode_line(advanced(picture, driven))])
    assert mirror.events == []

    driven.apply(*(pod(f"big-{at}", cpu=9, metadata=owned) for at in range(3)))
    driven.apply(pod("high", cpu=4, spec={"priority": 9}))
    driven.step(10)
    for _ in range(2):
        mirror.apply_all([encode_line(advanced(picture, driven))])

    found = {each["kind"]: each for each in mirror.events}
    assert len(mirror.events) == 2
    room = found["preempting"]
    assert (room["pod"], room["text"], room["victims"]) == ("default/high", "n", ["default/low"])
    assert room["victimCount"] == 1
    failed = found["failed"]
    assert (failed["owner"], failed["pod"]) == ("job default/j", "default/big-0")
    assert failed["count"] == 3
    assert failed["text"].startswith("0/1 nodes are available")


def test_whom_a_gang_evicts_is_told() -> None:
    low = [pod(f"low-{at}", cpu=1, node="n") for at in range(3)]
    driven = drive_gangs(node("n", cpu=3), *low)
    picture, mirror = Picture(driven.engine), Mirror()
    driven.apply(gang("train", 3, priority=9), *members("train", 3, cpu=1, spec={"priority": 9}))
    driven.step()
    mirror.apply_all([encode_line(advanced(picture, driven))])

    (room,) = [each for each in mirror.events if each["kind"] == "preempting"]
    assert (room["owner"], room["pod"]) == ("group default/train", "default/train")
    assert sorted(room["victims"]) == ["default/low-0", "default/low-1", "default/low-2"]


def test_a_pod_that_moves_in_the_queue_has_not_failed_again() -> None:
    driven = driver(node("n", cpu=4), pod("big", cpu=9))
    picture, mirror = Picture(driven.engine), Mirror()
    mirror.apply_all([encode_line(advanced(picture, driven))])
    driven.settle()
    mirror.apply_all([encode_line(advanced(picture, driven))])
    # More room, so that it is worth another try, after its backoff.
    driven.apply(node("m", cpu=12))
    mirror.apply_all([encode_line(advanced(picture, driven))])

    assert [each[1] for each in mirror.queue.values()] == ["backoff"]
    assert [each["kind"] for each in mirror.events] == ["failed"]


def test_pods_that_wait_name_owner_group_and_where_room_is_made() -> None:
    low, high = pod("low", cpu=4, node="n"), pod("high", cpu=4, spec={"priority": 9})
    driven = driver(node("n", cpu=4), low, high)
    driven.step()

    ((_, _, _, _, owner, group, nominated),) = anew(driven)["queue"]

    assert (owner, group, nominated) == ("pod default/high", "", "n")


def test_nothing_new_is_nothing_told() -> None:
    driven = driver(node("n"), pod("p", cpu=1))
    picture = Picture(driven.engine)
    advanced(picture, driven)

    message = advanced(picture, driven)

    assert (message.resources, message.nodes, message.queue) == (None, None, None)


def test_only_the_rows_that_changed_are_told() -> None:
    driven = driver(node("a", cpu=1), node("b", cpu=8), pod("p", cpu=2))
    picture, mirror = Picture(driven.engine), Mirror()
    mirror.apply_all([encode_line(advanced(picture, driven))])
    driven.settle()

    message = advanced(picture, driven)

    mirror.nodes.pop(0)
    mirror.apply_all([encode_line(message)])
    assert mirror.nodes == {1: ("b", OPEN, [250, 0, 9])}


@pytest.mark.parametrize(
    ("given_pod", "place", "reason"),
    [
        pytest.param(
            pod("p", cpu=9),
            "unschedulable",
            "0/1 nodes are available: 1 Insufficient cpu.",
            id="what the last attempt said",
        ),
        pytest.param(
            pod("p", spec={"schedulingGates": [{"name": "later"}]}),
            "gated",
            "SchedulingGates: waiting for scheduling gates: [later]",
            id="what holds it back",
        ),
    ],
)
def test_why_a_pod_waits(given_pod: Any, place: str, reason: str) -> None:
    driven = driver(node("n", cpu=1), given_pod)
    driven.settle()

    ((key, at, _, why, *_),) = anew(driven)["queue"]

    assert (key, at) == ("default/p", place)
    assert why.startswith(reason)


def test_another_attempt_is_told_though_it_ends_like_the_last() -> None:
    driven = driver(node("n", cpu=1), pod("p", cpu=9))
    driven.settle()
    picture, mirror = Picture(driven.engine), Mirror()
    mirror.apply_all([encode_line(advanced(picture, driven))])
    driven.now += 1000.0
    driven.settle()

    mirror.apply_all([encode_line(advanced(picture, driven))])

    ((_, place, attempts, *_),) = mirror.queue.values()
    assert (place, attempts) == ("unschedulable", 2)


def test_many_pods_are_told_in_several_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_picture, "SLICE", 2)
    driven = driver(*(pod(f"p{at}") for at in range(7)))
    told = queue_picture.WaitingPods(driven.engine, most_put=3)

    counts = []
    while (part := finished(told.differences(0.0))) is not None:
        counts.append(len(part.put))

    assert counts == [3, 3, 1]
    assert [len(part.put) for part in told.everything()] == [2, 2, 2, 1]


def test_a_pod_that_leaves_while_the_queue_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_picture, "SLICE", 1)
    driven = driver(node("n"), pod("first"), pod("second"))
    steps = queue_picture.WaitingPods(driven.engine).differences(0.0)
    next(steps)
    driven.settle()

    part = finished(steps)

    assert part is not None
    assert [put[1] for put in part.put] == ["default/first"]


def test_arrivals_are_the_pods_placed_since() -> None:
    driven = driver(node("n"), pod("before", node="n"))
    arrivals = Arrivals(driven.engine)
    driven.apply(pod("a"), pod("other", node="n", spec={"schedulerName": "another"}), pod("b"))
    driven.settle()

    assert [each.name for each in arrivals.take()] == ["b", "a"]
    assert arrivals.take() == []


@pytest.mark.parametrize(
    "leaving",
    [
        pytest.param(range(99, 100), id="the last one leaves"),
        pytest.param(range(30, 100), id="all that are remembered leave"),
    ],
)
def test_arrivals_do_not_repeat_when_pods_leave(
    leaving: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "_REMEMBERED", 8)
    driven = driver(node("n", pods=200), *(pod(f"p{at}", node="n") for at in range(100)))
    arrivals = Arrivals(driven.engine)
    for at in leaving:
        driven.remove(driven.pods[f"default/p{at}"])

    assert [each.name for each in arrivals.take()] == []
    driven.apply(pod("last", node="n"))
    assert [each.name for each in arrivals.take()] == ["last"]
