"""Edits of what a pod holds on its node, of its labels, and of who schedules it and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from moorage.objects.container import ANY_ADDRESS, Container
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodSpec

from .edit import Edit, with_spec

# What it holds on its node


class DropVolume(Edit, frozen=True):
    """Removes one volume from the pod."""

    volume: str

    @property
    def text(self) -> str:
        return f"it had no volume {self.volume}"

    def apply(self, pod: Pod) -> Pod:
        kept = tuple(each for each in pod.spec.volumes or () if each.name != self.volume)
        return with_spec(pod, volumes=kept or None)


class DropHostPort(Edit, frozen=True):
    """Removes a host port from the pod."""

    address: str
    protocol: str
    port: int

    @property
    def text(self) -> str:
        at = "" if self.address == ANY_ADDRESS else f"{self.address}:"
        return f"it did not take host port {at}{self.port}/{self.protocol}"

    def apply(self, pod: Pod) -> Pod:
        return _with_containers(pod, self._without)

    def _without(self, container: Container) -> Container:
        wanted = self.address, self.protocol, self.port
        kept = tuple(
            port
            for port in container.ports or ()
            if (port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port) != wanted
        )
        return replace(container, ports=kept or None)


def _with_containers(pod: Pod, change: Callable[[Container], Container]) -> Pod:
    spec: PodSpec = pod.spec
    init = spec.init_containers
    return with_spec(
        pod,
        containers=tuple(map(change, spec.containers)),
        init_containers=None if init is None else tuple(map(change, init)),
    )


# Its labels and annotations


class SetLabel(Edit, frozen=True):
    """Sets a label of the pod; None removes it."""

    key: str
    value: str | None

    @property
    def text(self) -> str:
        if self.value is None:
            return f"it had no label {self.key}"
        return f"its label {self.key} were {self.value}"

    def apply(self, pod: Pod) -> Pod:
        return replace(pod, labels=_put(pod.labels, self.key, self.value))


class SetAnnotation(Edit, frozen=True):
    """Sets an annotation of the pod; None removes it."""

    key: str
    value: str | None

    @property
    def text(self) -> str:
        if self.value is None:
            return f"it had no annotation {self.key}"
        return f"its annotation {self.key} were {self.value}"

    def apply(self, pod: Pod) -> Pod:
        return replace(pod, annotations=_put(pod.annotations, self.key, self.value))


def _put(held: Mapping[str, str], key: str, value: str | None) -> dict[str, str]:
    kept = {each: text for each, text in held.items() if each != key}
    return kept if value is None else {**kept, key: value}


# Who schedules it, when, and how important it is


class RemoveGates(Edit, frozen=True):
    """Removes all scheduling gates from the pod."""

    gates: tuple[str, ...]

    @property
    def text(self) -> str:
        named = ", ".join(self.gates)
        return f"its scheduling gate{'s' if len(self.gates) > 1 else ''} {named} were removed"

    def apply(self, pod: Pod) -> Pod:
        return with_spec(pod, scheduling_gates=None)


class SetScheduler(Edit, frozen=True):
    """Sets another scheduler name."""

    name: str

    @property
    def text(self) -> str:
        return f"its scheduler name were {self.name}"

    def apply(self, pod: Pod) -> Pod:
        return with_spec(pod, scheduler_name=self.name)


class RaisePriority(Edit, frozen=True):
    """Raises the priority of the pod."""

    to: int

    @property
    def text(self) -> str:
        return f"its priority were {self.to}"

    def apply(self, pod: Pod) -> Pod:
        return with_spec(pod, priority=self.to, preemption_policy="PreemptLowerPriority")
