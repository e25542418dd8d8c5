"""Namespaces, and the objects that select or own pods."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, Self

import msgspec

from .meta import ObjectMeta, OwnerReference, Wire
from .pod import Pod
from .selector import LabelSelector, Selector, compile_selector, equality


class _WireNamespace(Wire, frozen=True):
    metadata: ObjectMeta


class Namespace(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace and its labels."""

    wire: ClassVar = _WireNamespace

    name: str
    labels: Mapping[str, str] = {}

    @classmethod
    def of(cls, wire: _WireNamespace) -> Namespace:
        return cls(name=wire.metadata.name, labels=wire.metadata.labels or {})


class _MapSelectorSpec(Wire, frozen=True):
    selector: dict[str, str] | None = None


class _LabelSelectorSpec(Wire, frozen=True):
    selector: LabelSelector | None = None


class _WireMapSelector(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _MapSelectorSpec = _MapSelectorSpec()


class _WireLabelSelector(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _LabelSelectorSpec = _LabelSelectorSpec()


class SelectingObject(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """An object that selects pods of its namespace. A selector of None selects none."""

    namespace: str
    name: str
    uid: str = ""
    selector: Selector | None = None

    @cached_property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class _LabelMapObject(SelectingObject, frozen=True):
    """One that selects by labels and their values."""

    wire: ClassVar = _WireMapSelector

    @classmethod
    def of(cls, wire: _WireMapSelector) -> Self:
        chosen = wire.spec.selector
        return cls(
            namespace=wire.metadata.namespace or "default",
            name=wire.metadata.name,
            uid=wire.metadata.uid,
            selector=equality(chosen) if chosen else None,
        )


class _LabelSelectorObject(SelectingObject, frozen=True):
    """One that selects by a label selector with expressions."""

    wire: ClassVar = _WireLabelSelector

    @classmethod
    def of(cls, wire: _WireLabelSelector) -> Self:
        return cls(
            namespace=wire.metadata.namespace or "default",
            name=wire.metadata.name,
            uid=wire.metadata.uid,
            selector=compile_selector(wire.spec.selector),
        )


class Service(_LabelMapObject, frozen=True):
    """A service; its selector says which pods belong together."""


class ReplicationController(_LabelMapObject, frozen=True):
    """A replication controller."""


class ReplicaSet(_LabelSelectorObject, frozen=True):
    """A replica set."""


class StatefulSet(_LabelSelectorObject, frozen=True):
    """A stateful set."""


class _BudgetStatus(Wire, frozen=True):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] | None = None


class _WireBudget(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _LabelSelectorSpec = _LabelSelectorSpec()
    status: _BudgetStatus = _BudgetStatus()


class PodDisruptionBudget(SelectingObject, frozen=True):
    """How many of the pods that it selects may be disrupted now."""

    wire: ClassVar = _WireBudget

    disruptions_allowed: int = 0
    #: Names of pods whose disruption is under way and counted already.
    disrupted: frozenset[str] = frozenset()

    @classmethod
    def of(cls, wire: _WireBudget) -> PodDisruptionBudget:
        return cls(
            namespace=wire.metadata.namespace or "default",
            name=wire.metadata.name,
            uid=wire.metadata.uid,
            selector=compile_selector(wire.spec.selector),
            disruptions_allowed=wire.status.disruptions_allowed,
            disrupted=frozenset(wire.status.disrupted_pods or ()),
        )

    def selects(self, pod: Pod) -> bool:
        """Whether the pod's namespace and labels are what the budget is about."""
        return (
            pod.namespace == self.namespace
            # An empty selector, and a pod without labels, match nothing here.
            and bool(self.selector)
            and bool(pod.labels)
            and self.selector is not None
            and self.selector.matches(pod.labels)
        )

    def covers(self, pod: Pod) -> bool:
        """Whether disrupting the pod would be counted by this budget."""
        return self.selects(pod) and pod.name not in self.disrupted


Controller = ReplicationController | ReplicaSet | StatefulSet


def owned_kind(owner: OwnerReference) -> type[Controller] | None:
    """Returns which of the controllers that select pods an owner reference means."""
    return _OWNERS.get((owner.api_version, owner.kind))


_OWNERS: dict[tuple[str, str], type[Controller]] = {
    ("v1", "ReplicationController"): ReplicationController,
    ("apps/v1", "ReplicaSet"): ReplicaSet,
    ("apps/v1", "StatefulSet"): StatefulSet,
}


_TEMPLATE_HASH = "pod-template-hash"


def owner_names(pod: Pod) -> dict[str, str]:
    """Returns the workloads that a pod belongs to, by kind.

    The Deployment of a ReplicaSet is known by the name: it ends in the hash that the pods carry.
    """
    if pod.owner is None:
        return {}
    names = {pod.owner.kind: pod.owner.name}
    suffix = f"-{pod.labels.get(_TEMPLATE_HASH, '')}"
    if pod.owner.kind == "ReplicaSet" and len(suffix) > 1 and pod.owner.name.endswith(suffix):
        names["Deployment"] = pod.owner.name.removesuffix(suffix)
    return names


def owner_text(pod: Pod) -> str:
    """Returns the workload of a pod as people call it, or the pod itself."""
    names = owner_names(pod)
    for kind in ("Deployment", *names):
        if kind in names:
            return f"{kind.lower()} {pod.namespace}/{names[kind]}"
    return f"pod {pod.key}"
