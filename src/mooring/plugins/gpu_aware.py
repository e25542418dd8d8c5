"""GPUAware: nodes with GPUs are kept for the pods that ask for one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Change, Mask, Nodes, RowFacts, Rows, Scope
from mooring.cluster.labels import ABSENT
from mooring.documents.errors import child, item
from mooring.framework.advice import Advice, Advise, name_nodes
from mooring.framework.edits import AskForDevice
from mooring.framework.plugin import (
    MAX_SCORE,
    TEMPLATE,
    Filter,
    PreFilter,
    PreScore,
    Reduction,
    Rescore,
    Score,
    Scores,
    Sign,
)
from mooring.framework.status import Reason
from mooring.framework.verdict import Verdict
from mooring.framework.wakeups import Action, Resource, Wakeup, on
from mooring.objects.coexist import is_daemonset_pod
from mooring.objects.meta import Wire
from mooring.objects.node import Node
from mooring.objects.pod import Pod

_HUB = "docker.io"
_HUBS = (_HUB, f"index.{_HUB}")

# A label that is written to say that there is no GPU.
_NO = "false"


class DevicePluginImage(Wire, frozen=True):
    """An image whose pods make the GPUs of a node known, perhaps in some namespaces only."""

    image: str = ""
    namespaces: tuple[str, ...] = ()

    def problems(self) -> Iterator[tuple[str, str]]:
        if not repository(self.image):
            yield "image", "is required"
        for at, namespace in enumerate(self.namespaces):
            if not namespace:
                yield item("namespaces", at), "must not be empty"


class GPUAwareArgs(Wire, frozen=True):
    """What counts as a GPU, which pods are exempt, and whether the plugin rejects or prefers."""

    mode: Literal["Filter", "Score"] = "Filter"
    #: Resource names; a `*` at the end makes one a prefix.
    resources: tuple[str, ...] = (
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-*",
        "amd.com/gpu",
        "gpu.intel.com/*",
    )
    device_plugin_images: tuple[DevicePluginImage, ...] = (
        DevicePluginImage(image="nvcr.io/nvidia/k8s-device-plugin"),
        DevicePluginImage(image="docker.io/rocm/k8s-device-plugin"),
        DevicePluginImage(image="docker.io/intel/intel-gpu-plugin"),
    )
    # Network agents and the like must run on every node.
    exempt_daemon_sets: bool = True
    #: Whether a node has GPUs that lists them as 0, as a kubelet does while its device plugin is
    #: away, or that has one of the labels below.
    remember_gpu_nodes: bool = msgspec.field(default=False, name="rememberGPUNodes")
    gpu_node_labels: tuple[str, ...] = (
        "nvidia.com/gpu.present",
        "amd.com/gpu.device-id",
        "intel.feature.node.kubernetes.io/gpu",
        "cloud.google.com/gke-accelerator",
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from self._resource_problems()
        for at, image in enumerate(self.device_plugin_images):
            for where, message in image.problems():
                yield child(item("devicePluginImages", at), where), message
        for at, key in enumerate(self.gpu_node_labels):
            if not key:
                yield item("gpuNodeLabels", at), "must not be empty"

    def _resource_problems(self) -> Iterator[tuple[str, str]]:
        if not self.resources:
            yield "resources", "at least one is required"
        for at, name in enumerate(self.resources):
            if not name or "*" in name[:-1] or name == "*":
                yield item("resources", at), 'must be a name, or the beginning of one and "*"'


@dataclass(frozen=True)
class GPUNames:
    """Which resources are GPUs."""

    exact: frozenset[str]
    prefixes: tuple[str, ...]
    #: Where their columns are, for each version of the places of resources.
    _places: dict[int, tuple[int, ...]] = field(default_factory=dict, compare=False)

    def __contains__(self, name: str) -> bool:
        return name in self.exact or name.startswith(self.prefixes)

    def __call__(self, listed: frozenset[str]) -> int:
        """How many of the names are GPUs: the rule by which nodes are remembered."""
        return sum(name in self for name in listed)

    def places(self, nodes: Nodes) -> tuple[int, ...]:
        """The columns of GPUs."""
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
    reads = Change.ALLOCATABLE | Change.LABELS
    scope = Scope.ROW
    is_steady = True
    signs = TEMPLATE
    reduces = Reduction.NOTHING

    def __init__(self, args: GPUAwareArgs | None = None) -> None:
        self._args = args = args or GPUAwareArgs()
        self._rejects = args.mode == "Filter"
        self._names = _names(args.resources)
        self._remembers = args.remember_gpu_nodes
        self._labels = args.gpu_node_labels if self._remembers else ()
        self._images = tuple(
            (repository(each.image), each.namespaces) for each in args.device_plugin_images
        )
        self._kept = Reason(
            "node(s) with GPUs only take pods with a GPU limit "
            f"(set one such as {args.resources[0]} or add a node without GPUs)"
        )

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return self._keeps_off(pod)

    def watch(self, pod: Pod, nodes: Nodes) -> Change:
        if not self._keeps_off(pod):
            return Change.NONE
        return self.reads if self._labels else Change.ALLOCATABLE

    def pre_filter(self, pod: Pod, nodes: Nodes) -> GPUNames | None:
        return self._prepared(pod) if self._rejects else None

    def filter(self, prepared: GPUNames, nodes: Nodes, rows: Rows) -> Verdict:
        return Verdict.rejecting(self._with_gpus(prepared, nodes, rows), self._kept)

    def recheck(self, prepared: GPUNames, nodes: Nodes, row: RowFacts) -> Rescore:
        has = self._row_has_gpus(prepared, nodes, row)
        return Rescore.INFEASIBLE if has else Rescore.UPDATED

    def advise(
        self, pod: Pod, prepared: GPUNames | None, nodes: Nodes, rows: NDArray[np.intp]
    ) -> Iterator[Advice]:
        """Ask for one of the GPUs that are there."""
        for resource, at in nodes.resources.items():
            there = rows[nodes.allocatable[at][rows] > 0] if resource in self._names else rows[:0]
            if len(there):
                verb = "is" if len(there) == 1 else "are"
                who = f"{name_nodes(there, nodes)} with {resource} {verb}"
                problem = f"{who} kept for pods that ask for one"
                yield Advice(problem, (AskForDevice(resource),), kind="gpu")

    def pre_score(self, pod: Pod, nodes: Nodes, rows: NDArray[np.intp]) -> GPUNames | None:
        return None if self._rejects else self._prepared(pod)

    def score(self, prepared: GPUNames, nodes: Nodes, rows: Rows) -> Scores:
        return np.where(self._with_gpus(prepared, nodes, rows), 0, MAX_SCORE).astype(np.int64)

    def rescore(self, prepared: GPUNames, nodes: Nodes, row: RowFacts, scores: Scores) -> Rescore:
        has = self._row_has_gpus(prepared, nodes, row)
        scores[row.number] = 0 if has else MAX_SCORE
        return Rescore.UPDATED

    def wakeups(self) -> tuple[Wakeup, ...]:
        actions = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE
        if self._labels:
            actions |= Action.UPDATE_NODE_LABEL
        return (on(Resource.NODE, actions, self._after_node_change, alike=True),)

    def _after_node_change(self, pod: Pod, old: Node | None, new: Node) -> bool:
        return not self._has_gpus(new) and (old is None or self._has_gpus(old))

    # Pods

    def _prepared(self, pod: Pod) -> GPUNames | None:
        # A value of its own per pod: the columns that it finds are those of one cluster.
        return replace(self._names, _places={}) if self._keeps_off(pod) else None

    def _keeps_off(self, pod: Pod) -> bool:
        """Whether the pod has no business on a node with GPUs."""
        # A claim may be one to a GPU, whatever it is called.
        if pod.spec.resource_claims or self._asks_for_gpu(pod):
            return False
        is_daemon = self._args.exempt_daemon_sets and is_daemonset_pod(pod)
        return not (is_daemon or self._is_device_plugin(pod))

    def _asks_for_gpu(self, pod: Pod) -> bool:
        return any(
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

    def _with_gpus(self, names: GPUNames, nodes: Nodes, rows: Rows) -> Mask:
        if self._remembers:
            return self._remembered(names, nodes, rows)
        found = nodes.nothing(rows)
        for at in names.places(nodes):
            found |= nodes.allocatable[at][rows] > 0
        return found

    def _remembered(self, names: GPUNames, nodes: Nodes, rows: Rows) -> Mask:
        found = nodes.resource_names.judge(names).take(nodes.resource_sets[rows]) > 0
        for key in self._labels:
            present = nodes.label(key).codes[rows] != ABSENT
            found |= present & ~nodes.selected({key: _NO}, rows)
        return found

    def _row_has_gpus(self, names: GPUNames, nodes: Nodes, row: RowFacts) -> bool:
        if any(row.allocatable[at] > 0 for at in names.places(nodes)):
            return True
        return self._remembers and self._has_gpus(nodes.node(row.number))

    def _has_gpus(self, node: Node) -> bool:
        least = 0 if self._remembers else 1
        listed = any(amount >= least and name in self._names for name, amount in node.allocatable)
        return listed or any(node.labels.get(key, _NO) != _NO for key in self._labels)


def repository(image: str) -> str:
    """The registry and path of an image, without tag and digest; Docker Hub is spelled out."""
    head, slash, last = image.partition("@")[0].rpartition("/")
    path = head + slash + last.partition(":")[0]
    registry, _, rest = path.partition("/")
    is_host = rest and (registry == "localhost" or "." in registry or ":" in registry)
    if is_host and registry not in _HUBS:
        return path
    name = rest if is_host else path
    # A name without a folder is one of the official images.
    return name and f"{_HUB}/{name if '/' in name else f'library/{name}'}"


def _names(resources: tuple[str, ...]) -> GPUNames:
    prefixes = tuple(name.removesuffix("*") for name in resources if name.endswith("*"))
    return GPUNames(frozenset(name for name in resources if not name.endswith("*")), prefixes)
