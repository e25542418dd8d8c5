"""Overviews of a cluster: owners, labels, gangs, exclusive nodes, devices, shared answers.

Everything is counted in slices, with decisions in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import TypeVar

import msgspec
import numpy as np

from moorage.cluster import Nodes
from moorage.engine import Engine
from moorage.engine.classes.statistics import DecisionPath, Statistics
from moorage.framework.coexist_ledgers import HOLDERS
from moorage.framework.holder_limits import LimitHolders
from moorage.objects.coexist import LIMIT_LABEL
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.objects.resources import Amounts
from moorage.objects.workload import owner_text

from .details import describe_extended, describe_refusal
from .messages import Detail, pack
from .queue_picture import SLICE, describe_wait

# What is listed, the largest first; the rest is counted.
_MOST_LISTED = 200
# Labels with more values than this tell nodes apart rather than group them.
_MOST_VALUES = 200

T = TypeVar("T")

#: How pods are put together.
OWNERS: dict[str, Callable[[Pod], str]] = {
    "namespace": lambda pod: pod.namespace,
    "owner": owner_text,
}


class PodUsage(Detail, frozen=True):
    """What the placed pods of a namespace or an owner request, and how many more wait."""

    name: str
    pods: int
    waiting: int
    requests: dict[str, int]


class UsageList(Detail, frozen=True):
    """The largest entries, and the number of all."""

    count: int
    items: list[PodUsage]


class LabelKey(Detail, frozen=True):
    """A label of nodes that can group them."""

    key: str
    values: int
    nodes: int


class LabelGroups(Detail, frozen=True):
    """The value of a label on each node, by row. Nodes without the label are left out."""

    key: str
    values: list[str]
    rows: str
    codes: str


class Gang(Detail, frozen=True):
    """A pod group, and the state of its members."""

    name: str
    is_gang: bool
    min_count: int
    placed: int
    waiting: int
    topology_key: str
    #: A waiting member, and why it waits.
    pod: str = ""
    reason: str = ""


class ExclusiveHolder(Detail, frozen=True):
    """A namespace whose exclusive pods hold nodes, and what nobody requests there."""

    name: str
    nodes: int
    pods: int
    #: What its label allows, else the configuration; None if neither does.
    limit: str | None
    free: dict[str, int]


class DeviceCount(Detail, frozen=True):
    """The devices of a driver on all nodes."""

    driver: str
    pools: int
    devices: int
    taken: int
    shared: int


class ExtendedCount(Detail, frozen=True):
    """A resource that plugins count: its figures, added up over the nodes that have it."""

    type: str
    nodes: int
    figures: dict[str, int]


class DeviceReport(Detail, frozen=True):
    """Resources beyond cpu, memory and the like."""

    drivers: list[DeviceCount]
    claims: int
    allocated: int
    extended: list[ExtendedCount]


def measure_usage(engine: Engine, by: str) -> Generator[None, None, bytes]:
    """Measures what pods use, by namespace or owner; returns JSON."""
    name_of = OWNERS[by]
    kinds: Counter[tuple[str, Amounts]] = Counter()
    for some in slices(engine.cluster.pods.values()):
        kinds.update((name_of(pod), pod.held.requests) for pod in some)
        yield
    waiting: Counter[str] = Counter()
    for queued in slices(engine.queue):
        waiting.update(name_of(each.pod) for each in queued)
        yield
    pods: Counter[str] = Counter()
    requests: dict[str, Counter[str]] = {name: Counter() for name in waiting}
    for (name, amounts), count in kinds.items():
        pods[name] += count
        totals = requests.setdefault(name, Counter())
        for resource, amount in amounts:
            totals[resource] += amount * count
    names = sorted(requests, key=lambda name: (-pods[name] - waiting[name], name))
    items = [
        PodUsage(name, pods[name], waiting[name], dict(requests[name]))
        for name in names[:_MOST_LISTED]
    ]
    return msgspec.json.encode(UsageList(len(names), items))


def locate_pods(engine: Engine, by: str, name: str) -> Generator[None, None, bytes]:
    """Counts the pods of a namespace or an owner on each node; returns JSON."""
    name_of = OWNERS[by]
    found: Counter[str] = Counter()
    for some in slices(engine.cluster.pods.values()):
        found.update(pod.node_name for pod in some if name_of(pod) == name)
        yield
    return msgspec.json.encode(found)


def list_labels(engine: Engine) -> Generator[None, None, bytes]:
    """Lists the labels that can group nodes, those of most nodes first; returns JSON."""
    nodes = engine.cluster.nodes
    values: dict[str, Counter[str]] = {}
    for rows in slices(nodes.rows.tolist()):
        for row in rows:
            for key, value in nodes.node(row).labels.items() if nodes.alive[row] else ():
                values.setdefault(key, Counter())[value] += 1
        yield
    whole = len(nodes)
    keys = [
        LabelKey(key, len(found), found.total())
        for key, found in values.items()
        if len(found) <= _MOST_VALUES and (len(found) < whole or whole <= 1)
    ]
    return msgspec.json.encode(sorted(keys, key=lambda each: (-each.nodes, each.key)))


def group_nodes(engine: Engine, key: str) -> Generator[None, None, bytes]:
    """Returns the values of a label by row, as JSON."""
    nodes = engine.cluster.nodes
    codes: dict[str, int] = {}
    rows: list[int] = []
    found: list[int] = []
    for some in slices(nodes.rows.tolist()):
        for row in some:
            value = nodes.node(row).labels.get(key) if nodes.alive[row] else None
            if value is not None:
                rows.append(row)
                found.append(codes.setdefault(value, len(codes)))
        yield
    groups = LabelGroups(
        key, list(codes), pack(np.array(rows), "<u4"), pack(np.array(found), "<u4")
    )
    return msgspec.json.encode(groups)


def list_gangs(engine: Engine) -> Generator[None, None, bytes]:
    """Lists the pod groups, waiting ones first; returns JSON."""
    gangs: list[Gang] = []
    for some in slices(engine.cluster.groups):
        gangs += [_describe_gang(engine, group) for group in some]
        yield
    gangs.sort(key=lambda gang: (not gang.waiting, gang.name))
    return msgspec.json.encode({"count": len(gangs), "items": gangs[:_MOST_LISTED]})


def _describe_gang(engine: Engine, group: PodGroup) -> Gang:
    groups, key = engine.cluster.groups, group.group_key
    placed = groups.placed(key)
    waits = next((pod for uid, pod in groups.waiting(key).items() if uid not in placed), None)
    queued = None if waits is None else engine.queue.get(waits.uid)
    return Gang(
        group.key,
        group.is_gang,
        group.min_count,
        len(placed),
        groups.count(key) - len(placed),
        group.topology_key,
        "" if waits is None else waits.key,
        describe_refusal(group) or ("" if queued is None else describe_wait(queued)),
    )


def list_exclusive(engine: Engine) -> Generator[None, None, bytes]:
    """Lists namespaces that hold nodes by exclusive pods, the largest first; returns JSON."""
    nodes = engine.cluster.nodes
    most = _find_limit(engine)
    items = []
    for names in slices(nodes.ledger(HOLDERS)):
        items += [_describe_holder(nodes, name, most) for name in names]
        yield
    items.sort(key=lambda each: (-each.nodes, each.name))
    return msgspec.json.encode({"count": len(items), "items": items[:_MOST_LISTED]})


def _find_limit(engine: Engine) -> str | None:
    """Returns the lowest limit that a profile sets for a namespace without a label."""
    plugins = (each for profile in engine.profiles.values() for each in profile.plugins.values())
    limits = (each.most for each in plugins if isinstance(each, LimitHolders))
    least = min((limit for limit in limits if limit is not None), default=None)
    return None if least is None else str(least)


def _describe_holder(nodes: Nodes, name: str, most: str | None) -> ExclusiveHolder:
    held = nodes.ledger(HOLDERS).of(name)
    rows = list(held)
    limit = nodes.workloads.namespace_labels(name).get(LIMIT_LABEL, most)
    free = {}
    for resource, at in nodes.resources.items():
        if nodes.allocatable[at, rows].any():
            left = nodes.allocatable[at, rows] - nodes.requested[at, rows]
            free[resource] = int(np.maximum(left, 0).sum())
    return ExclusiveHolder(name, len(rows), sum(held.values()), limit, free)


def count_devices(engine: Engine) -> Generator[None, None, bytes]:
    """Counts devices by driver, claims, and extended resources by type; returns JSON."""
    known = engine.cluster.nodes.devices
    counts: dict[str, Counter[str]] = {}
    pools: dict[str, set[str]] = {}
    for some in slices(known.slices.values(), SLICE // 20):
        for item in some:
            count = counts.setdefault(item.driver, Counter())
            pools.setdefault(item.driver, set()).add(item.pool)
            held = known.use.held((item.driver, item.pool))
            count["devices"] += len(item.devices)
            for device in item.devices if held else ():
                hold = held.get(device.name)
                count["taken"] += hold is not None and hold.taken > 0
                count["shared"] += hold is not None and not hold.taken and hold.shares > 0
        yield
    claims = [claim.allocation is not None for claim in known.claims]
    yield
    extended = yield from _add_up_extended(engine)
    drivers = [
        DeviceCount(name, len(pools[name]), found["devices"], found["taken"], found["shared"])
        for name, found in sorted(counts.items())
    ]
    return msgspec.json.encode(DeviceReport(drivers, len(claims), sum(claims), extended))


def _add_up_extended(engine: Engine) -> Generator[None, None, list[ExtendedCount]]:
    figures: dict[str, Counter[str]] = {}
    nodes: Counter[str] = Counter()
    if not list(engine.cluster.extended):
        return []
    for rows in slices(engine.cluster.nodes.rows.tolist(), SLICE // 20):
        for row in rows:
            for kind, found in describe_extended(engine, row).items():
                nodes[kind] += 1
                figures.setdefault(kind, Counter()).update(found)
        yield
    return [ExtendedCount(kind, nodes[kind], dict(found)) for kind, found in figures.items()]


def slices(items: Iterable[T], size: int = SLICE) -> Iterator[list[T]]:
    """Yields a copy of the items in parts, because the cluster may change in between."""
    rest = iter(list(items))
    while some := list(islice(rest, size)):
        yield some


class PluginKeepsApart(Detail, frozen=True):
    """A plugin that prevents pods from sharing answers, how many pods these are, and why."""

    plugin: str
    pods: int
    why: str


class ProfileBatching(Detail, frozen=True):
    """The decisions of a profile since the start."""

    profile: str
    decisions: int
    #: For pods that were like one before, whether anything was reused or not.
    alike: int
    by_batch: int
    by_class: int
    apart: list[PluginKeepsApart]


def describe_batching(engine: Engine) -> bytes:
    """Returns how answers are shared, by profile, as JSON."""
    profiles = [
        _describe_profile(name, classes.statistics) for name, classes in engine.classes.items()
    ]
    return msgspec.json.encode({"items": profiles})


def _describe_profile(name: str, statistics: Statistics) -> ProfileBatching:
    apart = [
        PluginKeepsApart(plugin, count, "tells pods of one owner apart")
        for plugin, count in statistics.apart.items()
    ]
    unsigned = [
        PluginKeepsApart(plugin, count, f"does not sign them ({why.value})")
        for (plugin, why), count in statistics.unsigned.items()
    ]
    by_batch = statistics.paths[DecisionPath.BATCH]
    return ProfileBatching(
        name,
        statistics.decisions,
        statistics.alike,
        by_batch,
        statistics.reused - by_batch,
        sorted([*apart, *unsigned], key=lambda each: (-each.pods, each.plugin)),
    )
