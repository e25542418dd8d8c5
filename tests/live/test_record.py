"""`moorage run --record`, with a custom resource, replayed to the same decisions."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from .arena import Arena, node, pod
from .control_plane import MOORAGE_TOKEN, ControlPlane
from .moorage_process import kubeconfig, moorage

pytestmark = [pytest.mark.live, pytest.mark.embedded_will_do]

_CRD = Path(__file__).parents[2] / "deploy" / "disk-io" / "nodediskiostatuses.yaml"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_DISKS = "/apis/diskio.moorage.dev/v1alpha1/nodediskiostatuses"

_CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled:
      - name: DiskIO
"""


def disk(name: str, read: str) -> dict[str, Any]:
    return {
        "apiVersion": "diskio.moorage.dev/v1alpha1",
        "kind": "NodeDiskIOStatus",
        "metadata": {"name": name},
        "spec": {"nodeName": name, "capacity": {"read": read, "write": "1Gi"}},
    }


def reading(name: str, read: str) -> dict[str, Any]:
    made = pod(name)
    annotations = {"diskio.moorage.dev/read": read}
    return {**made, "metadata": {**made["metadata"], "annotations": annotations}}


def replay(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "moorage", "replay", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
async def _disks(admin: Arena) -> AsyncIterator[None]:
    """Two nodes, of which one can read much."""
    await admin.request("POST", _CRDS, yaml.safe_load(_CRD.read_text()))
    name = "nodediskiostatuses.diskio.moorage.dev"
    try:
        await admin.created(_CRDS, name)
        await admin.create([node("n1"), node("n2")])
        await admin.request("POST", _DISKS, disk("n1", "100Mi"))
        await admin.request("POST", _DISKS, disk("n2", "10Mi"))
        yield
    finally:
        await admin.delete(f"{_CRDS}/{name}")


@pytest.fixture
def files(tmp_path: Path) -> Callable[[], list[Path]]:
    return lambda: sorted(tmp_path.glob("story.*"))


@pytest.mark.usefixtures("_disks")
async def test_what_was_recorded_is_decided_again(
    plane: ControlPlane, admin: Arena, tmp_path: Path, files: Callable[[], list[Path]]
) -> None:
    access = kubeconfig(tmp_path / "kubeconfig", plane.server, MOORAGE_TOKEN)
    (tmp_path / "config.yaml").write_text(_CONFIGURATION)
    options = (f"--config={tmp_path / 'config.yaml'}", f"--record={tmp_path / 'story'}")
    async with moorage(tmp_path / "log", access, "--leader-elect=false", *options) as process:
        await admin.create([reading("a", "80Mi"), pod("plain")])
        assert (await admin.bound(2)).bound["a"] == "n1"
        # Nothing can read as much any more, until a driver says that a disk has grown.
        await admin.create([reading("b", "80Mi")])
        await process.settled(lambda: admin.events("FailedScheduling"))
        merge = {"Content-Type": "application/merge-patch+json"}
        bigger = {"spec": {"capacity": {"read": "1Gi"}}}
        await admin.request("PATCH", f"{_DISKS}/n2", bigger, headers=merge)
        assert (await admin.all_bound(3)).bound["b"] == "n2"
        assert await process.stop() == 0

    same = replay(*files())
    assert same.returncode == 0, same.stdout + same.stderr
    assert "n2" in replay(*files(), "--pod", "default/b").stdout

    (tmp_path / "other.yaml").write_text(_CONFIGURATION.split("  plugins:")[0])
    other = replay(*files(), "--config", tmp_path / "other.yaml")
    assert other.returncode == 1, other.stdout + other.stderr
    assert "default/b" in other.stdout
