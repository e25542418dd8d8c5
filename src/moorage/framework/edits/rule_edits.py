"""Edits of the rules by which a pod chooses nodes and minds other pods."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from moorage.objects.node_selector import (
    NodeAffinityRules,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from moorage.objects.placement_rules import Affinity, PodAffinity, Taint, Toleration
from moorage.objects.pod import Pod

from .edit import Edit, with_spec

# Which nodes it chooses


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


class SetNodeSelector(Edit, frozen=True):
    """Replaces a label of the pod's node selector by a similar one that nodes have."""

    wrong_key: str
    key: str
    value: str

    @property
    def text(self) -> str:
        return f"it selected {self.key}={self.value}"

    def apply(self, pod: Pod) -> Pod:
        kept = {
            key: value
            for key, value in (pod.spec.node_selector or {}).items()
            if key != self.wrong_key
        }
        return with_spec(pod, node_selector={**kept, self.key: self.value})


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


# Which other pods it minds


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
