"""Volumes and disruption budgets in a simulated cluster: what is written comes true at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.engine import Engine
from moorage.engine.actions import BindPod, WriteVolumes
from moorage.objects.decode import from_builtins
from moorage.objects.in_tree import Attachable
from moorage.objects.kinds import Object
from moorage.objects.node import ZONE
from moorage.objects.storage import NO_PROVISIONER, PersistentVolume, PersistentVolumeClaim
from moorage.simulate.simulation import simulate
from moorage.world.defaults import find_default_class
from tests.builders import node, node_manifest, pod
from tests.simulate.inputs import engine, loaded, placements
from tests.storage_builders import (
    DRIVER,
    claiming,
    csi_driver,
    csi_node,
    pv,
    pvc,
    storage_capacity,
    storage_class,
)

LOCAL = storage_class(provisioner=NO_PROVISIONER)
LATE = storage_class()


def bound(scheduler: Engine, claim: str = "default/claim") -> tuple[PersistentVolume, str]:
    """The volume of a claim in the simulated cluster, and where the claim was to be provisioned."""
    storage = scheduler.cluster.nodes.storage
    found = storage.known_claim(claim)
    assert found is not None
    assert found.is_bound
    assert found.phase == "Bound"
    volume = storage.known_volume(found.volume_name)
    assert volume is not None
    assert volume.claim_ref == found.ref
    assert volume.phase == "Bound"
    return volume, found.selected_node or ""


def messages(scheduler: Engine, *given: Object) -> dict[str, str]:
    return {each.pod.name: each.message for each in simulate(scheduler, given).pending}


def test_a_local_volume_is_bound_where_the_pod_goes() -> None:
    scheduler = engine()

    transcript = simulate(
        scheduler,
        [node("a"), node("b"), LOCAL, pv("disk", hosts=("b",)), pvc(), claiming("claim")],
    )

    assert placements(transcript) == {"pod": "b"}
    volume, selected = bound(scheduler)
    assert (volume.name, selected) == ("disk", "")
    (claimed,) = transcript.volumes
    assert (claimed.volume.name, claimed.claim.key) == ("disk", "default/claim")
    assert (claimed.provisioned, claimed.pod) == (False, "pod")


def test_a_volume_is_provisioned_for_the_node() -> None:
    scheduler = engine()

    transcript = simulate(scheduler, [node("a"), LATE, pvc(size="3Gi"), claiming("claim")])

    assert placements(transcript) == {"pod": "a"}
    volume, selected = bound(scheduler)
    assert (volume.name, selected) == ("pvc-uid-claim", "a")
    assert volume.capacity == pvc(size="3Gi").request
    assert volume.class_name == "late"
    assert volume.source == Attachable(DRIVER, "pvc-uid-claim")
    assert [each.provisioned for each in transcript.volumes] == [True]


def test_a_volume_of_a_claim_without_uid_has_a_name_all_the_same() -> None:
    scheduler = engine()
    claim = pvc(metadata={"uid": ""})

    simulate(scheduler, [node("a"), LATE, claim, claiming("claim")])

    assert bound(scheduler)[0].name == "pvc-default/claim"


@pytest.mark.parametrize("others", [(), ("other",)])
def test_volumes_are_written_and_the_pod_is_bound_in_the_same_moment(
    others: tuple[str, ...],
) -> None:
    given: list[Object] = [node("a"), LATE, pvc(), claiming("claim"), *map(pod, others)]

    transcript = simulate(engine(), given)

    story = [
        (at, type(each).__name__, each.pod.name)
        for at, each in transcript.story
        if isinstance(each, BindPod | WriteVolumes)
    ]
    assert story == [
        (0.0, "WriteVolumes", "pod"),
        (0.0, "BindPod", "pod"),
        *((0.0, "BindPod", name) for name in others),
    ]


def test_a_volume_can_be_given_away_once() -> None:
    given: list[Object] = [
        node("a"),
        LOCAL,
        pv("disk", hosts=("a",)),
        pvc("first"),
        pvc("second"),
        claiming("first", name="p1"),
        claiming("second", name="p2"),
    ]

    transcript = simulate(engine(), given)

    assert placements(transcript) == {"p1": "a"}
    (waiting,) = transcript.pending
    assert waiting.message.startswith(
        "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind."
    )


def test_pods_that_share_a_claim_follow_its_volume() -> None:
    given: list[Object] = [
        *(node(name, pods=1) for name in ("a", "b", "c")),
        LOCAL,
        pv("disk", hosts=("b", "c")),
        pvc(),
        claiming("claim", name="p1"),
        claiming("claim", name="p2"),
        claiming("claim", name="p3"),
    ]

    transcript = simulate(engine(), given)

    assert {"b", "c"} == set(placements(transcript).values())
    assert len(transcript.volumes) == 1
    assert [each.pod.name for each in transcript.pending] == ["p3"]


def test_a_provisioned_volume_stays_in_the_part_of_its_class_where_it_was_made() -> None:
    expressions = [{"key": ZONE, "values": ["x", "y"]}]
    zonal = storage_class(allowedTopologies=[{"matchLabelExpressions": expressions}])
    given: list[Object] = [
        node("a1", labels={ZONE: "z"}),
        node("x1", labels={ZONE: "x"}, pods=1),
        node("y1", labels={ZONE: "y"}, pods=1),
        zonal,
        pvc(),
        claiming("claim", name="p1"),
        claiming("claim", name="p2"),
    ]

    transcript = simulate(engine(), given)

    assert len(transcript.placed) == 1
    assert transcript.placed[0].node in ("x1", "y1")
    (waiting,) = transcript.pending
    assert "2 node(s) didn't match PersistentVolume's node affinity" in waiting.message


def test_provisioned_volumes_count_against_the_limit_of_their_driver() -> None:
    given: list[Object] = [
        node("a"),
        csi_node("a", csi=1),
        LATE,
        pvc("first"),
        pvc("second"),
        claiming("first", name="p1"),
        claiming("second", name="p2"),
    ]

    told = messages(engine(), *given)

    assert list(told) == ["p2"]
    assert "1 node(s) exceed max volume count" in told["p2"]


def test_storage_capacities_are_heeded() -> None:
    small = storage_capacity("small", hosts=("a",), capacity="1Gi")
    large = storage_capacity("large", hosts=("b",), capacity="9Gi")
    given: list[Object] = [node("a"), node("b"), LATE, csi_driver(), small, large]

    transcript = simulate(engine(), [*given, pvc(size="5Gi"), claiming("claim")])

    assert placements(transcript) == {"pod": "b"}


def test_a_claim_that_others_bind_at_once_is_waited_for() -> None:
    now = storage_class("now", mode="Immediate")

    told = messages(engine(), node("a"), now, pvc(class_name="now"), claiming("claim"))

    start = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    assert told["pod"].startswith(start)


def test_a_missing_claim_is_told() -> None:
    told = messages(engine(), node("a"), claiming("claim"))

    assert 'persistentvolumeclaim "claim" not found' in told["pod"]


def test_a_bound_volume_takes_its_pod_to_its_zone() -> None:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["y"]}]}]
    given: list[Object] = [
        node("a", labels={ZONE: "x"}),
        node("b", labels={ZONE: "y"}),
        pv("disk", claim="claim", nodeAffinity={"required": {"nodeSelectorTerms": terms}}),
        pvc(volume="disk"),
        claiming("claim"),
    ]

    transcript = simulate(engine(), given)

    assert placements(transcript) == {"pod": "b"}
    assert transcript.volumes == ()


def test_one_pod_at_a_time_uses_a_read_write_once_pod_claim() -> None:
    given: list[Object] = [
        node("a"),
        pv("disk", claim="claim", accessModes=["ReadWriteOncePod"]),
        pvc(volume="disk", accessModes=["ReadWriteOncePod"]),
        claiming("claim", name="p1"),
        claiming("claim", name="p2"),
    ]

    told = messages(engine(), *given)

    assert list(told) == ["p2"]
    assert "PersistentVolumeClaim with ReadWriteOncePod access mode already in-use" in told["p2"]


def budget(allowed: int, **labels: str) -> Object:
    manifest = {
        "metadata": {"name": "budget", "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": allowed},
    }
    return from_builtins("PodDisruptionBudget", manifest)


@pytest.mark.parametrize(
    ("allowed", "victim"),
    [
        pytest.param(0, "plain", id="a pod without budget goes first"),
        pytest.param(1, "guarded", id="as many as are allowed may go"),
    ],
)
def test_budgets_are_heeded_by_preemption(allowed: int, victim: str) -> None:
    given: list[Object] = [
        node("a", cpu=1),
        node("b", cpu=1),
        budget(allowed, app="guarded"),
        pod("guarded", node="a", cpu=1, labels={"app": "guarded"}),
        # More important, so that it would be spared, were it not for the budget.
        pod("plain", node="b", cpu=1, spec={"priority": 1}),
        pod("high", cpu=1, spec={"priority": 10}),
    ]

    transcript = simulate(engine(), given)

    assert [each.pod.name for each in transcript.preempted] == [victim]


def test_an_eviction_uses_up_the_budget() -> None:
    guarded = [pod(f"guarded-{name}", node=name, cpu=1, labels={"app": "guarded"}) for name in "ab"]
    given: list[Object] = [
        *(node(name, cpu=1) for name in "abc"),
        budget(1, app="guarded"),
        *guarded,
        pod("plain", node="c", cpu=1, spec={"priority": 1}),
        pod("high-0", cpu=1, spec={"priority": 10}),
        pod("high-1", cpu=1, spec={"priority": 10}),
    ]

    transcript = simulate(engine(), given)

    first, second = (each.pod.name for each in transcript.preempted)
    assert first.startswith("guarded-")
    assert second == "plain"


def test_the_end_is_as_if_the_volumes_had_always_been_there() -> None:
    """What a simulation leaves behind can be given to the next one."""
    scheduler = engine()
    first = simulate(scheduler, [node("a"), LATE, pvc(), claiming("claim")])
    volume, _ = bound(scheduler)
    claim = scheduler.cluster.nodes.storage.known_claim("default/claim")
    assert isinstance(claim, PersistentVolumeClaim)

    again = simulate(engine(), [node("a"), LATE, volume, claim, claiming("claim")])

    assert placements(again) == placements(first)
    assert again.volumes == ()


# Written by hand, without what the API server and the volume controller would add


def by_hand(kind: str, name: str, **given: Any) -> dict[str, Any]:
    version = "storage.k8s.io/v1" if kind == "StorageClass" else "v1"
    namespace = {"namespace": "default"} if kind == "PersistentVolumeClaim" else {}
    metadata = {"name": name, **namespace, **given.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **given}


def volume_by_hand(**spec: Any) -> dict[str, Any]:
    given = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    return by_hand("PersistentVolume", "disk", spec={**given, **spec})


def claim_by_hand(**spec: Any) -> dict[str, Any]:
    asked = {"requests": {"storage": "1Gi"}}
    given = {"resources": asked, "accessModes": ["ReadWriteOnce"]}
    return by_hand("PersistentVolumeClaim", "claim", spec={**given, **spec})


def test_a_volume_without_a_status_is_available(tmp_path: Path) -> None:
    given = loaded(tmp_path, node_manifest(), volume_by_hand(storageClassName="late"))

    transcript = simulate(engine(), [*given.objects, LOCAL, pvc(), claiming("claim")])

    assert [each.volume.name for each in transcript.volumes] == ["disk"]


def test_a_claim_that_names_its_volume_is_bound_to_it(tmp_path: Path) -> None:
    claim_ref = {"namespace": "default", "name": "claim"}
    disk, claim = volume_by_hand(claimRef=claim_ref), claim_by_hand(volumeName="disk")
    given = loaded(tmp_path, node_manifest(), disk, claim)

    transcript = simulate(engine(), [*given.objects, claiming("claim")])

    assert placements(transcript) == {"pod": "node"}
    assert transcript.volumes == ()


@pytest.mark.parametrize("phase", ["Pending", "Lost"])
def test_a_status_is_taken_at_its_word(tmp_path: Path, phase: str) -> None:
    claim = {**claim_by_hand(volumeName="disk"), "status": {"phase": phase}}
    given = loaded(tmp_path, node_manifest(), volume_by_hand(), claim)

    assert "pod" in messages(engine(), *given.objects, claiming("claim"))


@pytest.mark.parametrize(
    ("spec", "class_name"),
    [
        pytest.param({}, "usual", id="a claim that names no class"),
        pytest.param({"storageClassName": "other"}, "other", id="one that does"),
        pytest.param({"storageClassName": ""}, "", id="one that wants none"),
        pytest.param({"volumeName": "disk"}, "", id="one that is bound"),
    ],
)
def test_the_class_of_a_claim(tmp_path: Path, spec: dict[str, Any], class_name: str) -> None:
    marked = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    usual = by_hand("StorageClass", "usual", metadata=marked, provisioner=DRIVER)

    given = loaded(tmp_path, node_manifest(), claim_by_hand(**spec), usual)

    (claim,) = (each for each in given.objects if isinstance(each, PersistentVolumeClaim))
    assert claim.class_name == class_name


def test_a_class_without_a_binding_mode_is_immediate(tmp_path: Path) -> None:
    plain = by_hand("StorageClass", "late", provisioner=DRIVER)
    given = loaded(tmp_path, node_manifest(), plain)

    told = messages(engine(), *given.objects, pvc(), claiming("claim"))

    assert "pod has unbound immediate PersistentVolumeClaims" in told["pod"]


@pytest.mark.parametrize(
    ("classes", "chosen"),
    [
        ([], ""),
        ([("a", False, "2025")], ""),
        ([("a", True, "2024"), ("b", True, "2025"), ("c", False, "2026")], "b"),
        ([("b", True, "2025"), ("a", True, "2025")], "a"),
        ([("b", True, None), ("a", True, "2025")], "a"),
    ],
)
def test_the_newest_default_class_counts(
    classes: list[tuple[str, bool, str | None]], chosen: str
) -> None:
    written = [
        {
            "metadata": {
                "name": name,
                "creationTimestamp": created,
                "annotations": {"storageclass.kubernetes.io/is-default-class": str(marked).lower()},
            }
        }
        for name, marked, created in classes
    ]

    assert find_default_class(written) == chosen
