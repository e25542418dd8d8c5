"""What must go on while a decision hangs, or while strangers hold the port: lease, health, signals.

`moorage run` as its own process. Its decisions hang in a plugin.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.patience import PATIENCE_SECONDS, open_session
from tests.ports import free_port

from .arena import Arena, node, pod
from .control_plane import ADMIN_TOKEN, MOORAGE_TOKEN, ControlPlane, binaries
from .faulty_proxy import Faults, FaultyProxy
from .lease_options import LONG_LEASE, SHORT_LEASE
from .moorage_process import MoorageProcess, kubeconfig, moorage

pytestmark = [pytest.mark.live, pytest.mark.embedded_will_do]

_LEASE = "/apis/coordination.k8s.io/v1/namespaces/moorage-system/leases/moorage"
_LEADS = "This scheduler leads"
_RENEWALS = 6

# It holds the interpreter for as long as no other code would, and is no burden otherwise.
_HANGING = """
import time
from pathlib import Path

from moorage.framework.plugin import PreFilter

class Hanging(PreFilter):
    name = "Hanging"

    def pre_filter(self, pod, nodes):
        if pod.name.startswith("hang"):
            Path({begun!r}).touch()
            while not Path({go_on!r}).exists():
                sum(range(1_000_000))
                time.sleep(0.05)
        return None
"""


class Hanging:
    """A plugin that hangs until it is let go on."""

    def __init__(self, folder: Path) -> None:
        self._begun, self._go_on = folder / "begun", folder / "go-on"
        file = folder / "hanging.py"
        file.write_text(_HANGING.format(begun=str(self._begun), go_on=str(self._go_on)))
        self.option = f"--plugins={file}"

    async def has_begun(self) -> bool:
        return self._begun.exists()

    def let_go_on(self) -> None:
        self._go_on.touch()


class Endpoints:
    """The endpoints of a process; `get` opens a connection each time."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self._session = session
        self.port = port
        self.options = (f"--secure-port={port}", "--bind-address=127.0.0.1")

    async def get(self, path: str, token: str = "") -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        url = f"https://127.0.0.1:{self.port}{path}"
        async with self._session.get(url, headers=headers, ssl=False) as answer:
            return answer.status, await answer.text()


@pytest.fixture
async def endpoints() -> AsyncIterator[Endpoints]:
    connector = aiohttp.TCPConnector(force_close=True)
    async with open_session(connector=connector) as session:
        yield Endpoints(session, free_port())


@pytest.fixture
def access(plane: ControlPlane, tmp_path: Path) -> Path:
    return kubeconfig(tmp_path / "kubeconfig", plane.server, MOORAGE_TOKEN)


async def lease(admin: Arena) -> dict[str, Any]:
    spec: dict[str, Any] = (await admin.request("GET", _LEASE))["spec"]
    return spec


@asynccontextmanager
async def hung(
    admin: Arena, access: Path, folder: Path, *options: str
) -> AsyncIterator[MoorageProcess]:
    """A leader that is in a decision which does not end."""
    hanging = Hanging(folder)
    await admin.create([node("n1")])
    async with moorage(folder / "hung", access, hanging.option, *options) as process:
        await process.logged(_LEADS)
        await admin.create([pod("hang")])
        await process.settled(hanging.has_begun)
        yield process


async def test_a_leader_keeps_its_lease_answers_and_stops_while_a_decision_hangs(
    admin: Arena, access: Path, tmp_path: Path, endpoints: Endpoints
) -> None:
    options = (*LONG_LEASE, "--hung-after=1h", *endpoints.options)
    async with hung(admin, access, tmp_path, *options) as process:
        seen: set[str] = set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(seen) < _RENEWALS:
                seen.add((await lease(admin))["renewTime"])
                assert await endpoints.get("/livez") == (200, "ok")
                assert await endpoints.get("/readyz") == (200, "ok")
                await asyncio.sleep(0.1)
        if binaries() is not None:
            status, text = await endpoints.get("/metrics", ADMIN_TOKEN)
            assert status == 200
            assert "moorage_deciding_stall_seconds" in text
            assert (await endpoints.get("/ui/api/snapshot", ADMIN_TOKEN))[0] == 503

        assert await process.stop() == 0

        assert (await lease(admin))["holderIdentity"] == ""
        assert "the process exits without it" in process.log
        assert (await admin.verdict()).pending == ["hang"]


async def test_a_leader_that_hangs_for_too_long_is_replaced(
    admin: Arena, access: Path, tmp_path: Path, endpoints: Endpoints
) -> None:
    soon = ("--hung-after=5s", *endpoints.options)
    async with (
        hung(admin, access, tmp_path, *SHORT_LEASE, *soon) as process,
        moorage(tmp_path / "standby", access, *SHORT_LEASE) as standby,
    ):

        async def is_dead() -> bool:
            return (await endpoints.get("/livez"))[0] == 500

        await process.settled(is_dead)
        await standby.logged(_LEADS)
        assert await process.wait() == 1
        assert await admin.all_bound(1)


async def test_a_leader_that_was_replaced_writes_nothing_of_what_it_decided(
    plane: ControlPlane, admin: Arena, access: Path, tmp_path: Path
) -> None:
    """What it decides is a status and an event: a pod that fits nowhere."""
    hanging = Hanging(tmp_path)
    await admin.create([node("n1")])
    async with FaultyProxy(plane.server, Faults()).running() as proxy:
        behind = kubeconfig(tmp_path / "behind", proxy.url, MOORAGE_TOKEN)
        late = ("--hung-after=5s", hanging.option)
        async with moorage(tmp_path / "old", behind, *SHORT_LEASE, *late) as leader:
            await leader.logged(_LEADS)
            async with moorage(tmp_path / "new", access, *SHORT_LEASE) as standby:
                await standby.logged("The cluster is known")
                await admin.create([pod("hang", cpu="99")])
                await leader.settled(hanging.has_begun)
                await standby.logged(_LEADS)
                hanging.let_go_on()
                assert await leader.wait() == 1

        assert [path for _, path in proxy.writes if "/leases" not in path] == []


@contextmanager
def half_requests(port: int, count: int) -> Iterator[None]:
    """Connections that never send a whole request: some without a handshake, some with one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for number in range(count):
            half = stack.enter_context(
                socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS)
            )
            if number % 4:
                half.sendall(b"\x16\x03\x01")
            else:
                half = stack.enter_context(trusting.wrap_socket(half))
                half.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
        yield


async def test_half_requests_harm_neither_bindings_nor_probes(
    admin: Arena, access: Path, tmp_path: Path, endpoints: Endpoints
) -> None:
    await admin.create(node(f"n{number}") for number in range(3))
    alone = ("--leader-elect=false", *endpoints.options)
    async with moorage(tmp_path / "log", access, *alone, most_descriptors=1_024) as process:
        await process.logged(_LEADS)
        with half_requests(endpoints.port, 992):
            await admin.create(pod(f"p{number}") for number in range(20))
            await admin.all_bound(20)
            for path in ("/livez", "/readyz", "/healthz"):
                assert await endpoints.get(path) == (200, "ok")
            assert len(await admin.told("Scheduled", 20)) == 20
        assert await process.stop() == 0
        assert "Too many open files" not in process.log
