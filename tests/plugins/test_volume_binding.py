"""VolumeBinding: where a pod can go with its claims."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cluster.storage.objects import Reservation
from moorage.framework.status import Code, PluginError, unresolvable
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, Resource
from moorage.objects.node import ZONE
from moorage.objects.pod import Pod
from moorage.objects.storage import StorageObject
from moorage.plugins.volumes.volume_binding import VolumeBinding, VolumeBindingArgs
from tests.builders import cluster, node, pod
from tests.plugins.asking import codes, listens, rejections, scores, verdict, wakes
from tests.storage_builders import (
    claiming,
    csi_driver,
    csi_node,
    mounting,
    pv,
    pvc,
    storage_capacity,
    storage_class,
)

PLUGIN = VolumeBinding()
UNUSABLE = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
NO_SUCH = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

LOCAL = storage_class("local", provisioner="kubernetes.io/no-provisioner")
LATE = storage_class("late")
EPHEMERAL: dict[str, Any] = {"ephemeral": {}}
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def local(name: str, host: str, **given: Any) -> StorageObject:
    return pv(name, class_name="local", hosts=(host,), **given)


@pytest.mark.parametrize(
    ("asks", "objects", "message"),
    [
        pytest.param(claiming("a"), [], 'persistentvolumeclaim "a" not found', id="no such claim"),
        pytest.param(
            mounting(EPHEMERAL),
            [],
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "pod-v0"',
            id="a claim that is still to be made",
        ),
        pytest.param(
            claiming("a"),
            [pvc("a", volume="v", phase="Lost")],
            'persistentvolumeclaim "a" bound to non-existent persistentvolume "v"',
            id="a claim that lost its volume",
        ),
        pytest.param(
            claiming("a"),
            [pvc("a", metadata=DELETED)],
            'persistentvolumeclaim "a" is being deleted',
            id="a claim that is going",
        ),
        pytest.param(
            mounting(EPHEMERAL),
            [pvc("pod-v0", owner="another")],
            "PVC default/pod-v0 was not created for pod default/pod (pod is not owner)",
            id="a claim of another pod",
        ),
        *(
            pytest.param(
                claiming("a"),
                [claim, LATE, storage_class("now", mode="Immediate")],
                "pod has unbound immediate PersistentVolumeClaims",
                id=f"unbound: {why}",
            )
            for why, claim in {
                "bound by others": pvc("a", class_name="now"),
                "no class": pvc("a", class_name=""),
                "no such class": pvc("a", class_name="gone"),
                "a volume is named": pvc("a", volumeName="v"),
            }.items()
        ),
    ],
)
def test_rejections_of_the_pod(asks: Pod, objects: list[StorageObject], message: str) -> None:
    nodes = cluster(node(), *objects)

    assert PLUGIN.pre_filter(asks, nodes.nodes) == unresolvable(message)


def test_a_class_without_a_mode_is_an_error() -> None:
    nodes = cluster(
        node(),
        pvc("a", class_name="gone"),
        pvc("b", class_name="odd"),
        storage_class("odd", mode=None),
    )

    with pytest.raises(PluginError, match='VolumeBindingMode not set for StorageClass "odd"'):
        PLUGIN.pre_filter(claiming("a", "b"), nodes.nodes)


def test_pods_without_claims_are_skipped() -> None:
    nodes = cluster(node())

    for asks in (pod(), mounting({"gcePersistentDisk": {"pdName": "d"}})):
        assert PLUGIN.pre_filter(asks, nodes.nodes) is None


@pytest.mark.parametrize(
    ("claims", "rejected"),
    [
        pytest.param(["on-a"], {"b": (UNUSABLE,), "c": (UNUSABLE,)}, id="one node can use it"),
        pytest.param(["anywhere"], {}, id="every node can use it"),
        pytest.param(["lost"], dict.fromkeys("abc", (NO_SUCH,)), id="no such volume"),
        pytest.param(
            ["on-a", "lost"],
            {"a": (NO_SUCH,), "b": (UNUSABLE,), "c": (UNUSABLE,)},
            id="the first claim that fails decides",
        ),
        pytest.param(
            ["lost", "on-a"], dict.fromkeys("abc", (NO_SUCH,)), id="also when a volume is missing"
        ),
    ],
)
def test_bound_claims(claims: list[str], rejected: dict[str, tuple[str, ...]]) -> None:
    nodes = cluster(
        node("a"),
        node("b"),
        node("c"),
        pv("v1", hosts=("a",)),
        pv("v2"),
        pvc("on-a", volume="v1"),
        pvc("anywhere", volume="v2"),
        pvc("lost", volume="gone"),
    )

    assert rejections(PLUGIN, claiming(*claims), nodes) == rejected
    assert set(codes(PLUGIN, claiming(*claims), nodes).values()) <= {Code.UNRESOLVABLE}


@pytest.mark.parametrize(
    ("term", "fits"),
    [
        pytest.param({}, False, id="an empty term"),
        pytest.param(
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node"]}]},
            True,
            id="a name that is the node's",
        ),
        pytest.param(
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["other"]}]},
            True,
            id="a name that is another's",
        ),
        pytest.param(
            {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["node"]}]},
            True,
            id="a name that excludes",
        ),
        pytest.param(
            {
                "matchExpressions": [{"key": "absent", "operator": "Exists"}],
                "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node"]}],
            },
            False,
            id="labels besides a name",
        ),
    ],
)
def test_volumes_are_matched_with_labels_only(term: dict[str, Any], fits: bool) -> None:
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    nodes = cluster(node(), pv("v", nodeAffinity=affinity), pvc("a", volume="v"))

    assert rejections(PLUGIN, claiming("a"), nodes) == ({} if fits else {"node": (UNUSABLE,)})


@pytest.mark.parametrize(
    ("volume", "suits"),
    [
        pytest.param({}, True, id="it suits"),
        pytest.param({"size": "500Mi"}, False, id="too small"),
        pytest.param({"class_name": "other"}, False, id="another class"),
        pytest.param({"phase": "Released"}, False, id="not available"),
        pytest.param({"phase": "Pending"}, False, id="not available yet"),
        pytest.param({"volumeMode": "Block"}, False, id="another mode"),
        pytest.param({"accessModes": ["ReadOnlyMany"]}, False, id="other access modes"),
        pytest.param({"accessModes": ["ReadWriteMany", "ReadWriteOnce"]}, True, id="more modes"),
        pytest.param({"labels": {"kind": "slow"}}, False, id="not selected"),
        pytest.param({"volumeAttributesClassName": "gold"}, False, id="other attributes"),
        pytest.param({"metadata": DELETED}, False, id="being deleted"),
        pytest.param({"claim": "other"}, False, id="kept for another claim"),
        pytest.param({"claim": "a@old"}, False, id="kept for a former claim of that name"),
        pytest.param({"hosts": ("elsewhere",)}, False, id="of another node"),
    ],
)
def test_a_volume_for_a_claim(volume: dict[str, Any], suits: bool) -> None:
    offered = {"class_name": "local", "labels": {"kind": "fast"}, **volume}
    wanted = pvc("a", class_name="local", selector={"matchLabels": {"kind": "fast"}})
    nodes = cluster(node(), LOCAL, wanted, pv("v", **offered))

    assert rejections(PLUGIN, claiming("a"), nodes) == ({} if suits else {"node": (NO_VOLUME,)})


@pytest.mark.parametrize(
    ("volume", "chosen"),
    [
        pytest.param({}, "kept", id="whatever phase, modes and labels it has"),
        pytest.param({"claim": "a@uid-a"}, "kept", id="with the uid of the claim"),
        pytest.param({"hosts": ("elsewhere",)}, "", id="and no other where it cannot be used"),
        pytest.param({"size": "1Mi"}, "free", id="unless it is too small"),
        pytest.param({"class_name": "other"}, "free", id="unless it is of another class"),
        pytest.param({"metadata": DELETED}, "free", id="unless it is being deleted"),
    ],
)
def test_a_volume_that_is_kept_for_the_claim_decides(volume: dict[str, Any], chosen: str) -> None:
    kept = {"class_name": "local", "claim": "a", "phase": "Released", "accessModes": [], **volume}
    nodes = cluster(
        node(), LOCAL, pvc("a", class_name="local"), pv("kept", **kept), local("free", "node")
    )

    refused = PLUGIN.reserve(claiming("a"), nodes.nodes, 0)

    reserved = nodes.nodes.storage.reservation("default/pod") or Reservation("node")
    assert [binding.volume_name for binding in reserved.bindings] == ([chosen] if chosen else [])
    assert refused == (None if chosen else unresolvable(NO_VOLUME))


def test_claims_do_not_share_a_volume() -> None:
    nodes = cluster(
        node("one"),
        node("two"),
        LOCAL,
        pvc("small", class_name="local", size="1Gi"),
        pvc("large", class_name="local", size="2Gi"),
        local("v1", "one", size="3Gi"),
        local("v2", "two", size="3Gi"),
        local("v3", "two", size="1Gi"),
    )

    assert rejections(PLUGIN, claiming("large", "small"), nodes) == {"one": (NO_VOLUME,)}


@pytest.mark.parametrize("hosts", [("node",), ()], ids=["of the node", "of all nodes"])
def test_the_smallest_claim_takes_the_smallest_volume(hosts: tuple[str, ...]) -> None:
    nodes = cluster(
        node(),
        LOCAL,
        pvc("small", class_name="local", size="1Gi"),
        pvc("large", class_name="local", size="2Gi"),
        pv("a", class_name="local", size="4Gi", hosts=hosts),
        pv("b", class_name="local", size="3Gi", hosts=hosts),
        local("elsewhere", "other", size="1Gi"),
    )

    assert PLUGIN.reserve(claiming("large", "small"), nodes.nodes, 0) is None

    reserved = nodes.nodes.storage.reservation("default/pod")
    assert reserved is not None
    chosen = {binding.claim.name: binding.volume_name for binding in reserved.bindings}
    assert chosen == {"small": "b", "large": "a"}


@pytest.mark.parametrize(
    ("objects", "rejected"),
    [
        pytest.param([LATE], {}, id="a driver that provisions"),
        pytest.param(
            [storage_class("late", provisioner="kubernetes.io/no-provisioner")],
            {"a": (NO_VOLUME,), "b": (NO_VOLUME,)},
            id="a class that does not",
        ),
        pytest.param(
            [
                storage_class(
                    "late",
                    allowedTopologies=[
                        {"matchLabelExpressions": [{"key": ZONE, "values": ["z1"]}]}
                    ],
                )
            ],
            {"b": (NO_VOLUME,)},
            id="only in some topologies",
        ),
        pytest.param(
            [storage_class("late", allowedTopologies=[{}])],
            {"a": (NO_VOLUME,), "b": (NO_VOLUME,)},
            id="an empty topology is none",
        ),
        pytest.param(
            [LATE, csi_driver()], {"a": (NO_SPACE,), "b": (NO_SPACE,)}, id="no storage is known"
        ),
        pytest.param(
            [LATE, csi_driver(tells_capacity=False)], {}, id="storage is not told by the driver"
        ),
        pytest.param(
            [LATE, csi_driver(), storage_capacity(hosts=("a",), capacity="1Gi")],
            {"b": (NO_SPACE,)},
            id="storage on one node",
        ),
        pytest.param(
            [LATE, csi_driver(), storage_capacity(hosts=("a",), capacity="1Mi")],
            {"a": (NO_SPACE,), "b": (NO_SPACE,)},
            id="too little storage",
        ),
        pytest.param(
            [
                LATE,
                csi_driver(),
                storage_capacity(hosts=("a",), capacity="9Gi", maximumVolumeSize="1Mi"),
            ],
            {"a": (NO_SPACE,), "b": (NO_SPACE,)},
            id="enough storage, but not for one volume",
        ),
        pytest.param(
            [LATE, csi_driver(), storage_capacity(capacity="9Gi")],
            {"a": (NO_SPACE,), "b": (NO_SPACE,)},
            id="storage that no node can reach",
        ),
        pytest.param(
            [LATE, csi_driver(), storage_capacity(class_name="x", hosts=("a",), capacity="9Gi")],
            {"a": (NO_SPACE,), "b": (NO_SPACE,)},
            id="storage of another class",
        ),
    ],
)
def test_provisioning(objects: list[StorageObject], rejected: dict[str, tuple[str, ...]]) -> None:
    nodes = cluster(
        node("a", labels={ZONE: "z1"}), node("b", labels={ZONE: "z2"}), pvc("claim"), *objects
    )

    assert rejections(PLUGIN, claiming("claim"), nodes) == rejected


def test_a_selected_node_is_the_only_one() -> None:
    nodes = cluster(
        node("a"), node("b"), LATE, csi_driver(), pvc("claim", selected_node="a"), pv("v")
    )

    assert rejections(PLUGIN, claiming("claim"), nodes) == {"a": (NO_SPACE,), "b": (NO_VOLUME,)}


def test_reasons_about_bound_and_unbound_claims_are_told_together() -> None:
    nodes = cluster(node("a"), LOCAL, pv("v", hosts=("b",)), pvc("bound", volume="v"), pvc("late"))
    nodes.put_storage(pvc("free", class_name="local"))

    found = rejections(PLUGIN, claiming("bound", "free"), nodes)

    assert found == {"a": (UNUSABLE, NO_VOLUME)}


@pytest.mark.parametrize(
    ("labels", "affinity_zone", "rejected"),
    [
        pytest.param({}, "z1", {"old": None, "other": (UNUSABLE,)}, id="zone affinity"),
        pytest.param({ZONE: "z1"}, "", {"other": (UNUSABLE,)}, id="a zone label"),
    ],
)
def test_a_migrated_volume_is_matched_with_the_labels_of_its_driver(
    labels: dict[str, str], affinity_zone: str, rejected: dict[str, Any]
) -> None:
    expression = {"key": ZONE, "operator": "In", "values": [affinity_zone]}
    terms = [{"matchExpressions": [expression]}] if affinity_zone else []
    rule = {"required": {"nodeSelectorTerms": terms}} if terms else None
    ebs = "topology.ebs.csi.aws.com/zone"
    nodes = cluster(
        node("old", labels={ZONE: "z1"}),
        node("new", labels={ebs: "z1"}),
        node("other", labels={ebs: "z2", ZONE: "z1"}),
        csi_node("new", migrated="kubernetes.io/aws-ebs"),
        csi_node("other", migrated="kubernetes.io/gce-pd,kubernetes.io/aws-ebs"),
        pv("v", labels=labels, nodeAffinity=rule, csi=None, awsElasticBlockStore={"volumeID": "x"}),
        pvc("claim", volume="v"),
    )

    found = rejections(PLUGIN, claiming("claim"), nodes)

    assert found == {name: why for name, why in rejected.items() if why}


def in_zones(name: str, zones: str, **given: Any) -> StorageObject:
    return pv(name, labels={ZONE: zones}, csi=None, gcePersistentDisk={"pdName": name}, **given)


GCE_PD = "kubernetes.io/gce-pd"
UNREADABLE = (
    "could not translate pv: failed to get region from zones: zone in unexpected format, "
    "expected: {locale}-{region}-{zone}, got: "
)


def found_for(*volumes: StorageObject) -> Verdict:
    """What is found for a pod with these volumes: on a, all plugins are; on b, GCE's migrated."""
    claims = [pvc(f"claim-{each.name}", volume=each.name) for each in volumes]
    nodes = cluster(
        node("a"), node("b"), csi_node("a"), csi_node("b", migrated=GCE_PD), *volumes, *claims
    )
    found = verdict(PLUGIN, claiming(*(each.name for each in claims)), nodes)
    assert found is not None
    return found


