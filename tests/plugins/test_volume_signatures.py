"""The signatures of the volume plugins: what pods share answers, and which changes they fear."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cluster import Change, Cluster
from moorage.framework.plugin import UNSIGNABLE, Rescore, Sign
from moorage.framework.status import Rejected
from moorage.objects.node import ZONE
from moorage.objects.pod import Pod
from moorage.plugins.volumes.node_volume_limits import NodeVolumeLimits
from moorage.plugins.volumes.volume_binding import VolumeBinding
from moorage.plugins.volumes.volume_restrictions import VolumeRestrictions
from moorage.plugins.volumes.volume_zone import VolumeZone
from tests.builders import cluster, node, pod
from tests.storage_builders import claiming, csi_node, mounting, pv, pvc, storage_class

RESTRICTIONS, LIMITS = VolumeRestrictions(), NodeVolumeLimits()
BINDING, ZONES = VolumeBinding(), VolumeZone()
ALL = (RESTRICTIONS, LIMITS, BINDING, ZONES)
EXCLUSIVE: dict[str, Any] = {"accessModes": ["ReadWriteOncePod"]}


@pytest.fixture
def nodes() -> Cluster:
    return cluster(
        node(),
        storage_class(),
        storage_class("odd", mode=None),
        *(pv(f"v{at}") for at in range(3)),
        *(pvc(f"c{at}", volume=f"v{at}") for at in range(3)),
        pv("there", hosts=("node",)),
        pvc("there", volume="there"),
        pv("zoned", labels={ZONE: "a"}),
        pvc("zoned", volume="zoned"),
        pv("mine", class_name=""),
        pvc("mine", volume="mine", **EXCLUSIVE),
        pvc("unbound"),
        pvc("odd", class_name="odd"),
        claiming("c2", name="running", node="node"),
    )


def disk(read_only: bool) -> Pod:
    return mounting({"gcePersistentDisk": {"pdName": "disk", "readOnly": read_only}})


@pytest.mark.parametrize(
    ("plugin", "one", "other", "alike"),
    [
        pytest.param(BINDING, claiming("c0"), claiming("c1"), True, id="volumes used alike"),
        pytest.param(BINDING, claiming("c0"), claiming("there"), False, id="used elsewhere"),
        pytest.param(BINDING, claiming("c0"), claiming("gone"), False, id="a claim that is gone"),
        pytest.param(BINDING, claiming("c0"), pod(), False, id="no claim"),
        pytest.param(ZONES, claiming("c0"), pod(), True, id="no zones"),
        pytest.param(ZONES, claiming("c0"), claiming("zoned"), False, id="other zones"),
        pytest.param(LIMITS, claiming("c0"), claiming("c1"), True, id="new volumes of a driver"),
        pytest.param(LIMITS, claiming("c0"), claiming("c2"), False, id="one that is attached"),
        pytest.param(LIMITS, claiming("c0"), claiming("c0", "c1"), False, id="more volumes"),
        pytest.param(RESTRICTIONS, claiming("c0"), claiming("c1"), True, id="shared claims"),
        pytest.param(RESTRICTIONS, claiming("c0"), claiming("mine"), False, id="one for itself"),
        pytest.param(RESTRICTIONS, disk(True), disk(False), False, id="reading and writing"),
    ],
)
def test_who_is_alike(nodes: Cluster, plugin: Sign, one: Pod, other: Pod, alike: bool) -> None:
    signed = [plugin.sign(each, nodes.nodes) for each in (one, other)]

    assert len(set(signed)) == (1 if alike else 2)


@pytest.mark.parametrize("claim", ["unbound", "odd"])
def test_unbound_claims_are_not_signed(nodes: Cluster, claim: str) -> None:
    assert BINDING.sign(claiming(claim), nodes.nodes) is UNSIGNABLE


@pytest.mark.parametrize("plugin", ALL, ids=lambda plugin: plugin.name)
def test_pods_without_volumes_fear_no_change(nodes: Cluster, plugin: Sign) -> None:
    assert plugin.sign(pod(), nodes.nodes) is None
    assert plugin.watch(pod(), nodes.nodes) is Change.NONE
    assert plugin.watch(claiming("c0"), nodes.nodes) & (Change.VOLUMES | Change.STORAGE)


@pytest.mark.parametrize("plugin", [LIMITS, BINDING], ids=lambda plugin: plugin.name)
@pytest.mark.parametrize("room", [0, 1, 2])
@pytest.mark.parametrize(
    "asks",
    [
        pytest.param(claiming("c0"), id="a new volume"),
        pytest.param(claiming("c0", "c1"), id="two new volumes"),
        pytest.param(claiming("c0", "c2"), id="one of two is there already"),
        pytest.param(claiming("c2"), id="it is there already"),
        pytest.param(claiming("c0", "there"), id="a volume of one node"),
        pytest.param(claiming("gone"), id="no such claim"),
    ],
)
def test_one_row_is_told_the_same_quickly(
    nodes: Cluster, plugin: Any, room: int, asks: Pod
) -> None:
    nodes.put_node(node("other"))
    nodes.put_storage(csi_node("node", csi=1 + room))
    prepared = plugin.pre_filter(asks, nodes.nodes)
    if isinstance(prepared, Rejected):
        return
    rows = nodes.nodes.rows

    rejected = plugin.filter(prepared, nodes.nodes, rows).rejected.tolist()
    quick = [plugin.recheck(prepared, nodes.nodes, nodes.nodes.facts(row)) for row in rows.tolist()]

    for full, answer in zip(rejected, quick, strict=True):
        assert answer in (Rescore.UNKNOWN, Rescore.INFEASIBLE if full else Rescore.UPDATED)
    if asks.claims == claiming("c0").claims:
        assert Rescore.UNKNOWN not in quick


@pytest.mark.parametrize("plugin", [BINDING, ZONES], ids=lambda plugin: plugin.name)
def test_it_does_not_matter_who_uses_a_volume(nodes: Cluster, plugin: Any) -> None:
    before = nodes.changes.generation
    nodes.put_pod(claiming("c0", "there", "zoned", name="user", node="node"))

    (kinds,) = (nodes.changes.since(before) or {}).values()
    assert not kinds & plugin.watch(claiming("c0"), nodes.nodes)


def test_volumes_without_limits_are_skipped(nodes: Cluster) -> None:
    """Then preemption looks at many nodes at once."""
    asked = [LIMITS.pre_filter(each, nodes.nodes) for each in (claiming("c0"), claiming("gone"))]
    assert [each is None for each in asked] == [True, False]
