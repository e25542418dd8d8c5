"""Ten minutes of churn: `make soak`. Memory stays flat and the cache stays right."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import time
from pathlib import Path

import pytest

from .arena import Arena, node, pod
from .control_plane import MOORING_TOKEN, ControlPlane
from .mooring_process import MooringProcess, kubeconfig, mooring

pytestmark = [pytest.mark.live, pytest.mark.soak]

_MINUTES = float(os.environ.get("MOORING_SOAK_MINUTES", "10"))
_RATE = 100
# Pods live for so long, so that there are as many at any time as they come in that.
_LIFE_SECONDS = 10.0
_MOST_GROWTH = 1.1

_PODS = "/api/v1/namespaces/default/pods"


class Churn:
    """Pods that come and go at a steady rate."""

    def __init__(self, admin: Arena) -> None:
        self._admin = admin
        self.made = 0

    async def run(self, seconds: float) -> None:
        began, tasks = time.monotonic(), set()
        for number in itertools.count():
            due = began + number / _RATE
            if due > began + seconds:
                break
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            task = asyncio.create_task(self._live(f"p{number}"))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)

    async def _live(self, name: str) -> None:
        await self._admin.create([pod(name)], width=1)
        self.made += 1
        await asyncio.sleep(_LIFE_SECONDS)
        await self._admin.delete(f"{_PODS}/{name}")


async def test_soak(plane: ControlPlane, admin: Arena, tmp_path: Path) -> None:
    access = kubeconfig(tmp_path / "kubeconfig", plane.server, MOORING_TOKEN)
    await admin.create(node(f"n{number}", cpu=32) for number in range(100))
    async with mooring(tmp_path / "log", access, "--leader-elect=false") as process:
        await process.logged("leads")
        churn = Churn(admin)
        await churn.run(60.0 * _MINUTES / 4)
        early = _resident(process)
        await churn.run(60.0 * _MINUTES * 3 / 4)
        late = _resident(process)
        await admin.create([pod("left1"), pod("left2")])
        await admin.all_bound(2)
        process.signal(signal.SIGUSR2)
        await process.logged("Compared the cache with the API server")

        report = f"{churn.made} pods, {early / 2**20:.0f} MB early, {late / 2**20:.0f} MB late"
        (tmp_path / "report").write_text(report)
        print(report)  # noqa: T201 - it is what `make soak` shows
        assert "nodes=100 pods=2 differences=0" in process.log
        assert late <= _MOST_GROWTH * early, report
        assert await process.stop() == 0


def _resident(process: MooringProcess) -> int:
    fields = Path(f"/proc/{process.pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
