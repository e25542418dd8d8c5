"""`mooring webhook`, asked by a real API server."""

from __future__ import annotations

import asyncio
import base64
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from .arena import Arena, node, pod
from .control_plane import ADMIN_TOKEN, ControlPlane, free_port
from .mooring_process import kubeconfig

pytestmark = pytest.mark.live

_SHIPPED = Path(__file__).parents[2] / "deploy" / "webhook" / "webhook.yaml"
_PODS = "/api/v1/namespaces/default/pods"
_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@pytest.fixture
async def webhook(plane: ControlPlane, admin: Arena, tmp_path: Path) -> AsyncIterator[None]:
    """The webhook as shipped, but for where it is."""
    port, folder = free_port(), tmp_path / "certificates"
    access = kubeconfig(tmp_path / "kubeconfig", plane.server, ADMIN_TOKEN)
    with (tmp_path / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mooring", "webhook"),
            *(f"--kubeconfig={access}", f"--secure-port={port}", f"--cert-dir={folder}"),
            *("--bind-address=127.0.0.1", "--on-error=deny"),
            stderr=log,
        )
    try:
        await _ready(port)
        await admin.request("POST", _CONFIGURATIONS, _configuration(port, folder))
        await asyncio.sleep(1.0)  # API servers look for new webhooks every so often.
        yield
        await admin.delete(_CONFIGURATIONS)
    finally:
        process.terminate()
        assert await process.wait() == 0


async def _ready(port: int) -> None:
    async with aiohttp.ClientSession() as session, asyncio.timeout(30):
        while True:
            try:
                async with session.get(f"https://127.0.0.1:{port}/readyz", ssl=False) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)


def _configuration(port: int, folder: Path) -> Any:
    shipped = yaml.safe_load(_SHIPPED.read_text())
    authority = base64.b64encode((folder / "mooring.crt").read_bytes()).decode()
    for each in shipped["webhooks"]:
        where = f"https://127.0.0.1:{port}/coexist-policy"
        each["clientConfig"] = {"url": where, "caBundle": authority}
        each["failurePolicy"] = "Fail"
    return shipped


def exclusive(name: str, **given: Any) -> dict[str, Any]:
    made = pod(name, **given)
    annotation = {"scheduling.mooring.dev/coexist-policy": "DaemonsetAndStaticPods"}
    return {**made, "metadata": {**made["metadata"], "annotations": annotation}}


async def bind(admin: Arena, name: str, node_name: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"kind": "Node", "name": node_name},
    }
    await admin.request("POST", f"{_PODS}/{name}/binding", body)


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
