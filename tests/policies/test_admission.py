"""Filters over extended resources decide by columns, and say what `admit_pod` would say."""

from __future__ import annotations

from itertools import product
from typing import Any

from moorage.cluster import Cluster
from moorage.objects.pod import Pod
from moorage_policies.disk_io.disk_io_resource import DISK_IO
from tests.builders import node, pod
from tests.policies.counted.test_counted import driver, resource
from tests.policies.disk_io.test_disk_io import asking, cluster, disk

_AMOUNTS = range(5)
#: What nodes have, and what a pod on each uses.
_NODES = {f"n{has}{used}": (has, used) for has, used in product(_AMOUNTS, _AMOUNTS)}
_SILENT = "silent"


def _find_admitted(made: Cluster, resource_type: str, asks: Pod) -> list[bool]:
    """What the resource of each node says of a pod; False where a node has none."""
    views = (made.nodes.view(row).extended(resource_type) for row in made.nodes.rows.tolist())
    return [view is not None and view.admit_pod(asks).fits for view in views]


def _find_accepted(plugin: Any, made: Cluster, asks: Pod) -> list[bool]:
    prepared = plugin.pre_filter(asks, made.nodes)
    verdict = plugin.filter(prepared, made.nodes, made.nodes.rows)
    return [not each for each in verdict.rejected.tolist()]


def test_disk_bandwidth() -> None:
    items: list[Any] = [node(_SILENT), *map(node, _NODES)]
    for name, (has, used) in _NODES.items():
        items += [disk(name, has, has), asking(f"on-{name}", node=name, read=used, write=used // 2)]
    plugin, made = cluster(*items)
    for read, write in product(_AMOUNTS, _AMOUNTS):
        if read or write:
            asks = asking(read=read, write=write)
            assert _find_accepted(plugin, made, asks) == _find_admitted(made, DISK_IO, asks)


def test_counted_resources() -> None:
    driven = driver(resource({"nodeLabel": "slots"}))
    driven.apply(node(_SILENT))
    for name, (has, used) in _NODES.items():
        driven.apply(node(name, labels={"slots": str(has)}))
        driven.apply(pod(f"on-{name}", node=name, metadata={"annotations": {"slots": str(used)}}))
    profile = driven.engine.profiles["default-scheduler"]
    plugin = next(each for each in profile.filter if each.name == "CountedResources")
    made = driven.engine.cluster
    for asked in _AMOUNTS[1:]:
        asks = pod("asks", metadata={"annotations": {"slots": str(asked)}})
        assert _find_accepted(plugin, made, asks) == _find_admitted(made, "slots", asks)
