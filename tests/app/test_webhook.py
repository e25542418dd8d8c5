"""The webhook over HTTP: what an API server asks and is answered."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from mooring.app.coexist_guard import CoexistGuard
from mooring.app.webhook import PATH, OnError, Webhook
from mooring.client.api import Api
from mooring.client.errors import Unreachable
from mooring.objects.coexist import ANNOTATION, DAEMONSET_AND_STATIC_PODS
from tests.builders import pod, pod_manifest

from .fake_api import FakeApi, refusal

EXCLUSIVE: dict[str, Any] = {"metadata": {"annotations": {ANNOTATION: DAEMONSET_AND_STATIC_PODS}}}
WEB = "/api/v1/namespaces/default/pods/web"


def binding(name: str, node: str, **given: Any) -> dict[str, Any]:
    asked = {
        "uid": "r1",
        "kind": {"group": "", "version": "v1", "kind": "Binding"},
        "subResource": "binding",
        "name": name,
        "namespace": "default",
        "operation": "CREATE",
        "object": {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}},
        **given,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}


def creation(manifest: dict[str, Any]) -> dict[str, Any]:
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    return binding("", "", kind=kind, subResource="", object=manifest)


class Door:
    """A webhook that knows of an exclusive pod on n1."""

    def __init__(self, on_error: OnError = OnError.ALLOW, *, synced: bool = True) -> None:
        self.api = FakeApi()
        self.guard = CoexistGuard()
        self.guard.applied(pod("mpi", node="n1", **EXCLUSIVE), b"")
        known = asyncio.Event()
        if synced:
            known.set()
        self._webhook = Webhook(cast(Api, self.api), self.guard, known, on_error)

    async def post(self, review: Any) -> tuple[int, Any]:
        app = web.Application()
        app.router.add_post(PATH, self._webhook.answer)
        async with TestClient(TestServer(app)) as client:
            answer = await client.post(PATH, json=review)
            told = await (answer.json() if answer.status == 200 else answer.text())
            return answer.status, told

    async def allows(self, review: Any) -> bool:
        status, told = await self.post(review)
        assert status == 200
        assert told["response"]["uid"] == "r1"
        return bool(told["response"]["allowed"])


async def test_a_binding_to_a_node_that_is_taken_is_refused_with_the_reason() -> None:
    door = Door()
    door.guard.applied(pod("web"), b"")
    _, told = await door.post(binding("web", "n1"))

    assert told["response"] == {
        "uid": "r1",
        "allowed": False,
        "status": {
            "code": 403,
            "reason": "Forbidden",
            "message": "failed CoexistPolicy: an exclusive pod runs there: default/mpi",
        },
    }
    assert await door.allows(binding("web", "n2"))


async def test_a_pod_that_is_not_known_yet_is_looked_up() -> None:
    door = Door()
    door.api.script("get", WEB, pod_manifest("web"))

    assert not await door.allows(binding("web", "n1"))


async def test_a_pod_that_is_gone_is_left_to_the_api_server() -> None:
    door = Door()
    door.api.script("get", WEB, refusal(404, "NotFound"))

    assert await door.allows(binding("web", "n1"))


async def test_a_pod_that_is_created_on_a_node_is_reviewed() -> None:
    door = Door()

    assert not await door.allows(creation(pod_manifest("web", node="n1")))
    assert await door.allows(creation(pod_manifest("web", node="n2")))
    assert await door.allows(creation(pod_manifest("web")))


@pytest.mark.parametrize("on_error", OnError)
async def test_what_cannot_be_told_is_answered_as_asked(on_error: OnError) -> None:
    door = Door(on_error)
    door.api.script("get", WEB, Unreachable("down"))

    assert await door.allows(binding("web", "n2")) is (on_error is OnError.ALLOW)


@pytest.mark.parametrize("on_error", OnError)
async def test_before_the_pods_are_known_nothing_can_be_told(on_error: OnError) -> None:
    door = Door(on_error, synced=False)

    assert await door.allows(binding("web", "n2")) is (on_error is OnError.ALLOW)


@pytest.mark.parametrize("manifest", [{"spec": {"containers": 7}}, {"metadata": {"labels": 1}}])
async def test_a_pod_that_cannot_be_read_cannot_be_told_of(manifest: dict[str, Any]) -> None:
    assert not await Door(OnError.DENY).allows(creation(manifest))


@pytest.mark.parametrize("review", [{}, [], {"request": {"uid": 7}}, "text"])
async def test_what_is_no_review_is_a_bad_request(review: Any) -> None:
    status, told = await Door().post(review)

    assert status == 400
    assert told.startswith("not an AdmissionReview")


async def test_a_dry_run_takes_no_place() -> None:
    door = Door()
    door.guard.applied(pod("mpi2", **EXCLUSIVE), b"")
    door.guard.applied(pod("web"), b"")
    await door.allows(binding("mpi2", "n3", dryRun=True))

    assert await door.allows(binding("web", "n3"))
