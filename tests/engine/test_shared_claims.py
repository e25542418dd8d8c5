"""Gangs whose members share a claim to devices, from the decision to the binding."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cluster import check
from moorage.config.kubernetes_versions import VERSIONS, KubernetesVersion
from moorage.engine.actions import RevokeClaims, WriteClaims
from moorage.engine.events import BindingFailed, ClaimsRevoked, Permitted
from moorage.framework.plugin import Permit, Wait
from moorage.objects.pod import Pod
from moorage.testing.builders import node
from moorage.testing.driver import Driver, bindings, conditions, only
from tests.device_builders import DRIVER, claim, device_class, holding, resource_slice, result
from tests.engine.gangs import drive_gangs, gang, members

BOTH = pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
DEVICES = (device_class(), resource_slice("n1", 2), resource_slice("n2", 2))
IN_FLIGHT = "resource claim default/shared is in the process of being allocated"


def sharers(group: str, count: int, *others: str, **fields: Any) -> list[Pod]:
    """Members of a group that name one claim, and each a claim of its own if any is given."""
    names = ["shared", *others]
    refs = [{"name": each, "resourceClaimName": each} for each in names]
    return members(group, count, spec={"resourceClaims": refs}, **fields)


def act(driver: Driver, rounds: int = 4) -> None:
    for _ in range(rounds):
        driver.world.perform(driver.step(8), driver.now)


def taken(driver: Driver) -> set[tuple[str, str]]:
    """Returns the devices in use, with their nodes."""
    use = driver.engine.cluster.nodes.devices.use
    pools = {name: use.held((DRIVER, name)) for name in ("n1", "n2")}
    return {(name, each) for name, held in pools.items() for each in held if not held[each].is_free}


def users(driver: Driver) -> set[str]:
    known = driver.engine.cluster.nodes.devices.claims.get("default/shared")
    assert known is not None
    return {user.name for user in known.reserved_for}


@BOTH
def test_members_that_share_a_claim_go_where_its_devices_are(version: KubernetesVersion) -> None:
    nodes = node("n1", cpu=4), node("n2", cpu=64)
    driver = drive_gangs(
        *nodes, *DEVICES, claim("shared"), gang("g", 3), *sharers("g", 3, cpu=1), version=version
    )

    act(driver)

    where = {driver.node_of(f"g-{number}") for number in range(3)}
    assert len(where) == 1
    assert where <= {"n1", "n2"}
    assert len(taken(driver)) == 1
    assert users(driver) == {"g-0", "g-1", "g-2"}
    check(driver.engine.cluster)


@BOTH
def test_a_member_finds_no_place_beside_the_devices_that_it_shares(
    version: KubernetesVersion,
) -> None:
    """There is room on another node, but the devices of the first member are on this one."""
    nodes = node("n1", cpu=1), node("n2", cpu=1)
    driver = drive_gangs(
        *nodes, *DEVICES, claim("shared"), gang("g", 2), *sharers("g", 2, cpu=1), version=version
    )

    actions = driver.step()

    assert bindings(actions) == {}
    text = conditions(actions)["g-1"].message
    assert "1 resourceclaim not available on the node" in text
    assert IN_FLIGHT not in text
    # Nothing of the attempt is left.
    assert taken(driver) == set()
    assert not driver.engine.cluster.nodes.devices.claims.pending
    check(driver.engine.cluster)


@BOTH
def test_a_claim_is_shared_within_the_domain_that_is_chosen(version: KubernetesVersion) -> None:
    """Each domain is tried and undone; then the members are placed once more in the best."""
    nodes = [node(f"n{at}", cpu=4, labels={"rack": f"r{at}"}) for at in (1, 2)]
    group = gang("g", 2, topology_key="rack")
    driver = drive_gangs(
        *nodes, *DEVICES, claim("shared"), group, *sharers("g", 2, cpu=1), version=version
    )

    act(driver)

    (where,) = {driver.node_of("g-0"), driver.node_of("g-1")}
    assert {name for name, _ in taken(driver)} == {where}
    assert users(driver) == {"g-0", "g-1"}


@BOTH
def test_pods_outside_the_gang_wait_until_the_claim_has_its_devices(
    version: KubernetesVersion,
) -> None:
    nodes = node("n1", cpu=4), node("n2", cpu=4)
    driver = drive_gangs(
        *nodes,
        *DEVICES,
        claim("shared"),
        gang("g", 2),
        *sharers("g", 2),
        gang("h", 2),
        *sharers("h", 2),
        version=version,
    )

    actions = driver.step(2)

    writes = {action.pod.name for action in only(actions, WriteClaims)}
    assert writes == {"g-0", "g-1"}
    assert IN_FLIGHT in conditions(actions)["h-0"].message
    driver.world.perform(actions, driver.now)
    driver.now += 60
    act(driver)
    assert driver.node_of("h-0") == driver.node_of("h-1") == driver.node_of("g-0")


@BOTH
def test_a_failed_write_of_one_member_leaves_the_devices_to_the_others(
    version: KubernetesVersion,
) -> None:
    driver = drive_gangs(
        node("n1", cpu=4),
        *DEVICES,
        claim("shared"),
        gang("g", 2),
        *sharers("g", 2),
        version=version,
    )
    first, second = only(driver.step(), WriteClaims)

    driver.tell(BindingFailed(first.pod.uid, "no"))
    (revoked,) = only(driver.step(), RevokeClaims)
    driver.tell(ClaimsRevoked(revoked.pod.uid))
    assert len(taken(driver)) == 1

    driver.world.perform([second], driver.now)
    driver.now += 60
    act(driver)
    assert users(driver) == {"g-0", "g-1"}
    assert driver.node_of("g-0") == driver.node_of("g-1") == "n1"
    check(driver.engine.cluster)


@BOTH
def test_devices_are_free_once_all_writes_of_the_members_have_failed(
    version: KubernetesVersion,
) -> None:
    driver = drive_gangs(
        node("n1", cpu=4),
        *DEVICES,
        claim("shared"),
        gang("g", 2),
        *sharers("g", 2),
        version=version,
    )
    writes = only(driver.step(), WriteClaims)

    for action in writes:
        driver.tell(BindingFailed(action.pod.uid, "no"))
    revoked = only(driver.step(), RevokeClaims)
    assert len(revoked) == 2
    assert len(taken(driver)) == 1
    driver.tell(ClaimsRevoked(revoked[1].pod.uid))
    assert len(taken(driver)) == 1
    driver.tell(ClaimsRevoked(revoked[0].pod.uid))
    assert taken(driver) == set()
    check(driver.engine.cluster)


class LateForOne(Permit):
    """One member waits; the others are bound at once."""

    name = "LateForOne"

    def permit(self, pod: Pod, node_name: str) -> Wait | None:
        return Wait(30) if pod.name == "g-1" else None


@BOTH
def test_a_member_that_never_wrote_gives_the_devices_back_at_once(
    version: KubernetesVersion,
) -> None:
    driver = drive_gangs(
        node("n1", cpu=4),
        *DEVICES,
        claim("shared"),
        gang("g", 2),
        *sharers("g", 2),
        version=version,
        plugins=(LateForOne,),
    )
    (first,) = only(driver.step(), WriteClaims)
    driver.tell(BindingFailed(first.pod.uid, "no"))
    (revoked,) = only(driver.step(), RevokeClaims)
    driver.tell(ClaimsRevoked(revoked.pod.uid))
    assert len(taken(driver)) == 1

    driver.remove(driver.pods["default/g-1"])

    assert taken(driver) == set()
    check(driver.engine.cluster)


@BOTH
def test_a_member_that_waited_is_reserved_for_what_another_has_written(
    version: KubernetesVersion,
) -> None:
    driver = drive_gangs(
        node("n1", cpu=4),
        *DEVICES,
        claim("shared"),
        gang("g", 2),
        *sharers("g", 2),
        version=version,
        plugins=(LateForOne,),
    )
    act(driver)
    assert users(driver) == {"g-0"}

    driver.tell(Permitted("default/g-1", "LateForOne"))
    (late,) = only(driver.step(), WriteClaims)

    (grant,) = late.writes.grants
    assert grant.allocation is None
    driver.world.perform([late], driver.now)
    act(driver)
    assert users(driver) == {"g-0", "g-1"}
    assert driver.node_of("g-1") == "n1"


@BOTH
def test_a_member_that_waited_gives_up_if_the_claim_got_other_devices(
    version: KubernetesVersion,
) -> None:
    driver = drive_gangs(
        node("n1", cpu=4),
        *DEVICES,
        claim("shared"),
        gang("g", 2),
        *sharers("g", 2),
        version=version,
        plugins=(LateForOne,),
    )
    driver.step()
    driver.apply(holding("shared", result("n1", "gpu-1")))

    driver.tell(Permitted("default/g-1", "LateForOne"))
    actions = driver.step()

    assert not only(actions, WriteClaims)
    text = conditions(actions)["g-1"].message
    assert "claim default/shared got allocated elsewhere in the meantime" in text
