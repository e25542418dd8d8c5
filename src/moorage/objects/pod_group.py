"""Pod groups: pods that are placed together, as one object whichever API describes them.

There are three: `scheduling.k8s.io/v1beta1` (Kubernetes 1.37), `v1alpha2` (1.36), and
`scheduling.x-k8s.io/v1alpha1` of scheduler-plugins.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from .meta import Condition, ObjectMeta, Wire, seconds
from .pod import Pod
from .pod_spec import PodResourceClaim
from .quantity import Quantity
from .resources import PODS, Amounts, native

V1BETA1 = "scheduling.k8s.io/v1beta1"
V1ALPHA2 = "scheduling.k8s.io/v1alpha2"
COSCHEDULING = "scheduling.x-k8s.io/v1alpha1"

#: The label by which pods name their group of scheduler-plugins.
GROUP_LABEL = "scheduling.x-k8s.io/pod-group"

#: The preemption policies that there are.
EVICTS, NEVER_EVICTS = "PreemptLowerPriority", "Never"

#: Tells a group from all others: the API group, and its namespace and name.
GroupKey = tuple[str, str]

_NATIVE, _PLUGINS = V1BETA1.partition("/")[0], COSCHEDULING.partition("/")[0]

#: The API groups that describe groups of pods.
GROUP_APIS = (_NATIVE, _PLUGINS)


class _GangPolicy(Wire, frozen=True):
    min_count: int = 1


class _SchedulingPolicy(Wire, frozen=True):
    basic: dict[str, Any] | None = None
    gang: _GangPolicy | None = None


class _TopologyConstraint(Wire, frozen=True):
    key: str = ""


class _SchedulingConstraints(Wire, frozen=True):
    topology: tuple[_TopologyConstraint, ...] | None = None


class _GroupSpec(Wire, frozen=True):
    scheduling_policy: _SchedulingPolicy | None = None
    scheduling_constraints: _SchedulingConstraints | None = None
    #: A word in v1alpha2, a choice of members in v1beta1.
    disruption_mode: str | dict[str, Any] | None = None
    priority: int | None = None
    preemption_policy: str = ""
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    parent_composite_pod_group_name: str = ""
    #: Of scheduler-plugins.
    min_member: int | None = None
    min_resources: dict[str, Quantity] | None = None
    schedule_timeout_seconds: int | None = None


class _GroupStatus(Wire, frozen=True):
    conditions: tuple[Condition, ...] | None = None
    phase: str = ""


class _WirePodGroup(Wire, frozen=True):
    metadata: ObjectMeta
    api_version: str = ""
    spec: _GroupSpec = _GroupSpec()
    status: _GroupStatus = _GroupStatus()


class PodGroup(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Pods that are placed together: all of `min_count`, or none."""

    wire: ClassVar = _WirePodGroup

    namespace: str
    name: str
    uid: str = ""
    api_version: str = V1BETA1
    #: How many members must have a node; 1 where they need not be placed together.
    min_count: int = 1
    #: Whether members wait for each other. Others only share their turn.
    is_gang: bool = False
    #: None is that of each pod.
    priority: int | None = None
    #: Whether pods are evicted for it; None leaves that to its pods.
    preemption_policy: str | None = None
    #: The node label of which all members must find the same value; empty if they need not.
    topology_key: str = ""
    #: Claims that are reserved for it, for members that refer to them in the same words.
    resource_claims: tuple[PodResourceClaim, ...] = ()
    #: What must be free in the cluster before any member is tried.
    min_resources: Amounts = ()
    #: Whether evicting one member means to evict them all.
    is_evicted_whole: bool = False
    #: The composite group that it is a part of.
    parent: str = ""
    conditions: tuple[Condition, ...] = ()
    phase: str = ""
    created: float | None = None
    generation: int = 0
    resource_version: str = ""

    @classmethod
    def of(cls, wire: _WirePodGroup, api_version: str = "") -> PodGroup:
        """Reads a group; the items of a list leave out their version, which is given then."""
        meta, spec = wire.metadata, wire.spec
        version = api_version or wire.api_version or V1BETA1
        gang = spec.scheduling_policy.gang if spec.scheduling_policy is not None else None
        count = spec.min_member if gang is None else gang.min_count
        return cls(
            namespace=meta.namespace or "default",
            name=meta.name,
            uid=meta.uid or f"{meta.namespace or 'default'}/{meta.name}",
            api_version=version,
            min_count=max(1, count or 1),
            is_gang=count is not None,
            priority=spec.priority,
            preemption_policy=spec.preemption_policy or None,
            topology_key=_topology_key(spec),
            resource_claims=spec.resource_claims or (),
            min_resources=_min_resources(spec) if version == COSCHEDULING else (),
            is_evicted_whole=_is_evicted_whole(spec.disruption_mode),
            parent=spec.parent_composite_pod_group_name,
            conditions=wire.status.conditions or (),
            phase=wire.status.phase,
            created=seconds(meta.creation_timestamp),
            generation=meta.generation,
            resource_version=meta.resource_version,
        )

    @cached_property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @cached_property
    def group_key(self) -> GroupKey:
        return self.api_version.partition("/")[0], self.key

    @property
    def is_coscheduling(self) -> bool:
        """Whether scheduler-plugins defines it."""
        return self.api_version == COSCHEDULING

    def priority_beside(self, member: Pod) -> int:
        """Returns the group's priority, or that of a member if the group has none."""
        return member.priority if self.priority is None else self.priority

    def policy_beside(self, member: Pod) -> str:
        """Returns the group's preemption policy, or that of a member if the group has none."""
        return self.preemption_policy or member.spec.preemption_policy or EVICTS

    def asks_as(self, other: PodGroup) -> bool:
        """Whether another form of the group asks for the same, whatever its status is."""
        return self == replace(
            other,
            conditions=self.conditions,
            phase=self.phase,
            generation=self.generation,
            resource_version=self.resource_version,
        )

    @property
    def condition_type(self) -> str:
        """The condition that tells whether the group was placed; empty if it has none."""
        return _CONDITIONS.get(self.api_version, "")

    def condition(self) -> Condition | None:
        """Returns the condition that says whether the group was placed."""
        if not self.conditions:
            return None
        known = self.condition_type
        return next((each for each in self.conditions if known and each.type == known), None)


