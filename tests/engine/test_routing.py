"""Which objects go where: to the cluster, into the queue, or nowhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moorage.engine.actions import BindPod, RecordEvent
from moorage.engine.events import Applied, Bound, Event, PodEnded, Removed, Unbound
from moorage.objects.workload import Namespace
from tests.builders import node, pod
from tests.engine.driver import bindings, driver, notes, only

DYING = {"deletionTimestamp": "2024-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("given", "queue", "cluster"),
    [
        pytest.param({}, "active", "", id="a pod without a node waits"),
        pytest.param({"node": "one"}, "nowhere", "one", id="one with a node is counted"),
        pytest.param({"node": "gone"}, "nowhere", "gone", id="even if nobody knows the node"),
        pytest.param(
            {"spec": {"schedulerName": "other"}}, "nowhere", "", id="that of another scheduler"
        ),
        pytest.param(
            {"node": "one", "spec": {"schedulerName": "other"}},
            "nowhere",
            "one",
            id="whoever placed it",
        ),
        pytest.param({"status": {"phase": "Succeeded"}}, "nowhere", "", id="finished"),
        pytest.param(
            {"node": "one", "status": {"phase": "Failed"}}, "nowhere", "", id="finished on a node"
        ),
        pytest.param(
            {"spec": {"schedulingGates": [{"name": "g"}]}}, "gated", "", id="behind a gate"
        ),
    ],
)
def test_a_new_pod(given: dict[str, Any], queue: str, cluster: str) -> None:
    run = driver(node("one"), pod("p", **given))

    assert (run.place("p"), run.node_of("p")) == (queue, cluster)


def test_a_pod_that_finishes_gives_its_room_back() -> None:
    run = driver(node("one", cpu=1), pod("old", node="one", cpu=1), pod("new", cpu=1))
    assert bindings(run.step()) == {}

    run.apply(pod("old", node="one", cpu=1, status={"phase": "Succeeded"}))
    assert run.node_of("old") == ""
    run.now += 2
    assert bindings(run.step()) == {"new": "one"}


def test_a_pod_that_somebody_else_binds_leaves_the_queue() -> None:
    run = driver(node("one"), pod("p"))
    run.apply(pod("p", node="one"))

    assert (run.place("p"), run.node_of("p")) == ("nowhere", "one")
    assert run.step() == []


def test_a_deleted_pod_leaves_the_queue() -> None:
    run = driver(node("one"), pod("p"))
    run.remove(pod("p"))

    assert run.place("p") == "nowhere"
    assert run.step() == []


def gone() -> tuple[Event, ...]:
    """As a list tells it after a gap: the pod was last told of without a node."""
    return (Removed(pod("short", cpu=4)),)


def finished() -> tuple[Event, ...]:
    return (Applied(pod("short", cpu=4, node="one", status={"phase": "Succeeded"})),)


def replaced() -> tuple[Event, ...]:
    another = {"uid": "another"}
    return Removed(pod("short", cpu=4)), Applied(pod("short", cpu=4, node="one", metadata=another))


def asked_for() -> tuple[Event, ...]:
    return (PodEnded("default/short"),)


@pytest.mark.parametrize("told", [gone, finished, asked_for])
@pytest.mark.parametrize("is_bound", [True, False], ids=["bound", "on its way"])
def test_a_pod_that_ends_before_its_node_was_told_gives_its_room_back(
    told: Callable[[], tuple[Event, ...]], is_bound: bool
) -> None:
    run = driver(node("one"), pod("short", cpu=4), pod("next", cpu=4))
    assert bindings(run.step(8)) == {"short": "one"}
    if is_bound:
        run.tell(Bound("default/short"))

    for event in told():
        run.tell(event)

    if told is asked_for and not is_bound:
        # Its binding is under way and will tell.
        assert run.node_of("short") == "one"
        return
    assert run.node_of("short") == ""
    run.now += 60
    assert bindings(run.step(8)) == {"next": "one"}


def test_a_pod_that_is_replaced_by_another_of_its_name() -> None:
    run = driver(node("one"), pod("short", cpu=4))
    run.step()
    run.tell(Bound("default/short"))

    for event in replaced():
        run.tell(event)

    assert [*run.engine.cluster.pods] == ["another"]


def test_a_bound_pod_without_a_node_is_tried_again() -> None:
    run = driver(node("one"), pod("lost", cpu=4))
    run.step()
    run.tell(Bound("default/lost"))

    run.tell(Unbound("default/lost"))

    assert (run.node_of("lost"), run.place("lost")) == ("", "active")
    assert bindings(run.step(8)) == {"lost": "one"}


def test_nothing_ends_that_is_known_to_run() -> None:
    run = driver(node("one"), pod("runs", node="one", cpu=4))

    run.tell(PodEnded("default/runs"))
    run.tell(Unbound("default/runs"))
    run.tell(PodEnded("nobody"))

    assert run.node_of("runs") == "one"


def test_an_unchanged_version_is_no_news() -> None:
    run = driver(node("one", cpu=1), pod("p", cpu=2, metadata={"resourceVersion": "7"}))
    run.step()
    assert run.place("p") == "unschedulable"

    run.apply(pod("p", metadata={"resourceVersion": "7"}))
    assert run.place("p") == "unschedulable"
    run.apply(pod("p", metadata={"resourceVersion": "8"}))
    assert run.place("p") != "unschedulable"


def test_a_terminating_pod_is_not_tried() -> None:
    run = driver(node("one"), pod("p", metadata=DYING))

    assert notes(run.step()) == ["skip schedule deleting pod: default/p"]
    assert run.place("p") == "nowhere"
    assert run.step() == []


def test_gates() -> None:
    run = driver(node("one"), pod("p", spec={"schedulingGates": [{"name": "g"}]}))
    assert run.step() == []

    run.apply(pod("p"))
    assert bindings(run.step()) == {"p": "one"}


def test_several_profiles_each_take_their_own() -> None:
    profiles = [{"schedulerName": name} for name in ("default-scheduler", "second")]
    run = driver(node("one"), profiles=profiles)
    run.apply(pod("p"), pod("q", spec={"schedulerName": "second"}))
    run.apply(pod("r", spec={"schedulerName": "third"}))
    taken = run.step(5)
    run.bind(taken)

    assert bindings(taken) == {"p": "one", "q": "one"}
    events = only(run.step(), RecordEvent)
    profiles_told = {event.pod.name: event.profile for event in events}
    assert profiles_told == {"p": "default-scheduler", "q": "second"}


def test_a_profile_has_its_own_plugins() -> None:
    profiles = [
        {"schedulerName": "default-scheduler"},
        {
            "schedulerName": "careless",
            "plugins": {"multiPoint": {"disabled": [{"name": "TaintToleration"}]}},
        },
    ]
    tainted = node("one", spec={"taints": [{"key": "k", "effect": "NoSchedule"}]})
    run = driver(tainted, profiles=profiles)
    run.apply(pod("p"), pod("q", spec={"schedulerName": "careless"}))

    assert bindings(run.step(5)) == {"q": "one"}


def test_a_recreated_pod_of_the_same_name_is_another_pod() -> None:
    run = driver(node("one"), pod("p", metadata={"uid": "first"}))
    run.remove(pod("p", metadata={"uid": "first"}))
    run.apply(pod("p", metadata={"uid": "second"}))
    (bound,) = only(run.step(5), BindPod)

    assert bound.pod.uid == "second"


def test_nodes_come_change_and_go() -> None:
    run = driver(pod("p", cpu=2))
    assert bindings(run.step()) == {}
    run.apply(node("one", cpu=1))
    run.now += 20
    assert bindings(run.step()) == {}
    run.apply(node("one", cpu=2))
    run.now += 20
    taken = run.step()
    assert bindings(taken) == {"p": "one"}
    run.bind(taken)

    run.remove(node("one"))
    run.apply(pod("q"))
    run.step()
    assert (run.place("q"), len(run.engine.cluster.nodes)) == ("error backoff", 0)


def test_what_surrounds_pods_is_known() -> None:
    run = driver(Namespace(name="shop", labels={"team": "a"}))
    assert run.engine.cluster.nodes.workloads.namespace_labels("shop") == {"team": "a"}

    run.remove(Namespace(name="shop"))
    assert run.engine.cluster.nodes.workloads.namespace_labels("shop") == {}


def test_the_next_step_is_when_something_can_happen() -> None:
    run = driver(node("one", cpu=1))
    assert run.engine.next_step(run.now) is None
    run.apply(pod("p"))
    assert run.engine.next_step(run.now) == run.now
    run.settle()
    run.apply(pod("q", cpu=5))
    run.settle()
    moment = run.engine.next_step(run.now)
    assert moment is not None
    assert run.now + 300 <= moment <= run.now + 330
