"""What is shipped under deploy/ is accepted by a real API server, serves there, and goes again."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.programs import need_program, needs_program

from .arena import Arena, arena, node, pod
from .control_plane import ADMIN_TOKEN, ControlPlane, control_plane
from .moorage_process import kubeconfig, running

pytestmark = pytest.mark.live

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.mark.parametrize(
    "folder",
    ["base", "default-scheduler", "disk-io", "metrics-reader", "shadow", "webhook/network-policy"],
)
def test_the_api_server_accepts_it(plane: ControlPlane, folder: str) -> None:
    kubectl = need_program("kubectl")
    applied = subprocess.run(
        [
            kubectl,
            "apply",
            "--server-side",
            "--force-conflicts",
            "--dry-run=server",
            "-k",
            DEPLOY / folder,
        ],
        env={**os.environ, "KUBECONFIG": str(plane.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert applied.returncode == 0, applied.stderr


ROLES = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture
async def no_roles(admin: Arena) -> AsyncIterator[None]:
    """The roles of the cluster that other tests use have the names of the chart's."""
    paths = (f"{ROLES}/clusterroles/moorage", f"{ROLES}/clusterrolebindings/moorage")
    kept = {path: await admin.request("GET", path) for path in paths}
    for path in kept:
        await admin.delete(path)
    yield
    for path, item in kept.items():
        item["metadata"] = {"name": "moorage"}
        await admin.request("POST", path.rpartition("/")[0], item)


@needs_program("helm")
@pytest.mark.usefixtures("no_roles")
async def test_the_chart_grants_what_a_scheduler_needs_and_leaves_nothing_behind(
    real_plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    access = kubeconfig(tmp_path / "kubeconfig", real_plane.server, ADMIN_TOKEN)
    await admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": "by-helm"}})

    def helm(*arguments: str) -> None:
        command = [
            need_program("helm"),
            *arguments,
            "--namespace=by-helm",
            f"--kubeconfig={access}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    before = await list_all(admin, "by-helm")
    helm("install", "moorage", str(DEPLOY / "helm" / "moorage"))
    await schedule_with_its_grants(real_plane, admin, "by-helm", tmp_path)
    helm("uninstall", "moorage")

    assert await list_all(admin, "by-helm") == before


async def test_kustomize_grants_what_a_scheduler_needs_and_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    """On an API server of its own, because the namespace goes, too, for which a controller sees."""
    kubectl_binary, manager_binary = map(need_program, ("kubectl", "kube-controller-manager"))
    with control_plane("RBAC") as plane:
        access = kubeconfig(tmp_path / "kubeconfig", plane.server, ADMIN_TOKEN)
        manager = (
            manager_binary,
            f"--kubeconfig={access}",
            "--controllers=namespace-controller",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            "--authentication-skip-lookup",
        )

        def kubectl(*arguments: str) -> None:
            command = [kubectl_binary, *arguments, f"--kubeconfig={access}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr

        async with (
            arena(plane.server, ADMIN_TOKEN) as admin,
            running(tmp_path / "manager", *manager),
        ):
            before = await list_all(admin, "moorage-system")
            kubectl("apply", "-k", str(DEPLOY / "base"))
            assert len(await list_all(admin, "moorage-system")) > len(before)
            await schedule_with_its_grants(plane, admin, "moorage-system", tmp_path)
            await asyncio.to_thread(kubectl, "delete", "-k", str(DEPLOY / "base"))

            assert await list_all(admin, "moorage-system") == before
            spaces = (await admin.request("GET", "/api/v1/namespaces"))["items"]
            assert "moorage-system" not in {each["metadata"]["name"] for each in spaces}


async def schedule_with_its_grants(
    plane: ControlPlane, admin: Arena, namespace: str, folder: Path
) -> None:
    """Runs a scheduler as the deployment of a namespace does, with its account; it binds a pod."""
    options = await read_deployment(admin, namespace, folder)
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/moorage/token"
    asked = await admin.request("POST", account, {"spec": {}})
    granted = kubeconfig(folder / "granted", plane.server, asked["status"]["token"])
    await admin.create([node("n0"), pod("p0", scheduler="moorage")])

    command = (sys.executable, "-m", "moorage", "run", f"--kubeconfig={granted}", *options)
    async with running(folder / "log", *command) as process:
        await admin.bound(1)
        assert await process.stop() == 0, process.log
    assert "orbidden" not in process.log
    for path in ("/api/v1/namespaces/default/pods/p0", "/api/v1/nodes/n0"):
        await admin.delete(path)


async def read_deployment(admin: Arena, namespace: str, folder: Path) -> list[str]:
    """The flags that a scheduler is started with there, and its configuration in a file."""
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    (made,) = (await admin.request("GET", deployments))["items"]
    spec = made["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == "moorage"
    (mounted,) = (each["configMap"]["name"] for each in spec["volumes"] if "configMap" in each)
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    config = await admin.request("GET", f"{maps}/{mounted}")
    (folder / "moorage.yaml").write_text(config["data"]["moorage.yaml"])
    command, *flags = spec["containers"][0]["args"]
    assert command == "run"
    return [
        flag.replace("/etc/moorage", str(folder)).replace("10259", str(free_port()))
        for flag in flags
    ] + ["--bind-address=127.0.0.1"]


async def list_all(admin: Arena, namespace: str) -> set[str]:
    """Everything in a namespace, and the roles of the cluster; events go by time."""
    found = set()
    inside = ("/api/v1", "/apis/apps/v1", "/apis/coordination.k8s.io/v1", "/apis/policy/v1", ROLES)
    paths = [f"{ROLES}/clusterroles", f"{ROLES}/clusterrolebindings"]
    for group in (*inside, "/apis/networking.k8s.io/v1"):
        for resource in (await admin.request("GET", group))["resources"]:
            plain = "/" not in resource["name"] and "list" in resource["verbs"]
            if resource["namespaced"] and plain and resource["kind"] != "Event":
                paths.append(f"{group}/namespaces/{namespace}/{resource['name']}")
    for path in paths:
        for item in (await admin.request("GET", path))["items"]:
            found.add(f"{path}/{item['metadata']['name']}")
    return found