_CONDITIONS = {V1BETA1: "PodGroupInitiallyScheduled", V1ALPHA2: "PodGroupScheduled"}


class GroupLinks(msgspec.Struct, frozen=True):
    """Which of the ways in which pods name their group count, and whose priority does."""

    #: `spec.schedulingGroup`.
    native: bool = False
    #: The label of scheduler-plugins.
    coscheduling: bool = False
    #: Whether a group of Kubernetes has a priority of its own: 0 if it gives none.
    ranked_as_one: bool = False
    #: Whether it has a preemption policy of its own: to evict if it gives none.
    has_policy: bool = False

    def __bool__(self) -> bool:
        return self.native or self.coscheduling

    def rank(self, group: PodGroup) -> PodGroup:
        """Returns a group with the priority and the preemption policy that count."""
        priority = policy = None
        if not group.is_coscheduling:
            is_missing = group.priority is None and self.ranked_as_one
            priority = 0 if is_missing else group.priority
            policy = (group.preemption_policy or EVICTS) if self.has_policy else None
        if (priority, policy) == (group.priority, group.preemption_policy):
            return group
        return replace(group, priority=priority, preemption_policy=policy)

    def key(self, pod: Pod) -> GroupKey | None:
        """Returns the group that a pod belongs to."""
        if self.native and pod.group_name:
            return _NATIVE, f"{pod.namespace}/{pod.group_name}"
        if self.coscheduling:
            name = pod.labels.get(GROUP_LABEL)
            if name:
                return _PLUGINS, f"{pod.namespace}/{name}"
        return None


NO_LINKS = GroupLinks()


def _topology_key(spec: _GroupSpec) -> str:
    constraints = spec.scheduling_constraints
    keys = constraints.topology if constraints is not None else None
    return keys[0].key if keys else ""


def _min_resources(spec: _GroupSpec) -> Amounts:
    asked = spec.min_resources or {}
    return tuple((name, native(name, nanos)) for name, nanos in asked.items() if name != PODS)


def _is_evicted_whole(mode: str | dict[str, Any] | None) -> bool:
    return mode == "PodGroup" if isinstance(mode, str) else "all" in (mode or {})
