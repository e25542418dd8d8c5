"""Decisions that wait for extenders: what is asked, what goes on meanwhile, what is valid after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from moorage.cluster import Change, Nodes, Rows, Scope
from moorage.engine.actions import Action, AskExtender, BindPod
from moorage.engine.events import ExtenderAnswered
from moorage.engine.extender_answers import (
    ExtenderAnswer,
    FilterAnswer,
    NodeVictims,
    PreemptAnswer,
    PrioritizeAnswer,
)
from moorage.engine.extenders.consultation import Consultation
from moorage.engine.extenders.survey import PodSurvey
from moorage.framework.plugin import Filter
from moorage.framework.verdict import Verdict
from moorage.objects.pod import Pod
from tests.builders import node, pod
from tests.engine.driver import (
    Driver,
    bindings,
    conditions,
    driver,
    engines,
    evictions,
    nominations,
    only,
)

URL = "http://extender"
FILTER: Mapping[str, Any] = {"urlPrefix": URL, "filterVerb": "filter", "nodeCacheCapable": True}
SCORE: Mapping[str, Any] = {
    "urlPrefix": URL,
    "prioritizeVerb": "score",
    "weight": 1,
    "nodeCacheCapable": True,
}
GPU_ONLY: Mapping[str, Any] = {**FILTER, "managedResources": [{"name": "example.com/gpu"}]}


def nodes(count: int, **allocatable: Any) -> list[Any]:
    return [node(f"n{at}", **allocatable) for at in range(count)]


def start(*extenders: Mapping[str, Any], count: int = 3, **config: Any) -> Driver:
    return driver(*nodes(count, gpu=2), extenders=[dict(each) for each in extenders], **config)


def questions(actions: list[Action]) -> list[AskExtender]:
    return only(actions, AskExtender)


def reply(run: Driver, ask: AskExtender, answer: ExtenderAnswer | str) -> list[Action]:
    """Answers a question, or fails it with a text; returns what the engine does then."""
    told = ask.pod.uid, ask.attempt, ask.number
    if isinstance(answer, str):
        run.tell(ExtenderAnswered(*told, failure=answer))
    else:
        run.tell(ExtenderAnswered(*told, answer))
    return run.step(8)


def keep(*names: str) -> FilterAnswer:
    return FilterAnswer(names)


# What is asked, and what follows


def test_the_extender_is_asked_about_the_nodes_that_plugins_accept() -> None:
    run = start(FILTER)
    run.apply(node("n1", gpu=2, cpu=1), pod("a", cpu=2))

    (ask,) = questions(run.step())

    assert (ask.verb, ask.extender, ask.pod.name) == ("filter", 0, "a")
    assert sorted(ask.nodes) == ["n0", "n2"]
    assert bindings(reply(run, ask, keep("n2"))) == {"a": "n2"}


def test_extenders_filter_one_after_the_other_and_score_together() -> None:
    both = {**FILTER, "prioritizeVerb": "score", "weight": 2}
    run = start(both, {**both, "urlPrefix": "http://other", "weight": 1})
    run.apply(pod("a"))

    (first,) = questions(run.step())
    (second,) = questions(reply(run, first, keep("n2", "n1")))
    assert second.nodes == ("n2", "n1")
    scoring = questions(reply(run, second, keep("n2", "n1")))
    assert [(each.extender, each.verb, each.nodes) for each in scoring] == [
        (0, "prioritize", ("n2", "n1")),
        (1, "prioritize", ("n2", "n1")),
    ]
    assert not reply(run, scoring[1], PrioritizeAnswer(("n1", "n2"), (10, 0)))
    actions = reply(run, scoring[0], PrioritizeAnswer(("n1", "n2"), (0, 6)))
    assert bindings(actions) == {"a": "n2"}


def test_all_refused() -> None:
    run = start(FILTER)
    run.apply(pod("a"))
    (ask,) = questions(run.step())
    refused = FilterAnswer((), failed={"n0": "no", "n1": "no"}, unresolvable={"n1": "never"})

    condition = conditions(reply(run, ask, refused))["a"]

    assert condition.reason == "Unschedulable"
    assert condition.message.startswith("0/3 nodes are available: 1 never, 1 no. ")
    assert run.place("a") == "unschedulable"
    # Any event may help: here one that no plugin listens to.
    run.apply(node("n0", gpu=2, spec={"podCIDR": "10.0.0.0/24"}, labels={"x": "y"}))
    assert run.place("a") != "unschedulable"


def test_a_reason_of_its_own_for_each_of_many_nodes() -> None:
    run = start(FILTER, count=2000)
    run.apply(pod("a"))
    actions = run.step()
    while asked := questions(actions):
        reasons = {name: f"{name}: {'x' * 5000}" for name in asked[0].nodes}
        actions = reply(run, asked[0], FilterAnswer((), failed=reasons))

    message = conditions(actions)["a"].message

    assert message.count("1 n") == 2000
    assert f"1 n7: {'x' * 4092} ..." in message


def refuse_all(ask: AskExtender) -> FilterAnswer:
    return FilterAnswer((), failed=dict.fromkeys(ask.nodes, "no"))


@pytest.mark.parametrize(
    ("count", "parts"), [(99, [99]), (100, [100]), (250, [120, 120, 10]), (1000, [420, 420, 160])]
)
def test_extenders_are_asked_about_as_many_nodes_as_kube_scheduler_asks_about(
    count: int, parts: list[int]
) -> None:
    run = start(FILTER, count=count)
    run.apply(pod("a"))
    asked, actions = [], run.step()
    while more := questions(actions):
        asked += more
        actions = reply(run, more[0], refuse_all(more[0]))

    assert [len(each.nodes) for each in asked] == parts
    assert len({name for each in asked for name in each.nodes}) == count
    assert conditions(actions)["a"].message.startswith(f"0/{count} nodes are available: {count} no")


def test_a_pod_goes_to_a_node_of_a_later_part() -> None:
    run = start(FILTER, SCORE, count=250)
    run.apply(pod("a"))
    (first,) = questions(run.step())
    (second,) = questions(reply(run, first, refuse_all(first)))
    chosen = second.nodes[5]

    assert bindings(reply(run, second, keep(chosen))) == {"a": chosen}


def test_the_next_pod_begins_where_the_last_search_ended() -> None:
    run = start(FILTER, count=250)
    asked = []
    for name in ("a", "b", "c"):
        run.apply(pod(name))
        (ask,) = questions(run.step())
        asked.append(ask.nodes)
        reply(run, ask, keep(ask.nodes[0]))

    everything = [name for names in asked for name in names]
    assert [len(names) for names in asked] == [120, 120, 120]
    assert len(set(everything)) == 250
    assert everything[250:] == everything[:110]


def test_others_begin_their_search_where_they_did() -> None:
    run, plain = start(GPU_ONLY, count=250), start(count=250)
    for each in (run, plain):
        each.apply(pod("before"))
    before = bindings(plain.step())
    assert bindings(run.step()) == before
    run.apply(pod("gpu", gpu=1))
    (ask,) = questions(run.step())
    reply(run, ask, keep(before["before"]))
    plain.apply(pod("gpu", gpu=1, node=before["before"]))
    for each in (run, plain):
        each.apply(pod("after"))

    assert bindings(run.step()) == bindings(plain.step())


@pytest.mark.parametrize("percentage", [40, 100])
def test_a_percentage_that_is_set_says_how_many_are_asked_about(percentage: int) -> None:
    run = start(FILTER, count=250, percentageOfNodesToScore=percentage)
    run.apply(pod("a"))
    (ask,) = questions(run.step())

    assert len(ask.nodes) == 250 * percentage // 100


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("failed filter with extender at URL http://extender/filter, code 500",) * 2,
        (FilterAnswer(error="not well"), "not well"),
        (
            keep("n0", "n9"),
            'extender "http://extender" claims a filtered node "n9" '
            "which is not found in the input node list",
        ),
    ],
    ids=["failure", "error", "unknown node"],
)
def test_a_failure(answer: FilterAnswer | str, message: str) -> None:
    run = start(FILTER)
    run.apply(pod("a"))
    (ask,) = questions(run.step())

    condition = conditions(reply(run, ask, answer))["a"]

    assert (condition.reason, condition.message) == ("SchedulerError", message)
    assert run.place("a") == "error backoff"


def test_an_ignorable_extender_is_passed_over_when_it_fails() -> None:
    run = start({**FILTER, "ignorable": True})
    run.apply(pod("a"))
    (ask,) = questions(run.step())

    assert list(bindings(reply(run, ask, "no"))) == ["a"]


def test_a_failure_to_score_is_no_failure() -> None:
    run = start(SCORE)
    run.apply(pod("a"))
    (ask,) = questions(run.step())

    assert list(bindings(reply(run, ask, "no"))) == ["a"]


def test_a_node_that_no_extender_scored_loses_ties() -> None:
    run = start(SCORE)
    run.apply(pod("a"))
    (ask,) = questions(run.step())
    liked = ask.nodes[-1]

    assert bindings(reply(run, ask, PrioritizeAnswer((liked,), (0,)))) == {"a": liked}


def test_the_nominated_node_is_tried_first() -> None:
    run = start(FILTER)
    run.apply(pod("a", status={"nominatedNodeName": "n1"}))
    (ask,) = questions(run.step())
    assert ask.nodes == ("n1",)

    # An error is no more than a reason to look at all nodes.
    (again,) = questions(reply(run, ask, "no"))
    assert sorted(again.nodes) == ["n0", "n1", "n2"]
    assert bindings(reply(run, again, keep("n0"))) == {"a": "n0"}


def test_an_extender_that_binds_is_named_where_it_is_interested() -> None:
    run = start({**GPU_ONLY, "filterVerb": "", "bindVerb": "bind"})
    run.apply(pod("a", gpu=1), pod("b"))

    assert {each.pod.name: each.extender for each in only(run.step(8), BindPod)} == {
        "a": URL,
        "b": "",
    }


def test_extenders_spare_victims() -> None:
    run = start({"urlPrefix": URL, "preemptVerb": "preempt"}, count=2)
    for at in range(2):
        run.apply(pod(f"low{at}", cpu=4, node=f"n{at}", spec={"priority": 0}))
    run.apply(pod("high", cpu=4, spec={"priority": 10}))

    (ask,) = questions(run.step())
    assert ask.verb == "preempt"
    assert ask.victims == {f"n{at}": NodeVictims((f"default/low{at}",)) for at in range(2)}
    actions = reply(run, ask, PreemptAnswer({"n1": NodeVictims(("default/low1",))}))
    assert evictions(actions) == ["low1"]
    assert nominations(actions)["high"] == "n1"


@pytest.mark.parametrize(
    "spec", [{}, {"containers": [{"name": "main", "ports": [{"hostPort": 80}]}]}], ids=["", "ports"]
)
def test_nobody_is_evicted_where_only_the_extender_refuses(spec: dict[str, Any]) -> None:
    run = start(FILTER)
    for at in (1, 2):
        run.apply(pod(f"low{at}", node=f"n{at}", spec={"priority": 0}))
    run.apply(pod("high", spec={"priority": 10, **spec}))
    (ask,) = questions(run.step())

    actions = reply(run, ask, refuse_all(ask))

    assert not evictions(actions)
    expected = [f'expected at least one victim pod on node "n{at}"' for at in (1, 2)]
    assert conditions(actions)["high"].message == (
        f"0/3 nodes are available: 3 no. preemption: [{', '.join(expected)}]"
    )


# What goes on meanwhile


def test_pods_without_interest_are_decided_while_an_extender_is_asked() -> None:
    run = start(GPU_ONLY)
    run.apply(*(pod(f"gpu{at}", gpu=1) for at in range(3)), *(pod(f"b{at}") for at in range(3)))

    actions = run.step(8)

    assert [each.pod.name for each in questions(actions)] == ["gpu0"]
    assert sorted(bindings(actions)) == ["b0", "b1", "b2"]
    # Nothing is to be done until the answer comes, or its time is up.
    assert run.engine.next_step(run.now) == run.now + 6.0


def test_one_pod_is_asked_about_at_a_time_the_most_important_next() -> None:
    run = start(FILTER)
    run.apply(pod("a"), pod("b"))
    (ask,) = questions(run.step(8))
    run.apply(pod("c", spec={"priority": 10}))
    assert not run.step(8)

    (following,) = questions(reply(run, ask, keep("n0")))

    assert following.pod.name == "c"


def test_more_are_asked_about_at_a_time_if_told_so() -> None:
    run = start(FILTER, extenderConcurrency=2)
    run.apply(pod("a"), pod("b"), pod("c"))

    assert [each.pod.name for each in questions(run.step(8))] == ["a", "b"]


def test_a_pod_that_is_deleted_is_not_waited_for() -> None:
    run = start(FILTER)
    first = pod("a")
    run.apply(first, pod("b"))
    (ask,) = questions(run.step(8))

    run.remove(first)
    (following,) = questions(run.step(8))

    assert following.pod.name == "b"
    assert not reply(run, ask, keep("n0"))
    assert [each.pod.name for each in run.engine.queue.in_flight] == ["b"]


def test_a_pod_that_changes_is_asked_about_again() -> None:
    run = start(FILTER)
    run.apply(pod("a"))
    (ask,) = questions(run.step())
    run.apply(pod("a", labels={"new": "label"}))

    (again,) = questions(reply(run, ask, keep("n0")))

    assert (again.pod.name, again.attempt) == ("a", 2)


def test_an_answer_that_gets_lost_fails_the_attempt() -> None:
    run = start({**FILTER, "httpTimeout": "2s"})
    run.apply(pod("a"))
    (ask,) = questions(run.step())
    run.now += 2.9
    assert not run.step()
    run.now += 0.1

    condition = conditions(run.step())["a"]

    late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    assert condition.message == f'Post "http://extender/filter": {late}'
    assert not only(reply(run, ask, keep("n0")), BindPod)


# What is valid after


def test_a_node_that_was_filled_meanwhile_is_left_out() -> None:
    run = start(FILTER)
    run.apply(pod("a", cpu=3))
    (ask,) = questions(run.step())
    run.apply(pod("other", cpu=4, node="n1"))

    assert bindings(reply(run, ask, keep("n1", "n2"))) == {"a": "n2"}


def test_a_pod_whose_nodes_were_all_filled_is_tried_again_at_once() -> None:
    run = start(FILTER)
    run.apply(pod("a", cpu=3))
    (ask,) = questions(run.step())
    run.apply(pod("other", cpu=4, node="n1"))

    (again,) = questions(reply(run, ask, keep("n1")))

    assert sorted(again.nodes) == ["n0", "n2"]
    assert not conditions(run.story)


def test_a_node_that_came_meanwhile_is_asked_about_before_the_pod_fails() -> None:
    run = start(FILTER)
    run.apply(pod("a"))
    (ask,) = questions(run.step())
    run.apply(node("n9"))

    (again,) = questions(reply(run, ask, keep()))

    assert "n9" in again.nodes


def test_a_row_that_another_node_has_by_now_is_not_taken_for_the_old_one() -> None:
    run = start(FILTER)
    run.apply(pod("a"))
    (ask,) = questions(run.step())
    run.remove(node("n1"))
    run.apply(node("new"))

    assert bindings(reply(run, ask, keep("n1", "n2"))) == {"a": "n2"}


def test_nodes_that_are_scored_are_valid_too() -> None:
    run = start(SCORE)
    run.apply(pod("a", cpu=3))
    (ask,) = questions(run.step())
    run.apply(pod("other", cpu=4, node="n1"))

    assert bindings(reply(run, ask, PrioritizeAnswer(("n0", "n1"), (1, 10)))) == {"a": "n0"}


def test_victims_are_not_evicted_if_there_is_room_by_now() -> None:
    run = start({"urlPrefix": URL, "preemptVerb": "preempt"}, count=1)
    low = pod("low", cpu=4, node="n0", spec={"priority": 0})
    run.apply(low, pod("high", cpu=4, spec={"priority": 10}))
    (ask,) = questions(run.step())
    run.apply(node("n1"))

    actions = reply(run, ask, PreemptAnswer({"n0": NodeVictims(("default/low",))}))

    assert not evictions(actions)
    assert bindings(actions) == {"high": "n1"}


class Local(Filter[Pod]):
    """Accepts everything, row by row, and notes how many rows it is asked about."""

    name = "Local"
    asked: ClassVar[list[int]] = []
    reads = Change.REQUESTED
    scope = Scope.ROW

    def filter(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Verdict:
        self.asked.append(nodes.count(rows))
        return Verdict.accepting(nodes.count(rows))


def test_only_what_is_left_is_asked_about_again() -> None:
    Local.asked.clear()
    off = {"disabled": [{"name": "*"}]}
    only_local = {"multiPoint": {**off, "enabled": [{"name": "Local"}]}}
    kept = {"queueSort": {"enabled": [{"name": "PrioritySort"}]}}
    bind = {"bind": {"enabled": [{"name": "DefaultBinder"}]}}
    run = driver(
        *nodes(50),
        plugins=(Local,),
        extenders=[dict(FILTER)],
        profiles=[{"plugins": {**only_local, **kept, **bind}}],
    )
    run.apply(pod("a"))
    (ask,) = questions(run.step())
    assert Local.asked == [50]
    run.apply(pod("other", node="n7"))

    reply(run, ask, keep("n7", "n8"))

    assert Local.asked == [50, 2]


@pytest.mark.parametrize("is_late", [False, True])
def test_what_breaks_in_a_decision_fails_its_pod_alone(
    monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    run = start(FILTER)
    run.apply(pod("a"), pod("b"))
    (ask,) = questions(run.step(8))

    def break_down(*args: object) -> None:
        raise RuntimeError("broken")

    with monkeypatch.context() as broken:
        broken.setattr(PodSurvey, "find_fitting", break_down)
        broken.setattr(Consultation, "_take_filter", break_down)
        if is_late:
            run.now += 60
            actions = run.step(8)
        else:
            actions = reply(run, ask, keep("n0"))

    assert "RuntimeError: broken" in conditions(actions)["a"].message
    assert [each.pod.name for each in questions(actions)] == ["b"]
    assert run.engine.caught == {"attempt": 1}
    engines.clear()


def test_a_pod_that_another_of_its_name_has_followed_is_not_tried_again() -> None:
    """That it was deleted has not been heard of, and it changed while the extender was asked."""
    run = start(FILTER)
    run.apply(pod("a", cpu=1))
    (ask,) = questions(run.step(8))
    run.apply(pod("a", cpu=1, labels={"changed": "yes"}))
    run.apply(pod("a", cpu=1, metadata={"uid": "the next"}))

    again = questions(reply(run, ask, keep("n0", "n1", "n2")))

    assert [each.pod.uid for each in again] == ["the next"]
    (next_one,) = again
    assert [each.pod.uid for each in only(reply(run, next_one, keep("n1")), BindPod)] == [
        "the next"
    ]
