"""Starting all controllers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from mooring.embedded.api import Api

from .budgets import Budgets
from .cache import Cache
from .claims import Claims
from .cluster import Cluster
from .controller import Controller, follow, work
from .daemon_sets import DaemonSets
from .deployments import Deployments
from .emptying import Emptying
from .garbage import Garbage
from .jobs import Jobs
from .node_monitor import NodeMonitor
from .nodes import Nodes
from .replica_sets import ReplicaSets
from .stateful_sets import StatefulSets
from .volumes import Volumes

# Changes of these may bring new kinds.
_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"

CONTROLLERS: tuple[type[Controller], ...] = (
    Deployments,
    ReplicaSets,
    StatefulSets,
    DaemonSets,
    Jobs,
    Budgets,
    NodeMonitor,
    Nodes,
    Volumes,
    Claims,
    Garbage,
    Emptying,
)


async def run_controllers(api: Api, controllers: Iterable[type[Controller]] = CONTROLLERS) -> None:
    """Runs controllers until it is cancelled."""
    cache = Cache(api)
    cluster = Cluster(api, cache)
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
