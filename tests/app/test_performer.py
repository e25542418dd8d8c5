"""The loop and the performer together, over an API server that misbehaves on request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar, cast

import pytest

from moorage import testing
from moorage.app import binding, claim_revocation, claim_writes, scheduler
from moorage.app.performer import Performer
from moorage.app.scheduler import Scheduler
from moorage.client.api import Api
from moorage.client.api_errors import OutcomeUnknown
from moorage.config import default
from moorage.engine import Engine
from moorage.engine.events import Applied, Removed
from moorage.engine.registry import registry
from moorage.framework.plugin import PendingPermits, Permit, Wait
from moorage.framework.profile import known_plugins
from moorage.objects.pod import Pod
from tests.builders import node, pod
from tests.device_builders import DRIVER, claim, claim_manifest, device_class, resource_slice

from .fake_api import FakeApi, refusal


class Stage:
    """A scheduler over a fake API server."""

    def __init__(self, engine: Engine | None = None) -> None:
        plugins = registry()
        self.engine = engine or Engine(default(known_plugins(plugins)), plugins)
        self.api = FakeApi()
        self.now = 0.0
        self.scheduler = Scheduler(self.engine, lambda: self.now)
        self.leads = True
        self.performer = Performer(
            cast(Api, self.api),
            self.scheduler,
            may_act=lambda: self.leads,
            instance="moorage-test",
        )

    def lead(self) -> None:
        self.scheduler.lead(self.performer)

    def apply(self, *items: Any) -> None:
        for item in items:
            self.scheduler.tell(Applied(item))

    def bindings(self) -> dict[str, str]:
        return {
            request.body["metadata"]["name"]: request.body["target"]["name"]
            for request in self.api.asked("post")
            if request.path.endswith("/binding")
        }

    def reasons(self) -> list[str]:
        return [each.body["reason"] for each in self.api.asked("post") if "reason" in each.body]

    def paths(self, verb: str) -> list[str]:
        return [request.path for request in self.api.asked(verb)]


@asynccontextmanager
async def stage(*, leading: bool = True, engine: Engine | None = None) -> AsyncIterator[Stage]:
    made = Stage(engine)
    loop = asyncio.create_task(made.scheduler.run())
    if leading:
        made.lead()
    try:
        yield made
    finally:
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)
        await made.performer.stop()


async def settle(turns: int = 200) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


def binding_path(name: str) -> str:
    return f"/api/v1/namespaces/default/pods/{name}/binding"


async def test_pods_are_bound_and_told_about() -> None:
    async with stage() as it:
        it.apply(node("n1"), pod("a"), pod("b"))
        await settle()

    assert it.bindings() == {"a": "n1", "b": "n1"}
    assert it.reasons() == ["Scheduled", "Scheduled"]


async def test_who_does_not_lead_follows_but_decides_nothing() -> None:
    async with stage(leading=False) as it:
        it.apply(node("n1"), pod("a"))
        await settle()
        assert it.api.requests == []
        assert len(it.engine.cluster.nodes) == 1

        it.lead()
        await settle()
        assert it.bindings() == {"a": "n1"}


async def test_a_failed_binding_is_tried_again_after_its_backoff() -> None:
    async with stage() as it:
        it.api.script("post", binding_path("a"), refusal(403, "Forbidden", "not now"))
        it.apply(node("n1"), pod("a"))
        await settle()
        assert len(it.paths("post")) == 2
        assert it.reasons() == ["FailedScheduling"]

        it.now = 5.0
        it.scheduler.wake()
        await settle()
        assert it.paths("post").count(binding_path("a")) == 2
        assert it.reasons() == ["FailedScheduling", "Scheduled"]


async def test_a_binding_whose_answer_is_lost_keeps_its_place_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(binding, "_FIRST_PAUSE", 0.0)
    async with stage() as it:
        it.api.script("post", binding_path("a"), OutcomeUnknown("cut"))
        where = "/api/v1/namespaces/default/pods/a"
        it.api.script("get", where, *[OutcomeUnknown("cut")] * 5)
        it.api.script("get", where, {"metadata": {"uid": "default/a"}, "spec": {"nodeName": "n1"}})
        it.apply(node("n1", cpu=1), pod("a", cpu=1), pod("b", cpu=1))
        await settle(400)

    assert it.bindings() == {"a": "n1"}
    assert len(it.paths("get")) == 6
    assert sorted(it.reasons()) == ["FailedScheduling", "Scheduled"]


async def test_a_node_that_is_gone_is_not_bound_to() -> None:
    async with stage() as it:
        it.api.gate = asyncio.Event()
        it.apply(node("n1"), pod("a"))
        # More than are sent at a time, so that some still wait when the node goes.
        it.apply(*(pod(f"p{number}") for number in range(80)))
        await settle()
        sent = len(it.bindings())
        it.scheduler.tell(Removed(node("n1")))
        await settle()
        it.api.gate.set()
        await settle(600)

    assert sent == len(it.bindings()) == 64


async def test_no_binding_is_begun_when_leadership_is_in_doubt() -> None:
    async with stage() as it:
        it.leads = False
        it.apply(node("n1"), pod("a"))
        await settle()

    assert it.bindings() == {}


async def test_decisions_wait_while_too_much_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "_MOST_UNDER_WAY", 12)
    monkeypatch.setattr(scheduler, "_BUDGET", 4)
    async with stage() as it:
        it.api.gate = asyncio.Event()
        it.apply(node("n1"), *(pod(f"p{number}") for number in range(40)))
        await settle()
        assert len(it.bindings()) == 12

        it.api.gate.set()
        await settle(600)
        assert len(it.bindings()) == 40


async def test_a_late_status_never_overtakes_the_binding() -> None:
    async with stage() as it:
        it.apply(node("n1", cpu=1), pod("a", cpu=2))
        it.api.gate = asyncio.Event()
        await settle()
        assert it.paths("patch") == ["/api/v1/namespaces/default/pods/a/status"]

        # The node grows, and the pod fits before its status has been written.
        it.apply(node("n1", cpu=4))
        it.now = 20.0
        it.scheduler.wake()
        await settle()
        assert it.bindings() == {}
        it.api.gate.set()
        await settle()

    assert it.bindings() == {"a": "n1"}
    order = [each.path for each in it.api.requests if "events" not in each.path]
    assert order == ["/api/v1/namespaces/default/pods/a/status", binding_path("a")]


async def test_a_preemption_evicts_and_then_binds() -> None:
    async with stage() as it:
        victim = pod("small", node="n1", cpu=3, spec={"priority": 0})
        it.apply(node("n1"), victim, pod("big", cpu=3, spec={"priority": 10}))
        await settle()
        assert it.paths("delete") == ["/api/v1/namespaces/default/pods/small"]

        it.scheduler.tell(Removed(victim))
        it.now = 20.0
        it.scheduler.wake()
        await settle()

    assert it.bindings() == {"big": "n1"}
    assert it.reasons() == ["FailedScheduling", "Preempted", "Scheduled"]


async def test_why_a_pod_waits_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    exclusive = {"annotations": {"scheduling.moorage.dev/coexist-policy": "DaemonsetAndStaticPods"}}
    with caplog.at_level("INFO"):
        async with stage() as it:
            it.apply(node("n1"), pod("web", node="n1"), pod("mpi", metadata=exclusive))
            await settle()

    (record,) = (each for each in caplog.records if each.message == "FailedScheduling")
    told = vars(record)["moorage_fields"]
    assert told["pod"] == "default/mpi"
    assert "failed CoexistPolicy" in told["note"]


async def test_what_was_decided_is_dropped_once_leadership_is_lost() -> None:
    """The decision ends after the term has: nothing of it reaches the API server."""
    async with stage() as it:
        it.apply(node("n1"), pod("a"), pod("big", cpu=100))
        it.leads = False
        await settle()
        it.leads = True
        it.apply(pod("b"))
        await settle()

    assert it.bindings() == {"b": "n1"}
    assert it.reasons() == ["Scheduled"]
    assert it.paths("patch") == []


class Patient(Permit):
    """Makes every pod wait."""

    name = "Patient"
    made: ClassVar[list[Patient]] = []

    def attach(self, waiting: PendingPermits) -> None:
        self.waiting = waiting
        self.made[:] = [self]

    def permit(self, pod: Pod, node_name: str) -> Wait:
        return Wait(600)


async def test_a_plugin_lets_a_pod_go_from_a_thread_of_its_own() -> None:
    async with stage(engine=testing.make_engine(Patient)) as it:
        it.apply(node("n1"), pod("a"))
        await settle()
        (patient,) = Patient.made
        (waiting,) = patient.waiting
        assert it.bindings() == {}

        await asyncio.to_thread(patient.waiting.allow, waiting.pod.uid)
        await settle()

    assert it.bindings() == {"a": "n1"}


class Together(Patient):
    """The second pod lets the first one go, within its decision."""

    name = "Together"

    def permit(self, pod: Pod, node_name: str) -> Wait:
        for each in self.waiting:
            self.waiting.allow(each.pod.uid)
        return Wait(600)


async def test_a_plugin_lets_a_pod_go_within_a_decision() -> None:
    async with stage(engine=testing.make_engine(Together)) as it:
        it.apply(node("n1"), pod("a"))
        await settle()
        it.apply(pod("b"))
        await settle()

    assert it.bindings() == {"a": "n1"}


def lost(times: int) -> list[OutcomeUnknown]:
    return [OutcomeUnknown("reset")] * times


@pytest.mark.parametrize("has_it", [True, False], ids=["it has them", "it has none"])
async def test_devices_stay_in_use_until_it_is_known_whether_a_claim_has_them(
    monkeypatch: pytest.MonkeyPatch, has_it: bool
) -> None:
    monkeypatch.setattr(claim_writes, "_PAUSE", 0.0)
    monkeypatch.setattr(claim_revocation, "_FIRST_PAUSE", 0.0)
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c"
    read = claim_manifest("c", metadata={"resourceVersion": "8"})
    found = {**read, "status": {"allocation": {"devices": {}}}} if has_it else read
    async with stage() as it:
        # The claim cannot be written, nor the pod be taken out of it, nor what it has be read.
        it.api.script("patch", f"{path}/status", *lost(6))
        it.api.script("get", path, *[read] * 4, *lost(2))
        it.api.gate = asyncio.Event()
        it.apply(node("n1"), device_class(), resource_slice("n1"), claim("c"), pod("a", spec=spec))
        await settle()
        assert it.engine.cluster.nodes.devices.claims.is_in_flight("uid-c")
        it.api.script("get", path, found)
        it.api.gate.set()
        await settle(400)
        use = dict(it.engine.cluster.nodes.devices.use.held((DRIVER, "n1")))

    assert it.reasons() == ["FailedScheduling"]
    assert list(use) == (["gpu-0"] if has_it else [])
    notes = [each.body["note"] for each in it.api.asked("post") if "note" in each.body]
    assert notes[0].startswith('running PreBind plugin "DynamicResources": ')
