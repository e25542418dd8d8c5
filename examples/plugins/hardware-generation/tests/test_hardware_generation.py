"""HardwareGeneration on small clusters, and against the same rule in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from moorage_hardware_generation import (
    MIN_GENERATION,
    HardwareGeneration,
    HardwareGenerationArgs,
)

from moorage import testing
from moorage.cluster import Cluster
from moorage.plugin import Code, Node, Pod, Rejected

LABEL = "hardware.example.com/generation"
UNKNOWN = "node(s) have no hardware generation"
OLDER = "node(s) are of an older hardware generation"
GENERATIONS = {"new": "4", "old": "2", "plain": None, "odd": "next"}

PLUGIN = HardwareGeneration()


def node(name: str, generation: str | None) -> Node:
    return testing.node(name, labels={} if generation is None else {LABEL: generation})


def pod(**labels: Any) -> Pod:
    return testing.pod(labels=labels)


def cluster(generations: dict[str, str | None]) -> Cluster:
    return testing.cluster(*(node(name, each) for name, each in generations.items()))


def asking(generation: str) -> Pod:
    return pod(**{MIN_GENERATION: generation})


@pytest.mark.parametrize(
    ("least", "rejected"),
    [
        pytest.param("1", {"plain": UNKNOWN, "odd": UNKNOWN}, id="only unknown ones"),
        pytest.param("2", {"plain": UNKNOWN, "odd": UNKNOWN}, id="just new enough"),
        pytest.param("3", {"old": OLDER, "plain": UNKNOWN, "odd": UNKNOWN}, id="older"),
    ],
)
def test_rejects_nodes_that_are_older_or_unknown(least: str, rejected: dict[str, str]) -> None:
    nodes = cluster(GENERATIONS).nodes
    prepared = PLUGIN.pre_filter(asking(least), nodes)
    assert isinstance(prepared, int)

    verdict = PLUGIN.filter(prepared, nodes, nodes.rows)

    refused = np.flatnonzero(verdict.rejected).tolist()
    reasons = {nodes.name(row): verdict.texts(row) for row in refused}
    assert reasons == {name: (reason,) for name, reason in rejected.items()}
    assert {verdict.code(row) for row in refused} == {Code.UNRESOLVABLE}


def test_a_pod_that_asks_for_nothing_is_not_filtered() -> None:
    assert PLUGIN.pre_filter(pod(), cluster(GENERATIONS).nodes) is None


def test_a_wish_that_is_no_number_is_explained() -> None:
    answer = PLUGIN.pre_filter(asking("newest"), cluster(GENERATIONS).nodes)

    assert isinstance(answer, Rejected)
    assert answer.message == f'label {MIN_GENERATION} must be a number, got "newest"'


def test_scores_the_newest_highest() -> None:
    nodes = cluster(GENERATIONS).nodes

    scores = PLUGIN.normalize(pod(), PLUGIN.score(pod(), nodes, nodes.rows))

    assert scores.tolist() == [100, 50, 0, 0]


def test_prefers_no_node_when_none_has_the_label() -> None:
    nodes = cluster({"plain": None, "other": None}).nodes
    scores = PLUGIN.normalize(pod(), PLUGIN.score(pod(), nodes, nodes.rows))
    assert scores.tolist() == [0, 0]


@pytest.mark.parametrize("generation", ["-5", "9223372036854775807"])
def test_no_label_leads_to_an_invalid_score(generation: str) -> None:
    nodes = cluster({"strange": generation, "new": "4"}).nodes

    scores = PLUGIN.normalize(pod(), PLUGIN.score(pod(), nodes, nodes.rows))

    assert 0 <= scores.min() <= scores.max() <= 100


def test_reads_the_label_that_its_args_name() -> None:
    plugin = HardwareGeneration(HardwareGenerationArgs(node_label="generation"))
    named = testing.cluster(testing.node("new", labels={"generation": "7"}))

    assert plugin.score(pod(), named.nodes, named.nodes.rows).tolist() == [7]


def test_the_laws_of_plugins_hold() -> None:
    objects = [node(name, each) for name, each in GENERATIONS.items()]
    testing.check_laws(PLUGIN, objects, [pod(), asking("2"), asking("3"), asking("newest")])


def test_columns_say_what_the_nodes_say_one_by_one() -> None:
    values = [None, "", "0", "3", "3", "12", "x", "-1"]
    nodes = cluster({f"node-{at}": value for at, value in enumerate(values)}).nodes

    verdict = PLUGIN.filter(3, nodes, nodes.everything)

    assert verdict.ok.tolist() == [_is_at_least(value, 3) for value in values]


def _is_at_least(value: str | None, least: int) -> bool:
    return value is not None and value.lstrip("-").isdigit() and int(value) >= least


@pytest.mark.parametrize(
    ("generation", "woken"), [("2", False), ("3", True), ("5", True), (None, False)]
)
def test_a_rejected_pod_waits_for_a_node_that_is_new_enough(
    generation: str | None, woken: bool
) -> None:
    (after_node, _) = PLUGIN.wakeups()

    assert after_node.hint is not None
    assert after_node.hint(asking("3"), None, node("late", generation)) is woken
