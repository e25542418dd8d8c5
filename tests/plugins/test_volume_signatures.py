"""The signatures of the volume plugins: what pods share answers, and which changes they fear."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.cluster import Change, Cluster
from mooring.framework.plugin import UNSIGNABLE, Sign
from mooring.objects.node import ZONE
from mooring.objects.pod import Pod
from mooring.plugins.volumes.node_volume_limits import NodeVolumeLimits
from mooring.plugins.volumes.volume_binding import VolumeBinding
from mooring.plugins.volumes.volume_restrictions import VolumeRestrictions
from mooring.plugins.volumes.volume_zone import VolumeZone
from tests.builders import cluster, node, pod
from tests.storage_builders import claiming, mounting, pv, pvc, storage_class

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
    assert plugin.watch(claiming("c0"), nodes.nodes) & Change.VOLUMES
