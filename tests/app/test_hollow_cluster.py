"""Hollow nodes on an API server that is not their own, with lost answers and nodes of others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from moorage.app import hollow_mirror
from moorage.app.direct_api import DirectApi
from moorage.app.hollow_cluster import (
    LABEL,
    RemoteHollowSettings,
    make_remote_nodes,
    run_hollow_nodes,
)
from moorage.client.api import Params
from moorage.client.api_errors import OutcomeUnknown
from moorage.documents.errors import InputError
from moorage.embedded.api.kind import ServedKinds
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.api.request_options import DeleteOptions
from moorage.embedded.hollow.node_shapes import read_shape_file
from moorage.embedded.hollow.pod_life import HollowSettings
from moorage.embedded.kinds.catalogue import catalogue
from moorage.embedded.server import make_initial_objects
from moorage.embedded.store.object_store import ObjectStore
from tests.embedded.controllers.playing import Json, template
from tests.embedded.serving import node
from tests.patience import until_true

_LEASES = "leases.coordination.k8s.io"


class LosingApi(DirectApi):
    """Loses the answers of the first writes of each kind, or never does what they ask for."""

    def __init__(self, api: ObjectApi, losses: int) -> None:
        super().__init__(api)
        self._losses = {"patch": losses, "delete": losses}

    async def patch(self, path: str, body: bytes, content_type: str) -> bytes:
        self._lose("patch", path)
        return await super().patch(path, body, content_type)

    async def delete(self, path: str, body: bytes | None = None) -> bytes:
        done = await super().delete(path, body)
        self._lose("delete", path)
        return done

    def _lose(self, verb: str, path: str) -> None:
        if self._losses[verb]:
            self._losses[verb] -= 1
            raise OutcomeUnknown(f"{verb} {path}")


class DistantApi(DirectApi):
    """Lets others run before it answers, as whatever is on a network does."""

    async def post(self, path: str, body: bytes, params: Params | None = None) -> bytes:
        await asyncio.sleep(0)
        return await super().post(path, body, params)


class Remote:
    """An API server that others see."""

    def __init__(self) -> None:
        self.api = ObjectApi(ObjectStore(), ServedKinds(catalogue()))
        make_initial_objects(self.api)

    def create(self, resource: str, item: Json) -> Json:
        kind = self.api.kinds[resource]
        return self.api.create(kind, "default" if kind.namespaced else "", item).object

    def find(self, resource: str, name: str, namespace: str = "default") -> Json | None:
        kind = self.api.kinds[resource]
        found = self.api.find(kind, namespace if kind.namespaced else "", name)
        return None if found is None else found.object

    def phase(self, name: str) -> str:
        found = self.find("pods", name)
        return "gone" if found is None else found["status"]["phase"]

    async def see(self, is_there: Callable[[], Any]) -> None:
        await until_true(is_there)


def pod(name: str, on: str = "n", **more: Any) -> Json:
    return {"metadata": {"name": name}, "spec": {"nodeName": on, **template()["spec"], **more}}


def labelled(name: str) -> Json:
    made = node(name)
    return {**made, "metadata": {"name": name, "labels": {LABEL: "true"}}}


@asynccontextmanager
async def hollow(remote: Remote, losses: int = 0) -> AsyncIterator[None]:
    settings = RemoteHollowSettings(HollowSettings(stop_seconds=0.0, lease_seconds=0.1))
    async with run_hollow_nodes(LosingApi(remote.api, losses), settings):
        yield


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hollow_mirror, "_PAUSE_SECONDS", 0.0)


@pytest.mark.parametrize("losses", [0, 3])
async def test_pods_run_and_go_whatever_is_lost(losses: int) -> None:
    remote = Remote()
    remote.create("nodes", labelled("n"))
    async with hollow(remote, losses):
        remote.create("pods", pod("early"))
        await remote.see(lambda: remote.phase("early") == "Running")
        remote.create("pods", pod("huge", nodeSelector={"no": "where"}))
        await remote.see(lambda: remote.phase("huge") == "Failed")
        options = DeleteOptions(grace_seconds=30)
        remote.api.delete(remote.api.kinds["pods"], "default", "early", options)
        await remote.see(lambda: remote.phase("early") == "gone")
        await remote.see(lambda: len(remote.api.store.table("events").entries))
    lease = remote.find(_LEASES, "n", "kube-node-lease")
    assert lease is not None
    assert lease["spec"]["holderIdentity"] == "n"


async def test_nodes_of_others_are_left_alone() -> None:
    remote = Remote()
    remote.create("nodes", labelled("n"))
    other = remote.create("nodes", node("other"))
    remote.create("pods", pod("theirs", on="other"))
    remote.create("pods", pod("ours"))
    async with hollow(remote):
        await remote.see(lambda: remote.phase("ours") == "Running")
    assert remote.find("nodes", "other") == other
    assert remote.find(_LEASES, "other", "kube-node-lease") is None
    assert remote.phase("theirs") == "Pending"


async def test_a_node_that_comes_again_has_a_lease_of_its_own() -> None:
    remote = Remote()
    nodes, leases = remote.api.kinds["nodes"], remote.api.kinds[_LEASES]
    remote.create("nodes", labelled("n"))
    async with hollow(remote):
        await remote.see(lambda: remote.find(_LEASES, "n", "kube-node-lease"))
        remote.api.delete(nodes, "", "n")
        # As the garbage collector does.
        remote.api.delete(leases, "kube-node-lease", "n")
        again = remote.create("nodes", labelled("n"))
        await remote.see(lambda: remote.find(_LEASES, "n", "kube-node-lease"))
    lease = remote.find(_LEASES, "n", "kube-node-lease")
    assert lease is not None
    assert lease["metadata"]["ownerReferences"][0]["uid"] == again["metadata"]["uid"]


async def test_nodes_are_made_once_with_what_belongs_to_them() -> None:
    remote = Remote()
    gpu = {"driver": "gpu.example.com", "count": 2}
    csi = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "{node}"}}
    shape = {"count": 2, "devices": [gpu], "objects": [{**csi, "spec": {"drivers": []}}]}
    file = read_shape_file({"shapes": [shape]})

    assert (await make_remote_nodes(DistantApi(remote.api), file)).new == 2
    again = await make_remote_nodes(DirectApi(remote.api), file)
    assert (again.new, list(again.describe())) == (0, [])
    made = remote.find("nodes", "node-1")
    assert made is not None
    assert made["metadata"]["labels"][LABEL] == "true"
    assert made["status"]["allocatable"]["cpu"] == "8"
    assert remote.find("csinodes.storage.k8s.io", "node-1") is not None
    slices = remote.api.store.table("resourceslices.resource.k8s.io").entries
    assert sorted(slices) == ["node-0-gpu.example.com-0", "node-1-gpu.example.com-0"]


async def test_what_is_refused_is_named() -> None:
    shapes = read_shape_file({"shapes": [{"labels": {"a": "b c"}}]}, "nodes.yaml")
    with pytest.raises(InputError, match=r"nodes\.yaml: shapes\[0\]: Node 'node-0': "):
        await make_remote_nodes(DirectApi(Remote().api), shapes)


@pytest.mark.parametrize(
    ("count", "note"),
    [
        (1, "1 node exists without the label hollow.moorage.dev/node=true, left alone: node-0"),
        (
            5,
            "5 nodes exist without the label hollow.moorage.dev/node=true, left alone: "
            "node-0, node-1, node-2, …",
        ),
    ],
)
async def test_nodes_that_exist_already_are_named_and_left_alone(count: int, note: str) -> None:
    remote, gpus = Remote(), {"driver": "gpu.example.com", "count": 2}
    for number in range(count):
        remote.create("nodes", node(f"node-{number}"))
    file = read_shape_file({"shapes": [{"count": count, "devices": [gpus]}]})
    slices = remote.api.store.table("resourceslices.resource.k8s.io").entries

    made = await make_remote_nodes(DirectApi(remote.api), file)
    assert (made.new, list(made.describe()), len(slices)) == (0, [note], 0)

    made = await make_remote_nodes(DirectApi(remote.api), file, selector="")
    assert (made.new, list(made.describe()), len(slices)) == (0, [], count)
