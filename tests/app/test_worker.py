"""A scheduler that starts on a cluster that lacks something."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import nullcontext
from typing import Any, cast

import pytest

from moorage.app.worker import Worker
from moorage.client.api import Params, Requests
from moorage.client.api_errors import ApiError
from moorage.config import FeatureGates, default, load_mapping
from moorage.engine import Engine
from moorage.framework.profile import known_plugins
from moorage.objects.kinds import KINDS, READ_KINDS
from moorage_policies.disk_io.disk_io_resource import KIND
from tests.app.fake_api import FakeApi
from tests.patience import PATIENCE_SECONDS
from tests.registered import REGISTRY

ESSENTIAL = {kind.kind for kind in KINDS.values() if kind.essential}

_FORBIDDEN = ApiError(403, "Forbidden", "you may not")
_LIST = {"metadata": {"resourceVersion": "1"}, "items": []}


class Cluster(FakeApi):
    """An empty cluster that refuses to list some kinds, and tells nothing to those who watch."""

    def __init__(self, refused: set[str], missing: str = "") -> None:
        super().__init__()
        self._refused = {KINDS[kind].path() for kind in refused}
        self._missing = missing

    async def get(self, path: str, params: Mapping[str, str | int] | None = None) -> bytes:
        if path == self._missing:
            raise ApiError(404, "NotFound", "there is no such kind")
        if path in self._refused or path.endswith(KIND.plural):
            raise _FORBIDDEN
        self.script("get", path, _LIST)
        return await super().get(path)

    async def watch(self, path: str, params: Params) -> AsyncGenerator[bytes, None]:
        await asyncio.Event().wait()
        yield b""


def worker_on(cluster: Cluster) -> Worker:
    """A scheduler with a plugin that asks for a custom kind."""
    raw: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "DiskIO"}]}}}],
    }
    engine = Engine(load_mapping(raw, known=known_plugins(REGISTRY)), REGISTRY)
    return Worker(lambda _: nullcontext(cast(Requests, cluster)), engine, "me")


async def test_the_cluster_is_known_without_the_kinds_that_are_not_essential() -> None:
    # Groups of pods, and rules that taint devices, are read while a feature gate for them is on.
    refused = set(READ_KINDS - ESSENTIAL - {"PodGroup", "DeviceTaintRule"})
    worker = worker_on(Cluster(refused))
    task = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.shield(asyncio.wrap_future(worker.known))

        assert set(worker.absent) == {*refused, KIND.kind}
        assert worker.unsynced is None
    finally:
        worker.stop()
        await task


@pytest.mark.parametrize("kind", sorted(ESSENTIAL))
async def test_it_waits_for_the_kinds_that_are_essential(kind: str) -> None:
    worker = worker_on(Cluster({kind}))
    task = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.sleep(0)
            for reflector in worker._reflectors or ():
                if reflector.kind != kind:
                    await reflector.synced.wait()

        assert worker.unsynced == f"not listed yet: {kind}"
        assert not worker.known.done()
    finally:
        worker.stop()
        await task


@pytest.mark.parametrize(
    ("gates", "read"),
    [
        ({}, []),
        ({"GenericWorkload": True}, ["scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2"]),
        ({"Coscheduling": True}, ["scheduling.x-k8s.io/v1alpha1"]),
    ],
)
def test_groups_are_read_in_the_versions_that_the_gates_are_about(
    gates: dict[str, bool], read: list[str]
) -> None:
    forms = KINDS["PodGroup"].read_forms(FeatureGates(**gates))

    assert [form.api_version for form in forms] == read


@pytest.mark.parametrize(
    ("kind", "gate"),
    [("PodGroup", "GenericWorkload"), ("DeviceTaintRule", "DRADeviceTaintRules")],
)
async def test_a_kind_that_is_there_in_another_version_is_not_absent(
    kind: str, gate: str, caplog: pytest.LogCaptureFixture
) -> None:
    configuration = default(known_plugins(REGISTRY), FeatureGates().switch(**{gate: True}))
    cluster = Cluster(set(), missing=KINDS[kind].path())
    worker = Worker(
        lambda _: nullcontext(cast(Requests, cluster)), Engine(configuration, REGISTRY), "me"
    )
    task = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.shield(asyncio.wrap_future(worker.known))

        assert worker.absent == []
        assert kind not in caplog.text
    finally:
        worker.stop()
        await task
