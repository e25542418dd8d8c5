"""Where a daemon runs, and how its pods are bound to go there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from mooring.embedded.wire import Json
from mooring.objects.meta import Wire
from mooring.objects.node_selector import (
    NAME_FIELD,
    NodeAffinity,
    NodeTerm,
    compile_term,
    named_nodes,
)
from mooring.objects.taint import Taint, Toleration, tolerated

from .items import NodeItem, PodItem

# A daemon stays on a node whatever becomes of the node.
_NODE_TROUBLE = ("not-ready", "unreachable")
_NODE_PRESSURE = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class _Affinity(Wire, frozen=True):
    node_affinity: NodeAffinity | None = None


class _Spec(Wire, frozen=True):
    affinity: _Affinity | None = None


class _Pod(Wire, frozen=True):
    spec: _Spec


_pod = msgspec.json.Decoder(_Pod)


@dataclass(frozen=True, slots=True)
class Daemon:
    """What of a template says which nodes it runs on."""

    node_name: str
    selector: Mapping[str, str]
    #: None where any node will do.
    terms: tuple[NodeTerm, ...] | None
    tolerations: tuple[Toleration, ...]

    @classmethod
    def of(cls, spec: Json) -> Daemon:
        affinity = msgspec.convert(
            (spec.get("affinity") or {}).get("nodeAffinity") or {}, NodeAffinity
        )
        terms = None
        if affinity.required is not None:
            read = [compile_term(each) for each in affinity.required.node_selector_terms]
            terms = tuple(each for each in read if isinstance(each, NodeTerm))
        written = [*(spec.get("tolerations") or ()), *added_tolerations(spec)]
        return cls(
            node_name=spec.get("nodeName", ""),
            selector=spec.get("nodeSelector") or {},
            terms=terms,
            tolerations=msgspec.convert(tuple(written), tuple[Toleration, ...]),
        )

    def runs_on(self, node: NodeItem) -> bool:
        """Whether a node should have a pod of this."""
        return self._chooses(node) and self._bears(node, ("NoSchedule", "NoExecute"))

    def stays_on(self, node: NodeItem) -> bool:
        """Whether a pod that is there already may stay."""
        return self._chooses(node) and self._bears(node, ("NoExecute",))

    def _chooses(self, node: NodeItem) -> bool:
        if self.node_name not in ("", node.name):
            return False
        if not self.selector.items() <= node.labels.items():
            return False
        terms = self.terms
        return terms is None or any(term.matches(node.labels, node.name) for term in terms)

    @staticmethod
    def place(spec: Json, node: str) -> None:
        """Has the scheduler put a pod on one node and nowhere else."""
        spec["tolerations"] = [*(spec.get("tolerations") or ()), *added_tolerations(spec)]
        affinity = dict(spec.get("affinity") or {})
        chosen = dict(affinity.get("nodeAffinity") or {})
        field = {"key": NAME_FIELD, "operator": "In", "values": [node]}
        # The terms are alternatives, and the node has passed one of them already.
        chosen[_REQUIRED] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        spec["affinity"] = {**affinity, "nodeAffinity": chosen}

    def _bears(self, node: NodeItem, effects: tuple[str, ...]) -> bool:
        repelling = [taint for taint in node.taints if taint.effect in effects]
        taints = msgspec.convert(repelling, list[Taint], from_attributes=True)
        return all(tolerated(taint, self.tolerations) for taint in taints)


def added_tolerations(spec: Json) -> list[Json]:
    """The taints that any daemon tolerates, those left out that its template tolerates itself."""
    added = [_toleration(name, "NoExecute") for name in _NODE_TROUBLE]
    added += [_toleration(name, "NoSchedule") for name in _NODE_PRESSURE]
    if spec.get("hostNetwork"):
        added.append(_toleration("network-unavailable", "NoSchedule"))
    own = spec.get("tolerations") or ()
    return [each for each in added if each not in own]


def target_of(pod: PodItem) -> str:
    """The node that a pod of a daemon is bound to go to."""
    affinity = _pod.decode(pod.entry.body).spec.affinity
    chosen = affinity.node_affinity if affinity else None
    names = named_nodes(chosen.required) if chosen and chosen.required else None
    return min(names or {""})


def _toleration(name: str, effect: str) -> Json:
    return {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
