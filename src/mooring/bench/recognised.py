"""Operations that are only recognised: they need what Mooring does not have."""

from __future__ import annotations

from collections.abc import Mapping

from .operation import BaseOperation, Counted, Templated

DYNAMIC_RESOURCES, POD_GROUPS = "dynamic resources", "pod groups"


class CreateResourceDriver(BaseOperation, frozen=True, kw_only=True, tag="createResourceDriver"):
    """Publishes devices."""

    driver_name: str
    max_claims_per_node: int = 0
    max_claims_per_node_param: str = ""
    nodes: str = ""


class CreateResourceClaims(Counted, frozen=True, kw_only=True, tag="createResourceClaims"):
    """Adds claims to devices."""

    namespace: str
    template_path: str


class AllocResourceClaims(BaseOperation, frozen=True, kw_only=True, tag="allocResourceClaims"):
    """Hands out devices at random."""

    namespace: str = ""


class CreatePodGroups(Templated, frozen=True, kw_only=True, tag="createPodGroups"):
    """Adds pod groups."""

    namespace: str
    template_path: str


class WaitForPodGroups(Counted, frozen=True, kw_only=True, tag="waitForPodGroups"):
    """Waits for pod groups to be known."""

    namespace: str


#: What each of them needs.
NEEDS: Mapping[type[BaseOperation], str] = {
    CreateResourceDriver: DYNAMIC_RESOURCES,
    CreateResourceClaims: DYNAMIC_RESOURCES,
    AllocResourceClaims: DYNAMIC_RESOURCES,
    CreatePodGroups: POD_GROUPS,
    WaitForPodGroups: POD_GROUPS,
}
