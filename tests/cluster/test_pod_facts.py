"""Facts about the volumes of a pod: kept until a storage object changes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from moorage.cluster import Cluster
from moorage.cluster.storage.objects import Binding, KnownStorage, Reservation, Reservations
from moorage.objects.pod import Pod
from moorage.objects.storage import ClaimRef
from tests.builders import cluster, node
from tests.storage_builders import claiming, pv, pvc, storage_class

REF = ClaimRef(namespace="default", name="free", uid="uid-free")
POD = claiming("free")

Change = Callable[[Cluster, Reservations], object]


@pytest.fixture
def nodes() -> Cluster:
    return cluster(node(), pv("v"), pvc("free"))


def read(pod: Pod, storage: KnownStorage) -> object:
    """A fact that tells by its identity whether it was found anew."""
    return object()


def test_a_fact_is_found_once(nodes: Cluster) -> None:
    facts = nodes.nodes.storage.facts

    assert facts.find(POD, read) is facts.find(POD, read)
    assert facts.find(POD.on("node"), read) is facts.find(POD, read)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(claiming("other"), id="another spec"),
        pytest.param(msgspec.structs.replace(POD, uid="other"), id="another uid"),
        pytest.param(msgspec.structs.replace(POD, name="other"), id="another name"),
        pytest.param(msgspec.structs.replace(POD, namespace="other"), id="another namespace"),
    ],
)
def test_a_fact_is_about_one_pod(nodes: Cluster, other: Pod) -> None:
    facts = nodes.nodes.storage.facts

    assert facts.find(POD, read) is not facts.find(other, read)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda nodes, _: nodes.put_storage(pv("w")), id="a volume comes"),
        pytest.param(
            lambda nodes, _: nodes.put_storage(pvc("free", size="2Gi")), id="a claim is new"
        ),
        pytest.param(lambda nodes, _: nodes.put_storage(storage_class()), id="a class comes"),
        pytest.param(lambda nodes, _: nodes.remove_storage(pv("v")), id="a volume goes"),
        pytest.param(
            lambda _, storage: storage.reserve("p", Reservation("node", (Binding("v", REF),))),
            id="a volume is reserved",
        ),
    ],
)
def test_a_change_of_storage_ends_it(nodes: Cluster, change: Change) -> None:
    facts = nodes.nodes.storage.facts
    before = facts.find(POD, read)

    change(nodes, nodes.nodes.reservations)

    assert facts.find(POD, read) is not before


def test_a_release_ends_it(nodes: Cluster) -> None:
    storage = nodes.nodes.reservations
    storage.reserve("p", Reservation("node", (Binding("v", REF),)))
    before = storage.facts.find(POD, read)

    storage.release("p")

    assert storage.facts.find(POD, read) is not before


def test_what_nobody_asks_for_is_dropped(nodes: Cluster) -> None:
    facts = nodes.nodes.storage.facts
    other = claiming("other", name="other")
    kept, dropped = facts.find(POD, read), facts.find(other, read)

    nodes.sweep()
    assert facts.find(POD, read) is kept
    nodes.sweep()

    assert facts.find(POD, read) is kept
    assert facts.find(other, read) is not dropped
