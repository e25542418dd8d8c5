"""Traced pods: what is read of them is signed, and nothing is read that is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import copy
from typing import Any

import pytest

from moorage.cluster import Change, Nodes, NodeView
from moorage.framework.plugin import NodeFilter, NodeScore, Reduction, Scores, Sign
from moorage.framework.pod_trace import WHOLE, PodReads
from moorage.framework.profile import is_traceable
from moorage.objects.pod import Pod
from tests.builders import pod

ONE = pod("one", labels={"app": "web", "index": "1"}, spec={"priority": 3})
OTHER = pod("other", labels={"app": "web", "index": "2"}, spec={"priority": 3})


@pytest.mark.parametrize(
    ("reads", "paths"),
    [
        pytest.param(lambda p: p.labels.get("app"), {("labels", "app")}, id="a label"),
        pytest.param(lambda p: "app" in p.labels, {("labels", "app")}, id="whether there is one"),
        pytest.param(
            lambda p: p.labels.get("gone"), {("labels", "gone")}, id="one that is missing"
        ),
        pytest.param(lambda p: dict(p.labels), {("labels",), ("labels", "app")}, id="all labels"),
        pytest.param(lambda p: len(p.annotations), {("annotations",)}, id="how many"),
        pytest.param(lambda p: p.spec.priority, {("spec", "priority")}, id="a field of the spec"),
        pytest.param(lambda p: p.priority, {("priority",)}, id="a property"),
        pytest.param(lambda p: p.namespace, {("namespace",)}, id="a field"),
        pytest.param(lambda p: isinstance(p, Pod), set(), id="what it is"),
        pytest.param(lambda p: p == ONE, {WHOLE}, id="a comparison"),
        pytest.param(lambda p: p.on("n"), {WHOLE}, id="a method"),
        pytest.param(lambda p: f"{p}", {WHOLE}, id="a text"),
        pytest.param(lambda p: json.dumps(p.labels), {WHOLE}, id="what a traced pod cannot do"),
        pytest.param(lambda p: copy(p).namespace, {WHOLE}, id="a copy"),
    ],
)
def test_what_is_read_is_noted(reads: Callable[[Pod], Any], paths: set[Any]) -> None:
    known = PodReads()
    answer = known.ask(ONE, reads)

    assert answer == reads(ONE)
    assert paths <= set(known.paths)
    assert (WHOLE in known.paths) == (WHOLE in paths)


def test_pods_that_share_what_is_read_are_signed_alike() -> None:
    known = PodReads()
    assert known.sign(ONE) == known.sign(OTHER)
    before = known.sign(ONE)
    known.ask(ONE, lambda p: p.labels.get("app"))
    assert known.sign(ONE) == known.sign(OTHER) != before
    known.ask(ONE, lambda p: p.labels.get("index"))
    assert known.sign(ONE) != known.sign(OTHER)


def test_what_cannot_be_a_key_is_signed_by_what_it_says() -> None:
    known = PodReads()
    known.ask(ONE, lambda p: p.spec.node_selector)
    made = [pod("p", spec={"nodeSelector": {"zone": zone}}) for zone in ("a", "a", "b")]

    signed = [known.sign(each) for each in made]
    assert signed[0] == signed[1] != signed[2]


def test_what_a_plugin_raises_it_raises() -> None:
    def fail(asked: Pod) -> None:
        raise LookupError(asked.name)

    with pytest.raises(LookupError, match="one"):
        PodReads().ask(ONE, fail)


class Plain(NodeFilter, NodeScore):
    name = "Plain"

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return None

    def score_node(self, pod: Pod, node: NodeView) -> int:
        return 0


class Watching(Plain):
    def watch(self, pod: Pod, nodes: Nodes) -> Change:
        return Change.ALL


class Normalizing(Plain):
    reduces = Reduction.NOTHING

    def normalize(self, prepared: Pod, scores: Scores) -> Scores:
        return scores


class Signing(Plain, Sign):
    def sign(self, pod: Pod, nodes: Nodes) -> None:
        return None


@pytest.mark.parametrize(
    ("plugin", "traceable"),
    [(Plain, True), (Watching, False), (Normalizing, False), (Signing, False)],
)
def test_who_is_traced(plugin: type[Plain], traceable: bool) -> None:
    assert is_traceable(plugin()) == traceable
