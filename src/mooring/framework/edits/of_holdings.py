"""Edits of what a pod holds on its node: ports and volumes."""

from __future__ import annotations

from collections.abc import Callable

from mooring.objects.pod import ANY_ADDRESS, Container, Pod, PodSpec

from .edit import Edit, replace, with_spec


class DropVolume(Edit, frozen=True):
    """The pod has one volume less."""

    volume: str

    @property
    def told(self) -> str:
        return f"it had no volume {self.volume}"

    def applied(self, pod: Pod) -> Pod:
        kept = tuple(each for each in pod.spec.volumes or () if each.name != self.volume)
        return with_spec(pod, volumes=kept or None)


class DropHostPort(Edit, frozen=True):
    """The pod does not listen on a port of its node."""

    address: str
    protocol: str
    port: int

    @property
    def told(self) -> str:
        at = "" if self.address == ANY_ADDRESS else f"{self.address}:"
        return f"it did not take host port {at}{self.port}/{self.protocol}"

    def applied(self, pod: Pod) -> Pod:
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
