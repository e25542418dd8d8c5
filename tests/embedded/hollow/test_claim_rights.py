"""Pods start once the claims of devices that they use are reserved for them."""

from __future__ import annotations

from tests.embedded.device_objects import CLAIMS, allocation, claim_spec, user
from tests.embedded.hollow.cluster import HollowCluster, Json

NAMED = {"name": "gpu", "resourceClaimName": "c"}
GENERATED = {"name": "gpu", "resourceClaimTemplateName": "t"}


def make_claim(cluster: HollowCluster) -> Json:
    item = {"metadata": {"name": "c"}, "spec": claim_spec()}
    return cluster.api.create(cluster.api.kinds[CLAIMS], "default", item).object


def reserve(cluster: HollowCluster, pod: str) -> None:
    kind = cluster.api.kinds[CLAIMS]
    item = cluster.api.get(kind, "default", "c").object
    item["status"] = {"allocation": allocation(), "reservedFor": [user(cluster.show(pod))]}
    cluster.api.update_status(kind, "default", "c", item)


def warnings(cluster: HollowCluster) -> list[str]:
    return [
        each["message"].removeprefix(
            "Failed to prepare dynamic resources: prepare dynamic resources: "
        )
        for each in cluster.listed("events")
        if each["reason"] == "FailedPrepareDynamicResources"
    ]


def test_a_pod_waits_for_its_reservation() -> None:
    cluster = HollowCluster()
    cluster.node()
    claim = make_claim(cluster)
    cluster.pod("p", resourceClaims=[NAMED])
    cluster.wait(60)

    pod = cluster.show("p")["metadata"]
    assert cluster.phase("p") == "Pending"
    assert warnings(cluster) == [
        f"pod p ({pod['uid']}) is not allowed to use ResourceClaim c ({claim['metadata']['uid']})"
    ]

    reserve(cluster, "p")
    cluster.wait(3)
    assert cluster.phase("p") == "Running"


def test_a_claim_that_is_not_there() -> None:
    cluster = HollowCluster()
    cluster.node()
    cluster.pod("p", resourceClaims=[NAMED])

    assert cluster.phase("p") == "Pending"
    assert warnings(cluster) == [
        "failed to fetch ResourceClaim c referenced by pod p: "
        'resourceclaims.resource.k8s.io "c" not found'
    ]


def test_a_generated_claim_is_named_by_the_status() -> None:
    cluster = HollowCluster()
    cluster.node()
    make_claim(cluster)
    cluster.pod("p", resourceClaims=[GENERATED])
    assert warnings(cluster) == ['pod "default/p": ResourceClaim not created yet']

    reserve(cluster, "p")
    kind = cluster.api.kinds["pods"]
    pod = cluster.show("p")
    pod["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "c"}]
    cluster.api.update_status(kind, "default", "p", pod)
    cluster.wait(3)

    assert cluster.phase("p") == "Running"


def test_a_deleted_pod_does_not_wait() -> None:
    cluster = HollowCluster()
    cluster.node()
    cluster.pod("p", resourceClaims=[NAMED])
    cluster.delete("p")
    cluster.wait(5)

    assert cluster.phase("p") == ""


def test_a_claim_for_extended_resources() -> None:
    cluster = HollowCluster(start_seconds=5)
    cluster.node()
    make_claim(cluster)
    cluster.pod("p")
    pod = cluster.show("p")
    pod["status"]["extendedResourceClaimStatus"] = {"resourceClaimName": "c", "requestMappings": []}
    cluster.api.update_status(cluster.api.kinds["pods"], "default", "p", pod)
    cluster.wait(30)
    assert cluster.phase("p") == "Pending"
    assert len(warnings(cluster)) == 1

    reserve(cluster, "p")
    cluster.wait(3)

    assert cluster.phase("p") == "Running"
