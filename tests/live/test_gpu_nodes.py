"""Shared GPU nodes on a real API server: pods of low priority come, and go for a GPU pod."""

from __future__ import annotations

from pathlib import Path

import pytest

from .arena import Arena, node, pod
from .control_plane import MOORING_TOKEN, ControlPlane
from .mooring_process import kubeconfig, mooring

pytestmark = [pytest.mark.live, pytest.mark.embedded_will_do]

_SHARED = Path(__file__).parents[2] / "examples" / "gpu" / "shared.yaml"
_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


async def test_backfill_makes_way_for_a_gpu_pod(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    access = kubeconfig(tmp_path / "kubeconfig", plane.server, MOORING_TOKEN)
    options = ("--leader-elect=false", f"--config={_SHARED}")
    gpus = node("gpu-0", cpu=16)
    for amounts in (gpus["status"]["capacity"], gpus["status"]["allocatable"]):
        amounts["nvidia.com/gpu"] = "2"
    batch = [
        pod(f"batch-{at}", cpu="4", priorityClassName="batch", terminationGracePeriodSeconds=0)
        for at in range(4)
    ]
    train = pod("train", cpu="8")
    train["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "1"}
    await admin.request("POST", _CLASSES, {"metadata": {"name": "batch"}, "value": -10})
    try:
        await admin.create([gpus])
        async with mooring(tmp_path / "log", access, *options) as process:
            # An ordinary pod is kept away by the reserve of the free GPUs; others may come.
            await admin.create([pod("web", cpu="8"), *batch])
            found = await admin.bound(4)
            assert found.pending == ["web"]

            # Two of four go, and no more.
            await admin.create([train])

            async def is_placed() -> bool:
                return (await admin.verdict()).bound.get("train") == "gpu-0"

            await process.settled(is_placed)
            assert len((await admin.verdict()).on("gpu-0")) == 3
            assert len(await admin.events("Preempted")) == 2
            assert await process.stop() == 0
    finally:
        await admin.delete(f"{_CLASSES}/batch")
