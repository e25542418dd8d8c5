"""A plugin sees no more of the cluster than it declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from moorage import testing
from moorage.cluster import Change, NodeView, RowFacts, UndeclaredFact, WhatIf
from moorage.cluster.facts import FACTS, WRITERS
from moorage.cluster.host_ports import HOST_PORTS
from moorage.cluster.view import list_members, see, see_less, see_more, see_row
from moorage.framework.coexist_ledgers import ALL, EXCLUSIVE_PODS, ORDINARY_PODS
from moorage.framework.plugin import Registry
from moorage.plugins import REGISTRY
from moorage.testing.declarations import Declarations
from moorage_policies.disk_io.disk_io_resource import DISK_IO
from tests.exactness.four_ways import FourWays, configuration, profile
from tests.exactness.test_traps import Told
from tests.false_plugins import TaintsOnly
from tests.strategies import DISKS

#: What only the engine reads.
OF_THE_ENGINE = {"refresh", "show", "known_facts"}

Read = Callable[[Any], Any]


class Reader:
    name = "Plugin"

    def __init__(self, reads: Change) -> None:
        self.reads = reads


def seen(kinds: Change) -> Any:
    made = testing.cluster(testing.node("a"), testing.pod("p", node="a"))
    return see(Reader(kinds), made.nodes)


def test_every_public_member_of_nodes_belongs_to_a_fact() -> None:
    members = {name for name in dir(testing.cluster().nodes) if not name.startswith("_")}
    of_facts = {name.partition(".")[0] for fact in FACTS for name in fact.members}

    assert members - OF_THE_ENGINE == (of_facts - {"pod"}) | WRITERS.keys()


@pytest.mark.parametrize(
    ("kinds", "read"),
    [
        (Change.LABELS, lambda view: view.label("disk")),
        (Change.TAINTS, lambda view: view.node(0).taints),
        (Change.LABELS, lambda view: NodeView(view, 0).labels),
        (Change.REQUESTED, lambda view: NodeView(view, 0).requested("cpu")),
        (Change.ALLOCATABLE, lambda view: see_row(view, RowFacts(0, [], [], [])).allocatable),
        (
            Change.ALLOCATABLE | Change.REQUESTED,
            lambda view: see_row(view, RowFacts(0, [], [], [])).figures,
        ),
        (Change.PODS, lambda view: view.pods(0)),
        (
            Change.PODS | Change.POD_STATUS,
            lambda view: [each.status for each in view.pods(0).values()],
        ),
        (Change.NAMESPACES, lambda view: view.workloads.namespace_labels("default")),
        (Change.CLASSES, lambda view: view.devices.classes),
        (Change.STORAGE, lambda view: view.storage.claim("default/c")),
        (Change.PORTS, lambda view: view.ledger(HOST_PORTS)),
        (Change.NOMINATED, lambda view: view.nominated(HOST_PORTS)),
        (Change.LABELS, lambda view: view.derived.get("a", lambda: view.label("disk"))),
        (Change.NOMINATED, lambda view: bool(view.nominations)),
    ],
)
def test_what_is_declared_can_be_read(kinds: Change, read: Read) -> None:
    read(seen(kinds))

    for kind in kinds:
        with pytest.raises(UndeclaredFact, match=rf"Plugin reads .*Change\.{kind.name}"):
            read(seen(kinds & ~kind))


def test_an_extended_resource_is_declared_by_its_type() -> None:
    made = type(testing.cluster())(DISKS).nodes
    kind = made.extended.change(DISK_IO)

    see(Reader(kind), made).extended.columns(DISK_IO)
    with pytest.raises(UndeclaredFact):
        see(Reader(Change.EXTENDED & ~kind), made).extended.columns(DISK_IO)
    with pytest.raises(UndeclaredFact):
        _ = see(Reader(Change.LABELS), made).extended


def test_a_ledger_is_declared_by_its_change() -> None:
    view = seen(ORDINARY_PODS.change)

    assert view.ledger(ORDINARY_PODS).of(ALL) == {0: 1}
    assert not view.nominated(ORDINARY_PODS).of(ALL)
    for read in (view.ledger, view.nominated):
        with pytest.raises(UndeclaredFact, match=r"\(ExclusivePods\), a fact of LEDGER.change"):
            read(EXCLUSIVE_PODS)
    with pytest.raises(UndeclaredFact, match=r"\(OrdinaryPods\)"):
        seen(Change.EXTENDED | Change.PORTS).ledger(ORDINARY_PODS)
    with pytest.raises(UndeclaredFact, match=r"view.ledger, .* or LEDGER.change: its `reads` are"):
        _ = seen(Change.EXTENDED | Change.PODS).ledger


def test_a_what_if_shows_what_its_ledgers_would_be() -> None:
    made, plugin = testing.cluster(testing.node("a")), Reader(ORDINARY_PODS.change)
    what_if = WhatIf(made.nodes)
    what_if.add_pod(testing.pod("p"), 0)

    assert see(plugin, what_if).ledger(ORDINARY_PODS).of(ALL) == {0: 1}
    assert not see(plugin, made.nodes).ledger(ORDINARY_PODS).of(ALL)


def test_versions_of_objects_are_no_facts() -> None:
    with pytest.raises(UndeclaredFact, match="not for plugins"):
        _ = seen(Change.ALL & ~Change.CONDITIONS).node(0).resource_version


def test_what_is_kept_for_labels_and_taints_is_made_of_nothing_else() -> None:
    view = seen(Change.ALL)
    with pytest.raises(UndeclaredFact):
        view.derived.get("a", lambda: view.allocatable)
    assert view.allocatable is not None


def test_a_view_follows_the_nodes_as_they_grow() -> None:
    made = testing.cluster(testing.node("first"))
    view = see(Reader(Change.LABELS | Change.REQUESTED), made.nodes)
    column = view.label("disk")

    for at in range(200):
        made.put_node(testing.node(f"n{at}", labels={"disk": "ssd"}))
    made.put_pod(testing.pod("p", node="n199", cpu=3))

    assert see(Reader(Change.LABELS), made.nodes) is not view
    assert column.filled == 200
    assert len(view) == 201
    row = view.row("n199")
    assert view.requested[view.resources["cpu"], row] == 3_000


def test_a_what_if_has_views_of_its_own() -> None:
    made = testing.cluster(testing.node("a"))
    plugin = Reader(Change.REQUESTED)
    before, what_if = see(plugin, made.nodes), WhatIf(made.nodes)
    view = see(plugin, what_if)

    what_if.add_pod(testing.pod("p", cpu=1), 0)

    assert view.requested[0, 0] == 1_000
    assert before.requested[0, 0] == 0
    assert see(plugin, made.nodes) is before


def test_nothing_is_written_through_a_view() -> None:
    view = seen(Change.ALL)

    for name in WRITERS:
        with pytest.raises(UndeclaredFact, match=r"may not write .*`writes = "):
            getattr(view, name)
    with pytest.raises(UndeclaredFact):
        _ = view.whole
    with pytest.raises(ValueError, match="read-only"):
        view.requested[:] = np.int64(0)


def test_who_reserves_writes_what_it_declares() -> None:
    nodes, plugin = testing.cluster().nodes, Reader(Change.LABELS)

    see_more(plugin, nodes, writes=Change.STORAGE).reservations.release("uid")
    with pytest.raises(UndeclaredFact, match="may not write"):
        _ = see_more(plugin, nodes, writes=Change.STORAGE).device_decisions


def test_few_members_are_for_everyone() -> None:
    shown = list_members(int(Change.LABELS))

    assert len(shown) <= 15
    assert not set(shown) & WRITERS.keys()
    view = see_less(Reader(Change.LABELS), testing.cluster(testing.node("a")).nodes, Change.LABELS)
    assert {name for name in dir(view) if not name.startswith("_")} == set(shown)


def test_a_copy_of_a_plugin_is_limited_and_the_plugin_is_not() -> None:
    nodes, plugin = testing.cluster(testing.node("a")).nodes, TaintsOnly()
    limited = Declarations().limited(plugin)

    assert plugin.filter(testing.pod(), nodes, nodes.rows).ok.all()
    with pytest.raises(UndeclaredFact):
        limited.filter(testing.pod(), nodes, nodes.rows)


def test_engines_of_the_exactness_tests_find_what_is_not_declared() -> None:
    enabled = {"multiPoint": {"enabled": [{"name": "TaintsOnly"}]}}
    registry: Registry = {**REGISTRY, "TaintsOnly": TaintsOnly}
    told = Told.__new__(Told)
    told.ways = FourWays(configuration(profile(plugins=enabled), registry), registry)
    told.now = 0.0
    told.apply(testing.node("a"))

    with pytest.raises(UndeclaredFact, match="TaintsOnly reads"):
        told.places(testing.pod("p"))
