"""Requests of exclusive pods, raised to the size of the smallest node that they suit."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any, cast

import pytest
from aiohttp.test_utils import TestClient, TestServer

from moorage.app.coexist_admission import ANNOTATION, CoexistGuard, NodeSizes, raise_requests
from moorage.app.coexist_webhook import RAISE_PATH, OnError, Webhook, application
from moorage.client.api import Api
from moorage.embedded.api.patches import json_patch
from moorage.objects import coexist
from moorage.objects.decode import from_builtins
from moorage.objects.pod import Pod
from tests.builders import node, pod_manifest
from tests.coexisting import daemon

from .fake_api import FakeApi
from .test_coexist_webhook import creation

# An API server writes what is limited into the requests before it asks anybody.
LIMITED = {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
EXCLUSIVE = {coexist.ANNOTATION: coexist.DAEMONSET_AND_STATIC_PODS}


def sizes(*nodes: Any) -> NodeSizes:
    guard = CoexistGuard()
    guard.applied(daemon("agent", "small", cpu="500m", memory="1Gi"), b"")
    made = NodeSizes(guard.pods_on)
    large = node("large", cpu=16, memory="64Gi", labels={"size": "large"})
    for each in nodes or (node("small", cpu=4, memory="16Gi"), large):
        made.applied(each, b"")
    return made


def manifest(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    made = pod_manifest("p", spec={"containers": list(containers or [{"name": "main"}]), **spec})
    made["metadata"]["annotations"] = dict(EXCLUSIVE)
    return made


def raised(written: dict[str, Any], known: NodeSizes | None = None) -> dict[str, Any] | None:
    """The pod after its review, as an API server has it; None if nothing was changed."""
    read = from_builtins("Pod", written)
    assert isinstance(read, Pod)
    patch = raise_requests(read, written, known or sizes())
    return json_patch(written, patch) if patch else None


def requests_of(written: dict[str, Any] | None) -> dict[str, int]:
    assert written is not None
    read = from_builtins("Pod", written)
    assert isinstance(read, Pod)
    return dict(read.spec.requests)


@pytest.mark.parametrize(
    ("written", "cpu", "memory"),
    [
        pytest.param(manifest(), 3500, 15 << 30, id="the smallest, without its daemons"),
        pytest.param(
            manifest({"name": "main", "resources": {"requests": {"cpu": "5"}}}),
            16_000,
            64 << 30,
            id="one that is large enough",
        ),
        pytest.param(manifest(nodeSelector={"size": "large"}), 16_000, 64 << 30, id="selected"),
        pytest.param(
            manifest({"name": "main", "resources": LIMITED}, {"name": "side"}),
            3500,
            15 << 30,
            id="a limit stays",
        ),
        pytest.param(
            manifest({"name": "main", "resources": LIMITED}),
            1000,
            15 << 30,
            id="nobody can ask for more cpu",
        ),
    ],
)
def test_a_pod_asks_for_a_whole_node(written: dict[str, Any], cpu: int, memory: int) -> None:
    after = raised(written)

    found = requests_of(after)
    assert (found["cpu"], found["memory"]) == (cpu, memory)
    assert after is not None
    assert after["metadata"]["annotations"][ANNOTATION] in ("small", "large")
    # Once is enough.
    assert raised(after) is None


@pytest.mark.parametrize(
    "written",
    [
        pytest.param({**manifest(), "metadata": {"name": "p"}}, id="not exclusive"),
        pytest.param(manifest(nodeName="small"), id="it has a node"),
        pytest.param(manifest(nodeSelector={"size": "huge"}), id="no node suits"),
        pytest.param(
            manifest({"name": "main", "resources": {"requests": {"cpu": "99"}}}), id="too large"
        ),
    ],
)
def test_others_are_left_alone(written: dict[str, Any]) -> None:
    assert raised(written) is None


def test_tainted_nodes_count_for_those_who_tolerate_them() -> None:
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    known = sizes(node("tainted", cpu=2, spec={"taints": [taint]}), node("plain", cpu=8))
    tolerating = manifest(tolerations=[{"key": "k", "operator": "Exists"}])

    assert requests_of(raised(manifest(), known))["cpu"] == 8000
    assert requests_of(raised(tolerating, known))["cpu"] == 2000


async def test_the_answer_to_an_api_server() -> None:
    known = asyncio.Event()
    known.set()
    webhook = Webhook(
        cast(Api, FakeApi()), CoexistGuard(), known, OnError.ALLOW, sizes=sizes(node("n", cpu=2))
    )
    bare = {"metadata": {"name": "p", "annotations": EXCLUSIVE}, "spec": {}}
    async with TestClient(TestServer(application(webhook))) as client:
        answers = [
            await (await client.post(RAISE_PATH, json=creation(each))).json()
            for each in (manifest(), {"spec": {"containers": 7}}, bare)
        ]

    first, unreadable, without = (each["response"] for each in answers)
    assert without == unreadable
    patch = json.loads(base64.b64decode(first["patch"]))
    assert (first["allowed"], first["patchType"]) == (True, "JSONPatch")
    assert {"op": "add", "path": "/spec/containers/0/resources/requests/cpu", "value": "2"} in patch
    assert unreadable == {"uid": "r1", "allowed": True}
