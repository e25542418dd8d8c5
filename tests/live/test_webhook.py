"""`moorage webhook`, asked by a real API server."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from moorage.app.coexist_admission import ANNOTATION as RAISED
from moorage.objects.coexist import ANNOTATION as COEXIST_POLICY, PLACED
from tests.client_certificates import ClientAuthority
from tests.patience import open_session, until
from tests.ports import free_port

from .arena import Arena, arena, node, pod
from .control_plane import ADMIN_TOKEN, ControlPlane, control_plane
from .moorage_process import kubeconfig

pytestmark = pytest.mark.live

_SHIPPED = Path(__file__).parents[2] / "deploy" / "webhook" / "webhook.yaml"
_RAISING = _SHIPPED.parent / "raise-requests" / "mutating-webhook.yaml"
_PODS = "/api/v1/namespaces/default/pods"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_CONFIGURATIONS = f"{_ADMISSION}/validatingwebhookconfigurations"
_POLICIES = Path(__file__).parents[2] / "deploy" / "admission-policy"
_PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}


@pytest.fixture
async def webhook(plane: ControlPlane, admin: Arena, tmp_path: Path) -> AsyncIterator[int]:
    """The webhook as shipped, but for where it is; gives its port."""
    port = free_port()
    async with running(plane, admin, tmp_path, port):
        yield port


@asynccontextmanager
async def running(
    plane: ControlPlane, admin: Arena, folder: Path, port: int, *flags: str
) -> AsyncIterator[None]:
    """A webhook that the API server asks."""
    certificates = folder / "certificates"
    access = kubeconfig(folder / "kubeconfig", plane.server, ADMIN_TOKEN)
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "moorage", "webhook"),
            *(f"--kubeconfig={access}", f"--secure-port={port}", f"--cert-dir={certificates}"),
            *("--bind-address=127.0.0.1", *flags),
            stderr=log,
        )
    try:
        await _ready(port)
        await admin.request("POST", _CONFIGURATIONS, _configuration(port, certificates))
        await _asked(admin)
        yield
        await admin.delete(_CONFIGURATIONS)
    finally:
        process.terminate()
        assert await process.wait() == 0


async def _asked(admin: Arena) -> None:
    """Waits until the API server asks the webhook, which refuses a policy that there is not."""
    wrong = exclusive("probe", policy="Nonsense", nodeName="nowhere")
    await _refused(admin, wrong, "failed CoexistPolicy")


async def _refused(admin: Arena, wrong: Any, why: str) -> None:
    """Waits until the API server refuses something."""

    async def is_refused() -> bool:
        try:
            await admin.request("POST", f"{_PODS}?dryRun=All", wrong)
        except AssertionError as refusal:
            if why in str(refusal):
                return True
            raise
        return False

    await until(is_refused)


async def _ready(port: int) -> None:
    async with open_session() as session:

        async def is_ready() -> bool:
            try:
                async with session.get(f"https://127.0.0.1:{port}/readyz", ssl=False) as answer:
                    return answer.status == 200
            except aiohttp.ClientError:
                return False

        await until(is_ready)


def _configuration(
    port: int, folder: Path, file: Path = _SHIPPED, path: str = "coexist-policy"
) -> Any:
    shipped = yaml.safe_load(file.read_text())
    authority = base64.b64encode((folder / "moorage.crt").read_bytes()).decode()
    for each in shipped["webhooks"]:
        where = f"https://127.0.0.1:{port}/{path}"
        each["clientConfig"] = {"url": where, "caBundle": authority}
        assert each["failurePolicy"] == "Ignore", "what the webhook cannot answer is let through"
    return shipped


def exclusive(name: str, policy: str = "DaemonsetAndStaticPods", **given: Any) -> dict[str, Any]:
    made = pod(name, **given)
    annotation = {"scheduling.moorage.dev/coexist-policy": policy}
    return {**made, "metadata": {**made["metadata"], "annotations": annotation}}


async def bind(admin: Arena, name: str, node_name: str, path: str = "") -> None:
    """Binds a pod as a scheduler with the policy does."""
    uid = (await admin.request("GET", f"{_PODS}/{name}"))["metadata"]["uid"]
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "annotations": {PLACED: uid}},
        "target": {"kind": "Node", "name": node_name},
    }
    await admin.request("POST", path or f"{_PODS}/{name}/binding", body)


@pytest.mark.usefixtures("webhook")
async def test_pods_bound_around_the_scheduler_are_refused(admin: Arena) -> None:
    await admin.create([node("n1"), node("n2"), exclusive("mpi"), pod("web"), pod("web2")])
    await bind(admin, "mpi", "n1")
    with pytest.raises(AssertionError, match=r"403 .*failed CoexistPolicy: an exclusive pod"):
        await bind(admin, "web", "n1")
    with pytest.raises(AssertionError, match=r"403 .*failed CoexistPolicy"):
        await admin.create([pod("direct", nodeName="n1")])
    await bind(admin, "web", "n2")
    await admin.create([pod("direct", nodeName="n2")])
    with pytest.raises(AssertionError, match=r"403 .*other pods run there"):
        await admin.create([exclusive("mpi2", nodeName="n2")])


@pytest.mark.usefixtures("webhook")
async def test_of_many_bindings_at_the_same_moment_one_passes(admin: Arena) -> None:
    await admin.create([node("n1"), *(exclusive(f"mpi{number}") for number in range(8))])
    ends = await asyncio.gather(
        *(bind(admin, f"mpi{number}", "n1") for number in range(8)), return_exceptions=True
    )

    assert sum(end is None for end in ends) == 1
    assert len((await admin.verdict()).bound) == 1


@pytest.mark.usefixtures("webhook")
async def test_a_binding_by_the_older_path_is_reviewed(admin: Arena) -> None:
    await admin.create([node("n1"), exclusive("mpi"), pod("web")])
    await bind(admin, "mpi", "n1")

    with pytest.raises(AssertionError, match=r"403 .*failed CoexistPolicy"):
        await bind(admin, "web", "n1", "/api/v1/namespaces/default/bindings")


@pytest.mark.usefixtures("webhook")
@pytest.mark.parametrize("depth", [2_000, 9_900])
async def test_a_pod_that_is_nested_deeply_does_not_get_around_it(admin: Arena, depth: int) -> None:
    await admin.create([node("n1"), node("n2"), exclusive("mpi")])
    await bind(admin, "mpi", "n1")

    with pytest.raises(AssertionError, match=r"403 .*failed CoexistPolicy: an exclusive pod"):
        await post_text(admin, nested("direct", "n1", depth))
    await post_text(admin, nested("direct", "n2", depth))
    await admin.delete(f"{_PODS}/direct")


def nested(name: str, node_name: str, depth: int) -> bytes:
    """A pod with managed fields of that depth, which an API server accepts."""
    made = pod(name, nodeName=node_name)
    entry = {
        "manager": "me",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": "DEEP",
    }
    made["metadata"]["managedFields"] = [entry]
    deep = b'{"f:a":' * depth + b"{}" + b"}" * depth
    return json.dumps(made).encode().replace(b'"DEEP"', deep)


async def post_text(admin: Arena, text: bytes) -> None:
    await admin.request("POST", _PODS, data=text, headers={"Content-Type": "application/json"})


async def test_reviews_of_strangers_close_no_node(webhook: int, admin: Arena) -> None:
    """Somebody on the network without credentials posts reviews of pods that there are not."""
    await admin.create([node("n1"), node("n2"), pod("web"), pod("web2")])
    for number, where in enumerate(("n1", "n2") * 4):
        ghost = exclusive(f"ghost{number}", nodeName=where)
        ghost["metadata"]["uid"] = f"made-up-{number}"
        target = {"metadata": {"name": f"ghost{number}"}, "target": {"name": where}}
        assert (await review(webhook, "Pod", ghost))["allowed"]
        assert (await review(webhook, "Binding", target))["allowed"]

    await bind(admin, "web", "n1")
    await bind(admin, "web2", "n2")


async def review(port: int, kind: str, item: Any) -> Any:
    request = {"uid": "1", "kind": {"kind": kind}, "namespace": "default", "object": item}
    url = f"https://127.0.0.1:{port}/coexist-policy"
    async with (
        open_session() as session,
        session.post(url, json={"request": request}, ssl=False) as answer,
    ):
        return (await answer.json())["response"]


async def test_an_api_server_shows_its_certificate(tmp_path: Path) -> None:
    authority, port = ClientAuthority(tmp_path / "authority"), free_port()
    certificate, key = authority.sign("api-server")
    with control_plane("AlwaysAllow", _shown_to(port, certificate, key, tmp_path)) as plane:
        async with (
            arena(plane.server, ADMIN_TOKEN) as admin,
            running(plane, admin, tmp_path, port, f"--client-ca-file={authority.file}"),
        ):
            await admin.create([node("n1"), exclusive("mpi"), pod("web")])
            await bind(admin, "mpi", "n1")
            with pytest.raises(AssertionError, match=r"403 .*failed CoexistPolicy"):
                await bind(admin, "web", "n1")
            with pytest.raises(aiohttp.ContentTypeError, match="401"):
                await review(port, "Pod", exclusive("ghost", nodeName="n1"))


def _shown_to(port: int, certificate: Path, key: Path, folder: Path) -> str:
    """The flag of an API server that shows a certificate to the webhook, as documented."""
    users = [
        {
            "name": f"127.0.0.1:{port}",
            "user": {"client-certificate": str(certificate), "client-key": str(key)},
        }
    ]
    shown = folder / "admission-kubeconfig.yaml"
    shown.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "users": users}))
    version = "apiserver.config.k8s.io/v1"
    configuration = {
        "apiVersion": version,
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(shown),
    }
    plugin = {"name": "ValidatingAdmissionWebhook", "configuration": configuration}
    path = folder / "admission.yaml"
    given = {"apiVersion": version, "kind": "AdmissionConfiguration", "plugins": [plugin]}
    path.write_text(yaml.safe_dump(given))
    return f"--admission-control-config-file={path}"


async def test_requests_of_exclusive_pods_are_raised_to_the_size_of_a_node(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    daemon = pod("daemon", cpu="500m", nodeName="small")
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d"}
    daemon["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    await admin.create([node("small", cpu=4), node("large", cpu=16, size="large"), daemon])
    port = free_port()
    configurations = f"{_ADMISSION}/mutatingwebhookconfigurations"
    async with running(plane, admin, tmp_path, port, "--raise-requests"):
        shipped = _configuration(port, tmp_path / "certificates", _RAISING, "raise-requests")
        await admin.request("POST", configurations, shipped)
        try:
            await _raised(admin)
            selecting = exclusive("b", nodeSelector={"size": "large"})
            await admin.create([exclusive("a"), selecting, pod("plain")])
        finally:
            await admin.delete(configurations)
    found = {each: await admin.request("GET", f"{_PODS}/{each}") for each in ("a", "b", "plain")}
    asked = {
        name: each["spec"]["containers"][0]["resources"]["requests"]["cpu"]
        for name, each in found.items()
    }
    assert asked == {"a": "3500m", "b": "16", "plain": "100m"}
    assert found["b"]["metadata"]["annotations"][RAISED] == "large"


async def _raised(admin: Arena) -> None:
    """Waits until the API server has requests raised."""

    async def is_raised() -> bool:
        made = await admin.request("POST", f"{_PODS}?dryRun=All", exclusive("probe"))
        return RAISED in made["metadata"]["annotations"]

    await until(is_raised)


async def test_the_admission_policies_let_only_bindings_mark_a_pod(admin: Arena) -> None:
    files = [_POLICIES / name for name in ("placed.yaml", "unchanged.yaml")]
    policies = [each for path in files for each in yaml.safe_load_all(path.read_text())]
    folders = {each["kind"]: f"{_ADMISSION}/{_PLURALS[each['kind']]}" for each in policies}
    for each in policies:
        await admin.request("POST", folders[each["kind"]], each)
    try:
        forged = exclusive("forged")
        forged["metadata"]["annotations"][PLACED] = "made up"
        await _refused(admin, forged, "the scheduler alone sets")
        await admin.create([node("n1"), exclusive("mpi")])
        await bind(admin, "mpi", "n1")
        bound = await admin.request("GET", f"{_PODS}/mpi")
        assert bound["metadata"]["annotations"][PLACED] == bound["metadata"]["uid"]
        bound["metadata"]["annotations"][COEXIST_POLICY] = "Any"
        for path in (f"{_PODS}/mpi", f"{_PODS}/mpi/status"):
            with pytest.raises(AssertionError, match="a pod that has a node keeps its"):
                await admin.request("PUT", path, bound)
        await admin.create([exclusive("waits")])
        waits = await admin.request("GET", f"{_PODS}/waits")
        waits["metadata"]["annotations"][PLACED] = waits["metadata"]["uid"]
        with pytest.raises(AssertionError, match="the scheduler alone sets"):
            await admin.request("PUT", f"{_PODS}/waits/status", waits)
    finally:
        for each in policies:
            await admin.delete(f"{folders[each['kind']]}/{each['metadata']['name']}")
