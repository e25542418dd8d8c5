"""NodeResourcesFit: a node must have room for the pod; how full it gets decides how good it is."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, RowFacts, Rows, Scope, View
from moorage.cluster.changes import leave_out
from moorage.cluster.devices.device_classes import IMPLICIT
from moorage.cluster.labels import ABSENT
from moorage.documents.errors import child, item
from moorage.framework.advice import Advice, Advise, NearMiss, name_nodes, near_misses
from moorage.framework.edits import LowerRequest
from moorage.framework.gang_points import CountRoom
from moorage.framework.plugin import (
    INFEASIBLE,
    UPDATED,
    Filter,
    PreFilter,
    PreScore,
    Reduction,
    Rescore,
    Score,
    Scores,
    Sign,
    rescore_row,
)
from moorage.framework.status import Code, Reason
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, Resource, Topics, Wakeup, on
from moorage.objects.device import DeviceClass
from moorage.objects.meta import Wire
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    Amounts,
    describe_amount,
    is_extended,
)

from .allocation import (
    CPU_AND_MEMORY,
    SHARES,
    AskedResource,
    AskedResources,
    Load,
    ScoringStrategy,
    scorer,
)
from .dynamic_resources.device_counts import DeviceCounts
from .dynamic_resources.extended import mapped_resources, may_use_devices

_TOO_MANY_PODS = Reason("Too many pods")

_OF_NODES = Change.ALLOCATABLE | Change.REQUESTED
_NO_CLASSES: Mapping[str, DeviceClass] = MappingProxyType({})
# Which devices a node sees, if they may serve what a pod requests, depends on its name and labels.
_OF_DEVICES = Change.CLASSES | Change.SLICES | Change.CLAIMS | Change.LABELS | Change.MEMBERSHIP

# Reasons come in this order, other resources after them.
_FIRST = (CPU, MEMORY, EPHEMERAL_STORAGE)


class NodeResourcesFitArgs(Wire, frozen=True):
    """Resources that extenders check, and how nodes are scored."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()

    def problems(self) -> Iterator[tuple[str, str]]:
        for at, group in enumerate(self.ignored_resource_groups):
            if "/" in group:
                yield item("ignoredResourceGroups", at), 'must not contain "/"'
        for where, message in self.scoring_strategy.problems():
            yield child("scoringStrategy", where), message

    def ignores(self, resource: str) -> bool:
        """Whether a resource is left to others; only extended resources can be."""
        return is_extended(resource) and (
            resource in self.ignored_resources
            or resource.partition("/")[0] in self.ignored_resource_groups
        )


# More than any node has: a resource that has no column is never there.
_NOWHERE = 2**63


