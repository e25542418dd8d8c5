"""Containers: their images, requests and ports."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from .meta import Wire
from .quantity import Quantity

ANY_ADDRESS = "0.0.0.0"

#: Where a pod listens on its node: address, protocol, port.
HostPort = tuple[str, str, int]


class Resources(Wire, frozen=True):
    """Requests and limits of a container or a pod."""

    requests: dict[str, Quantity] | None = None
    limits: dict[str, Quantity] | None = None


class ContainerPort(Wire, frozen=True):
    """A port that a container opens, perhaps on the node itself."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""


class RestartRule(Wire, frozen=True):
    """What happens when a container exits in some way."""

    action: str = ""


class Container(Wire, frozen=True):
    """A container; an init container that always restarts is a sidecar."""

    name: str = ""
    image: str = ""
    resources: Resources | None = None
    ports: tuple[ContainerPort, ...] | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[RestartRule, ...] | None = None

    @property
    def is_sidecar(self) -> bool:
        return self.restart_policy == "Always"

    @property
    def requests(self) -> Mapping[str, int]:
        return (self.resources.requests if self.resources else None) or {}


def add_tag(image: str) -> str:
    """Returns the name of an image with a tag, even if that goes without saying."""
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"


def ports_conflict(one: HostPort, other: HostPort) -> bool:
    """Whether two pods with these ports cannot run on one node."""
    addresses = {one[0], other[0]}
    return one[1:] == other[1:] and (len(addresses) == 1 or ANY_ADDRESS in addresses)
