"""Pods with claims on their way to a node, from the decision to the binding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.cluster import Change
from moorage.config import Duration, default
from moorage.engine import Engine
from moorage.engine.actions import (
    Action,
    BindPod,
    PatchPodStatus,
    ReleaseClaim,
    RevokeClaims,
    WriteClaims,
)
from moorage.engine.events import Applied, BindingFailed, ClaimsWritten, ReleaseFailed
from moorage.framework.observe import Observer
from moorage.framework.plugin import PreEnqueue
from moorage.framework.profile import known_plugins
from moorage.framework.status import Rejected, unresolvable
from moorage.objects.pod import Pod
from moorage.objects.resource_claim import EXTENDED_CLAIM, FINALIZER, ResourceClaim
from moorage.plugins import REGISTRY
from moorage.plugins.dynamic_resources.dynamic_resources import (
    DynamicResources,
    DynamicResourcesArgs,
)
from moorage.world import World
from tests.builders import node, pod
from tests.device_builders import (
    claim,
    device,
    device_class,
    holding,
    request,
    resource_slice,
    result,
)
from tests.engine.driver import driver


def claiming(name: str, *claims: str, **spec: Any) -> Pod:
    """A pod that uses claims of these names."""
    refs = [{"name": each, "resourceClaimName": each} for each in claims]
    return pod(name, spec={"resourceClaims": refs, **spec})


class DeviceWaits(Observer):
    """Notes how waits for devices ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[tuple[tuple[str, ...], str, float]] = []

    def devices_waited(
        self, profile: str, drivers: Iterable[str], status: str, seconds: float
    ) -> None:
        self.ended.append((tuple(drivers), status, seconds))


class Scene:
    """An engine and a world with two nodes of two devices each."""

    def __init__(self, *objects: Any) -> None:
        self.waits = DeviceWaits()
        configuration = default(known_plugins(REGISTRY))
        self.engine = Engine(configuration, REGISTRY, observer=self.waits)
        self.world = World(self.engine)
        self.now = 0.0
        slices = (resource_slice("n1", 2), resource_slice("n2", 2))
        for each in (node("n1"), node("n2"), device_class(), *slices, *objects):
            self.world.apply(each, 0.0)

    def step(self, seconds: float = 0.0) -> list[Action]:
        self.now += seconds
        return self.engine.step(self.now, 10)

    def run(self, rounds: int = 6, seconds: float = 0.0) -> None:
        for _ in range(rounds):
            self.world.perform(self.step(seconds), self.now)

    def claim(self, name: str) -> ResourceClaim:
        found = self.engine.cluster.nodes.devices.claims.get(f"default/{name}")
        assert found is not None
        return found

    def node_of(self, name: str) -> str:
        return next(each.node_name for each in self.world.pods.values() if each.name == name)

    def devices(self, name: str) -> list[str]:
        allocation = self.claim(name).allocation
        return [f"{each.pool}/{each.device}" for each in allocation.results] if allocation else []


def of_kind(actions: list[Action], kind: type[Any]) -> list[Any]:
    return [each for each in actions if isinstance(each, kind)]


def test_claims_are_written_before_the_pod_is_bound() -> None:
    scene = Scene(claim("c"), claiming("p", "c"))

    first = scene.step()
    assert [type(each) for each in first] == [WriteClaims, PatchPodStatus]
    scene.world.perform(first, 0.0)
    assert of_kind(scene.step(), BindPod)

    found = scene.claim("c")
    assert found.finalizers == (FINALIZER,)
    assert [user.name for user in found.reserved_for] == ["p"]
    assert scene.devices("c") == ["n1/gpu-0"]


def test_a_pod_is_not_bound_before_its_claims_were_written_and_seen() -> None:
    scene = Scene(claim("c"), claiming("p", "c"))
    (write,) = of_kind(scene.step(), WriteClaims)

    assert not of_kind(scene.step(), BindPod)
    scene.engine.handle(ClaimsWritten(write.pod.uid), 0.0)
    assert not of_kind(scene.step(), BindPod)

    scene.world.write_claims(write, 0.0)
    assert of_kind(scene.step(), BindPod)


def test_no_two_claims_get_one_device_however_many_are_decided_at_once() -> None:
    claims = [claim(f"c{number}") for number in range(5)]
    pods = [claiming(f"p{number}", f"c{number}") for number in range(5)]
    scene = Scene(*claims, *pods)

    scene.run()

    given = [device for number in range(5) for device in scene.devices(f"c{number}")]
    assert len(given) == len(set(given)) == 4
    assert [pod.node_name for pod in scene.world.pods.values()].count("") == 1


