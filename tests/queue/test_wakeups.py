"""Which events wake which pods."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from moorage.framework.observe import Observer
from moorage.framework.wakeups import Action, ClusterEvent, Hint, Resource, Wakeup, on
from moorage.objects.pod import Pod
from tests.builders import pod
from tests.queue.driver import (
    BOTH,
    PORTS_ONLY,
    PROFILE,
    UNHEARD,
    fail,
    give_back,
    make_queue,
    places,
    popped,
)

NODE, CSI = Resource.NODE, Resource.CSI_NODE
TAINT = Action.UPDATE_NODE_TAINT


def refuse(of: Pod, old: Any, new: Any) -> bool:
    return False


def explode(of: Pod, old: Any, new: Any) -> bool:
    raise ValueError("broken hint")


def wakes(
    registered: tuple[Wakeup, ...],
    event: ClusterEvent,
    *,
    now: float = 9.0,
    pending: bool = False,
    new: Any = None,
) -> str:
    """Where a pod is after the event that was rejected by a plugin with these registrations."""
    queue = make_queue(wakeups={PROFILE: {"Plugin": registered}})
    queue.add(pod("a"), 0.0)
    plugin = frozenset({"Plugin"})
    fail(queue, *(() if pending else plugin), now=0.0, pending=plugin if pending else frozenset())
    queue.wake(event, None, new, now)
    return places(queue)["a"]


@pytest.mark.parametrize(
    ("registered", "resource", "action", "woken"),
    [
        pytest.param((NODE, Action.ADD), NODE, Action.ADD, True, id="the same"),
        pytest.param((NODE, Action.ADD), NODE, Action.DELETE, False, id="another action"),
        pytest.param((NODE, Action.ADD), CSI, Action.ADD, False, id="another resource"),
        pytest.param(
            (NODE, Action.ADD | Action.DELETE), NODE, Action.DELETE, True, id="one of two"
        ),
        pytest.param(
            (Resource.POD, Action.ADD), Resource.ASSIGNED_POD, Action.ADD, True, id="assigned pods"
        ),
        pytest.param(
            (Resource.POD, Action.ADD), Resource.UNSCHEDULED_POD, Action.ADD, True, id="other pods"
        ),
        pytest.param((CSI, Action.UPDATE), CSI, Action.UPDATE, True, id="a generic update"),
        pytest.param((CSI, Action.ALL), CSI, Action.UPDATE, True, id="all hears a generic update"),
        pytest.param(
            (Resource.POD, Action.UPDATE_POD_LABEL),
            Resource.ASSIGNED_POD,
            Action.UPDATE,
            False,
            id="a specific one does not",
        ),
        pytest.param(
            (Resource.ANYTHING, Action.ALL), CSI, Action.DELETE, True, id="a wildcard hears all"
        ),
        pytest.param((NODE, Action.ADD), NODE, TAINT, True, id="taints come with added nodes"),
        pytest.param((NODE, Action.DELETE), NODE, TAINT, False, id="but not with others"),
        pytest.param((CSI, Action.ADD), NODE, TAINT, False, id="nor with other things added"),
    ],
)
def test_matching(
    registered: tuple[Resource, Action], resource: Resource, action: Action, woken: bool
) -> None:
    found = wakes((on(*registered),), ClusterEvent(resource, action, "it"))

    assert found == ("active" if woken else "unschedulable")


@pytest.mark.parametrize(
    ("registered", "place"),
    [
        pytest.param((on(NODE, Action.ADD, refuse),), "active", id="added without a hint"),
        pytest.param(
            (on(NODE, Action.ADD), on(NODE, TAINT, refuse)),
            "unschedulable",
            id="not where taints are registered",
        ),
    ],
)
def test_taints_added_to_a_registration_always_wake(
    registered: tuple[Wakeup, ...], place: str
) -> None:
    assert wakes(registered, ClusterEvent(NODE, TAINT, "it")) == place


@pytest.mark.parametrize(
    ("hints", "pending", "now", "place"),
    [
        pytest.param([None], False, 9.0, "active", id="no hint wakes"),
        pytest.param([refuse], False, 9.0, "unschedulable", id="a hint can refuse"),
        pytest.param([explode], False, 9.0, "active", id="a broken hint wakes"),
        pytest.param([refuse, explode], False, 9.0, "active", id="also as the second"),
        pytest.param([refuse, None], False, 9.0, "active", id="one of two hints is enough"),
        pytest.param([None], False, 1.9, "backoff", id="after backoff"),
        pytest.param([None], True, 1.0, "active", id="at once if the plugin was pending"),
        pytest.param([refuse], True, 1.0, "unschedulable", id="a pending plugin can refuse"),
    ],
)
def test_hints(hints: list[Hint | None], pending: bool, now: float, place: str) -> None:
    registered = tuple(on(CSI, Action.ADD, hint) for hint in hints)

    assert wakes(registered, UNHEARD, pending=pending, now=now) == place


def test_a_broken_hint_is_reported() -> None:
    told: list[tuple[str, str, str, str]] = []

    class Listening(Observer):
        def hint_broke(self, plugin: str, pod: str, event: str, error: BaseException) -> None:
            told.append((plugin, pod, event, str(error)))

    queue = make_queue(
        wakeups={PROFILE: {"Plugin": (on(CSI, Action.ADD, explode),)}}, observer=Listening()
    )
    queue.add(pod("a"), 0.0)
    fail(queue, "Plugin", now=0.0)
    queue.wake(UNHEARD, None, None, 1.0)

    assert told == [("Plugin", "default/a", UNHEARD.label, "broken hint")]


def test_hints_see_the_waiting_pod_and_both_objects() -> None:
    seen: list[tuple[Any, ...]] = []

    def look(of: Pod, old: Any, new: Any) -> bool:
        seen.append((of, old, new))
        return False

    queue = make_queue(wakeups={PROFILE: {"Plugin": (on(CSI, Action.ADD, look),)}})
    queue.add(pod("a"), 0.0)
    fail(queue, "Plugin", now=0.0)
    queue.wake(UNHEARD, "old", "new", 1.0)

    assert seen == [(pod("a"), "old", "new")]


def test_only_plugins_that_rejected_the_pod_are_asked() -> None:
    queue = make_queue()
    for name in ("fit", "ports", "both"):
        queue.add(pod(name), 0.0)
    fail(queue, "Fit", now=0.0)
    fail(queue, "Ports", now=0.0)
    fail(queue, "Fit", "Ports", now=0.0)
    queue.wake(PORTS_ONLY, None, None, 9.0)

    assert places(queue) == {"fit": "unschedulable", "ports": "active", "both": "active"}


def test_profiles_do_not_hear_each_other() -> None:
    other = {"spec": {"schedulerName": "other"}}
    queue = make_queue(
        wakeups={
            PROFILE: {"Plugin": (on(CSI, Action.ADD),)},
            "other": {"Plugin": (on(CSI, Action.ADD, refuse),)},
        }
    )
    for each in (pod("default"), pod("other", **other)):
        queue.add(each, 0.0)
        fail(queue, "Plugin", now=0.0)
    queue.wake(UNHEARD, None, None, 9.0)

    assert places(queue) == {"default": "active", "other": "unschedulable"}


def test_events_without_listeners_are_dropped() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    popped(queue, 0.0)
    queue.wake(UNHEARD, None, None, 1.0)
    queue.wake(BOTH, None, None, 1.0)

    assert [missed.event for missed in queue._in_flight.remembered] == [BOTH]


def test_an_event_can_be_limited_to_some_pods() -> None:
    queue = make_queue()
    for name in ("meant", "other", "flying"):
        queue.add(pod(name), 0.0)
    for _ in range(2):
        fail(queue, "Fit", now=0.0)
    flying = popped(queue, 0.0)
    queue.wake(BOTH, None, None, 9.0, concerns=lambda each: each.name == "meant")

    assert places(queue) == {"meant": "active", "other": "unschedulable", "flying": "in flight"}
    give_back(queue, flying, "Fit", now=9.0)
    assert places(queue)["flying"] == "backoff"


def test_pods_whose_rejectors_do_not_listen_are_not_looked_at() -> None:
    queue = make_queue()
    for name in ("fit", "ports"):
        queue.add(pod(name), 0.0)
    fail(queue, "Fit", now=0.0)
    fail(queue, "Ports", now=0.0)
    looked_at: list[str] = []

    def look(of: Pod) -> bool:
        looked_at.append(of.name)
        return True

    queue.wake(PORTS_ONLY, None, None, 9.0, concerns=look)

    assert looked_at == ["ports"]


class Asked:
    """A hint that counts how often it is asked."""

    def __init__(self, answer: bool) -> None:
        self.answer = answer
        self.pods: list[str] = []

    def __call__(self, of: Pod, old: Any, new: Any) -> bool:
        self.pods.append(of.name)
        return self.answer


@pytest.mark.parametrize("answer", [True, False])
def test_of_like_pods_one_is_asked_if_the_hint_is_alike(answer: bool) -> None:
    hint = Asked(answer)
    registered = {"Fit": (on(NODE, Action.ADD, hint, alike=True),)}
    queue = make_queue(wakeups={PROFILE: registered})
    shared = pod("a").spec
    for name in ("a", "b", "c"):
        queue.add(structs.replace(pod(name), spec=shared), now=0.0)
        fail(queue, "Fit", now=0.0)
    other = pod("d", labels={"app": "other"})
    queue.add(structs.replace(other, spec=shared), now=0.0)
    fail(queue, "Fit", now=0.0)

    queue.wake(BOTH, None, None, now=100.0)

    assert hint.pods == ["a", "d"]
    assert {queued.place for queued in queue} == ({"active"} if answer else {"unschedulable"})
    queue.check()


def test_every_pod_is_asked_if_the_hint_does_not_say_that_it_is_alike() -> None:
    hint = Asked(False)
    queue = make_queue(wakeups={PROFILE: {"Fit": (on(NODE, Action.ADD, hint),)}})
    shared = pod("a").spec
    for name in ("a", "b"):
        queue.add(structs.replace(pod(name), spec=shared), now=0.0)
        fail(queue, "Fit", now=0.0)

    queue.wake(BOTH, None, None, now=100.0)

    assert sorted(hint.pods) == ["a", "b"]


def test_every_pod_is_asked_if_the_event_is_about_one_of_them() -> None:
    hint = Asked(False)
    registered = {"Ports": (on(Resource.POD, Action.DELETE, hint, alike=True),)}
    queue = make_queue(wakeups={PROFILE: registered})
    shared = pod("a").spec
    made = [structs.replace(pod(name), spec=shared) for name in ("a", "b")]
    for each in made:
        queue.add(each, now=0.0)
        fail(queue, "Ports", now=0.0)

    queue.wake(PORTS_ONLY, made[1], None, now=100.0)

    assert sorted(hint.pods) == ["a", "b"]
