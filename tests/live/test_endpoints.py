"""The endpoints of `moorage run`, with a real API server to say who may read them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from tests.patience import open_session
from tests.ports import free_port

from .arena import Arena, node, pod
from .control_plane import ADMIN_TOKEN, MOORAGE_TOKEN, NOBODY_TOKEN, ControlPlane
from .moorage_process import kubeconfig, moorage

pytestmark = pytest.mark.live


@dataclass(frozen=True)
class Endpoints:
    session: aiohttp.ClientSession
    base: str

    async def get(self, path: str, token: str = "") -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with self.session.get(self.base + path, headers=headers, ssl=False) as answer:
            return answer.status, await answer.text()


@pytest.fixture
async def endpoints(plane: ControlPlane, admin: Arena, tmp_path: Path) -> AsyncIterator[Endpoints]:
    """A scheduler that has placed two pods and could not place a third."""
    access = kubeconfig(tmp_path / "kubeconfig", plane.server, MOORAGE_TOKEN)
    port = free_port()
    await admin.create([node("n1"), pod("a"), pod("b"), pod("big", cpu="99")])
    serving = (f"--secure-port={port}", "--bind-address=127.0.0.1")
    async with (
        moorage(tmp_path / "log", access, "--leader-elect=false", *serving) as process,
        open_session() as session,
    ):
        await admin.bound(2)
        await admin.told("FailedScheduling")
        await process.logged("Serving securely")
        yield Endpoints(session, f"https://127.0.0.1:{port}")


async def test_health_is_open_and_the_rest_is_for_those_who_may(endpoints: Endpoints) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        assert await endpoints.get(path) == (200, "ok")
    for path in ("/metrics", "/metrics/resources", "/configz", "/absent"):
        assert (await endpoints.get(path))[0] == 401
        assert (await endpoints.get(path, "made-up"))[0] == 401
        assert (await endpoints.get(path, NOBODY_TOKEN))[0] == 403
    for path in ("/metrics", "/metrics/resources", "/configz"):
        assert (await endpoints.get(path, ADMIN_TOKEN))[0] == 200
    assert (await endpoints.get("/absent", ADMIN_TOKEN))[0] == 404
    _, told = await endpoints.get("/readyz?verbose")
    assert "[+]informer-sync ok" in told


async def test_metrics_tell_what_happened(endpoints: Endpoints) -> None:
    _, told = await endpoints.get("/metrics", ADMIN_TOKEN)

    for line in (
        'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 2.0',
        'scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"} 1.0',
        'scheduler_pending_pods{queue="unschedulable"} 1.0',
        'scheduler_cache_size{type="nodes"} 1.0',
    ):
        assert line in told
    assert 'rest_client_requests_total{code="201"' in told

    _, told = await endpoints.get("/metrics/resources", ADMIN_TOKEN)
    assert 'kube_pod_resource_request{namespace="default",node="n1",pod="a"' in told


async def test_the_configuration_in_force_is_told(endpoints: Endpoints) -> None:
    _, told = await endpoints.get("/configz", ADMIN_TOKEN)

    assert '"schedulerName":"default-scheduler"' in told
