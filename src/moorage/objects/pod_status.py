"""What is reported about pods: phase, conditions, and what the kubelet granted."""

from __future__ import annotations

from datetime import datetime

from .container import Container, Resources
from .held import has_sizes
from .meta import Condition, Wire
from .quantity import Quantity

#: The phases of pods that have run to their end.
FINISHED = ("Succeeded", "Failed")


class ContainerStatus(Wire, frozen=True):
    """What the kubelet granted a container."""

    name: str = ""
    resources: Resources | None = None
    allocated_resources: dict[str, Quantity] | None = None


class PodResourceClaimStatus(Wire, frozen=True):
    """The claim that was made from a template; a name of None means that none was needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ExtendedClaimStatus(Wire, frozen=True):
    """The claim that the scheduler made for the extended resources of a pod."""

    resource_claim_name: str = ""


class PodStatus(Wire, frozen=True):
    """What is reported about a pod."""

    phase: str = ""
    nominated_node_name: str = ""
    start_time: datetime | None = None
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    resources: Resources | None = None
    allocated_resources: dict[str, Quantity] | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] | None = None
    extended_resource_claim_status: ExtendedClaimStatus | None = None

    @property
    def resize_infeasible(self) -> bool:
        """Whether the kubelet has refused a resize, so that the spec is not what will run."""
        for each in self.conditions or ():
            if each.type == "PodResizePending" and each.reason == "Infeasible":
                return True
        return False

    @property
    def sizes(self) -> bool:
        """Whether something is reported by which the pod may count for other than its spec says."""
        running, init = self.container_statuses, self.init_container_statuses
        if self.resources is None and running is None and init is None:
            return self.resize_infeasible
        if self.resources is not None or has_sizes((running or ()) + (init or ())):
            return True
        return self.resize_infeasible

    def of(self, container: Container) -> ContainerStatus | None:
        """Returns the status of a container or sidecar."""
        known = self.init_container_statuses if container.is_sidecar else self.container_statuses
        return next((each for each in known or () if each.name == container.name), None)


NO_STATUS = PodStatus()
