"""Signatures are remembered by what was read to make them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import pytest

from moorage.cluster import Nodes
from moorage.framework.plugin import Sign
from moorage.framework.signing import SignedTemplates, SigningFailed, has_no_say
from moorage.objects.pod import Pod
from moorage.objects.selector import equality
from moorage.objects.workload import Service
from tests.builders import cluster, node, pod

Question = Callable[[Pod, Nodes], Hashable]


class Asking(Sign):
    """Signs with the answer to a question, and counts how often it is asked."""

    name = "Asking"

    def __init__(self, question: Question) -> None:
        self._question = question
        self.asked = 0

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        self.asked += 1
        return self._question(pod, nodes)


def notes(**annotations: str) -> dict[str, Any]:
    return {"metadata": {"annotations": annotations}}


def mounts(name: str) -> dict[str, Any]:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
    return {"spec": {"volumes": [claim]}}


SAME: dict[str, tuple[Question, Pod, Pod]] = {
    "a name that is not read": (lambda pod, _: pod.requests, pod("a", cpu=1), pod("b", cpu=1)),
    "another label": (
        lambda pod, _: pod.labels.get("team"),
        pod("a", labels={"team": "x", "index": "1"}),
        pod("b", labels={"team": "x", "index": "2"}),
    ),
    "another annotation": (
        lambda pod, _: pod.annotations.get("team"),
        pod("a", **notes(team="x", index="1")),
        pod("b", **notes(team="x", index="2")),
    ),
    "other volumes": (
        lambda pod, _: pod.requests,
        pod("a", **mounts("a")),
        pod("b", **mounts("b")),
    ),
    "no volumes": (lambda pod, _: pod.spec.claiming or None, pod("a"), pod("b")),
}

OTHER: dict[str, tuple[Question, Pod, Pod]] = {
    "a name": (lambda pod, _: pod.name, pod("a"), pod("b")),
    "a label": (
        lambda pod, _: pod.labels.get("team"),
        pod("a", labels={"team": "x"}),
        pod("b", labels={"team": "y"}),
    ),
    "all labels": (
        lambda pod, _: tuple(pod.labels.items()),
        pod("a", labels={"team": "x"}),
        pod("b", labels={"team": "y"}),
    ),
    "an annotation": (
        lambda pod, _: pod.annotations.get("team"),
        pod("a", **notes(team="x")),
        pod("b", **notes(team="y")),
    ),
    "all annotations": (
        lambda pod, _: tuple(pod.annotations.items()),
        pod("a", **notes(team="x")),
        pod("b", **notes(team="y")),
    ),
    "volumes": (lambda pod, _: pod.spec.claiming, pod("a", **mounts("a")), pod("b", **mounts("b"))),
    "claims": (lambda pod, _: pod.claims, pod("a", **mounts("a")), pod("b", **mounts("b"))),
    "a namespace": (lambda pod, _: pod.namespace, pod("a"), pod("a", namespace="other")),
    "the cluster": (lambda pod, nodes: nodes.label("zone").filled, pod("a"), pod("b")),
    "objects behind volumes": (lambda pod, nodes: nodes.storage.things_of(pod), pod("a"), pod("b")),
}


@pytest.mark.parametrize(("question", "first", "second"), SAME.values(), ids=SAME)
def test_what_is_equal_is_signed_once(question: Question, first: Pod, second: Pod) -> None:
    plugin, nodes = Asking(question), cluster(node("a")).nodes
    templates = SignedTemplates([plugin])

    known = templates.find(first, nodes)
    assert not known.again
    before = plugin.asked
    assert templates.find(second, nodes) is known
    assert plugin.asked == before


@pytest.mark.parametrize(("question", "first", "second"), OTHER.values(), ids=OTHER)
def test_what_may_differ_is_signed_for_each_pod(
    question: Question, first: Pod, second: Pod
) -> None:
    plugin, nodes = Asking(question), cluster(node("a")).nodes
    templates = SignedTemplates([plugin])

    for each in (first, second, first):
        known = templates.find(each, nodes)
        signed = templates.sign_again(known, each, nodes) or list(known.parts)
        assert signed == [question(each, nodes)]
    before = plugin.asked
    templates.sign_again(templates.find(second, nodes), second, nodes)
    assert plugin.asked == before + bool(known.again)


def test_services_that_come_are_read_again() -> None:
    plugin = Asking(lambda pod, nodes: nodes.workloads.siblings(pod))
    made, asks = cluster(node("a")), pod("a", labels={"app": "web"})
    templates = SignedTemplates([plugin])

    assert templates.find(asks, made.nodes).parts == (None,)
    made.put_workload(Service(namespace="default", name="web", selector=equality({"app": "web"})))
    known = templates.find(asks, made.nodes)
    assert (known.again, known.parts) == ((), (made.nodes.workloads.siblings(asks),))
    assert known.parts != (None,)


def test_a_pod_is_signed_in_one_way() -> None:
    answers = iter(range(10))
    templates = SignedTemplates([Asking(lambda pod, _: next(answers))])

    with pytest.raises(SigningFailed) as caught:
        templates.find(pod("a"), cluster(node("a")).nodes)
    assert "signs one pod in two ways, 0 and 2" in str(caught.value.__cause__)


def test_code_that_cannot_handle_a_traced_pod_is_asked_about_each() -> None:
    def fussy(pod: Pod, nodes: Nodes) -> Hashable:
        assert type(pod) is Pod
        return pod.priority

    known = SignedTemplates([Asking(fussy)]).find(pod("a"), cluster(node("a")).nodes)
    assert known.again == (0,)


@pytest.mark.parametrize(
    ("question", "has_none"),
    [
        pytest.param(lambda pod, _: pod.spec.resource_claims, True, id="by its template"),
        pytest.param(lambda pod, _: pod.spec.claiming or None, True, id="by its volumes"),
        pytest.param(lambda pod, _: pod.requests, False, id="it has one"),
        pytest.param(lambda pod, _: pod.labels.get("x"), False, id="by a label"),
        pytest.param(lambda pod, nodes: nodes.groups.of(pod), False, id="by the cluster"),
    ],
)
def test_who_has_no_say_on_a_template(question: Question, has_none: bool) -> None:
    assert has_no_say(Asking(question), pod("a", cpu=1)) is has_none
