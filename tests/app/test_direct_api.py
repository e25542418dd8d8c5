"""The store in the same process answers as an API server does."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from moorage.app.direct_api import DirectApi
from moorage.client.api import MERGE_PATCH
from moorage.client.api_errors import ApiError
from moorage.embedded.api.kind import ServedKinds
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.kinds.catalogue import catalogue
from moorage.embedded.server import make_initial_objects
from moorage.embedded.store.object_store import ObjectStore
from tests.patience import PATIENCE_SECONDS

PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


@pytest.fixture
def direct() -> DirectApi:
    api = ObjectApi(ObjectStore(), ServedKinds(catalogue()))
    make_initial_objects(api)
    return DirectApi(api)


def _pod(name: str) -> bytes:
    spec = {"containers": [{"name": "main", "image": "app"}]}
    return msgspec.json.encode({"metadata": {"name": name}, "spec": spec})


def _read(text: bytes) -> Any:
    return msgspec.json.decode(text)


async def test_a_pod_comes_is_bound_changes_and_goes(direct: DirectApi) -> None:
    made = _read(await direct.post(PODS, _pod("a")))
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    await direct.post(f"{PODS}/a/binding", msgspec.json.encode(binding))
    status = b'{"status":{"phase":"Running"}}'
    await direct.patch(f"{PODS}/a/status", status, MERGE_PATCH)

    seen = _read(await direct.get(f"{PODS}/a"))
    assert seen["metadata"]["uid"] == made["metadata"]["uid"]
    assert (seen["spec"]["nodeName"], seen["status"]["phase"]) == ("n", "Running")
    await direct.delete(f"{PODS}/a", b'{"gracePeriodSeconds":0}')
    with pytest.raises(ApiError) as refused:
        await direct.get(f"{PODS}/a")
    assert refused.value.is_not_found


async def test_refusals_mean_what_they_mean_over_http(direct: DirectApi) -> None:
    made = _read(await direct.post(LEASES, b'{"metadata":{"name":"l"},"spec":{}}'))
    await direct.put(f"{LEASES}/l", msgspec.json.encode(made | {"spec": {"holderIdentity": "a"}}))

    sent = msgspec.json.encode(made | {"spec": {"holderIdentity": "b"}})
    with pytest.raises(ApiError) as stale:
        await direct.put(f"{LEASES}/l", sent)
    assert stale.value.is_conflict
    with pytest.raises(ApiError) as twice:
        await direct.post(LEASES, b'{"metadata":{"name":"l"},"spec":{}}')
    assert twice.value.is_already_exists
    with pytest.raises(ApiError) as invalid:
        await direct.post(PODS, b'{"metadata":{"name":"p"},"spec":{"containers":[]}}')
    assert invalid.value.is_invalid


async def test_pages_and_watches(direct: DirectApi) -> None:
    for name in ("a", "b", "c"):
        await direct.post(PODS, _pod(name))
    first = _read(await direct.get(PODS, {"limit": 2}))
    go_on = first["metadata"]["continue"]
    rest = _read(await direct.get(PODS, {"limit": 2, "continue": go_on}))
    assert [each["metadata"]["name"] for each in first["items"] + rest["items"]] == ["a", "b", "c"]

    params = {
        "resourceVersion": rest["metadata"]["resourceVersion"],
        "timeoutSeconds": int(PATIENCE_SECONDS),
    }
    async with asyncio.timeout(PATIENCE_SECONDS), aclosing(direct.watch(PODS, params)) as lines:
        await direct.post(PODS, _pod("d"))
        told = _read(await anext(lines))
    assert (told["type"], told["object"]["metadata"]["name"]) == ("ADDED", "d")


async def test_a_watch_from_what_was_forgotten_is_gone() -> None:
    api = ObjectApi(ObjectStore(history_limit=1), ServedKinds(catalogue()))
    make_initial_objects(api)
    direct = DirectApi(api)
    for name in ("a", "b", "c"):
        await direct.post(PODS, _pod(name))

    with pytest.raises(ApiError) as refused:
        async with aclosing(direct.watch(PODS, {"resourceVersion": "1"})) as lines:
            await anext(lines)

    assert refused.value.is_gone