def test_another_user_of_a_claim_waits_until_it_is_written() -> None:
    scene = Scene(claim("c"), claiming("p", "c"), claiming("q", "c"))
    first = scene.step()

    (told,) = [each for each in of_kind(first, PatchPodStatus) if each.condition]
    text = "resource claim default/c is in the process of being allocated"
    assert text in told.condition.message

    scene.world.perform(first, 0.0)
    scene.run(seconds=2.0)
    assert scene.node_of("p") == scene.node_of("q") != ""
    assert [user.name for user in scene.claim("c").reserved_for] == ["p", "q"]


def test_a_write_that_fails_is_taken_back_and_tried_again() -> None:
    scene = Scene(claim("c"), claiming("p", "c"))
    (write,) = of_kind(scene.step(), WriteClaims)

    scene.engine.handle(BindingFailed(write.pod.uid, "no"), 0.0)
    (revoked,) = of_kind(scene.step(), RevokeClaims)
    assert [each.name for each in revoked.claims] == ["c"]

    # Nobody knows what the claim has.
    scene.run(seconds=2.0)
    assert not scene.node_of("p")

    scene.world.perform([revoked], scene.now)
    scene.run(seconds=2.0)
    assert scene.node_of("p")


def test_a_write_that_may_have_come_through_keeps_its_device_from_others() -> None:
    scene = Scene(claim("c"), claim("d"), claiming("p", "c"))
    (write,) = of_kind(scene.step(), WriteClaims)
    # The answer is lost; what was written is seen late.
    scene.engine.handle(BindingFailed(write.pod.uid, "connection reset"), 0.0)
    scene.world.apply(claiming("q", "d"), 0.0)
    (other,) = of_kind(scene.step(), WriteClaims)

    def device_of(action: WriteClaims) -> tuple[str, str]:
        allocation = action.writes.grants[0].allocation
        assert allocation is not None
        (found,) = allocation["devices"]["results"]
        return found["pool"], found["device"]

    assert device_of(write) != device_of(other)


def test_who_waits_hears_that_a_doubtful_device_is_free() -> None:
    held = [holding(f"h{n}-{g}", result(f"n{n}", f"gpu-{g}")) for n, g in ((1, 1), (2, 0), (2, 1))]
    scene = Scene(*held, claim("c"), claim("d"), claiming("p", "c"))
    (write,) = of_kind(scene.step(), WriteClaims)
    scene.engine.handle(BindingFailed(write.pod.uid, "lost"), 0.0)
    scene.world.apply(claiming("q", "d"), 0.0)
    actions = scene.step()
    assert not of_kind(actions, WriteClaims)

    gone = next(each for each in scene.world.pods.values() if each.name == "p")
    scene.world.remove(gone, 0.0)
    scene.run(3, seconds=2.0)
    assert not scene.node_of("q")

    scene.world.perform(of_kind(actions, RevokeClaims), scene.now)
    scene.run(3, seconds=2.0)
    assert scene.devices("d") == ["n1/gpu-0"]


def test_a_claim_that_a_pod_cannot_use_anywhere_gives_its_devices_back() -> None:
    selector = {"nodeSelectorTerms": [{"matchFields": [_named("gone")]}]}
    allocation = {"devices": {"results": [result("gone", "gpu-0")]}, "nodeSelector": selector}
    scene = Scene(claim("c", allocation=allocation), claiming("p", "c"))

    actions = scene.step()
    assert [each.release.claim.name for each in of_kind(actions, ReleaseClaim)] == ["c"]
    scene.world.perform(actions, 0.0)
    scene.run(seconds=2.0)

    assert scene.node_of("p") == "n1"
    assert scene.devices("c") == ["n1/gpu-0"]


def _named(name: str) -> dict[str, Any]:
    return {"key": "metadata.name", "operator": "In", "values": [name]}


def test_devices_that_get_ready_late_are_waited_for() -> None:
    slow = [device("slow", bindingConditions=["Ready"], bindingFailureConditions=["Broken"])]
    scene = Scene(
        resource_slice("n1", slow), resource_slice("n2", []), claim("c"), claiming("p", "c")
    )
    scene.run(2)
    assert not scene.node_of("p")

    ready = {"type": "Ready", "status": "True"}
    status = {"driver": "gpu.example.com", "pool": "n1", "device": "slow", "conditions": [ready]}
    scene.step(7.0)
    assert not scene.waits.ended
    _report(scene, status)
    scene.run(2)
    assert scene.node_of("p") == "n1"
    assert scene.waits.ended == [(("gpu.example.com",), "success", 7.0)]


