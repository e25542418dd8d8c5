"""The client against a real kube-apiserver, which is killed on the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from moorage.client import MERGE_PATCH, Api, ApiError, Reflector, Unreachable, connect
from moorage.objects.kinds import KINDS, READ_KINDS, KnownKind
from tests.client.sinks import Told
from tests.live.control_plane import ControlPlane
from tests.patience import PATIENCE_SECONDS, until_true

pytestmark = pytest.mark.live

PODS, NODES = KINDS["Pod"], KINDS["Node"]


@asynccontextmanager
async def asking(
    plane: ControlPlane, context: str = "admin", **settings: Any
) -> AsyncIterator[Api]:
    connection = await connect(str(plane.kubeconfig), context)
    async with Api(connection, **settings) as api:
        yield api


@asynccontextmanager
async def reflecting(reflector: Reflector) -> AsyncIterator[Reflector]:
    running = asyncio.create_task(reflector.run())
    try:
        await asyncio.wait_for(reflector.synced.wait(), PATIENCE_SECONDS)
        yield reflector
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def pod(name: str) -> bytes:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    return json.dumps({"metadata": {"name": name}, "spec": spec}).encode()


async def namespace(api: Api, name: str) -> str:
    await api.post(KINDS["Namespace"].path(), json.dumps({"metadata": {"name": name}}).encode())
    return name


def is_served(kind: KnownKind) -> bool:
    """Whether API servers of all versions serve a kind by default."""
    return kind.version == "v1" and not kind.gates


async def test_every_resource_is_where_we_look(plane: ControlPlane) -> None:
    async with asking(plane) as api:
        for resource in filter(is_served, KINDS.values()):
            group = "/apis/" if resource.group else "/api/"
            served = json.loads(await api.get(group + resource.api_version))["resources"]
            found = next(each for each in served if each["name"] == resource.plural)
            assert (found["kind"], found["namespaced"]) == (resource.kind, resource.namespaced)


@pytest.mark.parametrize("kind", sorted(kind for kind in READ_KINDS if is_served(KINDS[kind])))
async def test_every_kind_can_be_reflected(plane: ControlPlane, kind: str) -> None:
    async with asking(plane) as api, reflecting(Reflector(api, KINDS[kind], Told())) as it:
        assert it.problem == ""


async def test_a_pod_comes_is_bound_and_goes(plane: ControlPlane) -> None:
    async with asking(plane) as api:
        where = await namespace(api, "bound")
        sink = Told()
        reflector = Reflector(api, PODS, sink, params={"fieldSelector": "metadata.namespace=bound"})
        async with reflecting(reflector):
            await api.post(PODS.path(where), pod("p"))
            await until_true(lambda: "bound/p" in sink.known)
            target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
            binding = json.dumps({"kind": "Binding", "apiVersion": "v1", **target}).encode()
            await api.post(PODS.path(where, "p", "binding"), binding)
            labels = json.dumps({"metadata": {"labels": {"a": "b"}}}).encode()
            await api.patch(PODS.path(where, "p"), labels, MERGE_PATCH)
            with pytest.raises(ApiError) as again:
                await api.post(PODS.path(where, "p", "binding"), binding)
            assert again.value.is_conflict
            await api.delete(PODS.path(where, "p"), b'{"gracePeriodSeconds":0}')
            await until_true(lambda: "bound/p" not in sink.known)

    # Made, bound, labelled, marked for deletion, gone.
    assert [each[0] for each in sink.take()] == ["+", "+", "+", "+", "-"]


async def test_pages_of_a_real_list(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moorage.client.listing.PAGE_SIZE", 3)
    async with asking(plane) as api:
        where = await namespace(api, "pages")
        for number in range(10):
            await api.post(PODS.path(where), pod(f"p{number}"))
        sink = Told()
        reflector = Reflector(api, PODS, sink, params={"fieldSelector": "metadata.namespace=pages"})
        async with reflecting(reflector):
            assert len(sink.take()) == 10


async def test_nothing_is_lost_when_the_server_is_killed(plane: ControlPlane) -> None:
    async with asking(plane) as api, asking(plane) as other:
        where = await namespace(api, "killed")
        for name in ("stays", "goes", "changes"):
            await api.post(PODS.path(where), pod(name))
        sink = Told()
        reflector = Reflector(
            api, PODS, sink, params={"fieldSelector": "metadata.namespace=killed"}
        )
        async with reflecting(reflector):
            sink.take()
            plane.kill_api_server()
            with pytest.raises(Unreachable):
                await other.get("/version")
            await asyncio.to_thread(plane.start_api_server)
            await other.delete(PODS.path(where, "goes"), b'{"gracePeriodSeconds":0}')
            labels = b'{"metadata":{"labels":{"a":"b"}}}'
            await other.patch(PODS.path(where, "changes"), labels, MERGE_PATCH)
            await other.post(PODS.path(where), pod("comes"))
            await until_true(lambda: "killed/comes" in sink.known)

    assert set(sink.known) == {"killed/stays", "killed/changes", "killed/comes"}
    told = {each.partition("@")[0] for each in sink.take()}
    # The watch may be back in time to see the mark for deletion.
    assert told - {"+killed/goes"} == {"+killed/changes", "+killed/comes", "-killed/goes"}


async def test_an_old_version_is_gone(plane: ControlPlane) -> None:
    # A server remembers what has happened since it started.
    plane.kill_api_server()
    plane.start_api_server()
    async with asking(plane) as api:
        lines = api.watch(PODS.path(), {"watch": "true", "resourceVersion": "1"})
        try:
            first = json.loads(await anext(lines))
        except ApiError as error:
            assert error.is_gone  # noqa: PT017  # either way of telling is right
        else:
            assert (first["type"], first["object"]["code"]) == ("ERROR", 410)
        await lines.aclose()


async def test_what_is_forbidden_is_told(plane: ControlPlane) -> None:
    async with asking(plane, "nobody") as api:
        with pytest.raises(ApiError) as caught:
            await api.get(PODS.path())

        assert caught.value.is_forbidden
        assert 'User "nobody" cannot list resource "pods"' in caught.value.message


async def test_a_token_that_nobody_knows(plane: ControlPlane) -> None:
    config = plane.kubeconfig.with_name("unknown")
    config.write_text(plane.kubeconfig.read_text().replace("secret-nobody", "made-up"))
    async with Api(await connect(str(config), "nobody")) as api:
        with pytest.raises(ApiError) as caught:
            await api.get(PODS.path())

    assert caught.value.is_unauthorized
