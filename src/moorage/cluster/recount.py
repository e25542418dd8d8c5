"""Counts a cluster anew from its objects, after one of them was counted only in part."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from functools import partial
from typing import Any

from moorage.objects.pod import Pod

from .cluster import Cluster

#: Tells an object from all others: its kind, and its key, or the uid of a pod.
Identity = tuple[str, str]


def identity(item: Any) -> Identity:
    """Returns what stays the same when an object changes."""
    name: str = item.uid if isinstance(item, Pod) else getattr(item, "key", "") or item.name
    return type(item).__name__, name


def recount(cluster: Cluster, without: Any = None) -> dict[Identity, Exception]:
    """Counts everything in a cluster anew, with one object left out.

    Objects that cannot be counted are left out as well: returns these, and what they raised.
    """
    left_out: dict[Identity, Exception] = {}
    skipped = set() if without is None else {identity(without)}
    while True:
        anew = cluster.make_empty()
        broken = fill(anew, cluster, skipped)
        if broken is None:
            cluster.adopt(anew)
            return left_out
        # What was counted of it in part is thrown away with the cluster it was counted in.
        what, error = broken
        skipped.add(what)
        left_out[what] = error


def fill(
    anew: Cluster, cluster: Cluster, skipped: Container[Identity] = ()
) -> tuple[Identity, Exception] | None:
    """Puts all objects but some into a new cluster; returns the first that raises, and what."""
    for what, put in _objects(cluster, anew):
        if what not in skipped:
            try:
                put()
            except Exception as error:  # noqa: BLE001 - one object must not keep out the others
                return what, error
    anew._state.storage.assume_as(cluster._state.storage)
    anew._state.devices.decide_as(cluster._state.devices)
    return None


def _objects(cluster: Cluster, anew: Cluster) -> Iterator[tuple[Identity, Callable[[], object]]]:
    """Yields every object of a cluster, and how to put it into another."""
    state = cluster._state
    for resource_type, name, resource in cluster.extended.empties():
        yield (resource_type, name), partial(anew.extended.set, resource_type, name, resource)
    for item in state.workloads:
        yield identity(item), partial(anew.put_workload, item)
    yield from _groups(cluster, anew)
    for node in filter(None, state.nodes):
        yield identity(node), partial(anew.put_node, node)
    for each in state.storage:
        yield identity(each), partial(anew.put_storage, each)
    for device in state.devices:
        yield identity(device), partial(anew.put_device, device)
    for pod in cluster.pods.values():
        yield identity(pod), partial(anew.put_pod, pod)
    nominated = [(pod, name) for name, pods in state.nominations for pod in pods.values()]
    for pod, name in nominated:
        yield identity(pod), partial(anew.nominate, pod, name)


def _groups(cluster: Cluster, anew: Cluster) -> Iterator[tuple[Identity, Callable[[], object]]]:
    for group in cluster.groups:
        yield identity(group), partial(anew.put_group, group)
    for pod in cluster.groups.all_waiting():
        yield identity(pod), partial(anew.expect, pod)
