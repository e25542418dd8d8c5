"""Topology spread constraints, as written."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

from .meta import Wire
from .selector import LabelSelector, Selector, compile_selector

InclusionPolicy = Literal["Honor", "Ignore"]


class TopologySpreadConstraint(Wire, frozen=True, dict=True):
    """How evenly matching pods are spread over the values of a topology key."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: InclusionPolicy | None = None
    node_taints_policy: InclusionPolicy | None = None
    match_label_keys: tuple[str, ...] | None = None

    @cached_property
    def selector(self) -> Selector | None:
        """The compiled selector; raises SelectorError where it cannot be read."""
        return compile_selector(self.label_selector)

    @property
    def label_keys(self) -> Iterator[str]:
        """The labels that the constraint reads of its own pod and of others."""
        selector = self.label_selector
        if selector is not None:
            yield from selector.match_labels or ()
            yield from (each.key for each in selector.match_expressions or ())
        yield from self.match_label_keys or ()
