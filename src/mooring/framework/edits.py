"""Edits: changes of a pod or the cluster with which the pod would fit, as data.

An edit has a text for people, can be applied to a pod, and encodes to JSON. Plugins propose edits;
nothing here says which are worth making.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from mooring.objects.container import ANY_ADDRESS, Container, Resources
from mooring.objects.node_selector import (
    NodeAffinityRules,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from mooring.objects.placement_rules import Affinity, PodAffinity, Taint, Toleration
from mooring.objects.pod import Pod
from mooring.objects.pod_spec import PodSpec
from mooring.objects.quantity import NANOS_PER_MILLI, NANOS_PER_UNIT, Quantity
from mooring.objects.resources import CPU, format_amount

replace = msgspec.structs.replace


class Edit(
    msgspec.Struct,
    frozen=True,
    rename="camel",
    tag_field="edit",
    tag=lambda name: name[0].lower() + name[1:],
):
    """One change. `text` completes "would fit if ..."; `apply` returns the pod after it."""

    @property
    def text(self) -> str:
        raise NotImplementedError

    def apply(self, pod: Pod) -> Pod:
        """Returns the pod after the change; the same pod if the cluster changes instead."""
        return pod


def with_spec(pod: Pod, **fields: object) -> Pod:
    return replace(pod, spec=replace(pod.spec, **fields))


# How much the pod asks for


class LowerRequest(Edit, frozen=True):
    """Lowers the request of a resource, in millicores, bytes or pieces."""

    resource: str
    by: int

    @property
    def text(self) -> str:
        return f"it asked for {format_amount(self.resource, self.by)} less {self.resource}"

    def apply(self, pod: Pod) -> Pod:
        return replace(pod, spec=lower_request(pod.spec, self.resource, self.by))


class AskForDevice(Edit, frozen=True):
    """Requests one device."""

    resource: str

    @property
    def text(self) -> str:
        return f"it had a limit of 1 {self.resource}"

    def apply(self, pod: Pod) -> Pod:
        return replace(pod, spec=ask_for_one(pod.spec, self.resource))


def lower_request(spec: PodSpec, resource: str, by: int) -> PodSpec:
    """Returns a template like this with a lower request of a resource, in native units.

    The whole amount moves to the first container.
    """
    left = dict(spec.requests).get(resource, 0) - by
    nanos = Quantity(max(left, 0) * (NANOS_PER_MILLI if resource == CPU else NANOS_PER_UNIT))
    first, *others = (_drop_from(each, resource) for each in spec.containers)
    init = spec.init_containers
    return replace(
        spec,
        containers=(_ask(first, resource, nanos), *others),
        init_containers=init and tuple(_drop_from(each, resource) for each in init),
        resources=spec.resources and _drop_request(spec.resources, resource),
        overhead=_drop(spec.overhead, resource),
    )


def ask_for_one(spec: PodSpec, resource: str) -> PodSpec:
    """Returns a template like this whose first container requests one piece of a resource."""
    first, *others = spec.containers
    one = Quantity(NANOS_PER_UNIT)
    asking = _ask(first, resource, one)
    resources = asking.resources or Resources()
    limits = {**(resources.limits or {}), resource: one}
    limited = replace(asking, resources=replace(resources, limits=limits))
    return replace(spec, containers=(limited, *others))


def _ask(container: Container, resource: str, nanos: Quantity) -> Container:
    resources = container.resources or Resources()
    requests = {**(resources.requests or {}), resource: nanos}
    return replace(container, resources=replace(resources, requests=requests))


def _drop_from(container: Container, resource: str) -> Container:
    if container.resources is None:
        return container
    return replace(container, resources=_drop_request(container.resources, resource))


def _drop_request(resources: Resources, resource: str) -> Resources:
    return replace(resources, requests=_drop(resources.requests, resource))


def _drop(asked: Mapping[str, Quantity] | None, resource: str) -> dict[str, Quantity] | None:
    return {name: amount for name, amount in (asked or {}).items() if name != resource} or None


# By which rules it chooses nodes


class AddToleration(Edit, frozen=True):
    """Adds a toleration to the pod."""

    key: str
    value: str
    effect: str

    @classmethod
    def of(cls, taint: Taint) -> AddToleration:
        return cls(taint.key, taint.value, taint.effect)

    @property
    def text(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"it tolerated {self.key}{value}:{self.effect}"

    def apply(self, pod: Pod) -> Pod:
        more = msgspec.convert(
            {"key": self.key, "operator": "Equal", "value": self.value, "effect": self.effect},
            Toleration,
        )
        return with_spec(pod, tolerations=(*(pod.spec.tolerations or ()), more))


class DropNodeSelector(Edit, frozen=True):
    """Removes a label from the pod's node selector."""

    key: str
    value: str

    @property
    def text(self) -> str:
        return f"it did not select {self.key}={self.value}"

    def apply(self, pod: Pod) -> Pod:
        kept = {key: value for key, value in (pod.spec.node_selector or {}).items()}
        kept.pop(self.key, None)
        return with_spec(pod, node_selector=kept or None)


