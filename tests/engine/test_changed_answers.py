"""Answers for like pods, after changes that concern more than the row they happen on."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from moorage.cluster import Change, Nodes, Rows, Scope
from moorage.framework.plugin import Filter, PreFilter, Sign
from moorage.framework.status import Reason
from moorage.framework.verdict import Verdict
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from tests.builders import node, pod
from tests.engine.driver import bindings, driver

#: More rows than are looked at one by one.
MANY = 24


def offering(name: str, **devices: int) -> Node:
    """A node with so many devices of each kind."""
    return node(name, **{f"example.com/{kind}": count for kind, count in devices.items()})


def asking(name: str, kind: str, at: str = "") -> Pod:
    """A pod that asks for a device of a kind."""
    return pod(name, node=at, **{f"example.com/{kind}": 1})


def test_a_resource_that_no_node_offers_any_more_is_not_taken_for_a_new_one() -> None:
    run = driver(offering("one", tape=3), offering("two"))
    run.apply(asking("a", "tape"), asking("b", "tape"))
    assert bindings(run.step(2)) == {"a": "one", "b": "one"}
    run.apply(offering("one", tape=4), asking("c", "tape"))
    assert bindings(run.step()) == {"c": "one"}

    # The disks of a node are now as many, and as many are in use, as the tapes were of the other.
    users = [asking(f"user-{number}", "disk", at="two") for number in range(2)]
    run.apply(offering("one"), offering("two", disk=4), *users)
    run.apply(asking("d", "tape"), asking("e", "disk"))

    assert bindings(run.step(10)) == {"e": "two"}


class NeedsDisks(PreFilter[int], Filter[int], Sign):
    """Rejects nodes that offer no disk; it looks up once in which place of a row disks are."""

    name = "NeedsDisks"
    reads = Change.ALLOCATABLE
    scope = Scope.CLUSTER

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def pre_filter(self, pod: Pod, nodes: Nodes) -> int | None:
        return nodes.resources.get("example.com/disk")

    def filter(self, prepared: int, nodes: Nodes, rows: Rows) -> Verdict:
        return Verdict.rejecting(nodes.allocatable[prepared][rows] == 0, Reason("no disk"))


def test_plugins_find_resources_where_they_are_after_the_places_changed() -> None:
    """Ink takes the place of disks, which come back in another one."""
    nodes = [offering("first", tape=1), offering("second", disk=1)]
    run = driver(*nodes, plugins=(NeedsDisks,))
    run.apply(pod("a"))
    assert bindings(run.step(2)) == {"a": "second"}

    for each in (offering("second"), offering("third", ink=1), offering("second", disk=1)):
        run.apply(each)
    run.apply(pod("b"))

    assert bindings(run.step(2)) == {"b": "second"}


class WantsDisks(Filter[Pod], Sign):
    """Rejects nodes that offer no disk. By its declarations, equal figures get equal answers."""

    name = "WantsDisks"
    reads = Change.ALLOCATABLE
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def filter(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Verdict:
        place = nodes.resource("example.com/disk")
        if place is None:
            return Verdict.rejecting(~nodes.nothing(rows), Reason("no disk"))
        return Verdict.rejecting(nodes.allocatable[place][rows] == 0, Reason("no disk"))


def test_answers_are_not_looked_up_by_figures_whose_places_changed() -> None:
    """Ink takes the place of disks: a node with ink has the figures of one that had disks."""
    run = driver(offering("first"), offering("second"), plugins=(WantsDisks,))
    run.apply(offering("second", disk=1), pod("a"))
    assert bindings(run.step(2)) == {"a": "second"}
    # Now the node is asked about by its figures.
    run.remove(run.pods["default/a"])
    run.apply(offering("second", disk=2), pod("b"))
    assert bindings(run.step(2)) == {"b": "second"}

    run.remove(run.pods["default/b"])
    run.apply(offering("second"), offering("first", ink=2), pod("c"))

    assert bindings(run.step(2)) == {}


@pytest.mark.parametrize("leaving", [MANY + 1, 1], ids=["many change", "one changes"])
def test_what_changed_while_a_node_was_full_counts_once_it_has_room(leaving: int) -> None:
    worse = {"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}
    names = [f"n{number:02}" for number in range(MANY)]
    loads = [pod(f"load-{name}", node=name, cpu=1) for name in names]
    filler = pod("filler", node="n07", cpu=3)
    run = driver(*(node(name, spec=worse) for name in names), *loads, filler)
    for name in ("a", "b"):
        run.apply(pod(name, cpu="10m"))
        assert bindings(run.step())[name] != "n07"

    run.apply(node("n07"), pod("c", cpu="10m"))
    assert bindings(run.step())["c"] != "n07"
    # The better one gets room, alone or while all others change in the same way.
    for each in (filler, *loads)[:leaving]:
        run.remove(each)
    run.apply(pod("d", cpu="10m"))

    assert bindings(run.step()) == {"d": "n07"}
