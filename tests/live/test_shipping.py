"""What is shipped under deploy/ is accepted by a real API server."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from .control_plane import ControlPlane

pytestmark = pytest.mark.live

DEPLOY = Path(__file__).parents[2] / "deploy"


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
