"""Taking in storage objects: pods that wait for them hear of it, under kube-scheduler's labels."""

from __future__ import annotations

import pytest

from moorage.config import default
from moorage.engine import Engine
from moorage.engine.events import Applied, Removed
from moorage.framework.profile import known_plugins
from moorage.framework.wakeups import Action
from moorage.objects.storage import StorageObject
from moorage.plugins import REGISTRY
from moorage.queue.object_events import object_event
from tests.builders import node
from tests.storage_builders import (
    attachment,
    claiming,
    csi_driver,
    csi_node,
    pv,
    pvc,
    storage_capacity,
    storage_class,
)


@pytest.mark.parametrize(
    ("item", "action", "label"),
    [
        (pv(), Action.ADD, "PersistentVolumeAdd"),
        (pvc(), Action.UPDATE, "PersistentVolumeClaimUpdate"),
        (storage_class(), Action.ADD, "storage.k8s.io/StorageClassAdd"),
        (csi_node(), Action.ADD, "storage.k8s.io/CSINodeAdd"),
        (csi_driver(), Action.UPDATE, "storage.k8s.io/CSIDriverUpdate"),
        (storage_capacity(), Action.DELETE, "storage.k8s.io/CSIStorageCapacityDelete"),
        (
            attachment(node="n", volume="v"),
            Action.DELETE,
            "storage.k8s.io/VolumeAttachmentDelete",
        ),
    ],
)
def test_labels(item: StorageObject, action: Action, label: str) -> None:
    assert object_event(item, action).label == label


def test_a_pod_waits_for_its_claim_and_hears_of_it() -> None:
    engine = Engine(default(known_plugins(REGISTRY)), REGISTRY)
    engine.handle(Applied(node()), now=0.0)
    engine.handle(Applied(storage_class()), now=0.0)
    engine.handle(Applied(claiming("claim")), now=0.0)
    engine.step(0.0)
    assert engine.cluster.pod("default/pod") is None

    engine.handle(Applied(pvc("other")), now=100.0)
    engine.step(100.0)
    assert engine.cluster.pod("default/pod") is None
    engine.handle(Applied(pvc("claim")), now=100.0)
    engine.step(100.0)

    reserved = engine.cluster.nodes.storage.reservation("default/pod")
    assert reserved is not None
    assert reserved.provisions == ("default/claim",)


def test_what_is_removed_is_gone() -> None:
    engine = Engine(default(known_plugins(REGISTRY)), REGISTRY)
    for item in (pv(), pvc(), csi_node()):
        engine.handle(Applied(item), now=0.0)
        assert engine.cluster.nodes.storage.find(item) == item
        engine.handle(Removed(item), now=0.0)
        assert engine.cluster.nodes.storage.find(item) is None
