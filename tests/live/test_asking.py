"""`moorage explain` and `moorage fit` ask a real kube-apiserver, and may do no more than list."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from moorage.objects.kinds import KINDS, READ_KINDS
from moorage.simulate.manifests import CLAIM_TEMPLATE
from tests.live.arena import Arena, node, pod
from tests.live.control_plane import ControlPlane

pytestmark = pytest.mark.live

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_NAME = "asking"


@dataclass(frozen=True)
class Answer:
    code: int | None
    out: str
    err: str


class Asking:
    """The command line, as a user that may list what scheduling reads."""

    def __init__(self, plane: ControlPlane) -> None:
        self._to = ("--kubeconfig", str(plane.kubeconfig), "--context", "nobody")

    async def __call__(self, *arguments: str) -> Answer:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "moorage", *arguments, *self._to),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return Answer(process.returncode, out.decode(), err.decode())


@pytest.fixture
async def asking(plane: ControlPlane, admin: Arena) -> AsyncIterator[Asking]:
    rules = [
        {"apiGroups": [each.group], "resources": [each.plural], "verbs": ["list"]}
        for each in (KINDS[kind] for kind in sorted((*READ_KINDS, CLAIM_TEMPLATE)))
    ]
    group = "rbac.authorization.k8s.io"
    role = {"metadata": {"name": _NAME}, "rules": rules}
    binding = {
        "metadata": {"name": _NAME},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": _NAME},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "nobody"}],
    }
    await admin.request("POST", f"{_RBAC}/clusterroles", role)
    await admin.request("POST", f"{_RBAC}/clusterrolebindings", binding)
    yield Asking(plane)
    await admin.delete(f"{_RBAC}/clusterrolebindings/{_NAME}")
    await admin.delete(f"{_RBAC}/clusterroles/{_NAME}")


async def versions(admin: Arena) -> dict[str, str]:
    """Which state every node and pod is in."""
    items = [*await admin.nodes(), *await admin.pods()]
    return {each["metadata"]["uid"]: each["metadata"]["resourceVersion"] for each in items}


async def test_a_pending_pod_is_explained(asking: Asking, admin: Arena) -> None:
    taint = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
    kept = {**node("kept"), "spec": {"taints": [taint]}}
    await admin.create([node("small", cpu=1), kept, pod("wants", cpu="2")])
    before = await versions(admin)

    answer = await asking("explain", "wants", "-o", "json")

    assert (answer.code, answer.err) == (1, "")
    told = json.loads(answer.out)
    assert {name: each["plugin"] for each in told["rejections"] for name in each["nodes"]} == {
        "small": "NodeResourcesFit",
        "kept": "TaintToleration",
    }
    assert {each["remedy"]: each["nodes"] for each in told["suggestions"]} == {
        "it asked for 1 less cpu": ["small"],
        "it tolerated dedicated=ml:NoSchedule": ["kept"],
    }
    assert await versions(admin) == before


async def test_copies_are_placed_nowhere_but_here(
    asking: Asking, admin: Arena, tmp_path: Path
) -> None:
    shape, copy = tmp_path / "node.json", tmp_path / "pod.json"
    shape.write_text(json.dumps(node("new", cpu=4)))
    copy.write_text(json.dumps(pod("copy", cpu="1")))
    await admin.create([node("there", cpu=4)])
    before = await versions(admin)

    answer = await asking("fit", "-f", str(copy), "--count", "7", "--add-nodes", f"{shape}=2")

    assert (answer.code, answer.err) == (0, "")
    assert "what if        3      7        7      0" in answer.out
    assert await versions(admin) == before


async def test_who_may_not_list_is_told(plane: ControlPlane, admin: Arena) -> None:
    answer = await Asking(plane)("explain", "wants")

    assert (answer.code, answer.out) == (2, "")
    assert "cannot list resource" in answer.err