def test_a_volume_that_the_driver_cannot_know_is_an_error_where_the_driver_is_used() -> None:
    found = found_for(in_zones("v", "x__y"))

    assert found.broken is not None
    assert found.broken.tolist() == [False, True]
    assert found.describe(1) == f"{UNREADABLE}x"


def test_the_first_such_volume_is_in_the_error() -> None:
    found = found_for(in_zones("v", "europe-west1-b"), in_zones("w", "q__r"), in_zones("x", "s__t"))

    # The first volume cannot be used on b, so that nothing else is asked there.
    assert found.broken is not None
    assert found.broken.tolist() == [False, False]
    assert found.rejected.tolist() == [False, True]
    found = found_for(in_zones("w", "q__r"), in_zones("x", "s__t"))
    assert found.describe(1) == f"{UNREADABLE}q"


def test_a_volume_that_is_missing_before_is_no_error() -> None:
    nodes = cluster(
        node("b"),
        csi_node("b", migrated=GCE_PD),
        in_zones("v", "x__y"),
        pvc("lost", volume="gone"),
        pvc("claim", volume="v"),
    )

    found = verdict(PLUGIN, claiming("lost", "claim"), nodes)

    assert found is not None
    assert found.broken is not None
    assert not found.broken.any()


def test_pods_whose_volumes_differ_in_what_the_driver_cannot_know_are_not_alike() -> None:
    nodes = cluster(
        node(),
        *(in_zones(name, zones) for name, zones in (("v", "__"), ("w", ""), ("x", "__"))),
        *(pvc(f"claim-{name}", volume=name) for name in "vwx"),
    )

    one, sound, like = (PLUGIN.sign(claiming(f"claim-{name}"), nodes.nodes) for name in "vwx")
    assert one == like != sound


