"""GPUAware: nodes with GPUs are kept for the pods that ask for one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, HandleRegistry, Mask, RowFacts, Rows, Scope, View
from moorage.cluster.labels import ABSENT
from moorage.framework.advice import Advice, Advise, name_nodes
from moorage.framework.edits import AskForDevice
from moorage.framework.plugin import (
    MAX_SCORE,
    Filter,
    PreFilter,
    PreScore,
    Reduction,
    Rescore,
    Score,
    Scores,
    Sign,
)
from moorage.framework.status import Code, Reason
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, Resource, Wakeup, on
from moorage.objects.daemons import is_daemonset_pod
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.quantity import Quantity
from moorage.objects.resources import CPU, MEMORY, format_amount, native

from .claimed_gpus import ClaimedGPUs, Figures
from .gpu_aware_args import GPUAwareArgs, repository
from .gpu_classes import GPUClasses
from .gpu_use import GPUS, LEARNED_FIGURES, GPUUseHandle

# A label that is written to say that there is no GPU.
_NO = "false"

# The type of the extended resource that is learned, before the names that count as GPUs.
GPU_USE = "scheduling.moorage.dev/gpu-use"

#: Labels of a node that go before `reservePerFreeGPU` there.
RESERVE_LABELS = {
    CPU: "scheduling.moorage.dev/reserve-cpu-per-gpu",
    MEMORY: "scheduling.moorage.dev/reserve-memory-per-gpu",
}

# What is read of nodes and their pods.
_OF_PODS = Change.PODS | Change.POD_STATUS
_OF_NODES = (
    Change.ALLOCATABLE | Change.MEMBERSHIP | Change.LABELS | Change.REQUESTED | Change.EXTENDED
)

# Products of the two fit 64 bits.
_MOST_GPUS, _MOST_RESERVED = 2**10, 2**52


@dataclass(frozen=True)
class GPUNames:
    """Which resources are GPUs."""

    exact: frozenset[str]
    prefixes: tuple[str, ...]
    #: What the pod requests of that which is reserved for free GPUs.
    asked: Mapping[str, int] = field(default_factory=dict, compare=False)
    #: Where their columns are, for each version of the places of resources.
    _places: dict[int, tuple[int, ...]] = field(default_factory=dict, compare=False)

    def __contains__(self, name: str) -> bool:
        return name in self.exact or name.startswith(self.prefixes)

    def __call__(self, listed: frozenset[str]) -> int:
        """Returns how many of the names are GPUs: the rule by which nodes are remembered."""
        return sum(name in self for name in listed)

    def places(self, nodes: View) -> tuple[int, ...]:
        """Returns the columns of GPUs."""
        version = nodes.resources_version
        places = self._places.get(version)
        if places is None:
            found = tuple(at for name, at in nodes.resources.items() if name in self)
            places = self._places[version] = found
        return places


class GPUAware(
    PreFilter[GPUNames],
    Filter[GPUNames],
    PreScore[GPUNames],
    Score[GPUNames],
    Sign,
    Advise[GPUNames],
):
    """Keeps pods without a GPU limit off nodes with GPUs, or prefers other nodes for them."""

    name = "GPUAware"
    Args = GPUAwareArgs
    reads = _OF_NODES | _OF_PODS | Change.SLICES | Change.CLAIMS | Change.CLASSES
    scope = Scope.ROW
    reduces = Reduction.NOTHING

    def __init__(
        self, args: GPUAwareArgs | None = None, handles: HandleRegistry | None = None
    ) -> None:
        self._args = args = args or GPUAwareArgs()
        self._rejects = args.mode == "Filter"
        self._names = _names(args.all_resources)
        self._remembers = args.remember_gpu_nodes
        self._classes = None if args.device_classes is None else GPUClasses(args.device_classes)
        self._nodes: View | None = None
        labels = (*args.gpu_node_labels, *args.additional_gpu_node_labels)
        self._labels = labels if self._remembers else ()
        images = (*args.device_plugin_images, *args.additional_device_plugin_images)
        self._images = tuple((repository(each.image), each.namespaces) for each in images)
        #: Where what GPU pods request is counted, if anybody asks for that.
        self._learned = f"{GPU_USE}/{','.join(args.all_resources)}" if args.learn_reserve else ""
        if self._learned and handles is not None:
            handles.register(self._learned, lambda: GPUUseHandle(self._count_gpus))
        learns_of_claims = args.learn_reserve and self._classes is not None
        self._claimed = ClaimedGPUs(self._has_gpu_limit) if learns_of_claims else None
        reserve = args.reserve_per_free_gpu
        self._reserve = () if reserve is None else reserve.amounts
        hint = f"(set one such as {args.all_resources[0]} or add a node without GPUs)"
        if self._reserve:
            kept = " and ".join(f"{format_amount(name, n)} {name}" for name, n in self._reserve)
            self._kept = Reason(f"node(s) with GPUs keep {kept} for each free GPU {hint}")
        else:
            # The GPUs stay, whichever pods are evicted.
            asked = "limit" if self._classes is None else "limit or claim"
            text = f"node(s) with GPUs only take pods with a GPU {asked} {hint}"
            self._kept = Reason(text, Code.UNRESOLVABLE)

    @classmethod
    def create_sharing(cls, args: Any, gates: Mapping[str, bool], handles: HandleRegistry) -> Self:
        return cls(args, handles)

    def see_cluster(self, nodes: View) -> None:
        self._nodes = nodes

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        kept = self._keeps_off(pod, nodes)
        if not (kept and self._rejects):
            return kept
        if self._is_backfill(pod):
            return "backfill"
        return tuple(self._find_requests(pod).items()) or kept

    def watch(self, pod: Pod, nodes: View) -> Change:
        kinds = Change.NONE if self._classes is None else Change.CLASSES
        if not self._keeps_off(pod, nodes):
            return kinds
        kinds |= Change.ALLOCATABLE | Change.MEMBERSHIP
        if self._classes is not None:
            # Slices may choose nodes by labels.
            kinds |= Change.SLICES | Change.LABELS
            kinds |= Change.CLAIMS if self._reserve else Change.NONE
        if self._reserve:
            kinds |= Change.REQUESTED | Change.LABELS | nodes.extended.change(self._learned)
        if self._claimed is not None:
            # Which claims were made for a pod is told in its status.
            kinds |= _OF_PODS
        return kinds | Change.LABELS if self._labels else kinds

    def pre_filter(self, pod: Pod, nodes: View) -> GPUNames | None:
        return self._prepare(pod, nodes) if self._rejects and not self._is_backfill(pod) else None

    def filter(self, prepared: GPUNames, nodes: View, rows: Rows) -> Verdict:
        kept = self._with_gpus(prepared, nodes, rows)
        if self._reserve:
            kept &= self._reaches_reserve(prepared, nodes, rows)
        return Verdict.rejecting(kept, self._kept)

    def recheck(self, prepared: GPUNames, nodes: View, row: RowFacts) -> Rescore:
        kept = self._row_has_gpus(prepared, nodes, row)
        if kept and self._reserve:
            kept = bool(self._reaches_reserve(prepared, nodes, np.array([row.number]))[0])
        return Rescore.INFEASIBLE if kept else Rescore.UPDATED

    def _reaches_reserve(self, prepared: GPUNames, nodes: View, rows: Rows) -> Mask:
        """Returns where the pod would use what the free GPUs of the node may need."""
        free_gpus = np.zeros(nodes.count(rows), np.int64)
        for at in prepared.places(nodes):
            free_gpus += np.clip(nodes.allocatable[at][rows] - nodes.requested[at][rows], 0, None)
        if self._classes is not None:
            free_gpus += self._classes.count_free(self._see(nodes), rows)
        # More would not fit a column when multiplied, and no node has as many.
        np.minimum(free_gpus, _MOST_GPUS, out=free_gpus)
        reached = nodes.nothing(rows)
        for name, amount in self._reserve:
            at = nodes.resources[name]
            left = nodes.allocatable[at][rows] - nodes.requested[at][rows]
            reserved = self._learn(nodes, rows, name, _reserves(nodes, rows, name, amount))
            reached |= left - prepared.asked.get(name, 0) < free_gpus * reserved
        return reached

    def _learn(
        self, nodes: View, rows: Rows, resource: str, reserved: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """int64[row]: what GPU pods of a node request per GPU, where there are some."""
        columns = nodes.extended.columns(self._learned) if self._learned else None
        if columns is None:
            return reserved
        figure = LEARNED_FIGURES[resource]
        gpus, used = columns[GPUS][rows], columns[figure][rows]
        claimed = self._count_claimed(nodes)
        if claimed is not None:
            gpus, used = gpus + claimed[GPUS][rows], used + claimed[figure][rows]
        # Rounded up: a GPU that is reserved a little less is of no use.
        each = np.minimum(-(-used // np.maximum(gpus, 1)), _MOST_RESERVED)
        return np.where(gpus > 0, each, reserved)

    def _count_claimed(self, nodes: View) -> Figures | None:
        if self._claimed is None or self._classes is None:
            return None
        known = self._see(nodes)
        classes = (each.name for each in self._classes.find(known))
        return self._claimed.count(known, classes)

    def _see(self, nodes: View) -> View:
        """Returns the rows as they are: in a what-if, devices and claims stay."""
        return nodes if self._nodes is None else self._nodes

    def _has_gpu_limit(self, pod: Pod) -> bool:
        return self._count_gpus(pod) > 0

    def _count_gpus(self, pod: Pod) -> int:
        if not self._asks_for_gpu(pod, None):
            return 0
        return sum(amount for name, amount in pod.spec.requests if name in self._names)

    def advise(
        self, pod: Pod, prepared: GPUNames | None, nodes: View, rows: NDArray[np.intp]
    ) -> Iterator[Advice]:
        """Advises to request one of the existing GPUs."""
        for resource, at in nodes.resources.items():
            there = rows[nodes.allocatable[at][rows] > 0] if resource in self._names else rows[:0]
            if len(there):
                verb = "is" if len(there) == 1 else "are"
                who = f"{name_nodes(there, nodes)} with {resource} {verb}"
                problem = f"{who} kept for pods that ask for one"
                yield Advice(problem, (AskForDevice(resource),), kind="gpu")

    def pre_score(self, pod: Pod, nodes: View, rows: NDArray[np.intp]) -> GPUNames | None:
        # A pod that may use GPU nodes goes there when others are full.
        return self._prepare(pod, nodes) if not self._rejects or self._is_backfill(pod) else None

    def score(self, prepared: GPUNames, nodes: View, rows: Rows) -> Scores:
        return np.where(self._with_gpus(prepared, nodes, rows), 0, MAX_SCORE).astype(np.int64)

    def rescore(self, prepared: GPUNames, nodes: View, row: RowFacts, scores: Scores) -> Rescore:
        has = self._row_has_gpus(prepared, nodes, row)
        scores[row.number] = 0 if has else MAX_SCORE
        return Rescore.UPDATED

    def wakeups(self) -> tuple[Wakeup, ...]:
        actions = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE
        if self._labels or self._reserve:
            actions |= Action.UPDATE_NODE_LABEL
        nodes = on(Resource.NODE, actions, self._after_node_change, alike=True)
        devices = () if self._classes is None else self._device_wakeups()
        if not self._reserve:
            return (nodes, *devices)
        # A pod that goes gives room back; a GPU pod that comes needs no reserve any more.
        return (
            nodes,
            *devices,
            on(Resource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN),
            on(Resource.ASSIGNED_POD, Action.ADD, self._after_pod_comes, alike=True),
        )

    def _device_wakeups(self) -> tuple[Wakeup, ...]:
        # A node without slices, or a class that no longer says so, may take such a pod.
        changes = Action.UPDATE | Action.DELETE
        wakeups = (
            on(Resource.RESOURCE_SLICE, changes),
            on(Resource.DEVICE_CLASS, Action.ADD | changes),
        )
        return (*wakeups, on(Resource.RESOURCE_CLAIM, changes)) if self._reserve else wakeups

    def _after_node_change(self, pod: Pod, old: Node | None, new: Node) -> bool:
        if self._reserve:
            return True
        return not self._has_gpus(new) and (old is None or self._has_gpus(old))

    def _after_pod_comes(self, pod: Pod, old: Pod | None, new: Pod) -> bool:
        return self._asks_for_gpu(new, self._nodes)

    # Pods

    def _prepare(self, pod: Pod, nodes: View) -> GPUNames | None:
        # A value of its own per pod: the columns that it finds are those of one cluster.
        if not self._keeps_off(pod, nodes):
            return None
        return replace(self._names, asked=self._find_requests(pod), _places={})

    def _find_requests(self, pod: Pod) -> Mapping[str, int]:
        """Returns what a pod requests of the reserved resources."""
        reserved = {name for name, _ in self._reserve}
        return {name: amount for name, amount in pod.spec.requests if name in reserved}

    def _is_backfill(self, pod: Pod) -> bool:
        """Whether a pod may use GPU nodes until a GPU pod needs the room."""
        most = self._args.backfill_below_priority
        return most is not None and pod.priority < most

    def _keeps_off(self, pod: Pod, nodes: View) -> bool:
        """Whether the pod does not belong on a node with GPUs."""
        # As long as nobody says which, a claim may be one to a GPU, whatever it is called.
        if pod.spec.resource_claims and (self._classes is None or not self._classes.find(nodes)):
            return False
        if self._asks_for_gpu(pod, nodes):
            return False
        is_daemon = self._args.exempt_daemon_sets and is_daemonset_pod(pod)
        return not (is_daemon or self._is_device_plugin(pod))

    def _asks_for_gpu(self, pod: Pod, nodes: View | None) -> bool:
        if nodes is not None and self._classes is not None:
            by_class = self._classes.are_asked_for(pod, nodes)
        else:
            by_class = False
        return by_class or any(
            amount > 0 and name in self._names
            for container in pod.spec.all_containers
            if container.resources and container.resources.limits
            for name, amount in container.resources.limits.items()
        )

    def _is_device_plugin(self, pod: Pod) -> bool:
        images = {
            image
            for image, namespaces in self._images
            if not namespaces or pod.namespace in namespaces
        }
        return any(repository(each.image) in images for each in pod.spec.all_containers)

    # Nodes: as rows, as a row that changed, and as the object of an event

    def _with_gpus(self, names: GPUNames, nodes: View, rows: Rows) -> Mask:
        found = nodes.nothing(rows)
        if self._classes is not None:
            found |= self._classes.rows_with_some(self._see(nodes), rows)
        if self._remembers:
            return found | self._find_remembered(names, nodes, rows)
        for at in names.places(nodes):
            found |= nodes.allocatable[at][rows] > 0
        return found

    def _find_remembered(self, names: GPUNames, nodes: View, rows: Rows) -> Mask:
        found = nodes.resource_names.judge(names).take(nodes.resource_sets[rows]) > 0
        for key in self._labels:
            present = nodes.label(key).codes[rows] != ABSENT
            found |= present & ~nodes.selected({key: _NO}, rows)
        return found

    def _row_has_gpus(self, names: GPUNames, nodes: View, row: RowFacts) -> bool:
        if any(row.allocatable[at] > 0 for at in names.places(nodes)):
            return True
        if self._remembers and self._has_gpus(nodes.node(row.number)):
            return True
        if self._classes is None:
            return False
        return bool(self._classes.rows_with_some(self._see(nodes), np.array([row.number]))[0])

    def _has_gpus(self, node: Node) -> bool:
        least = 0 if self._remembers else 1
        listed = any(amount >= least and name in self._names for name, amount in node.allocatable)
        return listed or any(node.labels.get(key, _NO) != _NO for key in self._labels)


@dataclass(frozen=True, slots=True)
class _ReserveOfLabel:
    """The rule that reads values of a label: an amount, else the amount for all nodes."""

    resource: str
    otherwise: int

    def __call__(self, text: str) -> int:
        try:
            amount = native(self.resource, Quantity.parse(text))
        except ValueError:
            return self.otherwise
        return min(amount, _MOST_RESERVED)


def _reserves(nodes: View, rows: Rows, resource: str, amount: int) -> NDArray[np.int64]:
    """int64[row]: what is kept of a resource for a free GPU, by the label of the node if any."""
    otherwise = min(amount, _MOST_RESERVED)
    column = nodes.label(RESERVE_LABELS[resource])
    codes = column.codes[rows]
    if not len(column.vocabulary):
        return np.full(nodes.count(rows), otherwise, np.int64)
    said = column.vocabulary.judge(_ReserveOfLabel(resource, otherwise))
    return np.where(codes == ABSENT, otherwise, said.take(codes))


def _names(resources: tuple[str, ...]) -> GPUNames:
    prefixes = tuple(name.removesuffix("*") for name in resources if name.endswith("*"))
    return GPUNames(frozenset(name for name in resources if not name.endswith("*")), prefixes)
