"""Shared GPU nodes on a real API server: pods of low priority come, and go for a GPU pod."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from .arena import Arena, Manifest, node, pod
from .control_plane import MOORAGE_TOKEN, ControlPlane
from .moorage_process import kubeconfig, moorage

pytestmark = [pytest.mark.live, pytest.mark.embedded_will_do]

_SHARED = Path(__file__).parents[2] / "examples" / "gpu" / "shared.yaml"
_BY_CLASS = Path(__file__).parents[2] / "examples" / "gpu" / "by-class.yaml"
_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


async def test_backfill_makes_way_for_a_gpu_pod(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    access = kubeconfig(tmp_path / "kubeconfig", plane.server, MOORAGE_TOKEN)
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
        async with moorage(tmp_path / "log", access, *options) as process:
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
            # Two victims, however often an event of one was written.
            events = await admin.told("Preempted", 2)
            assert len({each["regarding"]["name"] for each in events}) == 2
            assert await process.stop() == 0
    finally:
        await admin.delete(f"{_CLASSES}/batch")


def by_claim() -> list[Manifest]:
    """Four GPUs of a node, a class of them, and a claim to one."""
    api = "resource.k8s.io/v1"
    selector = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
    pool = {"name": "gpu-0", "generation": 1, "resourceSliceCount": 1}
    devices = {
        "driver": "gpu.example.com",
        "nodeName": "gpu-0",
        "pool": pool,
        "devices": [{"name": f"gpu-{at}"} for at in range(4)],
    }
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    made = {
        "DeviceClass": ("gpu", {"selectors": [selector]}),
        "ResourceSlice": ("gpu-0", devices),
        "ResourceClaim": ("own", {"devices": {"requests": [request]}}),
    }
    return [
        {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, (name, spec) in made.items()
    ]


async def test_what_free_gpus_need_is_learned_from_claims(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    """Of 16 cores, 2 are kept for each free GPU, until a pod shows that 1 is enough."""
    access = kubeconfig(tmp_path / "kubeconfig", plane.server, MOORAGE_TOKEN)
    using = yaml.safe_load(_BY_CLASS.read_text())
    learning = {"reservePerFreeGPU": {"cpu": 2}, "learnReserve": True}
    using["profiles"][0]["pluginConfig"][0]["args"] |= learning
    (tmp_path / "scheduler.yaml").write_text(yaml.safe_dump(using))
    options = ("--leader-elect=false", f"--config={tmp_path / 'scheduler.yaml'}")
    claimed = [{"name": "gpu", "resourceClaimName": "own"}]
    await admin.create([node("gpu-0", cpu=16), *by_claim()])
    async with moorage(tmp_path / "log", access, *options) as process:

        async def is_placed() -> bool:
            return (await admin.verdict()).bound.get("web") == "gpu-0"

        async def is_refused() -> bool:
            events = await admin.events("FailedScheduling")
            return any(each["regarding"]["name"] == "more" for each in events)

        # 16 less 1 and three times 2 are 9.
        await admin.create([pod("train", cpu="1", resourceClaims=claimed)])
        await admin.bound(1)
        await admin.create([pod("web", cpu="12")])
        await process.settled(is_placed)
        await admin.create([pod("more", cpu="1")])
        await process.settled(is_refused)
        assert (await admin.verdict()).pending == ["more"]
        assert await process.stop() == 0
