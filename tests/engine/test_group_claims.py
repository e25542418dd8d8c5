"""Claims of a group: they are reserved for the group, and every member may use them."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.engine.actions import ReleaseClaim, WriteClaims
from moorage.framework.status import unresolvable
from moorage.objects.decode import from_builtins
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.objects.pod_spec import PodResourceClaim
from moorage.objects.resource_claim import ClaimUser, ResourceClaim
from moorage.plugins.dynamic_resources.dynamic_resources import DynamicResources
from moorage.testing.builders import node
from moorage.testing.driver import Driver, only
from tests.device_builders import claim, device_class, resource_slice, result
from tests.engine.gangs import IN_EACH_VERSION, drive_gangs, gang, members

pytestmark = IN_EACH_VERSION

DEVICES = (device_class(), resource_slice("n1", 2), resource_slice("n2", 2))
REFERENCE = PodResourceClaim(name="net", resource_claim_template_name="t")
GROUP = ClaimUser.of_group("g", "pg.g")
TO_N1 = {
    "nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    ]
}


def group(**fields: Any) -> PodGroup:
    return gang("g", 2, resource_claims=(REFERENCE,), **fields)


def made_for_group(name: str = "g", **fields: Any) -> ResourceClaim:
    """The claim that the controller has made for a group from its template."""
    kind = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup"}
    owner = {**kind, "name": name, "uid": f"pg.{name}", "controller": True}
    return claim("g-net", metadata={"ownerReferences": [owner]}, **fields)


def users_of_it(count: int, start: int = 0, **fields: Any) -> list[Pod]:
    """Members that refer to the claim of the group, as the controller says in their status."""
    named = [{"name": "net", "resourceClaimName": "g-net"}]
    spec = {"resourceClaims": [{"name": "net", "resourceClaimTemplateName": "t"}]}
    return members("g", count, start, spec=spec, status={"resourceClaimStatuses": named}, **fields)


def run(*objects: Any, on: bool = True) -> Driver:
    return drive_gangs(*objects, gates={"DRAWorkloadResourceClaims": on})


def test_what_a_group_says_of_its_claims_and_evictions_is_read() -> None:
    made = from_builtins(
        "PodGroup",
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "metadata": {"name": "g"},
            "spec": {
                "preemptionPolicy": "Never",
                "resourceClaims": [{"name": "net", "resourceClaimTemplateName": "t"}],
            },
        },
    )

    assert isinstance(made, PodGroup)
    assert (made.preemption_policy, made.resource_claims) == ("Never", (REFERENCE,))


def act(driver: Driver, rounds: int = 4) -> dict[str, str]:
    """Decides and performs for some time; returns the node of each pod."""
    for _ in range(rounds):
        driver.now += 5.0
        driver.world.perform(driver.step(8), driver.now)
    return {each.name: each.node_name for each in driver.pods.values()}


def see_claim(driver: Driver) -> ResourceClaim:
    found = driver.engine.cluster.nodes.devices.claims.get("default/g-net")
    assert found is not None
    return found


def test_the_claim_of_a_group_is_reserved_for_the_group() -> None:
    nodes = node("n1", cpu=4), node("n2", cpu=4)
    driver = run(*nodes, *DEVICES, made_for_group(), group(), *users_of_it(2, cpu=1))

    where = act(driver)

    assert "" not in where.values()
    assert len(set(where.values())) == 1
    assert see_claim(driver).reserved_for == (GROUP,)


def test_a_later_member_uses_it_without_a_write() -> None:
    nodes = node("n1", cpu=4), node("n2", cpu=8)
    driver = run(*nodes, *DEVICES, made_for_group(), group(), *users_of_it(2, cpu=1))
    where = act(driver)
    before = len(only(driver.story, WriteClaims))

    driver.apply(*users_of_it(1, start=2, cpu=1))

    assert act(driver)["g-2"] == where["g-0"]
    assert len(only(driver.story, WriteClaims)) == before
    assert see_claim(driver).reserved_for == (GROUP,)


def test_a_claim_that_the_group_does_not_list_is_reserved_for_each_member() -> None:
    named = {"resourceClaims": [{"name": "net", "resourceClaimName": "g-net"}]}
    pods = members("g", 2, spec=named, cpu=1)
    driver = run(node("n1", cpu=4), *DEVICES, claim("g-net"), group(), *pods)

    act(driver)

    assert sorted(user.name for user in see_claim(driver).reserved_for) == ["g-0", "g-1"]


@pytest.mark.parametrize(
    ("owner", "on", "who"),
    [
        pytest.param("other", True, "neither Pod nor PodGroup g is the", id="another group"),
        pytest.param("g", False, "Pod is not", id="without the gate"),
    ],
)
def test_a_claim_that_was_made_for_others_is_refused(owner: str, on: bool, who: str) -> None:
    made = made_for_group(owner)
    driver = run(node("n1", cpu=4), *DEVICES, made, group(), *users_of_it(2, cpu=1), on=on)

    assert act(driver) == {"g-0": "", "g-1": ""}
    (profile,) = driver.engine.profiles.values()
    plugin = profile.plugins["DynamicResources"]
    assert isinstance(plugin, DynamicResources)
    assert plugin.pre_enqueue(driver.pods["default/g-0"]) == unresolvable(
        f"ResourceClaim default/g-net was not created for Pod default/g-0 ({who} owner)"
    )


def left_over(user: ClaimUser) -> ResourceClaim:
    """A claim that an earlier attempt has left with a device of n1."""
    allocation = {"devices": {"results": [result("n1", "gpu-0")]}, "nodeSelector": TO_N1}
    users = [{"resource": user.resource, "name": user.name, "uid": user.uid}]
    users[0] |= {"apiGroup": user.api_group} if user.api_group else {}
    return made_for_group(allocation=allocation, status={"reservedFor": users})


def test_a_group_that_fits_nowhere_gives_its_devices_back() -> None:
    nodes = node("n1", cpu=1), node("n2", cpu=8)
    driver = run(*nodes, *DEVICES, left_over(GROUP), group(), *users_of_it(2, cpu=2))

    where = act(driver, rounds=20)

    assert set(where.values()) == {"n2"}
    assert len(only(driver.story, ReleaseClaim)) == 1
    assert see_claim(driver).reserved_for == (GROUP,)


def test_a_group_keeps_the_devices_of_members_that_run() -> None:
    (running,) = users_of_it(1, start=9, cpu=1, node="n1")
    nodes = node("n1", cpu=1), node("n2", cpu=8)
    driver = run(*nodes, *DEVICES, left_over(GROUP), group(), running, *users_of_it(2, cpu=2))

    where = act(driver, rounds=20)

    assert where == {"g-9": "n1", "g-0": "", "g-1": ""}
    assert not only(driver.story, ReleaseClaim)


def test_a_group_keeps_devices_that_another_pod_uses() -> None:
    stranger = ClaimUser(resource="pods", name="x", uid="x")
    nodes = node("n1", cpu=1), node("n2", cpu=8)
    driver = run(*nodes, *DEVICES, left_over(stranger), group(), *users_of_it(2, cpu=2))

    act(driver, rounds=20)

    assert not only(driver.story, ReleaseClaim)
