"""Reservations: what is assumed of claims and volumes, and what is counted of volumes in use."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cluster import Change, Cluster, WhatIf, check
from moorage.cluster.changes import EVERYWHERE
from moorage.cluster.storage.objects import Binding, Reservation, Reservations
from moorage.cluster.storage.use import NO_LIMIT, USED_STORAGE
from moorage.objects.storage import ClaimRef, PersistentVolume, StorageObject
from moorage.objects.volume import Disk
from tests.builders import cluster, node
from tests.storage_builders import (
    DRIVER,
    attachment,
    claiming,
    csi_node,
    mounting,
    pv,
    pvc,
    storage_capacity,
    storage_class,
)

REF = ClaimRef(namespace="default", name="claim", uid="uid-claim")
BOTH = Reservation("node", (Binding("pv", REF),), ("default/new",))


@pytest.fixture
def nodes() -> Cluster:
    return cluster(node(), pv("pv"), pvc("claim"), pvc("new"))


def shown(storage: Reservations) -> tuple[ClaimRef | None, str | None]:
    """What the volume and the claim of the reservation show."""
    volume, claim = storage.volume("pv"), storage.claim("default/new")
    assert volume is not None
    assert claim is not None
    return volume.claim_ref, claim.selected_node


def free(storage: Reservations) -> list[str]:
    return [volume.name for volume in storage.free_volumes(pvc("any"))]


def test_what_is_reserved_is_shown_and_not_known(nodes: Cluster) -> None:
    storage = nodes.nodes.reservations
    storage.reserve("pod", BOTH)

    assert shown(storage) == (REF, "node")
    assert storage.known_volume("pv") == pv("pv")
    assert storage.known_claim("default/new") == pvc("new")
    assert free(storage) == []
    assert [volume.name for volume in storage.volumes_for(pvc("claim"))] == ["pv"]
    check(nodes)


def test_what_is_released_is_as_before(nodes: Cluster) -> None:
    storage = nodes.nodes.reservations
    storage.reserve("pod", BOTH)
    storage.release("pod")

    assert shown(storage) == (None, None)
    assert free(storage) == ["pv"]
    assert storage.reservation("pod") is None


def test_what_several_pods_rely_on_stays_until_the_last_gives_it_up(nodes: Cluster) -> None:
    storage = nodes.nodes.reservations
    for uid in ("one", "two"):
        storage.reserve(uid, BOTH)

    storage.release("one")
    assert shown(storage) == (REF, "node")
    storage.release("two")
    assert shown(storage) == (None, None)


OTHER = ClaimRef(namespace="default", name="other")


@pytest.mark.parametrize(
    ("seen", "ref", "written"),
    [
        pytest.param(pv("pv", claim="claim@uid-claim"), REF, True, id="it says so itself"),
        pytest.param(pv("pv", labels={"x": "y"}), REF, False, id="it says nothing yet"),
        pytest.param(pv("pv", claim="claim"), REF, False, id="it does not name the uid yet"),
        pytest.param(pv("pv", claim="other"), OTHER, True, id="it says otherwise"),
    ],
)
def test_an_assumption_gives_way_to_the_object(
    nodes: Cluster, seen: PersistentVolume, ref: ClaimRef, written: bool
) -> None:
    storage = nodes.nodes.reservations
    storage.reserve("pod", BOTH)
    nodes.put_storage(seen)

    assert shown(storage)[0] == ref
    assert storage.is_written(BOTH.bindings[0]) is written
    check(nodes)


@pytest.mark.parametrize(
    ("selected", "shows"), [("", "node"), ("node", "node"), ("other", "other")]
)
def test_a_selected_node_gives_way_to_the_claim(nodes: Cluster, selected: str, shows: str) -> None:
    storage = nodes.nodes.reservations
    storage.reserve("pod", BOTH)
    nodes.put_storage(pvc("new", selected_node=selected, metadata={"labels": {"x": "y"}}))
    if not selected:
        nodes.put_storage(pvc("new", size="2Gi"))

    assert shown(storage)[1] == shows
    assert storage.is_selected("default/new") is bool(selected)


def test_a_confirmed_assumption_outlives_its_release(nodes: Cluster) -> None:
    storage = nodes.nodes.reservations
    storage.reserve("pod", BOTH)
    nodes.put_storage(pv("pv", claim="claim@uid-claim"))
    storage.release("pod")

    assert shown(storage) == (REF, None)


def test_an_object_that_is_gone_takes_the_assumption_with_it(nodes: Cluster) -> None:
    storage = nodes.nodes.reservations
    storage.reserve("pod", BOTH)
    nodes.remove_storage(pv("pv"))
    nodes.remove_storage(pvc("new"))
    storage.release("pod")
    nodes.put_storage(pv("pv"))
    nodes.put_storage(pvc("new"))

    assert shown(storage) == (None, None)


def test_a_pod_that_has_its_place_needs_no_reservation(nodes: Cluster) -> None:
    storage = nodes.nodes.reservations
    waiting = claiming("claim", name="pod", node="node")
    storage.reserve(waiting.uid, BOTH)
    nodes.put_pod(waiting)

    assert storage.reservation(waiting.uid) is None
    assert shown(storage) == (REF, "node")


def test_free_volumes_come_smallest_first() -> None:
    nodes = cluster(
        pv("b", size="2Gi"),
        pv("a", size="2Gi"),
        pv("c", size="1536Mi"),
        pv("small", size="1Mi"),
        pv("other", class_name="x"),
    )

    assert free(nodes.nodes.reservations) == ["c", "a", "b"]
    nodes.put_storage(pv("c", size="4Gi"))
    assert free(nodes.nodes.reservations) == ["a", "b", "c"]


def test_capacities_are_those_of_the_class() -> None:
    nodes = cluster(
        storage_capacity("b"), storage_capacity("a"), storage_capacity("x", class_name="x")
    )
    storage = nodes.nodes.reservations

    assert [each.name for each in storage.capacities("late")] == ["a", "b"]
    nodes.remove_storage(storage_capacity("a"))
    assert [each.name for each in storage.capacities("late")] == ["b"]


# Volumes in use


def attached(nodes: Cluster, name: str = "node") -> int:
    """How many volumes of the example driver a node has."""
    row = nodes.nodes.row(name)
    return 0 if row is None else nodes.nodes.volume_use.attached.of(DRIVER)[row]


@pytest.mark.parametrize(
    "order",
    [
        pytest.param(["node", "storage", "pod"], id="storage first"),
        pytest.param(["pod", "storage", "node"], id="the node last"),
        pytest.param(["node", "pod", "storage"], id="the pod before its claim"),
    ],
)
def test_the_order_of_arrival_does_not_matter(order: list[str]) -> None:
    arriving: dict[str, list[Any]] = {
        "node": [node()],
        "storage": [
            pvc("a", volume="v"),
            pv("v"),
            pv("w"),
            attachment(node="node", volume="w"),
            csi_node("node", csi=5),
        ],
        "pod": [claiming("a", name="user", node="node")],
    }
    nodes = cluster(*(item for each in order for item in arriving[each]))

    limits = nodes.nodes.csi_nodes.limits(DRIVER)
    assert attached(nodes) == 2
    assert limits is not None
    assert limits[0] == 5


@pytest.mark.parametrize(
    ("change", "count"),
    [
        pytest.param(pvc("a", volume="w"), 1, id="bound to a volume that is attached"),
        pytest.param(pv("v", csi=None), 1, id="a volume of no driver"),
        pytest.param(pvc("a", volume="gone", class_name="late"), 2, id="a volume that is gone"),
        pytest.param(storage_class(provisioner="other"), 2, id="the class of a bound claim"),
        pytest.param(attachment(node="other", volume="w"), 1, id="attached elsewhere"),
    ],
)
def test_changes_are_counted(change: StorageObject, count: int) -> None:
    nodes = cluster(
        node(),
        storage_class(),
        pv("v"),
        pv("w"),
        pvc("a", volume="v"),
        attachment(node="node", volume="w"),
        claiming("a", name="user", node="node"),
    )
    assert attached(nodes) == 2

    nodes.put_storage(change)

    assert attached(nodes) == count


def test_a_volume_of_a_pod_and_an_attachment_counts_once() -> None:
    user = claiming("a", name="user", node="node")
    nodes = cluster(node(), pv("v"), pvc("a", volume="v"), user)
    told = attachment(node="node", volume="v")
    counts = [attached(nodes)]
    nodes.put_storage(told)
    counts.append(attached(nodes))
    nodes.remove_pod(user.uid)
    counts.append(attached(nodes))
    nodes.put_pod(user)
    nodes.remove_storage(told)
    counts.append(attached(nodes))
    nodes.remove_pod(user.uid)

    assert [*counts, attached(nodes)] == [1, 1, 1, 1, 0]


def test_the_class_of_an_unbound_claim_is_counted() -> None:
    nodes = cluster(node(), pvc("a"), claiming("a", name="user", node="node"))
    counts = []
    for provisioner in ("x", DRIVER, "x"):
        nodes.put_storage(storage_class(provisioner=provisioner))
        counts.append(attached(nodes))

    assert counts == [0, 1, 0]


def test_a_row_is_reused_without_what_was_there() -> None:
    nodes = cluster(
        node("old"),
        csi_node("old", csi=1),
        pv("v"),
        pvc("a", volume="v"),
        attachment(node="old", volume="v"),
        claiming("a", name="user", node="old"),
        mounting({"gcePersistentDisk": {"pdName": "d"}}, name="disk", node="old"),
    )
    nodes.remove_node("old")
    nodes.put_node(node("new"))

    assert nodes.nodes.row("new") == 0
    assert attached(nodes, "new") == 0
    assert not nodes.nodes.ledger(USED_STORAGE).of(Disk("gce", ("d",)))
    nodes.put_node(node("old"))
    assert attached(nodes, "old") == 1


def test_more_nodes_than_fit_the_first_columns() -> None:
    nodes = cluster(
        csi_node("n0", csi=3),
        csi_node("n99", csi=7, migrated="x"),
        pv("v"),
        pvc("a", volume="v"),
        *(node(f"n{at}") for at in range(100)),
        claiming("a", name="user", node="n99"),
    )
    limits, migrated = nodes.nodes.csi_nodes.limits(DRIVER), nodes.nodes.csi_nodes.migrated("x")

    assert limits is not None
    assert migrated is not None
    assert (limits != NO_LIMIT).nonzero()[0].tolist() == [0, 99]
    assert limits[99] == 7
    assert migrated.nonzero()[0].tolist() == [99]
    assert attached(nodes, "n99") == 1


def test_the_most_volumes_of_any_node_are_known() -> None:
    users = [claiming(name, name=f"user-{name}") for name in "abc"]
    nodes = cluster(
        node("one"),
        node("two"),
        *(pv(f"v-{name}") for name in "abc"),
        *(pvc(name, volume=f"v-{name}") for name in "abc"),
    )
    use, most = nodes.nodes.volume_use, []
    for user, place in zip(users, ("one", "one", "two"), strict=True):
        most.append(use.most_attached(DRIVER))
        nodes.put_pod(user.on(place))
    for user in (users[2], users[0], users[1]):
        most.append(use.most_attached(DRIVER))
        nodes.remove_pod(user.uid)
    nodes.put_storage(attachment(node="two", volume="v-a"))

    assert most == [0, 1, 2, 2, 2, 1]
    assert use.most_attached(DRIVER) == 1


def test_a_what_if_knows_the_most_volumes_by_itself() -> None:
    user = claiming("a", name="user", node="node")
    nodes = cluster(node(), pv("v"), pvc("a", volume="v"), user)
    what_if, most = WhatIf(nodes.nodes), []
    for move in (what_if.remove_pod, what_if.add_pod):
        most.append(what_if.volume_use.most_attached(DRIVER))
        move(user, 0)

    assert [*most, what_if.volume_use.most_attached(DRIVER)] == [1, 0, 1]
    assert nodes.nodes.volume_use.most_attached(DRIVER) == 1


def test_the_least_limit_of_any_node_is_known() -> None:
    nodes = cluster(node("one"), node("two"), csi_node("one", csi=5))
    limits, least = nodes.nodes.csi_nodes, []
    for told in (csi_node("two", csi=3), csi_node("two", csi=9), csi_node("one", csi=7)):
        least.append(limits.least_limit(DRIVER))
        nodes.put_storage(told)
    nodes.remove_node("one")

    assert least == [5, 3, 5]
    assert limits.least_limit(DRIVER) == 9
    assert limits.least_limit("another") == NO_LIMIT


def test_a_what_if_leaves_the_cluster_as_it_is() -> None:
    disk = mounting({"gcePersistentDisk": {"pdName": "d"}}, name="disk")
    nodes = cluster(node(), pv("v"), pvc("a", volume="v"), claiming("a", name="user", node="node"))
    what_if = WhatIf(nodes.nodes)
    what_if.remove_pod(claiming("a", name="user"), 0)
    what_if.add_pod(disk, 0)

    assert not what_if.volume_use.attached.of(DRIVER)
    assert what_if.ledger(USED_STORAGE).of(disk.spec.disks[0]) == {0: 1}
    assert attached(nodes) == 1
    assert not nodes.nodes.ledger(USED_STORAGE).of(disk.spec.disks[0])


@pytest.mark.parametrize(
    ("item", "row", "kinds"),
    [
        pytest.param(pv(), EVERYWHERE, Change.VOLUMES | Change.STORAGE, id="a volume"),
        pytest.param(pvc(), EVERYWHERE, Change.VOLUMES | Change.STORAGE, id="a claim"),
        pytest.param(storage_class(), EVERYWHERE, Change.VOLUMES | Change.STORAGE, id="a class"),
        pytest.param(
            storage_capacity(), EVERYWHERE, Change.VOLUMES | Change.STORAGE, id="a capacity"
        ),
        pytest.param(
            csi_node("node"),
            0,
            Change.VOLUMES | Change.STORAGE | Change.ATTACH_LIMITS,
            id="what a CSINode says",
        ),
        pytest.param(attachment(node="node", volume="known"), 0, Change.VOLUMES, id="attached"),
    ],
)
def test_changes_are_noted(item: StorageObject, row: int, kinds: Change) -> None:
    nodes = cluster(node(), pv("known"))
    before = nodes.changes.generation

    nodes.put_storage(item)

    assert nodes.changes.since(before) == {row: kinds}
    after = nodes.changes.generation
    nodes.put_storage(item)
    assert nodes.changes.since(after) == {}


def test_reservations_are_noted(nodes: Cluster) -> None:
    before = nodes.changes.generation
    nodes.nodes.reservations.reserve("pod", BOTH)
    between = nodes.changes.generation
    nodes.nodes.reservations.release("pod")

    assert between == before + 1
    assert nodes.changes.since(between) == {EVERYWHERE: Change.VOLUMES | Change.STORAGE}
