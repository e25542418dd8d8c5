"""Overviews of a cluster: owners, labels, gangs, tables of plugins, devices, shared answers.

Everything is counted in slices, with decisions in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import TypeVar

import msgspec
import numpy as np

from moorage.engine import Engine
from moorage.engine.classes.statistics import DecisionPath, Statistics
from moorage.framework.plugin_fence import PluginFence
from moorage.framework.sections import Cell, ShowSection
from moorage.framework.status import PluginError
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.objects.resources import Amounts
from moorage.objects.workload import owner_text

from .details import describe_extended, describe_refusal
from .messages import Detail, pack
from .queue_picture import SLICE, describe_wait

# What is listed, the largest first; the rest is counted.
_MOST_LISTED = 200

# A row of a plugin may look at many nodes.
_ROWS_AT_ONCE = 10
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


class SectionTitle(Detail, frozen=True):
    """A table that a plugin shows."""

    name: str
    title: str


class SectionRows(SectionTitle, frozen=True):
    """The same with its rows, as far as they are listed."""

    heads: tuple[str, ...]
    empty: str
    items: list[tuple[Cell, ...]]
    is_whole: bool


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


def list_sections(engine: Engine) -> bytes:
    """Lists the tables that plugins show; returns JSON."""
    shown = (plugin.section for plugin in _find_sections(engine).values())
    return msgspec.json.encode([SectionTitle(each.name, each.title) for each in shown])


def show_section(engine: Engine, name: str) -> Generator[None, None, bytes]:
    """Shows the table of a plugin; returns JSON, which is null if there is none of that name."""
    plugin = _find_sections(engine).get(name)
    if plugin is None:
        return b"null"
    items: list[tuple[Cell, ...]] = []
    about, empty = plugin.section, plugin.section.empty
    fence = PluginFence('asking plugin "{}" for its table', plugin)
    try:
        with fence:
            rows = iter(plugin.section_rows(engine.cluster.nodes))
        while len(items) <= _MOST_LISTED:
            with fence:
                some = list(islice(rows, _ROWS_AT_ONCE))
            if not some:
                break
            items += some
            yield
    except PluginError as error:
        items, empty = [], str(error)
    is_whole = len(items) <= _MOST_LISTED
    listed = items[:_MOST_LISTED]
    return msgspec.json.encode(SectionRows(name, about.title, about.heads, empty, listed, is_whole))


def _find_sections(engine: Engine) -> dict[str, ShowSection]:
    plugins = (each for profile in engine.profiles.values() for each in profile.plugins.values())
    return {each.section.name: each for each in plugins if isinstance(each, ShowSection)}


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