def test_devices_that_break_are_given_up() -> None:
    slow = [device("slow", bindingConditions=["Ready"], bindingFailureConditions=["Broken"])]
    scene = Scene(
        resource_slice("n1", slow), resource_slice("n2", []), claim("c"), claiming("p", "c")
    )
    scene.run(2)
    broken = {"type": "Broken", "status": "True", "reason": "Dead", "message": "no"}
    _report(
        scene,
        {"driver": "gpu.example.com", "pool": "n1", "device": "slow", "conditions": [broken]},
    )

    told = [
        each.condition.message for each in of_kind(scene.step(), PatchPodStatus) if each.condition
    ]

    assert told == [
        'running PreBind plugin "DynamicResources": '
        'device binding failed: claim=c, reason=Dead, message="no"'
    ]
    assert scene.waits.ended == [(("gpu.example.com",), "failed", 0.0)]


def test_devices_that_are_never_ready_are_given_up_in_time() -> None:
    slow = [device("slow", bindingConditions=["Ready"])]
    scene = Scene(
        resource_slice("n1", slow), resource_slice("n2", []), claim("c"), claiming("p", "c")
    )
    scene.run(2)
    scene.step(601.0)
    assert scene.waits.ended == [(("gpu.example.com",), "timeout", 601.0)]


def test_a_timeout_without_effect_is_told() -> None:
    timed = DynamicResources(DynamicResourcesArgs(filter_timeout=Duration.of_seconds(30)))
    assert timed.remarks() == (
        "filterTimeout 30s has no effect: "
        "a search ends after 20000 steps on a node and 200000 for a pod",
    )
    assert DynamicResources().remarks() == ()


def _report(scene: Scene, status: dict[str, Any]) -> None:
    reported = holding("x", status={"devices": [status]}).devices
    scene.world.apply(replace(scene.claim("c"), devices=reported), scene.now)


def test_a_pod_whose_claim_is_missing_waits_for_it() -> None:
    scene = Scene(claiming("p", "c"))
    scene.run(2)
    assert not scene.node_of("p")

    scene.world.apply(claim("c"), 0.0)
    scene.run(2, seconds=2.0)
    assert scene.node_of("p") == "n1"


def test_a_device_that_is_given_back_wakes_who_waits_for_one() -> None:
    held = [holding(f"h{n}-{g}", result(f"n{n}", f"gpu-{g}")) for n in (1, 2) for g in (0, 1)]
    scene = Scene(*held, claim("c"), claiming("p", "c"))
    scene.run(2)
    assert not scene.node_of("p")

    scene.world.apply(claim("h2-1"), scene.now)
    scene.run(3, seconds=2.0)
    assert scene.devices("c") == ["n2/gpu-1"]


def test_a_pod_that_is_deleted_on_its_way_leaves_no_device_behind() -> None:
    scene = Scene(claim("c"), claiming("p", "c"))
    scene.step()
    (found,) = scene.world.pods.values()
    scene.world.remove(found, 0.0)
    scene.run(1)

    assert not scene.engine.cluster.nodes.devices.use.held(("gpu.example.com", "n1"))


BY_NAME = device_class(extendedResourceName="example.com/gpu")


def left_behind(name: str, *results: dict[str, Any]) -> ResourceClaim:
    """A claim that a scheduler made for the extended resources of the pod `p` before it died."""
    owner = {"kind": "Pod", "name": "p", "uid": "default/p", "controller": True}
    metadata = {"annotations": {EXTENDED_CLAIM: "true"}, "ownerReferences": [owner]}
    return (holding if results else claim)(name, *results, metadata=metadata)


@pytest.mark.parametrize("results", [(), (result("n1", "gpu-0"),)], ids=["empty", "filled"])
def test_a_claim_that_a_dead_scheduler_left_behind_is_removed_and_the_pod_bound(
    results: tuple[dict[str, Any], ...],
) -> None:
    scene = Scene(BY_NAME, left_behind("p-old", *results), pod("p", gpu=1))

    (release,) = of_kind(first := scene.step(), ReleaseClaim)
    assert release.release.deletes
    scene.world.perform(first, 0.0)
    scene.run(seconds=2.0)

    assert scene.node_of("p") != ""
    assert scene.engine.cluster.nodes.devices.claims.get("default/p-old") is None


