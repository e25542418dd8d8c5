"""Beside the kube-scheduler of the same version as the API server: what pods that wait are told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.programs import need_program

from .arena import Arena, Manifest, node, pod
from .control_plane import ADMIN_TOKEN, MOORAGE_TOKEN, ControlPlane
from .moorage_process import MoorageProcess, kubeconfig, moorage, running

pytestmark = pytest.mark.live

_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_CLASS: Manifest = {"metadata": {"name": "versions-high"}, "value": 1000}


def _named(name: str, target: str) -> Manifest:
    """A pod for a node that daemon sets would choose for it."""
    field = {"key": "metadata.name", "operator": "In", "values": [target]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return pod(name, cpu="3", affinity=affinity)


def make_cluster() -> list[Manifest]:
    tainted = node("tainted", cpu=4)
    tainted["spec"] = {"taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]}
    return [node("small", cpu=2), tainted, pod("there", cpu="1500m", nodeName="small")]


def make_waiting() -> list[Manifest]:
    return [
        pod("large", cpu="64"),
        pod("selects", nodeSelector={"disk": "fast"}),
        _named("named", "small"),
        _named("absent", "nowhere"),
        pod("preempts", cpu="1800m", priorityClassName="versions-high"),
    ]


@asynccontextmanager
async def _kube_scheduler(plane: ControlPlane, folder: Path) -> AsyncIterator[MoorageProcess]:
    writing = kubeconfig(folder / "writing", plane.server, ADMIN_TOKEN)
    theirs = (
        need_program("kube-scheduler"),
        f"--kubeconfig={writing}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port()}",
        f"--authentication-kubeconfig={writing}",
        "--authentication-skip-lookup",
    )
    async with running(folder / "theirs", *theirs) as process:
        yield process


async def read_messages(admin: Arena, process: MoorageProcess) -> dict[str, str]:
    """What each waiting pod is told, once all of them are."""
    waiting = make_waiting()
    found: dict[str, str] = {}

    async def are_told() -> bool:
        for each in await admin.pods():
            for condition in each["status"].get("conditions") or ():
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    found[each["metadata"]["name"]] = condition["message"]
        return len(found) == len(waiting)

    await admin.create(waiting, width=1)
    await process.settled(are_told)
    return found


async def test_pods_that_wait_are_told_the_same(
    real_plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    """The version of the API server decides which words are used."""
    await admin.request("POST", _CLASSES, _CLASS)
    try:
        # The cluster is there first: a scheduler may hear of a pod before an older node.
        await admin.create(make_cluster())
        async with _kube_scheduler(real_plane, tmp_path) as process:
            theirs = await read_messages(admin, process)
        await admin.clear()
        await admin.create(make_cluster())
        access = kubeconfig(tmp_path / "ours", real_plane.server, MOORAGE_TOKEN)
        async with moorage(tmp_path / "log", access, "--leader-elect=false") as process:
            ours = await read_messages(admin, process)
    finally:
        await admin.delete(f"{_CLASSES}/{_CLASS['metadata']['name']}")
    assert ours == theirs