class DropNodeRequirement(Edit, frozen=True):
    """Removes one expression of a term of required node affinity."""

    term: int
    requirement: NodeSelectorRequirement
    is_field: bool = False

    @property
    def text(self) -> str:
        wanted = self.requirement
        values = f" [{' '.join(wanted.values)}]" if wanted.values else ""
        return f"it did not require {wanted.key} {wanted.operator}{values}"

    def apply(self, pod: Pod) -> Pod:
        rule = pod.spec.node_affinity.required
        if rule is None:
            return pod
        terms = list(rule.node_selector_terms)
        left = self._without(terms[self.term])
        if not left.match_expressions and not left.match_fields:
            # A term without expressions matches nothing; one that is left nothing to require
            # matches everything, and so does the rule.
            return _with_node_rule(pod, None)
        terms[self.term] = left
        return _with_node_rule(pod, NodeSelector(node_selector_terms=tuple(terms)))

    def _without(self, term: NodeSelectorTerm) -> NodeSelectorTerm:
        name = "match_fields" if self.is_field else "match_expressions"
        kept = tuple(each for each in getattr(term, name) or () if each != self.requirement)
        return replace(term, **{name: kept or None})


class DropNodeName(Edit, frozen=True):
    """Removes the node name that the pod asks for."""

    node: str

    @property
    def text(self) -> str:
        return f"it did not ask for node {self.node}"

    def apply(self, pod: Pod) -> Pod:
        return replace(pod, node_name="")


def _with_node_rule(pod: Pod, rule: NodeSelector | None) -> Pod:
    affinity = pod.spec.affinity or Affinity()
    chosen = replace(
        affinity.node_affinity or NodeAffinityRules(),
        required_during_scheduling_ignored_during_execution=rule,
    )
    return with_spec(pod, affinity=replace(affinity, node_affinity=chosen))


# By which rules it minds other pods


class DropPodTerm(Edit, frozen=True):
    """Removes one required term of inter-pod affinity; terms count from 0."""

    rule: str
    term: int
    topology_key: str

    @property
    def text(self) -> str:
        return f"it had no {self.rule} term {self.term} ({self.topology_key})"

    def apply(self, pod: Pod) -> Pod:
        affinity = pod.spec.affinity or Affinity()
        field = "pod_affinity" if self.rule == "podAffinity" else "pod_anti_affinity"
        written: PodAffinity = getattr(affinity, field) or PodAffinity()
        kept = tuple(each for at, each in enumerate(written.required) if at != self.term)
        less = replace(written, required_during_scheduling_ignored_during_execution=kept or None)
        return with_spec(pod, affinity=replace(affinity, **{field: less}))