def test_a_pod_whose_claim_could_not_be_released_is_tried_again() -> None:
    scene = Scene(BY_NAME, left_behind("p-old"), pod("p", gpu=1))
    assert of_kind(scene.step(), ReleaseClaim)

    scene.engine.handle(ReleaseFailed("default/p", "conflict"), 0.0)
    assert not of_kind(scene.step(), ReleaseClaim), "not at once: it may fail for ever"

    assert of_kind(scene.step(2.0), ReleaseClaim)


def test_a_pod_whose_claim_could_not_be_released_backs_off_by_its_errors() -> None:
    scene = Scene(BY_NAME, left_behind("p-old"), pod("p", gpu=1))
    for _ in range(3):
        assert of_kind(scene.step(2.0), ReleaseClaim), "a second, however often it was tried"
        scene.engine.handle(ReleaseFailed("default/p", "conflict"), scene.now)


class Door(PreEnqueue):
    """Lets pods into the queue while it is open. Nothing tells that it was closed."""

    name = "Door"
    reads = Change.NONE

    def __init__(self) -> None:
        self.is_open = True

    def pre_enqueue(self, pod: Pod) -> Rejected | None:
        return None if self.is_open else unresolvable("closed")


def test_a_pod_that_may_no_longer_be_queued_is_not_tried_after_its_claim_was_not_released() -> None:
    slices = (resource_slice("n1", 2), device_class(extendedResourceName="example.com/gpu"))
    run = driver(node("n1"), *slices, left_behind("p-old"), pod("p", gpu=1), plugins=(Door,))
    assert of_kind(run.step(), ReleaseClaim)

    (profile,) = run.engine.profiles.values()
    door = profile.plugins["Door"]
    assert isinstance(door, Door)
    door.is_open = False
    run.tell(ReleaseFailed(run.uid("p"), "conflict"))
    run.now += 5.0

    assert not run.step()
    assert run.place("p") == "gated"


def test_a_claim_of_a_dead_scheduler_that_comes_late_is_not_taken_for_the_new_one() -> None:
    scene = Scene(BY_NAME, pod("p", gpu=1))
    (write,) = of_kind(scene.step(), WriteClaims)
    held = scene.engine.cluster.nodes.devices.use.held

    late = left_behind("p-old", result("n2", "gpu-1", "container-0-request-0"))
    scene.engine.handle(Applied(late), 0.0)
    scene.engine.handle(ClaimsWritten("default/p"), 0.0)

    assert not of_kind(scene.step(), BindPod), "its own claim has not been seen"
    assert set(held(("gpu.example.com", "n1"))) == {"gpu-0"}
    assert set(held(("gpu.example.com", "n2"))) == {"gpu-1"}
    scene.world.write_claims(write, 0.0)
    assert of_kind(scene.step(), BindPod)


def test_extended_resources_are_served_by_a_claim_that_is_made_for_the_pod() -> None:
    asks = {"resources": {"requests": {"example.com/gpu": "2"}}}
    scene = Scene(
        device_class("gpu", extendedResourceName="example.com/gpu"),
        pod("p", spec={"containers": [{"name": "main", **asks}]}),
    )
    (write,) = of_kind(scene.step(), WriteClaims)
    assert write.writes.creation is not None
    assert write.writes.creation.mappings == (
        {
            "containerName": "main",
            "resourceName": "example.com/gpu",
            "requestName": "container-0-request-0",
        },
    )

    scene.world.perform([write], 0.0)
    scene.run(2)
    assert scene.node_of("p") == "n1"
    assert scene.devices("p-extended-resources") == ["n1/gpu-0", "n1/gpu-1"]


@pytest.mark.parametrize(
    ("requests", "constraints", "found"),
    [
        pytest.param([request(count=2)], [], True, id="two of two"),
        pytest.param([request(count=3)], [], False, id="three of two"),
        pytest.param([request("a"), request("b")], [], True, id="two requests"),
        pytest.param([request(allocationMode="All", count=0)], [], True, id="all"),
    ],
)
def test_what_a_claim_may_ask_for(requests: list[Any], constraints: list[Any], found: bool) -> None:
    scene = Scene(claim("c", *requests, constraints=constraints), claiming("p", "c"))
    scene.run()

    assert bool(scene.node_of("p")) is found
