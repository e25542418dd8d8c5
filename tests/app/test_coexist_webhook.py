"""The webhook over HTTP: what an API server asks and is answered."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import ClientError
from aiohttp.test_utils import TestClient, TestServer

from moorage.app import coexist_webhook
from moorage.app.coexist_admission import CoexistGuard
from moorage.app.coexist_webhook import PATH, OnError, Webhook, application
from moorage.app.https_site import CertificateSettings, ServingSettings, serve_https
from moorage.client.api import Api
from moorage.client.api_errors import Unreachable
from moorage.objects.coexist import ANNOTATION, DAEMONSET_AND_STATIC_PODS
from tests.builders import pod, pod_manifest
from tests.client_certificates import ClientAuthority
from tests.coexisting import placed
from tests.patience import PATIENCE_SECONDS, open_session

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

    def __init__(
        self,
        on_error: OnError = OnError.ALLOW,
        *,
        synced: bool = True,
        trusts_callers: bool = False,
    ) -> None:
        self.api = FakeApi()
        self.guard = CoexistGuard()
        self.guard.applied(placed(pod("mpi", **EXCLUSIVE), "n1"), b"")
        known = asyncio.Event()
        if synced:
            known.set()
        self._webhook = Webhook(
            cast(Api, self.api), self.guard, known, on_error, trusts_callers=trusts_callers
        )

    async def send(self, body: bytes | AsyncIterator[bytes], **headers: str) -> tuple[int, str]:
        async with TestClient(TestServer(application(self._webhook))) as client:
            answer = await client.post(PATH, data=body, headers=headers)
            return answer.status, await answer.text()

    async def post(self, review: Any) -> tuple[int, Any]:
        status, text = await self.send(json.dumps(review).encode())
        return status, json.loads(text) if status == 200 else text

    async def allows(self, review: Any) -> bool:
        status, answer = await self.post(review)
        assert status == 200
        assert answer["response"]["uid"] == "r1"
        return bool(answer["response"]["allowed"])


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


@pytest.mark.parametrize("on_error", OnError)
@pytest.mark.parametrize("manifest", [{"spec": {"containers": 7}}, {"metadata": {"labels": 1}}])
async def test_a_pod_of_a_wrong_form_is_refused(
    manifest: dict[str, Any], on_error: OnError
) -> None:
    assert not await Door(on_error).allows(creation(manifest))


@pytest.mark.parametrize("review", [{}, [], {"request": {"uid": 7}}, "text"])
async def test_what_is_no_review_is_a_bad_request(review: Any) -> None:
    status, told = await Door().post(review)

    assert status == 400
    assert told.startswith("not an AdmissionReview")


async def test_a_binding_that_is_let_in_closes_the_node_to_others() -> None:
    door = Door()
    door.guard.applied(pod("mpi2", **EXCLUSIVE), b"")
    door.guard.applied(pod("web"), b"")
    assert await door.allows(binding("mpi2", "n3"))

    assert not await door.allows(binding("web", "n3"))
    # Its binding to another node replaces the first one.
    assert await door.allows(binding("mpi2", "n4"))
    assert await door.allows(binding("web", "n3"))


async def test_pods_that_nobody_knows_close_no_node() -> None:
    door = Door()
    door.guard.applied(pod("web"), b"")
    for number in range(3):
        ghost = pod_manifest(f"ghost{number}", node="n2", **EXCLUSIVE)
        path = f"/api/v1/namespaces/default/pods/ghost{number}"
        door.api.script("get", path, refusal(404, "NotFound"))
        assert await door.allows(creation(ghost))
        assert await door.allows(binding(f"ghost{number}", "n2"))

    assert await door.allows(binding("web", "n2"))


async def test_a_pod_that_runs_or_has_another_uid_closes_no_node() -> None:
    door = Door()
    waiting = pod_manifest("mpi2", **EXCLUSIVE)
    door.guard.applied(pod("mpi2", **EXCLUSIVE), b"")
    door.guard.applied(pod("web"), b"")
    door.api.script("get", "/api/v1/namespaces/default/pods/mpi2", waiting)
    other = {"metadata": {"name": "mpi2", "uid": "other"}, "target": {"name": "n2"}}
    assert await door.allows(binding("mpi2", "n2", object=other))
    assert await door.allows(binding("mpi", "n2"))

    assert await door.allows(binding("web", "n2"))


@pytest.mark.parametrize("trusts_callers", [False, True])
async def test_an_ordinary_pod_closes_a_node_only_if_an_api_server_asks(
    trusts_callers: bool,
) -> None:
    door = Door(trusts_callers=trusts_callers)
    door.guard.applied(pod("mpi2", **EXCLUSIVE), b"")
    door.guard.applied(pod("web"), b"")
    await door.allows(binding("web", "n2"))

    assert await door.allows(binding("mpi2", "n2")) is not trusts_callers


DEEP = b"[" * 20_000 + b"]" * 20_000


@pytest.mark.parametrize(
    ("kind", "item"),
    [
        (
            "Pod",
            b'{"metadata":{"managedFields":[{"fieldsV1":%b}]},"spec":{"nodeName":"n1"}}' % DEEP,
        ),
        ("Pod", b'{"metadata":{"name":"\xff\xfe"},"spec":{"nodeName":"n1"}}'),
        ("Pod", b'{"spec":{"nodeName":"n1","priority":1e999}}'),
        ("Pod", b"null"),
        ("Binding", b'{"target":7}'),
        ("Binding", b'{"metadata":%b,"target":{"name":"n1"}}' % DEEP),
        ("Binding", b"null"),
    ],
)
async def test_what_cannot_be_read_is_refused(kind: str, item: bytes) -> None:
    review = b'{"kind":"AdmissionReview","request":{"uid":"r1","kind":{"kind":"%b"},"object":%b}}'
    status, text = await Door().send(review % (kind.encode(), item))

    assert status == 200
    answer = json.loads(text)["response"]
    assert (answer["uid"], answer["allowed"]) == ("r1", False)
    assert answer["status"]["message"].startswith("failed CoexistPolicy: ")


@pytest.mark.parametrize("body", [b"", DEEP, b"\xff\xfe", b'{"request":{"uid":"a', b'{"x":1}'])
async def test_what_has_no_uid_is_a_bad_request(body: bytes) -> None:
    status, text = await Door().send(body)

    assert status == 400
    assert text.startswith("not an AdmissionReview")


async def test_a_body_of_unknown_size_or_a_compressed_one_is_not_read() -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"{}"

    assert (await Door().send(parts()))[0] == 411
    packed = gzip.compress(b" " * 1_000_000)
    assert (await Door().send(packed, **{"Content-Encoding": "gzip"}))[0] == 415


@pytest.mark.parametrize(
    ("size", "status"),
    [
        pytest.param(9, b"408", id="a body that does not come"),
        pytest.param(1 << 30, b"413", id="a body that is too large"),
    ],
)
async def test_not_every_body_is_waited_for(
    size: int, status: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coexist_webhook, "_READ_SECONDS", 0.01)
    async with TestServer(application(Door()._webhook)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST %b HTTP/1.1\r\nHost: it\r\n" % PATH.encode())
        writer.write(b"Content-Length: %d\r\n\r\n{" % size)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert (await reader.readline()).split()[1] == status
        writer.close()


async def test_with_a_client_ca_only_its_certificates_are_answered(tmp_path: Path) -> None:
    authority = ClientAuthority(tmp_path / "authority")
    ours, theirs = authority.sign("ours"), ClientAuthority(tmp_path / "other").sign("theirs")
    certificate = CertificateSettings(
        folder=str(tmp_path / "server"), client_ca_file=str(authority.file)
    )
    settings = ServingSettings("127.0.0.1", 0, certificate)
    app = application(Door()._webhook, asks_for_certificates=True)
    review = json.dumps(creation(pod_manifest("web", node="n1")))

    async def status(path: str, shown: tuple[Path, Path] | None) -> int:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if shown is not None:
            context.load_cert_chain(*shown)
        url = f"https://127.0.0.1:{port}{path}"
        try:
            async with open_session() as session:
                method = "POST" if path == PATH else "GET"
                async with session.request(method, url, data=review, ssl=context) as answer:
                    return answer.status
        except (ClientError, OSError):
            return 0

    async with serve_https(app, settings) as port:
        assert await status(PATH, ours) == 200
        assert await status(PATH, theirs) == 0
        assert await status(PATH, None) == 401
        assert await status("/healthz", None) == 200


async def test_a_dry_run_takes_no_place() -> None:
    door = Door()
    door.guard.applied(pod("mpi2", **EXCLUSIVE), b"")
    door.guard.applied(pod("web"), b"")
    await door.allows(binding("mpi2", "n3", dryRun=True))

    assert await door.allows(binding("web", "n3"))
