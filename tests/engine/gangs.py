"""Groups of pods for tests, and an engine that places them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from moorage.config import FeatureGates
from moorage.config.kubernetes_versions import VERSIONS, KubernetesVersion
from moorage.objects.kinds import Object
from moorage.objects.pod import Pod
from moorage.objects.pod_group import V1BETA1, PodGroup
from moorage.testing.builders import pod
from moorage.testing.driver import Driver, drive

OLD, NEW = VERSIONS
#: The version that engines follow if a test names none.
followed = NEW
#: For tests, or whole modules, whose scenarios end alike in all versions.
IN_EACH_VERSION = pytest.mark.usefixtures("each_version")
GATES = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True, "Coscheduling": True}


def gang(name: str, min_count: int, **fields: Any) -> PodGroup:
    """A group of which so many members are placed together."""
    known = {"uid": f"pg.{name}", "is_gang": True, "api_version": V1BETA1, **fields}
    return PodGroup(namespace="default", name=name, min_count=min_count, **known)


def members(group: str, count: int, start: int = 0, **fields: Any) -> list[Pod]:
    """Pods of a group: `g-0`, `g-1`, ..."""
    spec = {**fields.pop("spec", {}), "schedulingGroup": {"podGroupName": group}}
    return [pod(f"{group}-{number}", spec=spec, **fields) for number in range(start, start + count)]


def drive_gangs(
    *objects: Object,
    topology: bool = True,
    version: KubernetesVersion | None = None,
    gates: Mapping[str, bool] | None = None,
    **config: Any,
) -> Driver:
    """Drives an engine that knows groups; without topology, their keys do not count."""
    switched = {**GATES, "TopologyAwareWorkloadScheduling": topology, **(gates or {})}
    parsed = FeatureGates.parse(switched, version=version or followed)
    return drive(*objects, gates=parsed, **config)
