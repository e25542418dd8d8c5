"""NodeVolumeLimits."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cluster import WhatIf
from moorage.config import FeatureGates
from moorage.config.kubernetes_versions import read_version
from moorage.framework.status import Code, PluginError
from moorage.framework.wakeups import Action, Resource
from moorage.objects.csi import CSINode
from moorage.objects.node import ZONE
from moorage.objects.pod import Pod
from moorage.plugins.volumes.node_volume_limits import NodeVolumeLimits, Volumes
from tests.builders import cluster, node, pod
from tests.plugins.asking import codes, listens, rejections, wakes
from tests.storage_builders import (
    attachment,
    claiming,
    csi_driver,
    csi_node,
    mounting,
    pv,
    pvc,
    storage_class,
)

PLUGIN = NodeVolumeLimits()
EXCEEDED = ("node(s) exceed max volume count",)
EBS: dict[str, Any] = {"csi": None, "awsElasticBlockStore": {"volumeID": "vol-1"}}
NFS: dict[str, Any] = {"csi": None, "nfs": {"server": "s", "path": "/"}}
EPHEMERAL: dict[str, Any] = {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}


def bound(*names: str) -> list[Any]:
    """Claims that are bound to volumes of the example driver."""
    return [
        each
        for name in names
        for each in (pv(f"pv-{name}", claim=name), pvc(name, volume=f"pv-{name}"))
    ]


@pytest.mark.parametrize(
    ("limit", "running", "asks", "exceeded"),
    [
        pytest.param(1, [], claiming("a"), False, id="the last place"),
        pytest.param(0, [], claiming("a"), True, id="no place at all"),
        pytest.param(1, [claiming("b", name="r")], claiming("a"), True, id="a pod has the place"),
        pytest.param(1, [claiming("a", name="r")], claiming("a"), False, id="it is attached"),
        pytest.param(
            1,
            [claiming("b", name="r"), claiming("b", name="s")],
            claiming("b"),
            False,
            id="a shared volume counts once",
        ),
        pytest.param(2, [claiming("b", name="r")], claiming("a", "c"), True, id="two, one left"),
        pytest.param(
            2, [claiming("a", name="r")], claiming("a", "b"), False, id="only one of them is new"
        ),
        pytest.param(
            1, [claiming("a", "b", name="r")], claiming("a"), False, id="full, but nothing is new"
        ),
    ],
)
def test_bound_claims(limit: int, running: list[Pod], asks: Pod, exceeded: bool) -> None:
    nodes = cluster(
        node("limited"), node("open"), *bound("a", "b", "c"), csi_node("limited", csi=limit)
    )
    for each in running:
        nodes.assume(each, "limited")

    assert rejections(PLUGIN, asks, nodes) == ({"limited": EXCEEDED} if exceeded else {})


def test_a_node_is_full_until_a_volume_leaves() -> None:
    nodes = cluster(node("one"), node("two"), *bound("a", "b", "c"))
    nodes.put_storage(csi_node("one", csi=1))
    nodes.put_storage(csi_node("two", csi=2))
    found = [rejections(PLUGIN, claiming("a"), nodes)]
    nodes.assume(claiming("b", name="r"), "one")
    found.append(rejections(PLUGIN, claiming("a"), nodes))
    nodes.assume(claiming("c", name="s"), "two")
    nodes.forget("default/r")
    found.append(rejections(PLUGIN, claiming("a"), nodes))
    nodes.put_storage(csi_node("two", csi=1))
    found.append(rejections(PLUGIN, claiming("a"), nodes))

    assert found == [{}, {"one": EXCEEDED}, {}, {"two": EXCEEDED}]


@pytest.mark.parametrize(
    ("objects", "counts"),
    [
        pytest.param([pvc("a"), storage_class()], True, id="the class tells the driver"),
        pytest.param([pvc("a")], False, id="no such class"),
        pytest.param([pvc("a", class_name="")], False, id="no class"),
        pytest.param([pvc("a", volume="gone"), storage_class()], True, id="no such volume"),
        pytest.param([pvc("a", volume="p"), pv("p", **NFS)], False, id="not a volume of a driver"),
        pytest.param([pvc("a", volume="p"), pv("p")], True, id="a volume of the driver"),
    ],
)
def test_what_counts(objects: list[Any], counts: bool) -> None:
    nodes = cluster(node(), csi_node("node", csi=0), *objects)

    rejected = rejections(PLUGIN, claiming("a"), nodes) or {}
    assert rejected == ({"node": EXCEEDED} if counts else {})


@pytest.mark.parametrize(
    ("objects", "asks"),
    [
        pytest.param([], mounting({"awsElasticBlockStore": {"volumeID": "vol-1"}}), id="inline"),
        pytest.param([pvc("a", volume="p"), pv("p", **EBS)], claiming("a"), id="a volume"),
        pytest.param(
            [pvc("a"), storage_class(provisioner="kubernetes.io/aws-ebs")],
            claiming("a"),
            id="a provisioner",
        ),
    ],
)
def test_in_tree_volumes_count_for_the_driver_that_took_them_over(
    objects: list[Any], asks: Pod
) -> None:
    nodes = cluster(node("a"), node("b"), csi_node("a", ebs=0), csi_node("b", csi=0), *objects)

    assert rejections(PLUGIN, asks, nodes) == {"a": EXCEEDED}
    assert codes(PLUGIN, asks, nodes) == {"a": Code.UNSCHEDULABLE}


@pytest.mark.parametrize(
    ("zones", "counts"), [("x", True), ("x__y", False)], ids=["readable", "unreadable"]
)
def test_a_disk_that_its_driver_cannot_know_does_not_count(zones: str, counts: bool) -> None:
    disk = pv("p", labels={ZONE: zones}, csi=None, gcePersistentDisk={"pdName": "d"})
    nodes = cluster(node(), csi_node("node", pd=0), pvc("a", volume="p"), disk)

    rejected = rejections(PLUGIN, claiming("a"), nodes) or {}
    assert rejected == ({"node": EXCEEDED} if counts else {})


def test_a_volume_is_the_same_whichever_way_it_is_written() -> None:
    inline = mounting({"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}, name="r")
    nodes = cluster(node(), csi_node("node", ebs=1), pvc("a", volume="p"), pv("p", **EBS))
    nodes.assume(inline, "node")

    assert rejections(PLUGIN, claiming("a"), nodes) == {}


@pytest.mark.parametrize(
    ("attached", "asks", "exceeded"),
    [
        pytest.param("pv-b", "a", True, id="another volume is attached"),
        pytest.param("pv-a", "a", True, id="known by its attachment alone, it counts twice"),
        pytest.param("gone", "a", False, id="of an unknown volume"),
        pytest.param("in-tree", "a", False, id="of a volume that is not the driver's"),
    ],
)
def test_attachments(attached: str, asks: str, exceeded: bool) -> None:
    nodes = cluster(
        node(),
        csi_node("node", csi=1),
        *bound("a", "b"),
        pv("in-tree", **EBS),
        attachment(node="node", volume=attached),
    )

    found = rejections(PLUGIN, claiming(asks), nodes)

    assert found == ({"node": EXCEEDED} if exceeded else {})


def test_a_volume_that_is_attached_for_a_pod_counts_once() -> None:
    nodes = cluster(
        node(),
        csi_node("node", csi=2),
        *bound("a", "b"),
        attachment(node="node", volume="pv-a"),
        claiming("a", name="r", node="node"),
    )

    assert rejections(PLUGIN, claiming("b"), nodes) == {}


def test_a_missing_claim_is_told_on_every_node() -> None:
    nodes = cluster(node("a"), node("b"))
    text = 'looking up PVC default/x: persistentvolumeclaim "x" not found'

    assert rejections(PLUGIN, claiming("x"), nodes) == {"a": (text,), "b": (text,)}
    assert set(codes(PLUGIN, claiming("x"), nodes).values()) == {Code.UNRESOLVABLE}


@pytest.mark.parametrize(
    ("asks", "claim", "message"),
    [
        pytest.param(
            mounting(EPHEMERAL),
            pvc("pod-v0", owner="another"),
            r"PVC default/pod-v0 was not created for pod default/pod \(pod is not owner\)",
            id="a claim of another pod",
        ),
        pytest.param(
            claiming(""), pvc("a"), "PersistentVolumeClaim had no name", id="a claim without name"
        ),
    ],
)
def test_what_is_an_error(asks: Pod, claim: Any, message: str) -> None:
    nodes = cluster(node(), claim)

    with pytest.raises(PluginError, match=message):
        rejections(PLUGIN, asks, nodes)


def test_the_claim_of_an_ephemeral_volume_counts() -> None:
    nodes = cluster(
        node(), csi_node("node", csi=0), storage_class(), pvc("pod-v0", owner="default/pod")
    )

    assert rejections(PLUGIN, mounting(EPHEMERAL), nodes) == {"node": EXCEEDED}


def test_pods_without_such_volumes_are_skipped() -> None:
    nodes = cluster(node())

    for asks in (pod(), mounting({"rbd": {"monitors": ["m"], "image": "i"}})):
        assert PLUGIN.pre_filter(asks, nodes.nodes) is None


def test_evicting_a_pod_gives_its_places_back() -> None:
    running = claiming("b", name="running", node="node")
    nodes = cluster(node(), csi_node("node", csi=1), *bound("a", "b"), running)
    prepared = PLUGIN.pre_filter(claiming("a"), nodes.nodes)
    assert isinstance(prepared, Volumes)
    what_if = WhatIf(nodes.nodes)
    rejected = []

    for change in (what_if.remove_pod, what_if.add_pod):
        change(running, 0)
        # A what-if of a what-if must not change the one it came from.
        WhatIf(what_if).add_pod(running, 0)
        rejected.append(bool(PLUGIN.filter(prepared, what_if, what_if.everything).rejected[0]))

    assert rejected == [False, True]
    assert PLUGIN.filter(prepared, nodes.nodes, nodes.nodes.everything).rejected[0]


def test_it_listens_to() -> None:
    assert listens(PLUGIN) == {
        (Resource.CSI_NODE, Action.ADD),
        (Resource.CSI_NODE, Action.UPDATE),
        (Resource.POD, Action.DELETE),
        (Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD),
        (Resource.VOLUME_ATTACHMENT, Action.DELETE),
    }


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        pytest.param(csi_node(csi=1), csi_node(csi=2), True, id="a limit grew"),
        pytest.param(csi_node(csi=2), csi_node(csi=1), False, id="a limit shrank"),
        pytest.param(csi_node(csi=2), csi_node(csi=2, ebs=1), True, id="a new driver"),
        pytest.param(csi_node(csi=2), csi_node(csi=2, migrated="x"), False, id="something else"),
    ],
)
def test_limits_change(old: CSINode, new: CSINode, woken: bool) -> None:
    asks = claiming("a")

    assert wakes(PLUGIN, Resource.CSI_NODE, Action.UPDATE, pod=asks, old=old, new=new) is woken


@pytest.mark.parametrize(
    ("gone", "woken"),
    [
        pytest.param(claiming("x", node="n"), True, id="it had a claim"),
        pytest.param(mounting(EPHEMERAL, node="n"), True, id="it had an ephemeral volume"),
        pytest.param(
            mounting({"azureDisk": {"diskName": "d", "diskURI": "u"}}, node="n"),
            True,
            id="it had a disk that migrated",
        ),
        pytest.param(claiming("x"), False, id="it had no place"),
        pytest.param(
            claiming("x", status={"nominatedNodeName": "n"}), True, id="a place was kept for it"
        ),
        pytest.param(pod(node="n"), False, id="it had no volume"),
    ],
)
def test_a_pod_is_gone(gone: Pod, woken: bool) -> None:
    asks = claiming("a")

    assert wakes(PLUGIN, Resource.POD, Action.DELETE, pod=asks, old=gone) is woken


@pytest.mark.parametrize(
    ("asks", "added", "woken"),
    [
        pytest.param(claiming("a"), pvc("a"), True, id="its claim"),
        pytest.param(mounting(EPHEMERAL), pvc("pod-v0"), True, id="that of its ephemeral volume"),
        pytest.param(claiming("a"), pvc("b"), False, id="another claim"),
        pytest.param(claiming("a"), pvc("a", namespace="x"), False, id="in another namespace"),
    ],
)
def test_a_claim_is_added(asks: Pod, added: Any, woken: bool) -> None:
    kind = Resource.PERSISTENT_VOLUME_CLAIM

    assert wakes(PLUGIN, kind, Action.ADD, pod=asks, new=added) is woken


@pytest.mark.parametrize(
    ("asks", "woken"),
    [
        pytest.param(claiming("a"), True, id="any claim"),
        pytest.param(mounting({"awsElasticBlockStore": {"volumeID": "v"}}), True, id="its driver"),
        pytest.param(mounting({"cinder": {"volumeID": "v"}}), False, id="another driver"),
        pytest.param(mounting(EPHEMERAL), False, id="an ephemeral volume"),
    ],
)
def test_a_volume_is_detached(asks: Pod, woken: bool) -> None:
    gone = attachment(node="n", volume="v", attacher="ebs.csi.aws.com")
    kind = Resource.VOLUME_ATTACHMENT

    assert wakes(PLUGIN, kind, Action.DELETE, pod=asks, old=gone) is woken


@pytest.mark.parametrize(
    ("required", "version", "rejected"),
    [
        pytest.param(True, "1.37", ["bare", "other"], id="nodes have to have it"),
        pytest.param(False, "1.37", [], id="they need not"),
        pytest.param(True, "1.36", [], id="the gate is off"),
    ],
)
def test_nodes_without_a_driver_that_is_required(
    required: bool, version: str, rejected: list[str]
) -> None:
    plugin = NodeVolumeLimits.create(None, FeatureGates(read_version(version)))
    made = cluster(
        *(node(name) for name in ("has", "bare", "other", "full")),
        csi_driver(is_required=required),
        csi_node("has", csi=5),
        csi_node("other", ebs=5),
        csi_node("full", csi=0),
        *bound("a"),
    )
    text = "csi.example.com CSI driver is not installed on the node"

    found = rejections(plugin, claiming("a"), made)

    assert found == {**{name: (text,) for name in rejected}, "full": EXCEEDED}
    assert set(codes(plugin, claiming("a"), made).values()) <= {Code.UNSCHEDULABLE}
    # A driver that nobody announces is none of CSI's.
    made.remove_storage(csi_driver())
    assert rejections(plugin, claiming("a"), made) == {"full": EXCEEDED}


def test_a_driver_that_is_installed_wakes_whoever_may_need_it() -> None:
    plugin = NodeVolumeLimits(requires_drivers=True)
    old, new = csi_node("n"), csi_node("n", csi=0)

    update = (Resource.CSI_NODE, Action.UPDATE)
    assert wakes(plugin, *update, pod=claiming("a"), old=old, new=new)
    assert not wakes(plugin, *update, pod=claiming("a"), old=new, new=new)
    assert not wakes(PLUGIN, *update, pod=claiming("a"), old=old, new=new)
