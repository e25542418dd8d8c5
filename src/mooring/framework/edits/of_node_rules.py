"""Edits of the rules by which a pod chooses nodes: taints, labels, names."""

from __future__ import annotations

import msgspec

from mooring.objects.affinity import Affinity
from mooring.objects.node_selector import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from mooring.objects.pod import Pod
from mooring.objects.taint import Taint, Toleration

from .edit import Edit, replace, with_spec


class AddToleration(Edit, frozen=True):
    """The pod tolerates one more taint."""

    key: str
    value: str
    effect: str

    @classmethod
    def of(cls, taint: Taint) -> AddToleration:
        return cls(taint.key, taint.value, taint.effect)

    @property
    def told(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"it tolerated {self.key}{value}:{self.effect}"

    def applied(self, pod: Pod) -> Pod:
        more = msgspec.convert(
            {"key": self.key, "operator": "Equal", "value": self.value, "effect": self.effect},
            Toleration,
        )
        return with_spec(pod, tolerations=(*(pod.spec.tolerations or ()), more))


class DropNodeSelector(Edit, frozen=True):
    """The pod no longer selects nodes by a label."""

    key: str
    value: str

    @property
    def told(self) -> str:
        return f"it did not select {self.key}={self.value}"

    def applied(self, pod: Pod) -> Pod:
        kept = {key: value for key, value in (pod.spec.node_selector or {}).items()}
        kept.pop(self.key, None)
        return with_spec(pod, node_selector=kept or None)


class DropNodeRequirement(Edit, frozen=True):
    """One expression of a term of required node affinity is taken to hold everywhere."""

    term: int
    requirement: NodeSelectorRequirement
    is_field: bool = False

    @property
    def told(self) -> str:
        wanted = self.requirement
        values = f" [{' '.join(wanted.values)}]" if wanted.values else ""
        return f"it did not require {wanted.key} {wanted.operator}{values}"

    def applied(self, pod: Pod) -> Pod:
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
    """The pod no longer asks for one node by name."""

    node: str

    @property
    def told(self) -> str:
        return f"it did not ask for node {self.node}"

    def applied(self, pod: Pod) -> Pod:
        return replace(pod, node_name="")


def _with_node_rule(pod: Pod, rule: NodeSelector | None) -> Pod:
    affinity = pod.spec.affinity or Affinity()
    chosen = replace(
        affinity.node_affinity or NodeAffinity(),
        required_during_scheduling_ignored_during_execution=rule,
    )
    return with_spec(pod, affinity=replace(affinity, node_affinity=chosen))