# Scores


SCORING = VolumeBinding(VolumeBindingArgs(), scores=True)


def test_without_the_gate_nothing_is_scored() -> None:
    assert scores(PLUGIN, pod(), cluster(node())) is None
    assert scores(SCORING, pod(), cluster(node())) == {"node": 0}


def test_a_volume_that_is_mostly_used_scores_low() -> None:
    nodes = cluster(
        node("a"),
        node("b"),
        LOCAL,
        pvc("claim", class_name="local", size="1Gi"),
        local("v1", "a", size="1Gi"),
        local("v2", "b", size="4Gi"),
    )

    assert scores(SCORING, claiming("claim"), nodes) == {"a": 0, "b": 75}


def test_classes_count_alike() -> None:
    other = storage_class("other", provisioner="kubernetes.io/no-provisioner")
    nodes = cluster(
        node("a"),
        LOCAL,
        other,
        pvc("one", class_name="local", size="1Gi"),
        pvc("two", class_name="local", size="1Gi"),
        pvc("three", class_name="other", size="1Gi"),
        local("v1", "a", size="2Gi"),
        local("v2", "a", size="6Gi"),
        pv("v3", class_name="other", size="8Gi"),
    )

    # 2 of 8 and 1 of 8: 75 and 88.
    assert scores(SCORING, claiming("one", "two", "three"), nodes) == {"a": 82}


