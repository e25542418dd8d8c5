"""Advice of plugins that are not Moorage's own: tried like any other, and never trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from moorage.cluster import Nodes, NodeView
from moorage.engine.explain import Explanation, explain
from moorage.framework.advice import Advice, Advise
from moorage.framework.edits import EvictPods, LowerRequest, PodAt, SetLabel
from moorage.framework.plugin import NodeFilter
from moorage.objects.kinds import Object
from moorage.objects.pod import Pod
from tests.builders import node, pod
from tests.explain.building import configuration, engine
from tests.explain.trying import assert_holds
from tests.registered import REGISTRY

Told = Callable[[Pod, Nodes, NDArray[np.intp]], Iterable[Any]]


def explained(told: Told, *nodes: Object, cpu: str = "1") -> Explanation:
    """A pod in a cluster whose nodes are for pods with the label `badge` alone."""

    class Badges(NodeFilter, Advise[Pod]):
        name = "Badges"

        def filter_node(self, pod: Pod, node: NodeView) -> str | None:
            return None if "badge" in pod.labels else "node(s) want a badge"

        def advise(
            self, pod: Pod, prepared: Pod | None, nodes: Nodes, rows: NDArray[np.intp]
        ) -> Iterable[Advice]:
            assert prepared is pod
            return told(pod, nodes, rows)

    made = engine(*nodes, config=configuration("Badges"), plugins={**REGISTRY, "Badges": Badges})
    wanted = pod("wanted", cpu=cpu)
    found = explain(made.decider, wanted)
    for each in found.suggestions:
        assert_holds(made, wanted, each)
    return found


def badge(pod: Pod, nodes: Nodes, rows: NDArray[np.intp]) -> Iterator[Advice]:
    yield Advice("it has no badge", (SetLabel("badge", "blue"),))


def test_advice_that_helps_is_told_with_the_nodes_that_it_helps() -> None:
    found = explained(badge, node("a"), node("b"))

    (told,) = found.suggestions
    assert (told.kind, told.plugins, told.remedy) == (
        "plugin",
        ("Badges",),
        "its label badge were blue",
    )
    assert told.nodes == ("a", "b")


def test_advice_goes_together_with_that_of_another_plugin() -> None:
    (told,) = explained(badge, node("small", cpu="1"), cpu="3").suggestions

    assert told.kind == "several"
    assert told.edits == (LowerRequest("cpu", 2000), SetLabel("badge", "blue"))


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(lambda *_: [Advice("?", (SetLabel("cap", "red"),))], id="it does not help"),
        pytest.param(lambda *_: (), id="there is none"),
    ],
)
def test_what_does_not_help_is_not_told(told: Told) -> None:
    assert explained(told, node("a")).suggestions == ()


def test_advice_without_edits_says_what_is_in_the_way() -> None:
    (told,) = explained(lambda *_: [Advice("the gatekeeper is on leave")], node("a")).suggestions

    assert (told.effect, told.problem, told.remedy) == ("none", "the gatekeeper is on leave", "")


def raising(*_: Any) -> Iterator[Advice]:
    yield Advice("?", (SetLabel("badge", "blue"),))
    raise KeyError("badge")


@pytest.mark.parametrize(
    ("told", "because"),
    [
        pytest.param(raising, "KeyError: 'badge'", id="it raises"),
        pytest.param(lambda *_: ["a badge"], "TypeError: str is no Advice", id="it is a text"),
        pytest.param(
            lambda *_: [Advice("?", (EvictPods((PodAt("x/y", "uid", "a"),)),))],
            "LookupError: there is no pod x/y on node a",
            id="it evicts a pod that is not there",
        ),
    ],
)
def test_a_mistake_in_advice_is_told_and_costs_nothing_else(told: Told, because: str) -> None:
    found = explained(told, node("a"))

    (only,) = found.suggestions
    assert only.problem.startswith(f'asking plugin "Badges" for advice: {because}')
    assert [each.plugin for each in found.rejections] == ["Badges"]


def test_an_endless_list_of_advice_ends() -> None:
    def endless(*_: Any) -> Iterator[Advice]:
        return (Advice("?", (SetLabel("badge", str(number)),)) for number in count())

    assert len(explained(endless, node("a")).suggestions) == 24
