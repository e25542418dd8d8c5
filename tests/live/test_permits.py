"""The plugin of docs/permits.md on a real API server: pods wait for each other, all or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import DOCS, blocks

from .arena import Arena, Manifest, node, pod
from .control_plane import MOORAGE_TOKEN, ControlPlane
from .moorage_process import kubeconfig, moorage

pytestmark = [pytest.mark.live, pytest.mark.embedded_will_do]


def member(name: str, group: str, size: int, **spec: Any) -> Manifest:
    made = pod(name, **spec)
    labels = {"example.com/group": group, "example.com/group-size": str(size)}
    made["metadata"]["labels"] = labels
    return made


async def test_pods_of_a_group_are_bound_together_or_give_their_nodes_back(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    access = kubeconfig(tmp_path / "kubeconfig", plane.server, MOORAGE_TOKEN)
    plugin = tmp_path / "all_or_none.py"
    shown = next(iter(blocks(DOCS / "permits.md", "python"))).text
    # Nobody has waited for too long, however busy the machine is.
    assert "Wait(60.0)" in shown
    plugin.write_text(shown.replace("Wait(60.0)", "Wait(3600.0)"))
    options = ("--leader-elect=false", f"--plugins={plugin}")

    async def nominated(*names: str) -> bool:
        pods = await admin.pods()
        told = {each["metadata"]["name"] for each in pods if _nominated(each)}
        return told == set(names)

    await admin.create([node("n1", cpu=4)])
    async with moorage(tmp_path / "log", access, *options) as process:
        await admin.create([member("a1", "a", 3), member("a2", "a", 3), member("b1", "b", 2)])
        await process.settled(lambda: nominated("a1", "a2", "b1"))
        assert (await admin.verdict()).bound == {}

        # The last one of a group lets the others go.
        await admin.create([member("a3", "a", 3)])
        await admin.bound(3)
        assert (await admin.verdict()).pending == ["b1"]

        # One that gives up its node takes the others of its group along.
        await admin.create([member("b2", "b", 3)])
        await process.settled(lambda: nominated("b1", "b2"))
        await admin.delete("/api/v1/namespaces/default/pods/b2")

        async def is_refused() -> bool:
            events = await admin.events("FailedScheduling")
            return any("pod b2 of its group gave up its node" in each["note"] for each in events)

        await process.settled(is_refused)
        assert (await admin.verdict()).pending == ["b1"]
        assert await process.stop() == 0


def _nominated(manifest: Manifest) -> bool:
    return bool(manifest.get("status", {}).get("nominatedNodeName")) and not manifest["spec"].get(
        "nodeName"
    )
