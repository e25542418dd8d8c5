"""The arguments of GPUAware: what counts as a GPU, which pods are exempt, what is reserved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from moorage.documents.errors import child, item
from moorage.objects.meta import Wire
from moorage.objects.quantity import Quantity
from moorage.objects.resources import CPU, MEMORY, native

_HUB = "docker.io"
_HUBS = (_HUB, f"index.{_HUB}")


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


class GPUReserve(Wire, frozen=True):
    """What stays free on a node for each of its free GPUs."""

    cpu: Quantity = Quantity(0)
    memory: Quantity = Quantity(0)

    def problems(self) -> Iterator[tuple[str, str]]:
        for name in ("cpu", "memory"):
            if getattr(self, name) < 0:
                yield name, "must not be negative"
        if not (self.cpu or self.memory):
            yield "", "one of cpu and memory is required"

    @property
    def amounts(self) -> tuple[tuple[str, int], ...]:
        """Returns amounts per free GPU, in the units of columns, without zeros."""
        named = ((CPU, self.cpu), (MEMORY, self.memory))
        return tuple((name, native(name, amount)) for name, amount in named if amount)


class GPUAwareArgs(Wire, frozen=True):
    """What counts as a GPU, which pods are exempt, and whether the plugin rejects or prefers."""

    mode: Literal["Filter", "Score"] = "Filter"
    #: In the mode Filter: others may use of a GPU node what its free GPUs could not need.
    reserve_per_free_gpu: GPUReserve | None = msgspec.field(default=None, name="reservePerFreeGPU")
    #: What GPU pods of a node request per GPU goes before that where there are some.
    learn_reserve: bool = False
    #: In the mode Filter: pods of a lower priority may use GPU nodes, and make way for GPU pods.
    backfill_below_priority: int | None = None
    #: Resource names; a `*` at the end makes one a prefix.
    resources: tuple[str, ...] = (
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-*",
        "amd.com/gpu",
        "gpu.intel.com/*",
    )
    #: Device classes whose devices count as GPUs, besides those that are annotated so. None: claims
    #: to devices are not looked at.
    device_classes: tuple[str, ...] | None = None
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

    #: These are added to the lists above, be they the default ones or not.
    additional_resources: tuple[str, ...] = ()
    additional_device_plugin_images: tuple[DevicePluginImage, ...] = ()
    additional_gpu_node_labels: tuple[str, ...] = msgspec.field(
        default=(), name="additionalGPUNodeLabels"
    )

    @property
    def all_resources(self) -> tuple[str, ...]:
        return (*self.resources, *self.additional_resources)

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from self._mode_problems()
        yield from self._resource_problems()
        images = {
            "devicePluginImages": self.device_plugin_images,
            "additionalDevicePluginImages": self.additional_device_plugin_images,
        }
        for where, listed in images.items():
            for at, image in enumerate(listed):
                for part, message in image.problems():
                    yield child(item(where, at), part), message
        labels = {
            "gpuNodeLabels": self.gpu_node_labels,
            "additionalGPUNodeLabels": self.additional_gpu_node_labels,
        }
        classes = {"deviceClasses": self.device_classes or ()}
        for where, keys in (labels | classes).items():
            for at, key in enumerate(keys):
                if not key:
                    yield item(where, at), "must not be empty"

    def _mode_problems(self) -> Iterator[tuple[str, str]]:
        if self.reserve_per_free_gpu is not None:
            for where, message in self.reserve_per_free_gpu.problems():
                yield child("reservePerFreeGPU", where), message
        if self.learn_reserve and self.reserve_per_free_gpu is None:
            yield "learnReserve", "needs reservePerFreeGPU, for nodes without GPU pods"
        if self.mode != "Filter":
            for field, given in (
                ("reservePerFreeGPU", self.reserve_per_free_gpu),
                ("backfillBelowPriority", self.backfill_below_priority),
            ):
                if given is not None:
                    yield field, "is for the mode Filter"

    def _resource_problems(self) -> Iterator[tuple[str, str]]:
        if not self.all_resources:
            yield "resources", "at least one is required"
        named = {"resources": self.resources, "additionalResources": self.additional_resources}
        for where, names in named.items():
            for at, name in enumerate(names):
                if not name or "*" in name[:-1] or name == "*":
                    yield item(where, at), 'must be a name, or the beginning of one and "*"'


def repository(image: str) -> str:
    """Returns registry and path of an image, without tag and digest; Docker Hub is spelled out."""
    head, slash, last = image.partition("@")[0].rpartition("/")
    path = head + slash + last.partition(":")[0]
    registry, _, rest = path.partition("/")
    is_host = rest and (registry == "localhost" or "." in registry or ":" in registry)
    if is_host and registry not in _HUBS:
        return path
    name = rest if is_host else path
    # A name without a folder is one of the official images.
    return name and f"{_HUB}/{name if '/' in name else f'library/{name}'}"