def test_storage_that_is_left_is_scored_where_nothing_is_bound() -> None:
    nodes = cluster(
        node("a"),
        node("b"),
        node("c"),
        LATE,
        csi_driver(),
        pvc("one", size="1Gi"),
        pvc("two", size="1Gi"),
        storage_capacity("a", hosts=("a",), capacity="4Gi"),
        storage_capacity("b", hosts=("b",), capacity="1Gi"),
        storage_capacity("c", hosts=("c",), capacity="8Gi"),
        pv("v1", hosts=("c",), size="2Gi"),
    )

    # On c one claim gets a volume, and that alone is looked at.
    assert scores(SCORING, claiming("one", "two"), nodes) == {"a": 50, "b": 0, "c": 50}


@pytest.mark.parametrize(
    ("args", "problems"),
    [
        pytest.param(VolumeBindingArgs(bind_timeout_seconds=0), [], id="no time"),
        pytest.param(
            VolumeBindingArgs(bind_timeout_seconds=-1),
            [("bindTimeoutSeconds", "must not be negative, got -1")],
            id="less than no time",
        ),
    ],
)
def test_args(args: VolumeBindingArgs, problems: list[tuple[str, str]]) -> None:
    assert list(args.problems()) == problems


# Waking up


def test_it_listens_to() -> None:
    both = Action.ADD | Action.UPDATE
    assert listens(PLUGIN) == {
        (Resource.STORAGE_CLASS, both),
        (Resource.PERSISTENT_VOLUME_CLAIM, both),
        (Resource.PERSISTENT_VOLUME, both),
        (Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
        (Resource.CSI_NODE, both),
        (Resource.CSI_DRIVER, Action.UPDATE),
        (Resource.CSI_STORAGE_CAPACITY, both),
    }


TOPOLOGY = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z"]}]}]


@pytest.mark.parametrize(
    ("resource", "old", "new", "woken"),
    [
        pytest.param(Resource.STORAGE_CLASS, None, LATE, True, id="a class is added"),
        pytest.param(
            Resource.STORAGE_CLASS,
            LATE,
            storage_class("late", allowedTopologies=TOPOLOGY),
            True,
            id="its topologies change",
        ),
        pytest.param(
            Resource.STORAGE_CLASS,
            LATE,
            storage_class("late", provisioner="x"),
            False,
            id="something else of it changes",
        ),
        pytest.param(Resource.PERSISTENT_VOLUME_CLAIM, None, pvc("a"), True, id="its claim"),
        pytest.param(
            Resource.PERSISTENT_VOLUME_CLAIM, None, pvc("pod-v1"), True, id="its ephemeral claim"
        ),
        pytest.param(Resource.PERSISTENT_VOLUME_CLAIM, None, pvc("b"), False, id="another claim"),
        pytest.param(
            Resource.PERSISTENT_VOLUME_CLAIM,
            None,
            pvc("a", namespace="other"),
            False,
            id="a claim of another namespace",
        ),
        pytest.param(Resource.PERSISTENT_VOLUME, pv(), pv(), True, id="any volume"),
        pytest.param(Resource.CSI_NODE, None, csi_node(), True, id="a CSINode is added"),
        pytest.param(
            Resource.CSI_NODE, csi_node(), csi_node(migrated="x"), True, id="a plugin migrates"
        ),
        pytest.param(Resource.CSI_NODE, csi_node(), csi_node(csi=1), False, id="a limit changes"),
        pytest.param(
            Resource.CSI_DRIVER,
            csi_driver(),
            csi_driver(tells_capacity=False),
            True,
            id="the driver of an inline volume tells capacity no more",
        ),
        pytest.param(
            Resource.CSI_DRIVER,
            csi_driver("x"),
            csi_driver("x", tells_capacity=False),
            False,
            id="another driver",
        ),
        pytest.param(
            Resource.CSI_DRIVER,
            csi_driver(tells_capacity=False),
            csi_driver(),
            False,
            id="the driver begins to tell capacity",
        ),
        pytest.param(
            Resource.CSI_STORAGE_CAPACITY, None, storage_capacity(), True, id="storage is told"
        ),
        pytest.param(
            Resource.CSI_STORAGE_CAPACITY,
            storage_capacity(capacity="1Gi"),
            storage_capacity(capacity="2Gi"),
            True,
            id="there is more storage",
        ),
        pytest.param(
            Resource.CSI_STORAGE_CAPACITY,
            storage_capacity(),
            storage_capacity(capacity="1Gi"),
            True,
            id="there is storage now",
        ),
        pytest.param(
            Resource.CSI_STORAGE_CAPACITY,
            storage_capacity(capacity="2Gi", maximumVolumeSize="1Gi"),
            storage_capacity(capacity="4Gi", maximumVolumeSize="1Gi"),
            False,
            id="there is more, but not for one volume",
        ),
    ],
)
def test_wakeups(resource: Resource, old: Any, new: Any, woken: bool) -> None:
    claim = {"persistentVolumeClaim": {"claimName": "a"}}
    asks = mounting(claim, EPHEMERAL, {"csi": {"driver": "csi.example.com"}})
    action = Action.ADD if old is None else Action.UPDATE

    assert wakes(PLUGIN, resource, action, pod=asks, old=old, new=new) is woken
