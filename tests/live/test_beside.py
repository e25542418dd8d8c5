"""Beside the real kube-scheduler, with the role of deploy/shadow: what it does is recorded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.ports import free_port
from tests.programs import need_program

from .arena import Arena, node, pod
from .control_plane import ADMIN_TOKEN, SHADOW_TOKEN, ControlPlane
from .moorage_process import kubeconfig, running

pytestmark = pytest.mark.live

_PACKED = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


def replay(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "moorage", "replay", "-o", "json", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


async def test_what_kube_scheduler_does_is_recorded_and_replayed(
    real_plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    binary = need_program("kube-scheduler")
    reading = kubeconfig(tmp_path / "reading", real_plane.server, SHADOW_TOKEN)
    writing = kubeconfig(tmp_path / "writing", real_plane.server, ADMIN_TOKEN)
    theirs = (
        binary,
        f"--kubeconfig={writing}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port()}",
        f"--authentication-kubeconfig={writing}",
        "--authentication-skip-lookup",
    )
    story = tmp_path / "story"
    ours = (sys.executable, "-m", "moorage", "record", story, f"--kubeconfig={reading}")
    await admin.create([node("large", cpu=16), node("small", cpu=4)])
    async with running(tmp_path / "ours", *ours) as recording:
        await recording.logged("Recording 2 nodes")
        async with running(tmp_path / "theirs", *theirs):
            for at in range(6):
                # One after the other, so that both see the same state.
                await admin.create([pod(f"p{at}", cpu=f"{1 + at % 3}")])
                await admin.bound(at + 1)
            await admin.delete("/api/v1/namespaces/default/pods/p0")
            await admin.create([pod("last", cpu="1")])
            await admin.bound(6)
        assert await recording.stop() == 0, recording.log

    code, same = replay(story)
    assert (code, same["differenceCount"]) == (0, 0)
    # The watch may not have told of the last one.
    assert same["beside"]["placed"] in (6, 7)
    assert same["beside"]["agreement"] == 100.0

    (tmp_path / "packed.yaml").write_text(_PACKED)
    code, other = replay(story, "--config", tmp_path / "packed.yaml")
    assert code == 1
    first = other["differences"][0]
    assert (first["pod"], first["replayed"][0]["ours"]) == ("default/p0", "small")
