"""Edits of the rules by which a pod minds others: affinity, spread, exclusive pods."""

from __future__ import annotations

from mooring.objects.affinity import Affinity, PodAffinity
from mooring.objects.pod import Pod

from .edit import Edit, replace, with_spec


class DropPodTerm(Edit, frozen=True):
    """The pod has one required term of inter-pod affinity less; terms count from 0."""

    rule: str
    term: int
    topology_key: str

    @property
    def told(self) -> str:
        return f"it had no {self.rule} term {self.term} ({self.topology_key})"

    def applied(self, pod: Pod) -> Pod:
        affinity = pod.spec.affinity or Affinity()
        field = "pod_affinity" if self.rule == "podAffinity" else "pod_anti_affinity"
        written: PodAffinity = getattr(affinity, field) or PodAffinity()
        kept = tuple(each for at, each in enumerate(written.required) if at != self.term)
        less = replace(written, required_during_scheduling_ignored_during_execution=kept or None)
        return with_spec(pod, affinity=replace(affinity, **{field: less}))


class RaiseMaxSkew(Edit, frozen=True):
    """A spread constraint of the pod allows a larger skew; constraints count from 0."""

    constraint: int
    topology_key: str
    to: int

    @property
    def told(self) -> str:
        return f"its spread over {self.topology_key} allowed a skew of {self.to}"

    def applied(self, pod: Pod) -> Pod:
        constraints = list(pod.spec.topology_spread_constraints or ())
        constraints[self.constraint] = replace(constraints[self.constraint], max_skew=self.to)
        return with_spec(pod, topology_spread_constraints=tuple(constraints))


class SoftenSpread(Edit, frozen=True):
    """A spread constraint of the pod becomes a preference; constraints count from 0."""

    constraint: int
    topology_key: str

    @property
    def told(self) -> str:
        return f"its spread over {self.topology_key} were a preference (ScheduleAnyway)"

    def applied(self, pod: Pod) -> Pod:
        constraints = list(pod.spec.topology_spread_constraints or ())
        softer = replace(constraints[self.constraint], when_unsatisfiable="ScheduleAnyway")
        constraints[self.constraint] = softer
        return with_spec(pod, topology_spread_constraints=tuple(constraints))


class SetCoexistPolicy(Edit, frozen=True):
    """The pod says otherwise which pods it tolerates on its node."""

    policy: str

    @property
    def told(self) -> str:
        return f"its coexist policy were {self.policy}"

    def applied(self, pod: Pod) -> Pod:
        return with_spec(pod, coexist_policy=self.policy)