class RaiseMaxSkew(Edit, frozen=True):
    """Raises the skew of a spread constraint; constraints count from 0."""

    constraint: int
    topology_key: str
    to: int

    @property
    def text(self) -> str:
        return f"its spread over {self.topology_key} allowed a skew of {self.to}"

    def apply(self, pod: Pod) -> Pod:
        constraints = list(pod.spec.topology_spread_constraints or ())
        constraints[self.constraint] = replace(constraints[self.constraint], max_skew=self.to)
        return with_spec(pod, topology_spread_constraints=tuple(constraints))


class SoftenSpread(Edit, frozen=True):
    """Turns a spread constraint into a preference; constraints count from 0."""

    constraint: int
    topology_key: str

    @property
    def text(self) -> str:
        return f"its spread over {self.topology_key} were a preference (ScheduleAnyway)"

    def apply(self, pod: Pod) -> Pod:
        constraints = list(pod.spec.topology_spread_constraints or ())
        softer = replace(constraints[self.constraint], when_unsatisfiable="ScheduleAnyway")
        constraints[self.constraint] = softer
        return with_spec(pod, topology_spread_constraints=tuple(constraints))


class SetCoexistPolicy(Edit, frozen=True):
    """Changes which pods the pod tolerates on its node."""

    policy: str

    @property
    def text(self) -> str:
        return f"its coexist policy were {self.policy}"

    def apply(self, pod: Pod) -> Pod:
        return with_spec(pod, coexist_policy=self.policy)


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


# The cluster around it


class Uncordon(Edit, frozen=True):
    """Lets these nodes take pods again."""

    nodes: tuple[str, ...]

    @property
    def text(self) -> str:
        return (
            f"{self.nodes[0]} were uncordoned" if len(self.nodes) == 1 else "they were uncordoned"
        )


class RecoverNodes(Edit, frozen=True):
    """Removes a taint that reports a problem from these nodes."""

    key: str
    value: str
    effect: str
    nodes: tuple[str, ...]

    @property
    def text(self) -> str:
        who = self.nodes[0] if len(self.nodes) == 1 else "they"
        return f"{who} {TROUBLES.get(self.key, f'had no taint {self.key}')}"


#: Taints that a controller puts on nodes and takes away again; to tolerate them is no remedy.
TROUBLES = {
    "node.kubernetes.io/not-ready": "were ready",
    "node.kubernetes.io/unreachable": "were reachable",
    "node.kubernetes.io/memory-pressure": "had no memory pressure",
    "node.kubernetes.io/disk-pressure": "had no disk pressure",
    "node.kubernetes.io/pid-pressure": "had no PID pressure",
    "node.kubernetes.io/network-unavailable": "had a network",
    "node.cloudprovider.kubernetes.io/uninitialized": "were initialized",
}


class PodAt(msgspec.Struct, frozen=True, rename="camel"):
    """A pod that runs on a node."""

    pod: str
    uid: str
    node: str
    priority: int = 0


def pod_at(pod: Pod, node: str) -> PodAt:
    return PodAt(pod.key, pod.uid, node, pod.priority)


class EvictPods(Edit, frozen=True):
    """Evicts these pods."""

    pods: tuple[PodAt, ...]

    @property
    def text(self) -> str:
        count = len(self.pods)
        return f"{self.pods[0].pod} were gone" if count == 1 else f"{count} pods were gone"


AnyEdit = (
    AddToleration
    | LowerRequest
    | DropNodeSelector
    | DropNodeRequirement
    | DropNodeName
    | DropPodTerm
    | RaiseMaxSkew
    | SoftenSpread
    | DropVolume
    | DropHostPort
    | SetCoexistPolicy
    | AskForDevice
    | SetAnnotation
    | SetLabel
    | RemoveGates
    | SetScheduler
    | RaisePriority
    | Uncordon
    | RecoverNodes
    | EvictPods
)


def apply_edits(pod: Pod, edits: tuple[AnyEdit, ...]) -> Pod:
    """Returns the pod after all changes of pods."""
    for edit in edits:
        pod = edit.apply(pod)
    return pod
