"""Extenders beside a real API server: the scenario of kube-scheduler's own integration test.

Three extenders filter and score five nodes. One has a node cache, and one binds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.extender_server import Behaviour, Request, extender_server, saying

from .arena import Arena, node, pod
from .control_plane import MOORAGE_TOKEN, ControlPlane
from .moorage_process import kubeconfig, moorage

pytestmark = [pytest.mark.live, pytest.mark.embedded_will_do]

RESOURCE = "test.io/fake-cpu"


class FakeExtender:
    """Keeps some nodes, and likes one of them."""

    def __init__(self, *kept: str, likes: str) -> None:
        self._kept = kept
        self._likes = likes

    def answer(self, request: Request) -> Any:
        asked = request.json
        verb = request.path.rpartition("/")[2]
        objects = (asked.get("Nodes") or {}).get("items") or []
        names = asked.get("NodeNames") or [each["metadata"]["name"] for each in objects]
        if verb == "prioritize":
            scores = {name: 10 if name == self._likes else 1 for name in names}
            return [{"host": name, "score": score} for name, score in scores.items()]
        kept = [name for name in names if name in self._kept]
        refused = {name: "does not suit" for name in names if name not in kept}
        answer: dict[str, Any] = {"failedNodes": refused}
        if asked["NodeNames"] is not None:
            return {**answer, "nodeNames": kept}
        left = [each for each in objects if each["metadata"]["name"] in kept]
        return {**answer, "nodes": {"items": left}}


def binding(
    admin: Arena, loop_call: Callable[[dict[str, Any]], Any], other: FakeExtender
) -> Behaviour:
    """Answers as another extender does, and binds pods by itself."""

    async def behave(request: Request, out: Any) -> None:
        if not request.path.endswith("/bind"):
            await saying(other.answer)(request, out)
            return
        asked = request.json
        loop_call(asked)
        target = {"apiVersion": "v1", "kind": "Node", "name": asked["Node"]}
        name, namespace = asked["PodName"], asked["PodNamespace"]
        body = {"metadata": {"name": name, "uid": asked["PodUID"]}, "target": target}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
        await admin.request("POST", path, {"apiVersion": "v1", "kind": "Binding", **body})
        await saying({"Error": ""})(request, out)

    return behave


def extender(url: str, weight: int, **fields: Any) -> dict[str, Any]:
    verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize"}
    managed = [{"name": RESOURCE, "ignoredByScheduler": True}]
    return {
        "urlPrefix": url,
        "httpTimeout": "1h",
        "weight": weight,
        **verbs,
        "managedResources": managed,
        **fields,
    }


def configuration(folder: Path, extenders: list[dict[str, Any]]) -> Path:
    path = folder / "config.yaml"
    header = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    path.write_text(yaml.safe_dump({**header, "extenders": extenders}))
    return path


async def test_filter_prioritize_bind_and_a_node_cache_at_once(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    await admin.create(node(f"machine{number}") for number in range(1, 6))
    bound: list[dict[str, Any]] = []
    one = FakeExtender("machine1", "machine2", "machine3", likes="machine2")
    two = FakeExtender("machine2", "machine3", "machine5", likes="machine3")
    three = FakeExtender("machine1", "machine2", "machine3", likes="machine2")
    async with (
        extender_server(saying(one.answer)) as first,
        extender_server(binding(admin, bound.append, two)) as second,
        extender_server(saying(three.answer)) as third,
    ):
        extenders = [
            extender(first.url, 3),
            extender(second.url, 4, bindVerb="bind"),
            extender(third.url, 10, nodeCacheCapable=True),
        ]
        # A resource belongs to one extender; two of them look at every pod.
        for other in extenders[1:]:
            del other["managedResources"]
        config = configuration(tmp_path, extenders)
        access = kubeconfig(tmp_path / "kubeconfig", plane.server, MOORAGE_TOKEN)
        options = "--leader-elect=false", f"--config={config}"
        async with moorage(tmp_path / "log", access, *options):
            wants = {"resources": {"limits": {RESOURCE: "100"}, "requests": {RESOURCE: "100"}}}
            manifest = pod("extended")
            manifest["spec"]["containers"][0].update(wants)
            await admin.create([manifest])
            verdict = await admin.all_bound(1)

    # 3 and 10 times 10 for machine2 against 4 times 10 for machine3.
    assert verdict.bound == {"extended": "machine2"}
    assert [each["PodName"] for each in bound] == ["extended"]
    asked = [server.requests for server in (first, second, third)]
    assert [[each.path for each in requests] for requests in asked] == [
        ["/filter", "/prioritize"],
        ["/filter", "/prioritize", "/bind"],
        ["/filter", "/prioritize"],
    ]
    sent = asked[0][0].json
    assert sent["NodeNames"] is None
    assert len(sent["Nodes"]["items"]) == 5
    assert sent["Pod"].keys() == {"metadata", "spec", "status"}
    assert "managedFields" not in sent["Pod"]["metadata"]
    assert asked[2][0].json["Nodes"] is None
    assert sorted(asked[2][0].json["NodeNames"]) == ["machine2", "machine3"]
