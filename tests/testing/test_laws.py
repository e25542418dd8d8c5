"""`check_laws` accepts plugins that keep the laws and finds each law that a plugin breaks."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pytest

from moorage import testing
from moorage.cluster import Change, Nodes, NodeView, Rows, Scope, UndeclaredFact
from moorage.framework.plugin import (
    NodeFilter,
    NodeScore,
    PreFilter,
    Scores,
    Sign,
)
from moorage.framework.status import Reason
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, Resource, Wakeup, on
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.testing.variations import make_changes

LATE = Reason("late")
NODES = [
    testing.node("ssd", labels={"disk": "ssd"}),
    testing.node("hdd", labels={"disk": "hdd"}),
    testing.node("none"),
]
OBJECTS: list[Node | Pod] = [*NODES, testing.pod("here", node="hdd", cpu=1)]
PODS = [
    testing.pod("any"),
    testing.pod("fast", labels={"disk": "ssd"}),
    testing.pod("slow", labels={"disk": "hdd"}),
]


class Disk(NodeFilter, NodeScore, Sign):
    """A plugin that keeps all laws."""

    name = "Disk"
    reads = Change.LABELS
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return pod.labels.get("disk")

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        wanted = pod.labels.get("disk")
        return None if wanted in (None, node.labels.get("disk")) else "node(s) had another disk"

    def score_node(self, pod: Pod, node: NodeView) -> int:
        return 100 if node.labels.get("disk") == "ssd" else 0


class LooksAtPosition(Disk):
    """Judges a row by where it stands among the rows that are asked about."""

    def filter(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Verdict:
        verdict = super().filter(prepared, nodes, rows)
        verdict.failed[:, :1] = False
        return verdict


class ScoresByPosition(Disk):
    def score(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Scores:
        return np.arange(nodes.count(rows), dtype=np.int64)


class ScoresTooHigh(Disk):
    def score_node(self, pod: Pod, node: NodeView) -> int:
        return 101


class SignsNothing(Disk):
    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return ()


class ReadsName(Disk):
    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return "an odd name" if pod.name.endswith("-7") else None


class ReadsStatus(Disk):
    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return "an odd phase" if pod.status.phase == "Unknown" else None


class ReadsLess(Disk):
    reads = Change.TAINTS


class ReadsConditions(Disk):
    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return "in trouble" if node.node.conditions else None


class ReadsNotesOfPods(Disk):
    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return "somebody took notes" if any(each.annotations for each in node.pods) else None


class ReadsStatusOfPods(Disk):
    reads = Change.LABELS | Change.PODS

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return "unknown" if any(each.status.phase == "Unknown" for each in node.pods) else None


class ReadsVersions(Disk):
    reads = Change.ALL

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return "new" if node.node.resource_version else None


class Unsteady(Disk, PreFilter[Pod]):
    """Says that its scope is a row, and skips itself by what is in the cluster."""

    def pre_filter(self, pod: Pod, nodes: Nodes) -> Pod | None:
        return pod if nodes.label("late").filled else None


class WatchesOtherwise(Disk):
    def watch(self, pod: Pod, nodes: Nodes) -> Change:
        return Change.LABELS if nodes.label("late").filled else Change.NONE


class HintsByName(Disk):
    """Says that its hint tells like pods the same."""

    def wakeups(self) -> tuple[Wakeup, ...]:
        return (on(Resource.NODE, Action.ADD, self._helps, alike=True),)

    def _helps(self, pod: Pod, old: Node | None, new: Node) -> bool:
        return pod.name == "any"


class ReadsOtherRows(NodeScore):
    name = "ReadsOtherRows"
    reads = Change.LABELS | Change.MEMBERSHIP
    scope = Scope.ROW

    def score(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Scores:
        return np.full(nodes.count(rows), nodes.label("late").filled, np.int64)

    def score_node(self, pod: Pod, node: NodeView) -> int:
        raise NotImplementedError


class Remembers(Disk):
    """Answers otherwise when it is asked again."""

    def __init__(self) -> None:
        self._asked = 0

    def score_node(self, pod: Pod, node: NodeView) -> int:
        self._asked += 1
        return self._asked % 100


def test_a_plugin_that_keeps_the_laws_passes() -> None:
    testing.check_laws(Disk(), OBJECTS, PODS)


@pytest.mark.parametrize(
    "plugin",
    [
        LooksAtPosition(),
        ScoresByPosition(),
        ScoresTooHigh(),
        SignsNothing(),
        ReadsName(),
        ReadsStatus(),
        ReadsLess(),
        ReadsConditions(),
        ReadsNotesOfPods(),
        ReadsStatusOfPods(),
        ReadsVersions(),
        Unsteady(),
        WatchesOtherwise(),
        HintsByName(),
        ReadsOtherRows(),
        Remembers(),
    ],
    ids=lambda plugin: type(plugin).__name__,
)
def test_a_plugin_that_breaks_a_law_is_found(plugin: Disk | ReadsOtherRows) -> None:
    with pytest.raises((AssertionError, UndeclaredFact)):
        testing.check_laws(plugin, OBJECTS, PODS)


class ReadsNotesOfTheLastNode(Disk):
    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        noted = node.name == "none" and bool(node.node.annotations)
        return "somebody took notes" if noted else None


class ReadsImages(Disk):
    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return "has images" if node.node.images else None


class ReadsDeviceClasses(Disk):
    def filter(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Verdict:
        return Verdict.rejecting(~nodes.nothing(rows) & any(nodes.devices.classes), LATE)


class ReadsClaimsToDevices(Disk):
    def filter(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Verdict:
        return Verdict.rejecting(~nodes.nothing(rows) & any(nodes.devices.claims), LATE)


class ReadsStorage(Disk):
    def filter(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Verdict:
        return Verdict.rejecting(~nodes.nothing(rows) & any(nodes.storage), LATE)


FALSE_READS = [
    ReadsNotesOfTheLastNode(),
    ReadsImages(),
    ReadsDeviceClasses(),
    ReadsClaimsToDevices(),
    ReadsStorage(),
]


@pytest.mark.parametrize("plugin", FALSE_READS, ids=lambda plugin: type(plugin).__name__)
def test_what_is_read_and_not_declared_is_found(plugin: Disk) -> None:
    with pytest.raises(UndeclaredFact):
        testing.check_laws(plugin, OBJECTS, PODS)


@pytest.mark.parametrize("plugin", FALSE_READS, ids=lambda plugin: type(plugin).__name__)
def test_a_change_shows_it_as_well(plugin: Disk) -> None:
    """Whichever node it is about, and however the plugin has got at it."""

    def check_all() -> None:
        for change in make_changes(testing.cluster(*OBJECTS)):
            testing.check_reads(plugin, PODS[0], testing.cluster(*OBJECTS), change)

    with pytest.raises(AssertionError):
        check_all()


def test_a_driver_decides_and_performs() -> None:
    run = testing.drive(*NODES, plugins=(Disk,))

    run.apply(*PODS)
    run.settle()

    assert run.node_of("fast") == "ssd"
    assert testing.bindings(run.story)["slow"] == "hdd"
