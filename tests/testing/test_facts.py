"""A plugin sees no more of the cluster than it declares."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import pytest

from moorage import testing
from moorage.cluster import Change, Nodes, Rows, Scope
from moorage.framework.plugin import TEMPLATE, Filter, Registry, Sign
from moorage.framework.status import Reason
from moorage.framework.verdict import Verdict
from moorage.objects.pod import Pod
from moorage.plugins import REGISTRY
from moorage.plugins.disk_io.disk_io_resource import DISK_IO
from moorage.testing.declarations import Declarations
from moorage.testing.facts import FACETS, NODES, DeclaredNodes, Eyes, UndeclaredFact
from tests.exactness.four_ways import FourWays, configuration, profile
from tests.exactness.test_traps import Told
from tests.strategies import DISKS

#: Members by which a reservation is made, and what the engine calls.
NOT_FOR_DECIDING = {"reservations", "device_decisions", "refresh", "show"}

Read = Callable[[Any], Any]


def seen(kinds: Change) -> DeclaredNodes:
    made = testing.cluster(testing.node("a"), testing.pod("p", node="a"))
    return DeclaredNodes(made.nodes, Eyes("Plugin", kinds))


def test_every_public_member_of_nodes_is_a_fact() -> None:
    own = {name for name in vars(DeclaredNodes) if not name.startswith("_")}
    members = {name for name in dir(testing.cluster().nodes) if not name.startswith("_")}

    assert members - NOT_FOR_DECIDING == NODES.keys() | FACETS.keys() | own


@pytest.mark.parametrize(
    ("kinds", "read"),
    [
        (Change.LABELS, lambda nodes: nodes.label("disk")),
        (Change.TAINTS, lambda nodes: nodes.node(0).taints),
        (Change.LABELS, lambda nodes: nodes.view(0).labels),
        (Change.REQUESTED, lambda nodes: nodes.view(0).requested("cpu")),
        (Change.ALLOCATABLE, lambda nodes: nodes.facts(0).allocatable),
        (Change.PODS, lambda nodes: nodes.pods(0)),
        (
            Change.PODS | Change.POD_STATUS,
            lambda nodes: [each.status for each in nodes.pods(0).values()],
        ),
        (Change.NAMESPACES, lambda nodes: nodes.workloads.namespace_labels("default")),
        (Change.CLASSES, lambda nodes: nodes.devices.classes),
        (Change.STORAGE, lambda nodes: nodes.storage.claim("default/c")),
        (Change.LABELS, lambda nodes: nodes.derived.get("a", lambda: nodes.label("disk"))),
        (Change.NOMINATED, lambda nodes: bool(nodes.nominations)),
    ],
)
def test_what_is_declared_can_be_read(kinds: Change, read: Read) -> None:
    read(seen(kinds))

    for kind in kinds:
        with pytest.raises(UndeclaredFact, match="Plugin reads"):
            read(seen(kinds & ~kind))


def test_an_extended_resource_is_declared_by_its_type() -> None:
    made = testing.cluster(testing.node("a"))
    assert DISK_IO not in DeclaredNodes(made.nodes, Eyes("Plugin", Change.NONE)).extended
    with_disks = type(made)(DISKS).nodes
    kind = with_disks.extended.change(DISK_IO)

    DeclaredNodes(with_disks, Eyes("Plugin", kind)).extended.columns(DISK_IO)
    with pytest.raises(UndeclaredFact):
        DeclaredNodes(with_disks, Eyes("Plugin", Change.LABELS)).extended.columns(DISK_IO)


def test_versions_of_objects_are_no_facts() -> None:
    with pytest.raises(UndeclaredFact, match="no kind of change"):
        _ = seen(Change.ALL).node(0).resource_version


def test_what_is_kept_for_labels_and_taints_is_made_of_nothing_else() -> None:
    nodes = seen(Change.ALL)
    with pytest.raises(UndeclaredFact):
        nodes.derived.get("a", lambda: nodes.allocatable)
    assert nodes.allocatable is not None


class Sneaky(Filter[Pod], Sign):
    """Declares taints and reads labels."""

    name = "Sneaky"
    reads = Change.TAINTS
    scope = Scope.ROW
    signs = TEMPLATE

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def filter(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Verdict:
        return Verdict.rejecting(nodes.selected({"closed": "yes"}, rows), Reason("closed"))


def test_a_copy_of_a_plugin_is_limited_and_the_plugin_is_not() -> None:
    nodes, plugin = testing.cluster(testing.node("a")).nodes, Sneaky()
    limited = Declarations().limited(plugin)

    assert plugin.filter(testing.pod(), nodes, nodes.rows).ok.all()
    with pytest.raises(UndeclaredFact):
        limited.filter(testing.pod(), nodes, nodes.rows)


def test_engines_of_the_exactness_tests_find_what_is_not_declared() -> None:
    enabled = {"multiPoint": {"enabled": [{"name": "Sneaky"}]}}
    registry: Registry = {**REGISTRY, "Sneaky": Sneaky}
    told = Told.__new__(Told)
    told.ways = FourWays(configuration(profile(plugins=enabled), registry), registry)
    told.now = 0.0
    told.apply(testing.node("a"))

    with pytest.raises(UndeclaredFact, match="Sneaky reads"):
        told.places(testing.pod("p"))
