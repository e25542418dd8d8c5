"""Observes groups of pods, and preemption for pods and groups, for the metrics."""

from __future__ import annotations

from mooring.framework.observe import POD, Clock, Observer
from mooring.framework.series import Counts, Histogram

from . import group_metric_table as table
from .metric_table import PREEMPTION_VICTIMS


class GroupObservations(Observer):
    """Counts and times of groups and of preemption."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._group_durations = Histogram(table.PODGROUP_ATTEMPT_DURATION)
        self._decision_durations = Histogram(table.PODGROUP_ALGORITHM_DURATION)
        self._ways = Counts(table.GANGS_PLACED)
        self._generated = Counts(table.GENERATED_PLACEMENTS)
        self._evaluated = Counts(table.PLACEMENT_EVALUATIONS)
        self._placement_durations = Histogram(table.PLACEMENT_DURATION)
        self._searches = Counts(table.WORKLOAD_PREEMPTIONS)
        self._search_durations = Histogram(table.PREEMPTION_EVALUATION)
        self._eviction_durations = Histogram(table.PREEMPTION_EXECUTION)
        self._victims = Histogram(PREEMPTION_VICTIMS)
        self._group_victims = Histogram(table.WORKLOAD_VICTIMS)
        self._disruptions = Histogram(table.WORKLOAD_DISRUPTIONS)
        self._violations = Counts(table.BUDGET_VIOLATIONS)

    # Groups

    def group_tried(self, profile: str, result: str, began: float) -> None:
        self._group_durations.observe((result, profile), self.clock() - began)

    def group_decided(self, began: float) -> None:
        self._decision_durations.observe((), self.clock() - began)

    def group_placed(self, profile: str, way: str) -> None:
        self._ways.add((profile, way))

    def domains_found(self, profile: str, count: int) -> None:
        self._generated.add((profile,), count)

    def domains_counted(self, profile: str, feasible: int, infeasible: int) -> None:
        for result, count in (("feasible", feasible), ("infeasible", infeasible)):
            if count:
                self._evaluated.add((result, profile), count)

    def domain_tried(self, profile: str, is_feasible: bool, began: float) -> None:
        result = "feasible" if is_feasible else "infeasible"
        self._placement_durations.observe((result, profile), self.clock() - began)

    # Preemption

    def victims_sought(self, preemptor: str, result: str, began: float) -> None:
        self._search_durations.observe((preemptor, result), self.clock() - began)
        if preemptor != POD:
            self._searches.add((result,))

    def victims_found(
        self, preemptor: str, victims: int, disruptions: int, violations: int
    ) -> None:
        (self._victims if preemptor == POD else self._group_victims).observe((), victims)
        if disruptions:
            self._disruptions.observe((preemptor,), disruptions)
        if violations:
            self._violations.add((preemptor,), violations)

    def victims_left(self, preemptor: str, result: str, seconds: float) -> None:
        self._eviction_durations.observe((preemptor, result), seconds)

    # Reading

    def group_histograms(self) -> tuple[Histogram, ...]:
        return (
            self._group_durations,
            self._decision_durations,
            self._placement_durations,
            self._victims,
            self._group_victims,
            self._disruptions,
            self._search_durations,
            self._eviction_durations,
        )

    def group_counts(self) -> tuple[Counts, ...]:
        attempts = Counts(
            table.PODGROUP_ATTEMPTS,
            ((labels, buckets.count) for labels, buckets in self._group_durations),
        )
        evaluated = Counts(table.PLACEMENT_EVALUATIONS, self._evaluated)
        for labels, buckets in self._placement_durations:
            evaluated.add(labels, buckets.count)
        return (
            attempts,
            self._ways,
            self._generated,
            evaluated,
            self._searches,
            self._violations,
        )
