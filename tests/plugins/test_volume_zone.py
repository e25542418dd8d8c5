"""VolumeZone."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.framework.status import Code, unresolvable
from moorage.framework.wakeups import Action, Resource
from moorage.objects.node import BETA_REGION, BETA_ZONE, REGION, ZONE
from moorage.plugins.volumes.volume_zone import VolumeZone
from tests.builders import cluster, node, pod
from tests.plugins.asking import codes, listens, rejections, wakes
from tests.storage_builders import claiming, mounting, pv, pvc, storage_class

PLUGIN = VolumeZone()
REASON = ("node(s) had no available volume zone",)


@pytest.mark.parametrize(
    ("volume", "labels", "fits"),
    [
        pytest.param({ZONE: "a"}, {ZONE: "a"}, True, id="the same zone"),
        pytest.param({ZONE: "a"}, {ZONE: "b"}, False, id="another zone"),
        pytest.param({ZONE: "a__b"}, {ZONE: "b"}, True, id="one of its zones"),
        pytest.param({ZONE: "a__ b"}, {ZONE: "b"}, True, id="spaces do not matter"),
        pytest.param({ZONE: "a"}, {}, True, id="a node without zone labels"),
        pytest.param({ZONE: "a"}, {REGION: "r"}, False, id="a node with some other of the labels"),
        pytest.param({BETA_ZONE: "a"}, {ZONE: "a"}, True, id="the newer label stands in"),
        pytest.param(
            {BETA_ZONE: "a"}, {BETA_ZONE: "b", ZONE: "a"}, False, id="the older label comes first"
        ),
        pytest.param({ZONE: "a"}, {BETA_ZONE: "a"}, False, id="the older one does not stand in"),
        pytest.param({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, False, id="both count"),
        pytest.param({BETA_REGION: "r"}, {REGION: "r"}, True, id="regions"),
        pytest.param({ZONE: "a", REGION: "r__"}, {ZONE: "a"}, True, id="an empty zone is none"),
    ],
)
def test_labels(volume: dict[str, str], labels: dict[str, str], fits: bool) -> None:
    nodes = cluster(node(labels=labels), pv("p", labels=volume), pvc("a", volume="p"))

    assert rejections(PLUGIN, claiming("a"), nodes) == ({} if fits else {"node": REASON})


def test_evicting_pods_does_not_help() -> None:
    nodes = cluster(node(labels={ZONE: "b"}), pv("p", labels={ZONE: "a"}), pvc("a", volume="p"))

    assert codes(PLUGIN, claiming("a"), nodes) == {"node": Code.UNRESOLVABLE}


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        pytest.param("gone", 'persistentvolumeclaim "gone" not found', id="no such claim"),
        pytest.param("", "PersistentVolumeClaim had no name", id="a claim without a name"),
        pytest.param("lost", 'persistentvolume "gone" not found', id="no such volume"),
        pytest.param(
            "classless",
            "PersistentVolumeClaim had no pv name and storageClass name",
            id="neither volume nor class",
        ),
        pytest.param("unknown", 'storageclass.storage.k8s.io "gone" not found', id="no such class"),
        pytest.param(
            "odd", 'VolumeBindingMode not set for StorageClass "odd"', id="a class without a mode"
        ),
        pytest.param("immediate", "PersistentVolume had no name", id="not bound yet"),
    ],
)
def test_rejections_of_the_pod(claim: str, message: str) -> None:
    nodes = cluster(
        node(),
        pvc("lost", volume="gone"),
        pvc("classless", class_name=""),
        pvc("unknown", class_name="gone"),
        pvc("odd", class_name="odd"),
        pvc("immediate", class_name="immediate"),
        storage_class("odd", mode=None),
        storage_class("immediate", mode="Immediate"),
    )

    assert PLUGIN.pre_filter(claiming(claim), nodes.nodes) == unresolvable(message)


@pytest.mark.parametrize(
    "asks",
    [
        pytest.param(pod(), id="no claim"),
        pytest.param(claiming("late"), id="a claim that waits for its pod"),
        pytest.param(claiming("bound"), id="a volume without zone labels"),
        pytest.param(mounting({"ephemeral": {}}), id="an ephemeral volume"),
    ],
)
def test_skips(asks: Any) -> None:
    nodes = cluster(node(), pvc("late"), storage_class(), pv("p"), pvc("bound", volume="p"))

    assert PLUGIN.pre_filter(asks, nodes.nodes) is None


def test_it_listens_to() -> None:
    assert listens(PLUGIN) == {
        (Resource.STORAGE_CLASS, Action.ADD),
        (Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
        (Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE),
        (Resource.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE),
    }


@pytest.mark.parametrize(("mode", "woken"), [("WaitForFirstConsumer", True), ("Immediate", False)])
def test_a_class_is_added(mode: str, woken: bool) -> None:
    new = storage_class(mode=mode)

    assert wakes(PLUGIN, Resource.STORAGE_CLASS, Action.ADD, pod=claiming("a"), new=new) is woken


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        pytest.param(None, pv(), True, id="a new volume"),
        pytest.param(pv(), pv(labels={ZONE: "a"}), True, id="a zone was added"),
        pytest.param(pv(labels={ZONE: "b"}), pv(labels={ZONE: "a"}), True, id="another zone"),
        pytest.param(pv(), pv(labels={"app": "a"}), False, id="another label"),
    ],
)
def test_a_volume_changes(old: Any, new: Any, woken: bool) -> None:
    action = Action.ADD if old is None else Action.UPDATE
    kind = Resource.PERSISTENT_VOLUME

    assert wakes(PLUGIN, kind, action, pod=claiming("a"), old=old, new=new) is woken


@pytest.mark.parametrize(
    ("new", "woken"),
    [
        pytest.param(pvc("a"), True, id="its claim"),
        pytest.param(pvc("b"), False, id="another claim"),
        pytest.param(pvc("a", namespace="other"), False, id="in another namespace"),
    ],
)
def test_a_claim_changes(new: Any, woken: bool) -> None:
    kind = Resource.PERSISTENT_VOLUME_CLAIM

    assert wakes(PLUGIN, kind, Action.UPDATE, pod=claiming("a"), old=new, new=new) is woken
