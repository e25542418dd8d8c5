"""Members of a group that fits nowhere give back devices that none of them can use."""

from __future__ import annotations

from typing import Any

from moorage.engine.actions import ReleaseClaim
from moorage.engine.events import ReleaseFailed
from moorage.objects.pod import Pod
from moorage.objects.resource_claim import ResourceClaim
from moorage.testing.driver import Driver, only
from tests.builders import node, pod
from tests.device_builders import claim, device_class, resource_slice, result
from tests.engine.gangs import IN_EACH_VERSION, drive_gangs, gang

pytestmark = IN_EACH_VERSION

TO_N1 = {
    "nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    ]
}


def left_over(name: str, **status: Any) -> ResourceClaim:
    """A claim with a device of n1 that an earlier attempt has left."""
    allocation = {"devices": {"results": [result("n1", "gpu-0")]}, "nodeSelector": TO_N1}
    return claim(name, allocation=allocation, status=status)


def member(number: int, claim_name: str) -> Pod:
    spec = {
        "resourceClaims": [{"name": "gpu", "resourceClaimName": claim_name}],
        "schedulingGroup": {"podGroupName": "g"},
    }
    return pod(f"g-{number}", cpu=2, spec=spec)


def drive(*claims: ResourceClaim, **group: Any) -> Driver:
    """Drives a gang of two that fits n2 only, with a device for each."""
    return drive_gangs(
        node("n1", cpu=1),
        node("n2", cpu=8),
        device_class(),
        resource_slice("n1", 1),
        resource_slice("n2", 2),
        *claims,
        gang("g", 2, **group),
        member(0, "c0"),
        member(1, "c1"),
    )


def run(driven: Driver, rounds: int = 20) -> dict[str, str]:
    """Decides and writes for some time; returns the node of each member."""
    for _ in range(rounds):
        driven.now += 5.0
        driven.world.perform(driven.step(10), driven.now)
    return {each.name: each.node_name for each in driven.pods.values()}


def has_devices(driven: Driver, name: str) -> bool:
    found = driven.engine.cluster.nodes.devices.claims.get(f"default/{name}")
    assert found is not None
    return found.allocation is not None


def test_a_claim_that_keeps_its_gang_out_is_released() -> None:
    driven = drive(left_over("c0"), claim("c1"))

    assert run(driven) == {"g-0": "n2", "g-1": "n2"}


def test_a_claim_that_only_its_member_uses_is_released() -> None:
    user = {"resource": "pods", "name": "g-0", "uid": "default/g-0"}
    driven = drive(left_over("c0", reservedFor=[user]), claim("c1"))

    assert run(driven) == {"g-0": "n2", "g-1": "n2"}


def test_a_claim_that_another_pod_uses_keeps_its_devices() -> None:
    user = {"resource": "pods", "name": "other", "uid": "other"}
    driven = drive(left_over("c0", reservedFor=[user]), claim("c1"))

    assert run(driven) == {"g-0": "", "g-1": ""}
    assert has_devices(driven, "c0")


def test_claims_of_gangs_that_stay_in_one_domain_keep_their_devices() -> None:
    # kube-scheduler does not release the claims of such gangs.
    driven = drive(left_over("c0"), claim("c1"), topology_key="kubernetes.io/hostname")

    assert run(driven) == {"g-0": "", "g-1": ""}
    assert has_devices(driven, "c0")


def test_a_gang_whose_release_failed_is_tried_again() -> None:
    driven = drive(left_over("c0"), claim("c1"))
    (release,) = only(driven.step(10), ReleaseClaim)

    driven.tell(ReleaseFailed(release.pod.uid, "no"))

    assert run(driven) == {"g-0": "n2", "g-1": "n2"}