@dataclass(frozen=True)
class Need:
    """What a pod asks for, in the order of the reasons."""

    amounts: Amounts
    #: Resources that devices serve where a node itself has none of them.
    by_devices: frozenset[str] = frozenset()
    #: Where the columns are, for each version of the places of resources.
    _places: dict[int, tuple[tuple[int, int], ...]] = field(default_factory=dict, compare=False)

    @cached_property
    def reasons(self) -> tuple[Reason, ...]:
        """Too many pods; then two per resource: nothing left, and more than the node ever had."""
        return _TOO_MANY_PODS, *(
            Reason(f"Insufficient {name}", code)
            for name, _ in self.amounts
            for code in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE)
        )

    def places_on(self, nodes: View, allocatable: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yields the same for a row, without what devices serve there."""
        yield nodes.resources[PODS], 1
        for name, amount in self.amounts:
            at = nodes.resource(name)
            if name not in self.by_devices:
                yield (nodes.resources[PODS], _NOWHERE) if at is None else (at, amount)
            elif at is not None and allocatable[at]:
                yield at, amount

    def places(self, nodes: View) -> tuple[tuple[int, int], ...]:
        """Returns the columns that matter, and how much must be left in each.

        What devices serve is left out: it is for pods of which no node offers that itself.
        """
        version = nodes.resources_version
        places = self._places.get(version)
        if places is None:
            pods = nodes.resources[PODS]
            own = (each for each in self.amounts if each[0] not in self.by_devices)
            found = ((nodes.resource(name), amount) for name, amount in own)
            asked = ((pods, _NOWHERE) if at is None else (at, amount) for at, amount in found)
            places = self._places[version] = ((pods, 1), *asked)
        return places


class NodeResourcesFit(
    PreFilter[Need],
    Filter[Need],
    PreScore[AskedResources],
    Score[AskedResources],
    Sign,
    Advise[Need],
    CountRoom,
):
    """Compares what the pod asks for with what is left, and scores by the chosen strategy."""

    name = "NodeResourcesFit"
    Args = NodeResourcesFitArgs
    reads = _OF_NODES | _OF_DEVICES
    scope = Scope.ROW
    reduces = Reduction.NOTHING

    def __init__(self, args: NodeResourcesFitArgs | None = None) -> None:
        self._args = args or NodeResourcesFitArgs()
        self._resources = self._args.scoring_strategy.resources or CPU_AND_MEMORY
        self._scorer = scorer(self._args.scoring_strategy)
        self._share = SHARES.get(self._args.scoring_strategy.type)
        self._device_counts = DeviceCounts()
        self._nodes: View | None = None

    def see_cluster(self, nodes: View) -> None:
        self._nodes = nodes

    @property
    def scored_resources(self) -> dict[str, int]:
        """The resources by which nodes are scored, with their weights."""
        return {each.name: each.weight for each in self._resources}

    def ignores(self, resource: str) -> bool:
        return self._args.ignores(resource)

    def watch(self, pod: Pod, nodes: View) -> Change:
        return self.reads if may_use_devices(pod) else leave_out(self.reads, _OF_DEVICES)

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return pod.requests, tuple(pod.spec.scoring_requests.items())

    def pre_filter(self, pod: Pod, nodes: View) -> Need:
        need = self._need(pod)
        if not may_use_devices(pod):
            return need
        by_devices = mapped_resources(pod, nodes.devices.classes)
        return replace(need, by_devices=frozenset(by_devices)) if by_devices else need

    def filter(self, prepared: Need, nodes: View, rows: Rows) -> Verdict:
        failed = np.empty((len(prepared.reasons), nodes.count(rows)), np.bool_)
        pods = nodes.resources[PODS]
        # One column first, then its rows: NumPy takes five times as long to do both at once.
        np.greater_equal(nodes.requested[pods][rows], nodes.allocatable[pods][rows], out=failed[0])
        lacking = zip(failed[1::2], failed[2::2], strict=True)
        for (name, amount), (short, hopeless) in zip(prepared.amounts, lacking, strict=True):
            at = nodes.resource(name)
            if at is not None:
                allocatable = nodes.allocatable[at][rows]
                np.less(allocatable - nodes.requested[at][rows], amount, out=short)
                np.less(allocatable, amount, out=hopeless)
                if name in prepared.by_devices:
                    short &= allocatable > 0
                    hopeless &= allocatable > 0
            else:
                short[:] = hopeless[:] = name not in prepared.by_devices
        return Verdict(prepared.reasons, failed)

    def recheck(self, prepared: Need, nodes: View, row: RowFacts) -> Rescore:
        allocatable, requested = row.allocatable, row.requested
        if prepared.by_devices and not prepared.by_devices.isdisjoint(nodes.resources):
            fits = all(
                allocatable[at] - requested[at] >= amount
                for at, amount in prepared.places_on(nodes, allocatable)
            )
            return UPDATED if fits else INFEASIBLE
        for at, amount in prepared.places(nodes):
            if allocatable[at] - requested[at] < amount:
                return INFEASIBLE
        return UPDATED

    def pre_score(self, pod: Pod, nodes: View, rows: NDArray[np.intp]) -> AskedResources:
        return AskedResources(
            pod.spec.scoring_requests, self._resources, self._find_classes(pod, nodes)
        )

    def _find_classes(self, pod: Pod, nodes: View) -> Mapping[str, DeviceClass]:
        """Returns the classes that serve what the pod requests, if nodes are scored by it."""
        if not may_use_devices(pod):
            return _NO_CLASSES
        classes = nodes.devices.classes
        scored = self.scored_resources.keys() & mapped_resources(pod, classes)
        return {name: found for name in scored if (found := classes.for_resource(name))}

    def score(self, prepared: AskedResources, nodes: View, rows: Rows) -> Scores:
        loads = [
            Load(
                _in_use(each, nodes)[rows] + each.amount,
                nodes.allocatable[each.at][rows],
                each.weight,
            )
            for each in prepared.counted(nodes)
        ]
        if prepared.classes:
            with self._device_counts.limited():
                loads = self._with_devices(prepared, nodes, rows, loads)
        return self._scorer(loads, nodes.count(rows))

    def _with_devices(
        self, prepared: AskedResources, nodes: View, rows: Rows, loads: list[Load]
    ) -> list[Load]:
        """Returns the loads, with devices where a node itself has none of a resource."""
        by_column = dict(zip((each.at for each in prepared.counted(nodes)), loads, strict=True))
        found = []
        for name, amount, weight in prepared.asked():
            at = nodes.resource(name)
            load = None if at is None else by_column.get(at)
            behind = prepared.classes.get(name)
            if behind is not None:
                known = nodes if self._nodes is None else self._nodes
                there, used = self._device_counts.count(behind, known, rows)
                own = np.zeros_like(there) if load is None else load.capacity
                requested = np.zeros_like(there) if load is None else load.requested
                there = np.where(own > 0, own, there)
                load = Load(np.where(own > 0, requested, used + amount), there, weight)
            if load is not None:
                found.append(load)
        return found

    def rescore(
        self, prepared: AskedResources, nodes: View, row: RowFacts, scores: Scores
    ) -> Rescore:
        if self._share is None or prepared.classes:
            return rescore_row(self, prepared, nodes, row, scores)
        share, allocatable, requested = self._share, row.allocatable, row.requested
        total = weights = 0
        for at, amount, weight, nonzero in prepared.counted(nodes):
            capacity = allocatable[at]
            if capacity:
                in_use = requested[at] if nonzero < 0 else row.nonzero_requested[nonzero]
                total += share(capacity, in_use + amount) * weight
                weights += weight
        scores[row.number] = total // weights if weights else 0
        return UPDATED

    def advise(
        self, pod: Pod, prepared: Need | None, nodes: View, rows: NDArray[np.intp]
    ) -> Iterator[Advice]:
        """Yields advice about resources that are short, and nodes that take no more pods."""
        pods = nodes.resources[PODS]
        full = nodes.requested[pods][rows] >= nodes.allocatable[pods][rows]
        if full.any():
            yield Advice(f"{name_nodes(rows[full], nodes)} cannot take more pods", kind="pods")
        if prepared is not None:
            yield from _ask_for_larger_node(prepared.amounts, nodes)
        roomy = rows[~full]
        if len(roomy) and prepared is not None:
            yield from _Room(prepared.amounts, nodes, roomy).advise()

    def wakeups(self) -> tuple[Wakeup, ...]:
        return (
            on(Resource.POD, Action.DELETE, self._after_pod_is_gone, alike=True),
            on(
                Resource.POD,
                Action.UPDATE_POD_SCALE_DOWN,
                self._after_scale_down,
                alike=True,
                topics=Topics(_find_freed, _resources_of),
            ),
            on(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_ALLOCATABLE,
                self._after_node_change,
                alike=True,
                topics=Topics(self._find_offered, _resources_of),
            ),
            on(
                Resource.DEVICE_CLASS,
                Action.ADD | Action.UPDATE,
                self._after_class_change,
                alike=True,
                topics=Topics(_find_mapped, _resources_of),
            ),
        )

    def _after_pod_is_gone(self, pod: Pod, old: Pod, new: None) -> bool:
        return old.has_place

    def _after_scale_down(self, pod: Pod, old: Pod, new: Pod) -> bool:
        if new.uid == pod.uid:
            return True
        before, after = dict(old.held.requests), dict(new.held.requests)
        return bool(new.node_name) and any(
            before.get(name, 0) > after.get(name, 0) for name, amount in pod.requests if amount
        )

    def _after_class_change(self, pod: Pod, old: DeviceClass | None, new: DeviceClass) -> bool:
        mapped = _find_mapped(old, new)
        return any(name in mapped for name, amount in pod.requests if amount)

    def _after_node_change(self, pod: Pod, old: Node | None, new: Node) -> bool:
        has, needs = dict(new.allocatable), {PODS: 1, **dict(self._need(pod).amounts)}
        served = self._find_served(new) & needs.keys()
        if any(has.get(name, 0) < needs[name] for name in needs.keys() - served):
            return False
        return bool(served) or not _find_added(old, new).isdisjoint(needs)

    def _find_offered(self, old: Node | None, new: Node) -> set[str]:
        """Returns the resources of which a node may offer more than before."""
        return _find_added(old, new) | self._find_served(new)

    def _find_served(self, node: Node) -> set[str]:
        """Returns the resources that devices may serve on a node without its own."""
        if self._nodes is None:
            return set()
        has = dict(node.allocatable)
        return {name for name in self._nodes.devices.classes.resources if not has.get(name)}

    def _need(self, pod: Pod) -> Need:
        asked = {
            name: amount
            for name, amount in pod.requests
            if amount > 0 and not self._args.ignores(name)
        }
        first = [(name, asked.pop(name)) for name in _FIRST if name in asked]
        return Need((*first, *asked.items()))


def _resources_of(pod: Pod) -> set[str]:
    """Returns the resources that a pod waits for."""
    return {PODS, *(name for name, amount in pod.requests if amount)}


def _find_mapped(old: DeviceClass | None, new: DeviceClass) -> set[str]:
    """Returns the resources that devices of a class may serve from now on."""
    explicit = new.extended_resource_name
    is_known = old is not None and old.extended_resource_name == explicit
    return {f"{IMPLICIT}{new.name}", *([] if is_known or not explicit else [explicit])}


def _find_freed(old: Pod, new: Pod) -> set[str]:
    """Returns the resources of which a pod holds less than before."""
    after = dict(new.held.requests)
    return {name for name, amount in old.held.requests if amount > after.get(name, 0)}


def _find_added(old: Node | None, new: Node) -> set[str]:
    """Returns the resources of which a node has more than before."""
    had = dict(old.allocatable) if old else {}
    return {name for name, amount in new.allocatable if amount > had.get(name, 0)}


def _in_use(counted: AskedResource, nodes: View) -> NDArray[np.int64]:
    """Returns what scoring assumes that pods on each row use: for cpu and memory never zero."""
    if counted.nonzero < 0:
        return nodes.requested[counted.at]
    return nodes.nonzero_requested[counted.nonzero]


# Nodes of one type are alike, though their memory may differ by some bytes.
_TYPE = "node.kubernetes.io/instance-type"


def _describe(resource: str, amount: int) -> str:
    return f"{describe_amount(resource, amount, up=True)} {resource}"


def _ask_for_larger_node(asked: Amounts, nodes: View) -> Iterator[Advice]:
    """Yields how large a node would have to be, if none is, even without its pods."""
    lacking = [
        _describe(name, amount)
        for name, amount in asked
        if (at := nodes.resource(name)) is None
        or not (nodes.allocatable[at][nodes.rows] >= amount).any()
    ]
    if lacking:
        need = f"add one with at least {' and '.join(lacking)}"
        yield Advice(f"no node is this large: {need}", kind="node-size")


class _Room:
    """What rows have of what the pod asks for."""

    def __init__(self, asked: Amounts, nodes: View, rows: NDArray[np.intp]) -> None:
        self._nodes = nodes
        self._rows = rows
        self._names = tuple(name for name, _ in asked)
        self._asked = np.array([amount for _, amount in asked], np.int64)
        #: int64[resource, row]
        self._has = np.zeros((len(asked), len(rows)), np.int64)
        self._short = np.zeros_like(self._has)
        for place, (name, amount) in enumerate(asked):
            at = nodes.resource(name)
            if at is not None:
                self._has[place] = nodes.allocatable[at][rows]
            free = 0 if at is None else self._has[place] - nodes.requested[at][rows]
            # What is overcommitted already does not matter to a pod that asks for nothing of it.
            self._short[place] = np.minimum(np.maximum(amount - free, 0), amount)

    def advise(self) -> Iterator[Advice]:
        for miss in near_misses(self._short, self._rows, self._asked, self._like()):
            lacking = [
                (name, by) for name, by in zip(self._names, miss.short.tolist(), strict=True) if by
            ]
            lack = " and ".join(_describe(name, by) for name, by in lacking)
            edits = tuple(LowerRequest(name, by) for name, by in lacking)
            yield Advice(self._describe(miss, lack), edits, kind="resources")

    def _like(self) -> NDArray[np.int64]:
        """Returns what like nodes share: their type, else how much they have of what is short."""
        types = self._nodes.label(_TYPE).codes[self._rows].astype(np.int64)
        has = np.where((self._short > 0) & (types == ABSENT), self._has, 0)
        return np.concatenate((types[np.newaxis], has))

    def _describe(self, miss: NearMiss, short: str) -> str:
        who = name_nodes(miss.rows, self._nodes)
        verb = "was" if len(miss.rows) == 1 else "were"
        if not miss.is_nearest_of_many:
            most = "" if miss.is_exact else "up to "
            return f"{who} {verb} {most}{short} short"
        group = f"{len(miss.group)} {self._kind(miss)}"
        if miss.is_exact:
            return f"{who} {verb} {short} short, the nearest of {group}"
        return f"{len(miss.rows)} of {group} were up to {short} short"

    def _kind(self, miss: NearMiss) -> str:
        """Returns what the nodes of a group are called."""
        nodes, row = self._nodes, int(miss.group[0])
        named = nodes.node(row).labels.get(_TYPE)
        if named is not None:
            return f"{named} nodes"
        place = int(np.flatnonzero(self._rows == row)[0])
        has = [
            f"{describe_amount(name, int(self._has[at, place]))} {name}"
            for at, name in enumerate(self._names)
            if miss.short[at]
        ]
        return f"nodes with {' and '.join(has)}"
