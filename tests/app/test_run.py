"""A scheduler that starts on a cluster that lacks something."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any, cast

import pytest

from mooring.app.run import ESSENTIAL, Running
from mooring.client.errors import ApiError
from mooring.client.requests import Params, Requests
from mooring.client.resources import RESOURCES
from mooring.config import load_mapping
from mooring.engine import Engine
from mooring.framework.profile import known_plugins
from mooring.objects.decode import KINDS
from mooring.plugins import REGISTRY
from mooring.plugins.disk_io_resource import KIND
from tests.app.fake_api import FakeApi

_FORBIDDEN = ApiError(403, "Forbidden", "you may not")
_LIST = {"metadata": {"resourceVersion": "1"}, "items": []}


class Cluster(FakeApi):
    """An empty cluster that refuses to list some kinds, and tells nothing to those who watch."""

    def __init__(self, refused: set[str]) -> None:
        super().__init__()
        self._refused = {RESOURCES[kind].path() for kind in refused}

    async def get(self, path: str, params: Mapping[str, str | int] | None = None) -> bytes:
        if path in self._refused or path.endswith(KIND.plural):
            raise _FORBIDDEN
        self.script("get", path, _LIST)
        return await super().get(path)

    async def watch(self, path: str, params: Params) -> AsyncGenerator[bytes, None]:
        await asyncio.Event().wait()
        yield b""


def running_on(cluster: Cluster) -> Running:
    """A scheduler with a plugin that asks for a custom kind."""
    raw: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "DiskIO"}]}}}],
    }
    engine = Engine(load_mapping(raw, known=known_plugins(REGISTRY)), REGISTRY)
    return Running(cast(Requests, cluster), engine, "me")


async def test_it_leads_without_the_kinds_that_are_not_essential() -> None:
    refused = set(KINDS - ESSENTIAL)
    running = running_on(Cluster(refused))
    task = asyncio.create_task(running.run())
    try:
        async with asyncio.timeout(30):
            await running.leads.wait()

        assert set(running.absent) == {*refused, KIND.kind}
        assert running.unsynced is None
    finally:
        running.stop()
        await task


@pytest.mark.parametrize("kind", sorted(ESSENTIAL))
async def test_it_waits_for_the_kinds_that_are_essential(kind: str) -> None:
    running = running_on(Cluster({kind}))
    task = asyncio.create_task(running.run())
    try:
        async with asyncio.timeout(30):
            for reflector in running._reflectors:
                if reflector.kind != kind:
                    await reflector.synced.wait()

        assert running.unsynced == f"not listed yet: {kind}"
        assert not running.leads.is_set()
    finally:
        running.stop()
        await task
