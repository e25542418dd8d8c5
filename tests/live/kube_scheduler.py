"""The kube-scheduler of the same version as the API server, where its binary is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.ports import free_port
from tests.programs import need_program

from .control_plane import ADMIN_TOKEN, ControlPlane
from .moorage_process import MoorageProcess, kubeconfig, running


@asynccontextmanager
async def kube_scheduler(
    plane: ControlPlane, folder: Path, *options: str
) -> AsyncIterator[MoorageProcess]:
    """Runs kube-scheduler against an API server; skips the test without its binary."""
    access = kubeconfig(folder / "kube-scheduler-access", plane.server, ADMIN_TOKEN)
    command: tuple[str | Path, ...] = (
        need_program("kube-scheduler"),
        f"--kubeconfig={access}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port()}",
        f"--authentication-kubeconfig={access}",
        "--authentication-skip-lookup",
        *options,
    )
    async with running(folder / "kube-scheduler-log", *command) as process:
        yield process
