"""From decision to binding: what is assumed, confirmed, taken back, and who may object."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import pytest

from moorage.cluster import Nodes, NodeView, Rows
from moorage.engine.actions import BindPod, PatchPodStatus, PodRef, RecordEvent
from moorage.engine.events import BindingFailed, Bound, Event, PermitRefused, Permitted
from moorage.framework.plugin import (
    NodeFilter,
    NodeScore,
    NoRemedy,
    PendingPermits,
    Permit,
    Plugin,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreScore,
    Reserve,
    Wait,
)
from moorage.framework.status import Code, Rejected
from moorage.objects.pod import Pod
from tests.builders import node, pod
from tests.engine.driver import (
    Driver,
    bindings,
    conditions,
    driver,
    nominations,
    notes,
)

P = PodRef("default", "p", "default/p")


def without_line(message: str) -> str:
    """The message without the file and line where a plugin of this file raised something."""
    return re.sub(r" \(test_placing.py:\d+\)", "", message)


# Binding


def test_a_pod_is_assumed_then_bound_then_told() -> None:
    run = driver(node("one"), pod("p", cpu=1))

    assert run.step() == [BindPod(P, "one", "default-scheduler")]
    assert (run.node_of("p"), run.engine.cluster.is_assumed("default/p")) == ("one", True)
    run.tell(Bound("default/p"))
    assert run.step() == [
        RecordEvent(
            P,
            "Normal",
            "Scheduled",
            "Binding",
            "Successfully assigned default/p to one",
            "default-scheduler",
        )
    ]
    run.apply(pod("p", cpu=1, node="one"))
    assert not run.engine.cluster.is_assumed("default/p")


def test_what_is_assumed_takes_room_at_once() -> None:
    run = driver(node("one", cpu=1), pod("p", cpu=1), pod("q", cpu=1))

    assert len(bindings(run.step(2))) == 1


def test_a_pod_that_turns_up_elsewhere_counts_there() -> None:
    run = driver(node("one", cpu=1), pod("p", cpu=1))
    run.step()
    run.apply(node("two"), pod("p", cpu=1, node="two"))

    assert (run.node_of("p"), run.engine.cluster.is_assumed("default/p")) == ("two", False)
    run.tell(BindingFailed("default/p", "conflict"))
    assert run.step() == []
    assert run.node_of("p") == "two"
    run.apply(pod("q", cpu=1, spec={"nodeSelector": {"kubernetes.io/hostname": "one"}}))
    assert bindings(run.step()) == {"q": "one"}


@pytest.mark.parametrize("how", ["removed", "terminating"])
def test_a_pod_that_is_deleted_while_assumed_gives_its_room_back(how: str) -> None:
    run = driver(node("one", cpu=1), pod("p", cpu=1), pod("q", cpu=1))
    run.step(2)
    assert run.place("q") == "unschedulable"
    if how == "removed":
        run.remove(pod("p", cpu=1))
    else:
        run.apply(pod("p", cpu=1, metadata={"deletionTimestamp": "2024-01-01T00:00:00Z"}))

    assert (run.node_of("p"), run.place("p")) == ("", "nowhere")
    run.tell(Bound("default/p"))
    run.now += 2
    assert bindings(run.step()) == {"q": "one"}


def test_a_binding_that_fails_returns_the_pod_and_its_room() -> None:
    run = driver(node("one", cpu=1), pod("p", cpu=1))
    run.fail_binding(run.step(), "no route to host")

    taken = run.step(0)
    assert conditions(taken)["p"].reason == "SchedulerError"
    assert notes(taken) == ["no route to host"]
    assert (run.node_of("p"), run.place("p")) == ("", "error backoff")
    run.now += 2
    assert bindings(run.step()) == {"p": "one"}


def test_outcomes_of_pods_that_nobody_knows_are_ignored() -> None:
    run = driver(node("one"))
    for event in (
        Bound("x"),
        BindingFailed("x", "m"),
        Permitted("x", "P"),
        PermitRefused("x", "P", "m"),
    ):
        run.tell(event)

    assert run.step() == []


# Reserve


class Recording(Reserve):
    """Keeps a record of what was asked of it, and refuses if told so."""

    log: ClassVar[list[str]] = []
    answers: ClassVar[dict[str, Any]] = {}

    def reserve(self, pod: Pod, nodes: Nodes, row: int) -> Rejected | None:
        self.log.append(f"reserve {self.name}")
        answer = self.answers.get(self.name)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def unreserve(self, pod: Pod, nodes: Nodes, node_name: str) -> None:
        self.log.append(f"unreserve {self.name} on {node_name}")


class First(Recording):
    name = "First"


class Second(Recording):
    name = "Second"


class Third(Recording):
    name = "Third"


@pytest.fixture(autouse=True)
def _fresh() -> None:
    Recording.log.clear()
    Recording.answers.clear()
    Asking.answers.clear()


def reserving(**answers: Any) -> Driver:
    Recording.answers.update(answers)
    return driver(node("one", cpu=1), pod("p", cpu=1), plugins=(First, Second, Third))


def test_all_reserve_in_order() -> None:
    run = reserving()

    assert bindings(run.step()) == {"p": "one"}
    assert Recording.log == ["reserve First", "reserve Second", "reserve Third"]


@pytest.mark.parametrize(
    ("answer", "reason", "message", "place"),
    [
        pytest.param(
            Rejected(Code.UNSCHEDULABLE, ("taken", "sold out")),
            "Unschedulable",
            "0/1 nodes are available: 1 sold out, 1 taken.",
            "unschedulable",
            id="refused",
        ),
        pytest.param(
            Rejected(Code.ERROR, ("database is down",)),
            "SchedulerError",
            "database is down",
            "error backoff",
            id="failed",
        ),
        pytest.param(
            ValueError("oops"),
            "SchedulerError",
            'running Reserve plugin "Second": ValueError: oops',
            "error backoff",
            id="broken",
        ),
    ],
)
def test_a_reservation_that_fails_is_rolled_back_in_reverse(
    answer: Any, reason: str, message: str, place: str
) -> None:
    run = reserving(Second=answer)
    taken = run.step()

    undone = [line for line in Recording.log if line.startswith("unreserve")]
    assert Recording.log[:2] == ["reserve First", "reserve Second"]
    assert [line.split()[1] for line in undone] == ["Third", "Second", "First"]
    assert all(line.endswith("on one") for line in undone)
    told = conditions(taken)["p"]
    assert (told.reason, without_line(told.message)) == (reason, message)
    assert (run.node_of("p"), run.place("p")) == ("", place)


def test_a_failed_binding_is_unreserved_too() -> None:
    run = reserving()
    run.fail_binding(run.step())

    undone = [line.split()[1] for line in Recording.log if line.startswith("unreserve")]
    assert undone == ["Third", "Second", "First"]


# Permit


class Asking(Permit):
    """Answers what it is told to."""

    answers: ClassVar[dict[str, Any]] = {}

    def permit(self, pod: Pod, node_name: str) -> Rejected | Wait | None:
        answer = self.answers.get(self.name)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Guard(Asking):
    name = "Guard"


class Doorman(Asking):
    name = "Doorman"


def permitting(**answers: Any) -> Driver:
    Asking.answers.update(answers)
    objects = (node("one", cpu=1), pod("p", cpu=1))
    return driver(*objects, plugins=(First, Guard, Doorman))


def test_a_permit_refused_at_once() -> None:
    run = permitting(Guard=Rejected(Code.UNSCHEDULABLE, ("not you",)))
    taken = run.step()

    assert bindings(taken) == {}
    assert conditions(taken)["p"].message == "0/1 nodes are available: 1 not you."
    assert Recording.log == ["reserve First", "unreserve First on one"]
    assert run.place("p") == "unschedulable"


def test_a_permit_that_breaks() -> None:
    run = permitting(Guard=RuntimeError("oops"))

    told = conditions(run.step())["p"]
    assert without_line(told.message) == 'running Permit plugin "Guard": RuntimeError: oops'
    assert (told.reason, run.node_of("p")) == ("SchedulerError", "")


def test_waiting_for_permits_and_getting_them() -> None:
    run = permitting(Guard=Wait(30), Doorman=Wait(60))
    taken = run.step()
    assert taken == [PatchPodStatus(P, nominated_node_name="one")]
    assert (run.node_of("p"), run.place("p")) == ("one", "in flight")

    run.now += 20
    run.tell(Permitted("default/p", "Guard"))
    run.tell(Permitted("default/p", "Guard"))
    run.tell(Permitted("default/p", "Stranger"))
    assert run.step() == []
    run.tell(Permitted("default/p", "Doorman"))
    assert bindings(run.step()) == {"p": "one"}


def test_waiting_until_refused() -> None:
    run = permitting(Guard=Wait(30))
    run.apply(pod("q", cpu=1))
    run.step(2)
    run.tell(PermitRefused("default/p", "Guard", "changed my mind"))

    taken = run.step(0)
    assert conditions(taken)["p"].message == "0/1 nodes are available: 1 changed my mind."
    assert run.place("p") == "unschedulable"
    assert run.node_of("p") == ""
    assert run.place("q") in ("active", "backoff")
    assert Recording.log.count("unreserve First on one") == 1


@pytest.mark.parametrize(
    ("asked", "waits", "told"),
    [(30.0, 30.0, "30s"), (1.5, 1.5, "1.5s"), (86_400.0, 900.0, "900s")],
)
def test_waiting_too_long(asked: float, waits: float, told: str) -> None:
    run = permitting(Guard=Wait(asked))
    run.step()
    assert run.engine.next_step(run.now) == run.now + waits
    run.now += waits - 0.5
    assert run.step() == []

    run.now += 0.5
    taken = run.step(0)
    reason = f"rejected due to timeout after waiting {told} at plugin Guard"
    assert conditions(taken)["p"].message == f"0/1 nodes are available: 1 {reason}."
    assert run.node_of("p") == ""


class Patient(Permit):
    """Makes every pod wait, and is told to let go by the test."""

    name = "Patient"
    made: ClassVar[list[Patient]] = []

    def attach(self, waiting: PendingPermits) -> None:
        self.waiting = waiting
        self.made[:] = [self]

    def permit(self, pod: Pod, node_name: str) -> Wait:
        return Wait(60)


def test_a_plugin_sees_who_waits_for_it_and_lets_them_go() -> None:
    run = driver(node("one", cpu=4), pod("p", cpu=1), pod("q", cpu=1), plugins=(Patient,))
    assert bindings(run.step(2)) == {}
    (patient,) = Patient.made
    assert [(each.pod.name, each.node_name) for each in patient.waiting] == [
        ("p", "one"),
        ("q", "one"),
    ]

    patient.waiting.allow("default/p")
    patient.waiting.allow("default/p")
    patient.waiting.allow("default/stranger")
    patient.waiting.refuse("default/q", "not today")
    assert run.engine.next_step(run.now) == run.now
    taken = run.step(0)

    assert bindings(taken) == {"p": "one"}
    assert conditions(taken)["q"].message == "0/1 nodes are available: 1 not today."
    assert list(patient.waiting) == []
    assert run.step() == []


def test_what_a_plugin_says_to_waiting_pods_can_be_told_as_events() -> None:
    run = driver(node("one", cpu=4), pod("p", cpu=1), plugins=(Patient,))
    run.step()
    said: list[Event] = []
    run.engine.on_answer = said.append
    (patient,) = Patient.made

    patient.waiting.allow("default/p")
    patient.waiting.refuse("default/p", "no")

    assert said == [
        Permitted("default/p", "Patient"),
        PermitRefused("default/p", "Patient", "no"),
    ]
    assert run.step() == []


@pytest.mark.parametrize("message", [None, 7, "\ud800"])
def test_a_refusal_needs_a_text(message: Any) -> None:
    run = driver(node("one", cpu=4), pod("p", cpu=1), plugins=(Patient,))
    run.step()

    with pytest.raises((TypeError, UnicodeError)):
        Patient.made[0].waiting.refuse("default/p", message)


def test_a_pod_that_is_deleted_while_it_waits() -> None:
    run = permitting(Guard=Wait(30))
    run.step()
    run.remove(pod("p", cpu=1))

    assert (run.node_of("p"), run.place("p")) == ("", "nowhere")
    assert Recording.log[-1] == "unreserve First on one"
    run.tell(Permitted("default/p", "Guard"))
    run.now += 60
    assert run.step() == []


def test_a_nomination_for_waiting_ends_when_it_was_in_vain() -> None:
    run = permitting(Guard=Wait(30))
    run.step()
    run.apply(pod("p", cpu=1, status={"nominatedNodeName": "one"}))
    run.tell(PermitRefused("default/p", "Guard", "no"))

    assert nominations(run.step(0)) == {"p": ""}


# Plugins that break


class BreaksPreFilter(PreFilter[None]):
    name = "Breaks"

    def pre_filter(self, pod: Pod, nodes: Nodes) -> None:
        _break(pod)


class BreaksFilter(NodeFilter):
    name = "Breaks"

    def filter_node(self, pod: Pod, node: NodeView) -> None:
        _break(pod)


class BreaksPreScore(PreScore[None]):
    name = "Breaks"

    def pre_score(self, pod: Pod, nodes: Nodes, rows: Rows) -> None:
        _break(pod)


class BreaksScore(NodeScore):
    name = "Breaks"

    def score_node(self, pod: Pod, node: NodeView) -> int:
        _break(pod)
        return 0


class ScoresTooMuch(NodeScore):
    name = "Breaks"

    def score_node(self, pod: Pod, node: NodeView) -> int:
        return 101 if pod.name == "bad" else 0


class BreaksPreEnqueue(PreEnqueue):
    name = "Breaks"

    def pre_enqueue(self, pod: Pod) -> None:
        _break(pod)


class BreaksPermit(Permit):
    name = "Breaks"

    def permit(self, pod: Pod, node_name: str) -> None:
        _break(pod)


def _break(pod: Pod) -> None:
    if pod.name == "bad":
        raise KeyError("oops")


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (BreaksPreFilter, "running PreFilter plugin \"Breaks\": KeyError: 'oops'"),
        (BreaksFilter, "running \"Breaks\" filter plugin: KeyError: 'oops'"),
        (BreaksPreScore, "running PreScore plugin \"Breaks\": KeyError: 'oops'"),
        (BreaksScore, "running Score plugin \"Breaks\": KeyError: 'oops'"),
        (
            ScoresTooMuch,
            'running Score plugin "Breaks": '
            "returns an invalid score, it should be in the range of [0, 100]",
        ),
        (BreaksPermit, "running Permit plugin \"Breaks\": KeyError: 'oops'"),
    ],
)
def test_a_plugin_that_breaks_fails_that_pod_only(plugin: type[Plugin], message: str) -> None:
    run = driver(node("one"), node("two"), plugins=(plugin,))
    run.apply(pod("bad"), pod("good"))
    taken = run.step(2)

    assert list(bindings(taken)) == ["good"]
    assert without_line(conditions(taken)["bad"].message) == message
    assert conditions(taken)["bad"].reason == "SchedulerError"
    assert run.place("bad") == "error backoff"


def test_a_post_filter_that_breaks_is_told() -> None:
    class Breaks(PostFilter):
        name = "Breaks"

        def post_filter(self, *args: Any) -> NoRemedy:
            raise KeyError("oops")

    run = driver(node("one", cpu=1), pod("p", cpu=2), plugins=(Breaks,))

    told = conditions(run.step())["p"].message
    assert without_line(told).endswith("running PostFilter plugin \"Breaks\": KeyError: 'oops'")


def test_a_pre_enqueue_that_breaks_holds_that_pod_back_only() -> None:
    run = driver(node("one"), plugins=(BreaksPreEnqueue,))
    run.apply(pod("bad"), pod("good"))

    assert list(bindings(run.step(2))) == ["good"]
    held = run.engine.queue.get("default/bad")
    assert held is not None
    assert held.refusal is not None
    assert (held.place, held.gated_by) == ("gated", "Breaks")
    message = held.refusal.message
    assert without_line(message) == "running PreEnqueue plugin \"Breaks\": KeyError: 'oops'"
    # Its author finds the line that raised it.
    assert re.search(r" \(test_placing.py:\d+\)$", message)


def test_an_unreserve_that_breaks_does_not_stop_the_others() -> None:
    class Breaks(Recording):
        name = "Breaks"

        def unreserve(self, pod: Pod, nodes: Nodes, node_name: str) -> None:
            raise KeyError("oops")

    run = driver(node("one"), pod("p"), plugins=(First, Breaks, Third))
    run.fail_binding(run.step())

    assert [line for line in Recording.log if line.startswith("unreserve")] == [
        "unreserve Third on one",
        "unreserve First on one",
    ]
    assert run.node_of("p") == ""
    assert [*map(without_line, notes(run.step(0)))] == [
        "running Unreserve plugin \"Breaks\": KeyError: 'oops'",
        "no",
    ]


def test_a_preparation_that_breaks_fails_that_pod_only() -> None:
    class Breaks(PreBind):
        name = "Breaks"

        def prepare(self, pod: Pod, nodes: Nodes, node_name: str) -> None:
            _break(pod)

    run = driver(node("one"), pod("bad"), pod("good"), plugins=(First, Breaks))
    taken = run.step(2)

    assert list(bindings(taken)) == ["good"]
    told = conditions(taken)["bad"]
    message = without_line(told.message)
    assert message == "running PreBind plugin \"Breaks\": KeyError: 'oops'"
    assert (run.node_of("bad"), run.place("bad")) == ("", "error backoff")
    assert Recording.log.count("unreserve First on one") == 1


def test_a_node_that_lies_fails_no_attempt() -> None:
    liar = node("liar", cpu="9223372036854775", memory="8Ei")
    run = driver(liar, node("honest"), *(pod(f"p{at}", cpu=1, memory="1Gi") for at in range(9)))

    run.settle()

    assert len(bindings(run.story)) == 9
    assert not conditions(run.story)
