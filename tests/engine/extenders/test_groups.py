"""Groups whose members extenders are interested in: asked about first, then decided in one step."""

from __future__ import annotations

from typing import Any

from moorage.engine.actions import Action, AskExtender, BindPod
from moorage.engine.events import ExtenderAnswered
from moorage.engine.extender_answers import FilterAnswer
from moorage.objects.pod_group import V1ALPHA2
from moorage.testing.builders import node, pod
from moorage.testing.driver import Driver, bindings, conditions, only
from tests.engine.gangs import OLD, drive_gangs, gang, members

EXTENDER: dict[str, Any] = {
    "urlPrefix": "http://extender",
    "filterVerb": "filter",
    "nodeCacheCapable": True,
}


def start(minimum: int = 2, **fields: Any) -> Driver:
    nodes = [node(f"n{number}", cpu=1) for number in range(4)]
    pods = members("g", 2, cpu=1)
    return drive_gangs(*nodes, gang("g", minimum), *pods, extenders=[{**EXTENDER, **fields}])


def reply(run: Driver, ask: AskExtender, *names: str, failure: str = "") -> list[Action]:
    answer = None if failure else FilterAnswer(names)
    run.tell(ExtenderAnswered(ask.pod.uid, ask.attempt, ask.number, answer, failure))
    return run.step(8)


def test_members_go_where_the_extender_lets_them() -> None:
    run = start()

    (first,) = only(run.step(8), AskExtender)
    assert (first.pod.name, sorted(first.nodes)) == ("g-0", ["n0", "n1", "n2", "n3"])
    (second,) = only(reply(run, first, "n2"), AskExtender)
    assert second.pod.name == "g-1"

    assert bindings(reply(run, second, "n2", "n3")) == {"g-0": "n2", "g-1": "n3"}


def test_a_group_that_the_extender_leaves_too_little_is_not_placed_in_part() -> None:
    run = start()
    (first,) = only(run.step(8), AskExtender)
    (second,) = only(reply(run, first, "n3"), AskExtender)

    actions = reply(run, second, "n3")

    assert bindings(actions) == {}
    assert conditions(actions)["g-1"].reason == "Unschedulable"
    assert not run.engine.cluster.pods


def test_a_placement_is_valid_when_the_group_is_decided() -> None:
    run = start()
    (first,) = only(run.step(8), AskExtender)
    (second,) = only(reply(run, first, "n0", "n1", "n2"), AskExtender)
    run.apply(pod("other", cpu=1, node="n0"))

    actions = reply(run, second, "n0", "n1", "n2")

    assert sorted(bindings(actions).values()) == ["n1", "n2"]


def test_a_failure_fails_the_group() -> None:
    run = start()
    (first,) = only(run.step(8), AskExtender)

    actions = reply(run, first, failure="out of order")

    assert not only(actions, BindPod)
    told = conditions(actions)
    assert {(each.reason, each.message) for each in told.values()} == {
        ("SchedulerError", "out of order")
    }
    assert set(told) == {"g-0", "g-1"}


def test_a_member_that_is_deleted_meanwhile_holds_nobody_up() -> None:
    run = start(minimum=1)
    (first,) = only(run.step(8), AskExtender)
    run.remove(run.pods[first.pod.uid])

    (second,) = only(run.step(8), AskExtender)
    assert second.pod.name == "g-1"

    assert bindings(reply(run, second, "n1")) == {"g-1": "n1"}


def test_groups_without_interest_do_not_wait() -> None:
    run = start(managedResources=[{"name": "example.com/gpu"}])

    assert sorted(bindings(run.step(8))) == ["g-0", "g-1"]


def test_a_member_that_comes_while_others_are_asked_about_ranks_the_group_from_then_on() -> None:
    run = drive_gangs(
        node("n", cpu=3),
        gang("g", 2, api_version=V1ALPHA2),
        *members("g", 2, cpu=1),
        version=OLD,
        extenders=[EXTENDER],
    )
    (first,) = only(run.step(), AskExtender)
    run.apply(*members("g", 1, start=2, cpu=1, spec={"priority": 100}))
    reply(run, first, failure="out of order")
    run.now += 60

    run.apply(pod("lone", cpu=1, spec={"priority": 50}))

    (again,) = only(run.step(1), AskExtender)
    assert again.pod.name == "g-2"
