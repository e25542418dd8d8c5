"""The real kube-scheduler schedules pods of this cluster, with its stock configuration."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from moorage.embedded.server import ServerSettings
from tests.embedded.serving import NODES, PODS, Client, node, pod, served
from tests.patience import PATIENCE_SECONDS
from tests.programs import find_program, needs_program

BINARY = find_program("kube-scheduler")
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"

# It elects itself and fills its caches first; a minute is enough on a busy machine.


@needs_program("kube-scheduler")
@pytest.mark.parametrize(
    "content",
    [
        pytest.param({}, id="protobuf, as it comes"),
        pytest.param({"contentType": "application/json"}, id="JSON"),
    ],
)
async def test_kube_scheduler(content: dict[str, str], tmp_path: Path) -> None:
    async with served(ServerSettings(tls=True)) as client:
        (tmp_path / "kubeconfig").write_text(json.dumps(client.running.kubeconfig))
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(tmp_path / "kubeconfig"), **content},
        }
        (tmp_path / "configuration").write_text(json.dumps(configuration))
        for name in ("n1", "n2"):
            await client.create(NODES, node(name))
        await client.create(PODS, pod("early"))
        process = await asyncio.create_subprocess_exec(
            str(BINARY),
            *("--config", str(tmp_path / "configuration"), "--secure-port", "0"),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await _bound(client, "early")
            await client.create(PODS, pod("late", nodeSelector={"kubernetes.io/hostname": "n2"}))
            assert await _bound(client, "late") == "n2"
            await client.create(PODS, pod("never", nodeSelector={"no": "where"}))
            assert "2 node(s) didn't match" in await _told(client, "never")
        finally:
            process.terminate()
            await process.wait()


async def _bound(client: Client, name: str) -> str:
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with client.watch(f"{PODS}?watch=1&fieldSelector=metadata.name={name}") as events:
            async for event in events:
                if event["object"]["spec"].get("nodeName"):
                    return str(event["object"]["spec"]["nodeName"])
    raise AssertionError(name)


async def _told(client: Client, name: str) -> str:
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with client.watch(
            f"{EVENTS}?watch=1&fieldSelector=reason=FailedScheduling"
        ) as events:
            # Others may have waited for a node that had not been heard of.
            async for event in events:
                if event["object"]["regarding"]["name"] == name:
                    return str(event["object"]["note"])
    raise AssertionError(name)
