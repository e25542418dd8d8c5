"""Real kubectl sees rollouts, scales, waits and deletes as in any cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from moorage.embedded.api.decoding import now_text
from moorage.embedded.controllers.runner import run_controllers
from moorage.embedded.server import ServerSettings
from tests.embedded.kubectl import DEPLOYMENT, Kubectl, needs_kubectl
from tests.embedded.serving import Client, served

pytestmark = needs_kubectl


async def _kubelet(client: Client) -> None:
    """Pods run as soon as they are made."""
    api = client.running.api
    kind = api.kinds["pods"]
    while True:
        for entry in list(api.store.table("pods").entries.values()):
            item = entry.object
            if item["status"]["phase"] == "Pending":
                ready = {"type": "Ready", "status": "True"}
                ready["lastTransitionTime"] = now_text(api.clock())
                item["status"] |= {"phase": "Running", "conditions": [ready]}
                api.update_status(kind, entry.namespace, entry.name, item)
        await api.store.until_changed("pods", api.store.version)


@pytest.fixture
async def secure() -> AsyncIterator[Client]:
    """A server whose controllers work."""
    async with served(ServerSettings(tls=True)) as client:
        tasks = [
            asyncio.create_task(run_controllers(client.running.api)),
            asyncio.create_task(_kubelet(client)),
        ]
        yield client
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_rollouts(kubectl: Kubectl) -> None:
    await kubectl.run("apply -f -", DEPLOYMENT)
    assert "successfully rolled out" in await kubectl.run("rollout status deploy/web")
    await kubectl.run("wait --for=condition=Available deploy/web")
    await kubectl.run("set image deploy/web main=registry.example/web:2")
    await kubectl.run("rollout status deploy/web")
    history = await kubectl.run("rollout history deploy/web")
    assert [line.split()[0] for line in history.split("\n")[2:4]] == ["1", "2"]
    await kubectl.run("rollout undo deploy/web")
    await kubectl.run("rollout status deploy/web")
    image = "-o jsonpath={.items[*].spec.containers[0].image}"
    assert (await kubectl.run(f"get pods {image}")).split() == ["registry.example/web:1"] * 2
    await kubectl.run("rollout restart deploy/web")
    await kubectl.run("rollout status deploy/web")
    await kubectl.run("scale deploy/web --replicas=3")
    await kubectl.run("rollout status deploy/web")
    assert (await kubectl.run("get pods -o name")).count("pod/web-") == 3


async def test_going_back_to_the_present_revision_does_nothing(kubectl: Kubectl) -> None:
    zero = DEPLOYMENT.replace(
        "name: main,", "name: main, tty: false, ports: [{containerPort: 80}],"
    )
    await kubectl.run("create -f -", zero)
    await kubectl.run("rollout status deploy/web")

    told = await kubectl.run("rollout undo deploy/web --to-revision=1")

    assert "skipped rollback (current template already matches revision 1)" in told


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
async def test_delete(kubectl: Kubectl, cascade: str) -> None:
    await kubectl.run("apply -f -", DEPLOYMENT)
    await kubectl.run("rollout status deploy/web")
    await kubectl.run(f"delete deploy/web --cascade={cascade}")
    if cascade == "orphan":
        assert (await kubectl.run("get rs,pods -o name")).count("web-") == 3
    else:
        await kubectl.run("wait --for=delete rs,pods -l app=web")
