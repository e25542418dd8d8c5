"""Runs all controllers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from moorage.embedded.api.object_api import ObjectApi

from .budgets import BudgetController
from .cache import Cache
from .controller import Controller, ControllerApi, follow, work
from .daemon_sets import DaemonSetController
from .deployments import DeploymentController
from .jobs import JobController
from .namespace_controllers import (
    NamespaceController,
    QuotaController,
    RootCertificateController,
    ServiceAccountController,
)
from .node_lifecycle import NodeController, NodeMonitorController
from .ownership import GarbageController
from .persistent_volumes import ClaimController, VolumeController
from .replica_sets import ReplicaSetController, ReplicationManager
from .resource_claims import ResourceClaimController
from .stateful_sets import StatefulSetController

# Changes of these may bring new kinds.
_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"

CONTROLLERS: tuple[type[Controller], ...] = (
    DeploymentController,
    ReplicaSetController,
    ReplicationManager,
    StatefulSetController,
    DaemonSetController,
    JobController,
    BudgetController,
    NodeMonitorController,
    NodeController,
    VolumeController,
    ClaimController,
    ResourceClaimController,
    QuotaController,
    ServiceAccountController,
    RootCertificateController,
    GarbageController,
    NamespaceController,
)


async def run_controllers(
    api: ObjectApi, controllers: Iterable[type[Controller]] = CONTROLLERS
) -> None:
    """Runs controllers until it is cancelled."""
    cache = Cache(api)
    cluster = ControllerApi(api, cache)
    made = [each(cluster) for each in controllers]
    queues = [follow(each) for each in made]
    cache.catch_up()
    async with asyncio.TaskGroup() as tasks:
        for controller, queue in zip(made, queues, strict=True):
            tasks.create_task(work(controller, queue), name=f"controller {controller.name}")
        await _feed(cache, tasks)


async def _feed(cache: Cache, tasks: asyncio.TaskGroup) -> None:
    """Keeps the cache level with every table, those that are served later included."""
    fed: set[str] = set()
    grown = asyncio.Event()
    while True:
        grown.clear()
        for table in cache.tables:
            if table not in fed:
                fed.add(table)
                tasks.create_task(_follow(cache, table, grown), name=f"feed of {table}")
        await grown.wait()


async def _follow(cache: Cache, table: str, grown: asyncio.Event) -> None:
    while True:
        await cache.until_changed(table)
        cache.catch_up()
        if table == _DEFINITIONS:
            grown.set()
