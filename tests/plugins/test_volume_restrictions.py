"""VolumeRestrictions."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cluster import WhatIf
from moorage.framework.status import Code, unresolvable
from moorage.framework.wakeups import Action, Resource
from moorage.plugins.volumes.volume_restrictions import Exclusive, VolumeRestrictions
from tests.builders import cluster, node, pod
from tests.plugins.asking import codes, listens, rejections, wakes
from tests.storage_builders import claiming, mounting, pvc

PLUGIN = VolumeRestrictions()
DISK = ("node(s) had no available disk",)
CLAIM = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod",
)
EXCLUSIVE: dict[str, Any] = {"accessModes": ["ReadWriteOncePod"]}


def gce(name: str = "disk", read_only: bool = False) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(volume: str = "vol-1", read_only: bool = False) -> dict[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": volume, "readOnly": read_only}}


def iscsi(iqn: str = "iqn", read_only: bool = False, lun: int = 0) -> dict[str, Any]:
    return {"iscsi": {"iqn": iqn, "lun": lun, "readOnly": read_only}}


def rbd(*monitors: str, image: str = "image", **given: Any) -> dict[str, Any]:
    return {"rbd": {"monitors": list(monitors), "image": image, **given}}


@pytest.mark.parametrize(
    ("wanted", "used", "conflict"),
    [
        pytest.param(gce(), gce(), True, id="a GCE disk has one writer"),
        pytest.param(gce(), gce("other"), False, id="another GCE disk"),
        pytest.param(gce(read_only=True), gce(), True, id="a reader beside a GCE writer"),
        pytest.param(gce(), gce(read_only=True), True, id="a writer beside a GCE reader"),
        pytest.param(gce(read_only=True), gce(read_only=True), False, id="GCE readers do not mind"),
        pytest.param(ebs(), ebs(), True, id="an EBS volume has one user"),
        pytest.param(ebs(read_only=True), ebs(read_only=True), True, id="even one that reads"),
        pytest.param(ebs(), ebs("vol-2"), False, id="another EBS volume"),
        pytest.param(iscsi(lun=1), iscsi(lun=2), True, id="the name of an iSCSI disk decides"),
        pytest.param(iscsi(), iscsi("other"), False, id="another iSCSI disk"),
        pytest.param(
            iscsi(read_only=True), iscsi(read_only=True), False, id="iSCSI readers do not mind"
        ),
        pytest.param(rbd("a", "b"), rbd("b", "c"), True, id="one Ceph monitor in common"),
        pytest.param(rbd("a"), rbd("b"), False, id="no Ceph monitor in common"),
        pytest.param(rbd("a", pool="p"), rbd("a", pool="q"), False, id="another Ceph pool"),
        pytest.param(rbd("a"), rbd("a", image="other"), False, id="another Ceph image"),
        pytest.param(
            rbd("a", readOnly=True), rbd("a", readOnly=True), False, id="Ceph readers do not mind"
        ),
        pytest.param(gce(), ebs("disk"), False, id="disks of different kinds"),
    ],
)
def test_disks(wanted: dict[str, Any], used: dict[str, Any], conflict: bool) -> None:
    nodes = cluster(node("free"), node("used"), mounting(used, name="user", node="used"))

    found = rejections(PLUGIN, mounting(wanted), nodes)

    assert found == ({"used": DISK} if conflict else {})


def test_a_missing_claim_is_told() -> None:
    nodes = cluster(node(), pvc(namespace="other"))

    answer = PLUGIN.pre_filter(claiming("claim"), nodes.nodes)

    assert answer == unresolvable('persistentvolumeclaim "claim" not found')


@pytest.mark.parametrize(
    ("modes", "user", "rejected"),
    [
        pytest.param(EXCLUSIVE, claiming("claim", name="user", node="b"), True, id="in use"),
        pytest.param(EXCLUSIVE, claiming("other", name="user", node="b"), False, id="not in use"),
        pytest.param({}, claiming("claim", name="user", node="b"), False, id="may be shared"),
        pytest.param(
            EXCLUSIVE,
            claiming("claim", name="user", node="b", namespace="other"),
            False,
            id="a claim of that name in another namespace",
        ),
        pytest.param(
            EXCLUSIVE, claiming("claim", name="user", node="gone"), False, id="on no known node"
        ),
    ],
)
def test_a_claim_for_one_pod(modes: dict[str, Any], user: Any, rejected: bool) -> None:
    nodes = cluster(node("a"), node("b"), pvc("claim", **modes), user)

    found = rejections(PLUGIN, claiming("claim"), nodes)

    assert found == ({"a": CLAIM, "b": CLAIM} if rejected else None)


def test_a_disk_is_told_before_a_claim() -> None:
    both = mounting(gce(), {"persistentVolumeClaim": {"claimName": "claim"}}, name="user", node="b")
    nodes = cluster(node("a"), node("b"), pvc("claim", **EXCLUSIVE), both)
    wanted = mounting(gce(), {"persistentVolumeClaim": {"claimName": "claim"}})

    assert rejections(PLUGIN, wanted, nodes) == {"a": CLAIM, "b": DISK}
    assert set(codes(PLUGIN, wanted, nodes).values()) == {Code.UNSCHEDULABLE}


def test_pods_without_such_volumes_are_skipped() -> None:
    nodes = cluster(node(), pvc())

    for asks in (pod(), claiming("claim"), mounting({"configMap": {"name": "settings"}})):
        assert PLUGIN.pre_filter(asks, nodes.nodes) is None


def test_evicting_the_user_of_a_disk_frees_it() -> None:
    user = mounting(gce(), name="user", node="node")
    nodes = cluster(node(), user)
    prepared = PLUGIN.pre_filter(mounting(gce()), nodes.nodes)
    assert isinstance(prepared, Exclusive)
    what_if = WhatIf(nodes.nodes)

    what_if.remove_pod(user, 0)

    assert not PLUGIN.filter(prepared, what_if, what_if.everything).rejected.any()
    assert PLUGIN.filter(prepared, nodes.nodes, nodes.nodes.everything).rejected.all()


@pytest.mark.parametrize("namespace", ["default", "other"])
def test_evicting_the_user_of_a_claim_frees_it_whatever_its_namespace(namespace: str) -> None:
    nodes = cluster(node(), pvc("claim", **EXCLUSIVE), claiming("claim", name="user", node="node"))
    prepared = PLUGIN.pre_filter(claiming("claim"), nodes.nodes)
    assert isinstance(prepared, Exclusive)
    named = claiming("claim", name="another", namespace=namespace)

    without = PLUGIN.remove_pod(prepared, nodes.nodes, named, 0)

    assert (prepared.conflicts, without.conflicts) == (1, 0)
    assert PLUGIN.add_pod(without, nodes.nodes, named, 0) == prepared
    assert PLUGIN.add_pod(prepared, nodes.nodes, claiming("unrelated"), 0) is prepared


def test_it_listens_to() -> None:
    assert listens(PLUGIN) == {
        (Resource.POD, Action.DELETE),
        (Resource.NODE, Action.ADD),
        (Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD),
    }


@pytest.mark.parametrize(
    ("gone", "woken"),
    [
        pytest.param(mounting(gce()), True, id="it had the disk"),
        pytest.param(mounting(gce("other")), False, id="it had another disk"),
        pytest.param(mounting(gce(), namespace="other"), False, id="of another namespace"),
        pytest.param(claiming("claim"), True, id="it had the claim"),
        pytest.param(claiming("other"), False, id="it had another claim"),
    ],
)
def test_a_pod_is_gone(gone: Any, woken: bool) -> None:
    waiting = mounting(gce(), {"persistentVolumeClaim": {"claimName": "claim"}}, name="waiting")

    assert wakes(PLUGIN, Resource.POD, Action.DELETE, pod=waiting, old=gone) is woken


@pytest.mark.parametrize(
    ("waiting", "gone", "woken"), [(True, True, False), (True, False, True), (False, True, True)]
)
def test_a_reader_is_gone(waiting: bool, gone: bool, woken: bool) -> None:
    one, other = mounting(gce(read_only=waiting)), mounting(gce(read_only=gone), name="other")

    assert wakes(PLUGIN, Resource.POD, Action.DELETE, pod=one, old=other) is woken


@pytest.mark.parametrize(
    ("added", "woken"),
    [
        pytest.param(pvc("claim"), True, id="its claim"),
        pytest.param(pvc("claim", namespace="other"), False, id="of another namespace"),
        pytest.param(pvc("other"), False, id="another claim"),
    ],
)
def test_a_claim_is_added(added: Any, woken: bool) -> None:
    kind = Resource.PERSISTENT_VOLUME_CLAIM

    assert wakes(PLUGIN, kind, Action.ADD, pod=claiming("claim"), new=added) is woken
