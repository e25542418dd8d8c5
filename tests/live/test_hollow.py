"""`moorage hollow` on a real control plane: deployments roll out, drains drain."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.ports import free_port
from tests.programs import need_program

from .arena import Arena
from .control_plane import ADMIN_TOKEN, ControlPlane
from .moorage_process import MoorageProcess, kubeconfig, moorage, running

pytestmark = pytest.mark.live

_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
_CONTROLLERS = (
    "deployment-controller,replicaset-controller,node-lifecycle-controller,"
    "taint-eviction-controller,disruption-controller"
)


def deployment(replicas: int) -> dict[str, Any]:
    labels = {"app": "web"}
    container = {
        "name": "main",
        "image": "registry.example/web:1",
        "resources": {"requests": {"cpu": "1"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


async def is_rolled_out(admin: Arena, image: str, replicas: int) -> bool:
    found = await admin.request("GET", f"{_DEPLOYMENTS}/web")
    status = found.get("status") or {}
    counts = {status.get(each) for each in ("replicas", "updatedReplicas", "readyReplicas")}
    is_seen = status.get("observedGeneration") == found["metadata"]["generation"]
    pods = await admin.pods()
    images = {each["spec"]["containers"][0]["image"] for each in pods}
    return is_seen and counts == {replicas} and images == {image} and len(pods) == replicas


async def drain(plane: ControlPlane, access: Path, node: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(need_program("kubectl"), "drain", node, f"--timeout={PATIENCE_SECONDS:g}s"),
        env={**os.environ, "KUBECONFIG": str(access)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()


async def test_a_deployment_rolls_out_and_a_node_drains(
    real_plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    access = kubeconfig(tmp_path / "kubeconfig", real_plane.server, ADMIN_TOKEN)
    manager = (
        need_program("kube-controller-manager"),
        f"--kubeconfig={access}",
        f"--controllers={_CONTROLLERS}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port()}",
        "--authentication-skip-lookup",
    )
    ours = (sys.executable, "-m", "moorage", "hollow", "--nodes=2", f"--kubeconfig={access}")
    # Not ours: nobody may speak for it.
    await admin.create([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}}])
    async with (
        running(tmp_path / "hollow", *ours) as hollow,
        running(tmp_path / "manager", *manager),
        moorage(tmp_path / "log", access, "--leader-elect=false"),
    ):
        await hollow.logged("Serving 2 nodes, 2 of them new")
        await admin.request("POST", _DEPLOYMENTS, deployment(4))
        await settle(hollow, admin, "registry.example/web:1", 4)
        newer = deployment(4)
        newer["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example/web:2"
        current = await admin.request("GET", f"{_DEPLOYMENTS}/web")
        await admin.request("PUT", f"{_DEPLOYMENTS}/web", {**current, "spec": newer["spec"]})
        await settle(hollow, admin, "registry.example/web:2", 4)

        await drain(real_plane, access, "node-0")
        await settle(hollow, admin, "registry.example/web:2", 4)
        assert {each["spec"]["nodeName"] for each in await admin.pods()} == {"node-1"}

        await admin.delete(f"{_DEPLOYMENTS}/web")
        nodes = {each["metadata"]["name"]: each for each in await admin.nodes()}
        reasons = {
            name: {each["reason"] for each in node.get("status", {}).get("conditions") or ()}
            for name, node in nodes.items()
        }
        assert "KubeletReady" in reasons["node-1"]
        assert "KubeletReady" not in reasons["real"]
        assert await hollow.stop() == 0, hollow.log


async def settle(process: MoorageProcess, admin: Arena, image: str, replicas: int) -> None:
    await process.settled(lambda: is_rolled_out(admin, image, replicas))
