"""VolumeBinding: from the chosen node to bound volumes."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cluster import Cluster
from moorage.framework.plugin import ClaimWrite, Preparation, VolumeWrite
from moorage.framework.status import Code, Rejected, unresolvable
from moorage.objects.node import ZONE
from moorage.objects.pod import Pod
from moorage.objects.storage import StorageObject
from moorage.plugins.volumes.volume_binding import VolumeBinding, VolumeBindingArgs
from tests.builders import cluster, node, pod
from tests.storage_builders import claiming, csi_node, pv, pvc, storage_class

PLUGIN = VolumeBinding(VolumeBindingArgs(bind_timeout_seconds=30))
LOCAL = storage_class("local", provisioner="kubernetes.io/no-provisioner")
MADE, FOUND = pvc("made"), pvc("found", class_name="local")
VOLUME = pv("v", class_name="local", hosts=("node",))


@pytest.fixture
def nodes() -> Cluster:
    return cluster(node("node"), node("other"), LOCAL, storage_class(), MADE, FOUND, VOLUME)


def placed(nodes: Cluster, *claims: str) -> Pod:
    """A pod that is assumed on the node, with its volumes reserved."""
    assumed = nodes.assume(claiming(*claims), "node")
    assert PLUGIN.reserve(assumed, nodes.nodes, 0) is None
    return assumed


def failed(why: str) -> Rejected:
    return Rejected(Code.ERROR, (f"binding volumes: {why}",))


UNREADABLE = (
    "could not translate pv: failed to get region from zones: zone in unexpected format, "
    "expected: {locale}-{region}-{zone}, got: x"
)


def unreadable(name: str, **given: Any) -> StorageObject:
    """A disk of GCE whose zones cannot be read."""
    disk: dict[str, Any] = {"csi": None, "gcePersistentDisk": {"pdName": name}}
    return pv(name, class_name="local", labels={ZONE: "x__y"}, **disk, **given)


def test_what_is_written(nodes: Cluster) -> None:
    on_its_way = placed(nodes, "made", "found")

    assert PLUGIN.prepare(on_its_way, nodes.nodes, "node") == Preparation(
        volumes=(VolumeWrite("v", "default", "found", "uid-found"),),
        claims=(ClaimWrite("default", "made", "node"),),
        timeout_seconds=30.0,
    )
    assert PLUGIN.is_prepared(on_its_way, nodes.nodes, "node") is False


@pytest.mark.parametrize("claims", [[], ["bound"]])
def test_nothing_is_written_for_bound_claims(nodes: Cluster, claims: list[str]) -> None:
    nodes.put_storage(pv("w", claim="bound"))
    nodes.put_storage(pvc("bound", volume="w"))
    on_its_way = placed(nodes, *claims)

    assert PLUGIN.prepare(on_its_way, nodes.nodes, "node") is None
    assert PLUGIN.is_prepared(on_its_way, nodes.nodes, "node") is True


def test_another_pod_cannot_have_what_is_reserved(nodes: Cluster) -> None:
    nodes.put_storage(pvc("second", class_name="local"))
    placed(nodes, "found")

    answer = PLUGIN.reserve(claiming("second", name="late"), nodes.nodes, 0)

    assert answer == unresolvable("node(s) didn't find available persistent volumes to bind")


def test_a_pod_with_the_same_claim_follows(nodes: Cluster) -> None:
    placed(nodes, "made", "found")
    second = nodes.assume(claiming("made", "found", name="second"), "node")

    assert PLUGIN.reserve(second, nodes.nodes, 0) is None
    assert PLUGIN.reserve(claiming("made", name="third"), nodes.nodes, 1) is not None


def test_reserving_on_a_node_without_storage_is_refused(nodes: Cluster) -> None:
    answer = PLUGIN.reserve(claiming("found"), nodes.nodes, 1)

    assert answer == unresolvable("node(s) didn't find available persistent volumes to bind")
    assert nodes.nodes.storage.reservation("default/pod") is None


WRITTEN = pv("v", class_name="local", hosts=("node",), claim="found@uid-found")


@pytest.mark.parametrize(
    ("seen", "answer"),
    [
        pytest.param([WRITTEN], False, id="the volume is written, the claim is not bound"),
        pytest.param(
            [pv("v", class_name="local", hosts=("node",), labels={"x": "y"})],
            False,
            id="something else of the volume changed first",
        ),
        pytest.param(
            [WRITTEN, pvc("found", class_name="local", volumeName="v")], False, id="half bound"
        ),
        pytest.param([WRITTEN, pvc("found", class_name="local", volume="v")], True, id="bound"),
        pytest.param(
            [WRITTEN, VOLUME], failed('ClaimRef got reset for pv "v"'), id="written, then reset"
        ),
        pytest.param(
            [pv("v", class_name="local", hosts=("node",), claim="other@uid")],
            failed('ClaimRef got reset for pv "v"'),
            id="given to another claim",
        ),
        pytest.param(
            [WRITTEN, pvc("found", class_name="local", volume="w")],
            failed('PVC "default/found" is bound to pv "w"'),
            id="the claim got another volume",
        ),
        pytest.param(
            [pv("v", class_name="local", hosts=("other",), claim="found@uid-found")],
            failed(
                'pv "v" node affinity doesn\'t match node "node": no matching NodeSelectorTerms'
            ),
            id="the volume is of another node now",
        ),
        pytest.param(
            [csi_node(migrated="kubernetes.io/gce-pd"), unreadable("v", claim="found@uid-found")],
            failed(f"failed to translate pv to csi: {UNREADABLE}"),
            id="the volume is one that its driver cannot know",
        ),
    ],
)
def test_binding(nodes: Cluster, seen: list[StorageObject], answer: bool | Rejected) -> None:
    on_its_way = placed(nodes, "found")
    for item in seen:
        nodes.put_storage(item)

    assert PLUGIN.is_prepared(on_its_way, nodes.nodes, "node") == answer


@pytest.mark.parametrize(
    ("gone", "why"),
    [
        pytest.param(VOLUME, 'could not find v1.PersistentVolume "v"', id="the volume"),
        pytest.param(
            FOUND, 'could not find v1.PersistentVolumeClaim "default/found"', id="the claim"
        ),
    ],
)
def test_what_is_to_be_bound_is_gone(nodes: Cluster, gone: StorageObject, why: str) -> None:
    on_its_way = placed(nodes, "found")
    nodes.remove_storage(gone)

    answer = PLUGIN.is_prepared(on_its_way, nodes.nodes, "node")

    assert answer == failed(f"failed to check binding: {why}")


SELECTED = pvc("made", selected_node="node")


@pytest.mark.parametrize(
    ("seen", "answer"),
    [
        pytest.param([SELECTED], False, id="the node is written, the volume is still made"),
        pytest.param([pvc("made", metadata={"labels": {"x": "y"}})], False, id="not written yet"),
        pytest.param(
            [SELECTED, pvc("made")], failed('provisioning failed for PVC "made"'), id="given up"
        ),
        pytest.param(
            [pvc("made", selected_node="other")],
            failed('provisioning failed for PVC "made"'),
            id="another node was selected",
        ),
        pytest.param(
            [pvc("made", selected_node="node", volume="w")], False, id="the volume is not seen yet"
        ),
        pytest.param([pvc("made", selected_node="node", volume="w"), pv("w")], True, id="bound"),
        pytest.param(
            [pvc("made", selected_node="node", volume="w"), pv("w", hosts=("other",))],
            failed(
                'pv "w" node affinity doesn\'t match node "node": no matching NodeSelectorTerms'
            ),
            id="made where it cannot be used",
        ),
        pytest.param(
            [
                csi_node(migrated="kubernetes.io/gce-pd"),
                pvc("made", selected_node="node", volume="w"),
                unreadable("w"),
            ],
            failed(UNREADABLE),
            id="made as one that its driver cannot know",
        ),
    ],
)
def test_provisioning(nodes: Cluster, seen: list[StorageObject], answer: bool | Rejected) -> None:
    on_its_way = placed(nodes, "made")
    for item in seen:
        nodes.put_storage(item)

    assert PLUGIN.is_prepared(on_its_way, nodes.nodes, "node") == answer


def test_the_claim_to_be_provisioned_is_gone(nodes: Cluster) -> None:
    on_its_way = placed(nodes, "made")
    nodes.remove_storage(MADE)

    answer = PLUGIN.is_prepared(on_its_way, nodes.nodes, "node")

    why = 'could not find v1.PersistentVolumeClaim "default/made"'
    assert answer == failed(f"failed to check provisioning pvc: {why}")


def test_the_node_is_gone(nodes: Cluster) -> None:
    on_its_way = placed(nodes, "made")
    nodes.remove_node("node")

    answer = PLUGIN.is_prepared(on_its_way, nodes.nodes, "node")

    assert answer == failed('failed to get node "node": node "node" not found')


def test_unreserving_a_pod_without_claims_does_nothing(nodes: Cluster) -> None:
    PLUGIN.unreserve(pod(), nodes.nodes, "node")

    assert PLUGIN.is_prepared(pod(), nodes.nodes, "node") is True
