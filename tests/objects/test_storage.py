"""Storage objects: what is read of them, and what CSI drivers make of in-tree volumes."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.objects.csi import CSINode
from moorage.objects.decode import from_builtins
from moorage.objects.in_tree import Attachable, Sources, Terms, migrated_terms
from moorage.objects.node import BETA_REGION, BETA_ZONE, REGION, ZONE
from moorage.objects.node_selector import NodeRequirement, NodeTerm
from moorage.objects.storage import PersistentVolume, PersistentVolumeClaim
from tests.storage_builders import csi_node, mounting, pv, pvc, storage_capacity, storage_class

EBS_ZONE = "topology.ebs.csi.aws.com/zone"


def in_(key: str, *values: str) -> NodeRequirement:
    return NodeRequirement(key, "In", values)


def test_the_class_may_be_an_annotation() -> None:
    metadata = {"annotations": {"volume.beta.kubernetes.io/storage-class": "noted"}}

    assert pv(metadata=metadata).class_name == "noted"
    assert pvc(metadata=metadata).class_name == "noted"


def test_defaults() -> None:
    volume = from_builtins("PersistentVolume", {"metadata": {"name": "v"}})
    claim = from_builtins("PersistentVolumeClaim", {"metadata": {"name": "c"}})

    assert isinstance(volume, PersistentVolume)
    assert isinstance(claim, PersistentVolumeClaim)
    assert (volume.volume_mode, volume.node_terms, volume.source) == ("Filesystem", None, None)
    assert (claim.key, claim.request, claim.selector) == ("default/c", None, None)
    assert not claim.is_bound


@pytest.mark.parametrize(
    ("claim", "bound"),
    [
        pytest.param(pvc(volume="v"), True, id="bound"),
        pytest.param(pvc(volumeName="v"), False, id="not from both sides"),
        pytest.param(pvc(), False, id="no volume"),
    ],
)
def test_a_claim_is_bound_when_both_sides_say_so(claim: PersistentVolumeClaim, bound: bool) -> None:
    assert claim.is_bound is bound


@pytest.mark.parametrize(
    ("volume", "is_for"),
    [
        pytest.param(pv(claim="claim"), True, id="by name"),
        pytest.param(pv(claim="claim@uid-claim"), True, id="by uid"),
        pytest.param(pv(claim="claim@old"), False, id="a former one"),
        pytest.param(pv(claim="other"), False, id="another"),
        pytest.param(pv(), False, id="none"),
    ],
)
def test_a_volume_is_kept_for_a_claim(volume: PersistentVolume, is_for: bool) -> None:
    assert volume.is_for(pvc("claim")) is is_for


def test_what_a_csi_node_says() -> None:
    written = {
        "metadata": {"name": "n"},
        "spec": {"drivers": [{"name": "a"}, {"name": "b", "allocatable": {"count": 0}}]},
    }
    read = from_builtins("CSINode", written)

    assert isinstance(read, CSINode)
    assert (read.limits, read.migrated_plugins) == ({"b": 0}, frozenset())
    assert csi_node(migrated="x,y").migrated_plugins == {"x", "y"}


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ({}, None),
        ({"capacity": "1Ki"}, 1024),
        ({"capacity": "1Gi", "maximumVolumeSize": "1Ki"}, 1024),
        ({"maximumVolumeSize": "1Ki"}, 1024),
    ],
)
def test_how_large_a_new_volume_can_be(given: dict[str, str], limit: int | None) -> None:
    assert storage_capacity(**given).limit_bytes == limit  # type: ignore[arg-type]


def test_a_topology_without_values_is_none() -> None:
    topologies = [{"matchLabelExpressions": [{"key": ZONE}]}, {}, _topology("b", "a")]

    assert storage_class(allowedTopologies=topologies).allowed_topologies == (
        None,
        None,
        NodeTerm((in_(ZONE, "a", "b"),)),
    )


def _topology(*values: str) -> dict[str, Any]:
    return {"matchLabelExpressions": [{"key": ZONE, "values": list(values)}]}


@pytest.mark.parametrize(
    ("source", "attachable"),
    [
        (
            {"awsElasticBlockStore": {"volumeID": "vol-1"}},
            Attachable("ebs.csi.aws.com", "vol-1", "kubernetes.io/aws-ebs"),
        ),
        (
            {"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}},
            Attachable("ebs.csi.aws.com", "vol-1", "kubernetes.io/aws-ebs"),
        ),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            Attachable(
                "pd.csi.storage.gke.io",
                "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
                "kubernetes.io/gce-pd",
            ),
        ),
        (
            {"azureDisk": {"diskName": "d", "diskURI": "u"}},
            Attachable("disk.csi.azure.com", "u", "kubernetes.io/azure-disk"),
        ),
        (
            {"cinder": {"volumeID": "v"}},
            Attachable("cinder.csi.openstack.org", "v", "kubernetes.io/cinder"),
        ),
        (
            {"portworxVolume": {"volumeID": "v"}},
            Attachable("pxd.portworx.com", "v", "kubernetes.io/portworx-volume"),
        ),
        ({"rbd": {"monitors": ["m"], "image": "i"}}, None),
    ],
)
def test_drivers_of_in_tree_volumes(source: dict[str, Any], attachable: Attachable | None) -> None:
    volumes = mounting(source).spec.volumes
    assert volumes is not None

    assert Sources.inline(volumes[0]).attachable() == attachable
    assert bool(mounting(source).spec.migratable) is (attachable is not None)


UNREADABLE = "failed to get region from zones: zone in unexpected format, expected: "


@pytest.mark.parametrize(
    ("labels", "place", "fault"),
    [
        pytest.param({}, "zones/UNSPECIFIED", "", id="no zone"),
        pytest.param({ZONE: ""}, "zones/UNSPECIFIED", "", id="an empty zone"),
        pytest.param({ZONE: "x"}, "zones/x", "", id="any one zone"),
        pytest.param({ZONE: "x", BETA_ZONE: "y"}, "zones/y", "", id="the old label comes first"),
        pytest.param({ZONE: "x", BETA_ZONE: ""}, "zones/x", "", id="unless it is empty"),
        pytest.param(
            {ZONE: "europe-west1-b__europe-west1-c"}, "regions/europe-west1", "", id="a region"
        ),
        pytest.param(
            {ZONE: "us-east1-c__europe-west1-b"},
            "",
            "failed to get region from zones: multiple or no regions gotten from zones, got: "
            "map[europe-west1:{} us-east1:{}]",
            id="two regions",
        ),
        pytest.param(
            {ZONE: "europe-west1-b__y"},
            "",
            UNREADABLE + "{locale}-{region}-{zone}, got: y",
            id="a zone of another form",
        ),
        pytest.param(
            {ZONE: "a-b-c-d__a-b-c"},
            "",
            UNREADABLE + "{locale}-{region}-{zone}, got: a-b-c-d",
            id="a longer zone",
        ),
        pytest.param(
            {ZONE: "__"}, "", UNREADABLE + "{locale}-{region}-{zone}, got: ", id="empty zones"
        ),
    ],
)
def test_disks_of_gce_are_known_by_their_zone_or_region(
    labels: dict[str, str], place: str, fault: str
) -> None:
    disk = pv(labels=labels, csi=None, gcePersistentDisk={"pdName": "d"})

    handle = f"projects/UNSPECIFIED/{place}/disks/d" if place else ""
    assert disk.source == Attachable("pd.csi.storage.gke.io", handle, "kubernetes.io/gce-pd", fault)


@pytest.mark.parametrize(
    ("terms", "labels", "migrated"),
    [
        pytest.param(None, {}, None, id="no affinity and no labels"),
        pytest.param(
            (NodeTerm((in_(ZONE, "a"),)),),
            {},
            (NodeTerm((in_(EBS_ZONE, "a"),)),),
            id="the zone in the affinity",
        ),
        pytest.param(
            (NodeTerm((in_(BETA_ZONE, "a"), in_(BETA_REGION, "r"))),),
            {},
            (NodeTerm((in_(EBS_ZONE, "a"), in_(REGION, "r"))),),
            id="the older labels in the affinity",
        ),
        pytest.param(
            None, {ZONE: "a__b"}, (NodeTerm((in_(EBS_ZONE, "a", "b"),)),), id="the zone as a label"
        ),
        pytest.param(
            (NodeTerm((in_("host", "h"),)), None),
            {BETA_ZONE: "a"},
            (NodeTerm((in_("host", "h"), in_(EBS_ZONE, "a"))), NodeTerm((in_(EBS_ZONE, "a"),))),
            id="the zone as a label is added to every term",
        ),
        pytest.param(
            (NodeTerm((in_(ZONE, "a"),)),),
            {ZONE: "b"},
            (NodeTerm((in_(EBS_ZONE, "a"),)),),
            id="the affinity comes first",
        ),
        pytest.param(
            (NodeTerm((in_("host", "h"),)),),
            {ZONE: ""},
            (NodeTerm((in_("host", "h"),)),),
            id="an empty label",
        ),
    ],
)
def test_migrated_affinity(
    terms: Terms | None, labels: dict[str, str], migrated: Terms | None
) -> None:
    assert migrated_terms("kubernetes.io/aws-ebs", terms, labels) == migrated
    assert migrated_terms("kubernetes.io/azure-disk", terms, labels) == terms
