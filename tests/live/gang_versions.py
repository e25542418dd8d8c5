"""How the versions of Kubernetes differ in groups of pods, for tests that run on any of them."""

from __future__ import annotations

from typing import Any

from .control_plane import minor_version

_IS_BETA = minor_version() >= 37

#: The API in which groups are served, once it is switched on.
GANG_API = "scheduling.k8s.io/v1beta1" if _IS_BETA else "scheduling.k8s.io/v1alpha2"

#: The feature gates that an API server needs for it, for topologies, for claims of groups, and for
#: Jobs that make groups.
GANG_GATES = (
    "GenericWorkload",
    "TopologyAwareWorkloadScheduling",
    "DRAWorkloadResourceClaims",
    "WorkloadWithJob",
    *(() if _IS_BETA else ("GangScheduling",)),
)

#: The condition that tells whether a group was placed.
GANG_CONDITION = "PodGroupInitiallyScheduled" if _IS_BETA else "PodGroupScheduled"


def gang_job(name: str, size: int, template: dict[str, Any]) -> dict[str, Any]:
    """A Job whose controller makes a gang of all its pods."""
    spec = {
        "parallelism": size,
        "completions": size,
        "completionMode": "Indexed",
        "template": template,
    }
    if _IS_BETA:
        spec["scheduling"] = {"schedulingPolicy": {"gang": {}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": spec,
    }
