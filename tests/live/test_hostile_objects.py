"""Objects that a real API server accepts and that are hard to read: nobody else suffers."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from moorage.client import Api, Reflector, connect
from moorage.documents.json_text import decode_at_any_depth
from moorage.objects.kinds import KINDS
from tests.client.sinks import Told
from tests.patience import PATIENCE_SECONDS

from .arena import Arena, Manifest, node, pod
from .control_plane import ADMIN_TOKEN, MOORAGE_TOKEN, SCHEDULER_TOKEN, ControlPlane
from .moorage_process import MoorageProcess, kubeconfig, moorage

pytestmark = pytest.mark.live

# Just below what the API server takes.
_DEPTH = 9_900
_PODS = "/api/v1/namespaces/default/pods"
_FIELD = "DEEP"


def deep(item: Manifest) -> bytes:
    """The JSON of an object whose managed fields are nested without end."""
    fields = {
        "manager": "somebody",
        "operation": "Update",
        "apiVersion": item["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": _FIELD,
    }
    text = json.dumps({**item, "metadata": {**item["metadata"], "managedFields": [fields]}})
    nested = '{"f:a":' * _DEPTH + "{}" + "}" * _DEPTH
    return text.replace(f'"{_FIELD}"', nested).encode()


async def ask(admin: Arena, method: str, path: str, body: bytes | None = None) -> Any:
    """As Arena.request, for answers of any depth."""
    headers = {"Content-Type": "application/json"}
    async with admin._session.request(method, path, data=body, headers=headers) as answer:
        text = await answer.read()
        assert answer.status < 300, text[:300]
        return decode_at_any_depth(json.loads, text)


@asynccontextmanager
async def deep_pods(admin: Arena, *items: Manifest) -> AsyncIterator[None]:
    """Pods of bottomless depth, for as long as a test needs them: others cannot list such pods."""
    for item in items:
        await ask(admin, "POST", _PODS, deep(item))
    try:
        yield
    finally:
        for item in items:
            path = f"{_PODS}/{item['metadata']['name']}"
            await ask(admin, "DELETE", path, b'{"gracePeriodSeconds":0}')


async def where(admin: Arena) -> dict[str, str]:
    """The node of each pod that has one."""
    told = await ask(admin, "GET", _PODS)
    named = {each["metadata"]["name"]: each["spec"].get("nodeName") for each in told["items"]}
    return {name: node_name for name, node_name in named.items() if node_name}


async def bound(process: MoorageProcess, admin: Arena, names: set[str]) -> None:
    async def look() -> bool:
        return names <= (await where(admin)).keys()

    await process.settled(look)


@pytest.fixture
def access(plane: ControlPlane, tmp_path: Path) -> Path:
    return kubeconfig(tmp_path / "kubeconfig", plane.server, MOORAGE_TOKEN)


async def test_a_pod_of_any_depth_is_scheduled_and_hides_no_other(
    admin: Arena, access: Path, tmp_path: Path
) -> None:
    await admin.create([node("n1"), pod("before")])
    async with (
        deep_pods(admin, pod("deep-listed")),
        moorage(tmp_path / "log", access, "--leader-elect=false") as process,
    ):
        await bound(process, admin, {"before", "deep-listed"})
        async with deep_pods(admin, pod("deep-watched")):
            await ask(admin, "POST", _PODS, json.dumps(pod("after")).encode())
            await bound(process, admin, {"deep-watched", "after"})

        assert await process.stop() == 0
        assert "cannot be read" not in process.log


async def test_commands_see_past_a_pod_of_any_depth(
    admin: Arena, access: Path, tmp_path: Path
) -> None:
    await admin.create([node("n1"), pod("waits", cpu="100")])
    async with deep_pods(admin, pod("deep")):
        told = await _run("explain", "default/waits", f"--kubeconfig={access}")
        assert "Insufficient cpu" in told
        template = tmp_path / "pod.json"
        template.write_text(json.dumps(pod("more")))
        told = await _run("fit", f"--file={template}", f"--kubeconfig={access}")
        assert "n1" in told


async def test_a_deep_object_of_every_kind_is_read(plane: ControlPlane, admin: Arena) -> None:
    made: list[tuple[str, str, Manifest]] = [
        ("Service", "/api/v1/namespaces/default/services", {"spec": {"ports": [{"port": 80}]}}),
        (
            "PersistentVolumeClaim",
            "/api/v1/namespaces/default/persistentvolumeclaims",
            {
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                }
            },
        ),
        (
            "PodDisruptionBudget",
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            {"spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"a": "b"}}}},
        ),
    ]
    connection = await connect(str(plane.kubeconfig), context="admin")
    async with Api(connection) as api:
        for kind, folder, rest in made:
            resource = KINDS[kind]
            meta = {"name": "deep", "namespace": "default"}
            item = {"apiVersion": resource.api_version, "kind": kind, "metadata": meta, **rest}
            await ask(admin, "POST", folder, deep(item))
            sink = Told()
            reflector = Reflector(api, resource, sink)
            task = asyncio.create_task(reflector.run())
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await reflector.synced.wait()
                assert "default/deep" in sink.known
                assert sink.problems == []
            finally:
                task.cancel()
                await ask(admin, "DELETE", f"{folder}/deep", b"{}")


_WITH_A_CUSTOM_KIND = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: DiskIO}]}}
"""


@pytest.mark.parametrize(
    ("token", "advice"),
    [
        pytest.param(ADMIN_TOKEN, "create the CustomResourceDefinition", id="missing"),
        pytest.param(SCHEDULER_TOKEN, "grant the verbs list and watch for", id="forbidden"),
    ],
)
async def test_a_custom_kind_that_is_not_there_stops_nobody(
    plane: ControlPlane, admin: Arena, tmp_path: Path, token: str, advice: str
) -> None:
    configuration = tmp_path / "config.yaml"
    configuration.write_text(_WITH_A_CUSTOM_KIND)
    access = kubeconfig(tmp_path / "kubeconfig", plane.server, token)
    await admin.create([node("n1"), pod("a")])

    async with moorage(
        tmp_path / "log", access, "--leader-elect=false", f"--config={configuration}"
    ) as process:
        await bound(process, admin, {"a"})
        assert await process.stop() == 0

    kind = "nodediskiostatuses.diskio.moorage.dev (kubectl apply -k deploy/disk-io)"
    assert process.log.count(f"{advice} {kind}") == 1


async def _run(*arguments: str) -> str:
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "moorage", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout + done.stderr
