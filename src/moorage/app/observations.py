"""The observer of a running scheduler. It keeps figures about decisions for the metrics.

It is called for every pod, so it only stores numbers. They are evaluated hundreds at a time, or
when the metrics are read. Groups of pods and preemption have an observer of their own.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import cycle
from math import nan
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from moorage.framework.observe import POD, Clock, Observer
from moorage.framework.series import Counts, Histogram, Labels, Series

from . import metric_table as table
from .logs import make_log


class GroupObservations(Observer):
    """Counts and times of groups and of preemption."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._group_durations = Histogram(table.PODGROUP_ATTEMPT_DURATION)
        self._decision_durations = Histogram(table.PODGROUP_ALGORITHM_DURATION)
        self._generated = Counts(table.GENERATED_PLACEMENTS)
        self._evaluated: Counter[Labels] = Counter()
        self._placement_durations = Histogram(table.PLACEMENT_DURATION)
        self._searches = Counts(table.WORKLOAD_PREEMPTIONS)
        self._search_durations = Histogram(table.PREEMPTION_EVALUATION)
        self._eviction_durations = Histogram(table.PREEMPTION_EXECUTION)
        self._victims = Histogram(table.PREEMPTION_VICTIMS)
        self._group_victims = Histogram(table.WORKLOAD_VICTIMS)
        self._disruptions = Histogram(table.WORKLOAD_DISRUPTIONS)
        self._violations = Counts(table.BUDGET_VIOLATIONS)

    # Groups

    def group_tried(self, profile: str, result: str, began: float) -> None:
        self._group_durations.observe((result, profile), self.clock() - began)

    def group_decided(self, began: float) -> None:
        self._decision_durations.observe((), self.clock() - began)

    def domains_found(self, profile: str, count: int) -> None:
        self._generated.add((profile,), count)

    def domains_counted(self, profile: str, feasible: int, infeasible: int) -> None:
        for result, count in (("feasible", feasible), ("infeasible", infeasible)):
            if count:
                self._evaluated[result, profile] += count

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


LOG = make_log("moorage.metrics")

# In every tenth attempt each call of a plugin is timed, as often as kube-scheduler does it.
_TURNS = (True, *[False] * 9)

# From this many attempts on they are counted together.
_MANY_ATTEMPTS = 15

# Numbers that are kept until they are worked out; a step may add some more.
_MANY = 2_048


class Observations(GroupObservations):
    """Counts and times. A process makes one and gives it to its engine."""

    def __init__(self, clock: Clock = perf_counter) -> None:
        super().__init__(clock)
        self._turns = cycle(_TURNS)
        #: Plain numbers: as many objects would push what decisions need out of the CPU's cache.
        self._ranked: dict[str, array[float]] = {}
        #: Four numbers for each pod that was bound.
        self._scheduled: dict[str, array[float]] = {}
        self._evaluations: dict[tuple[str, str], Counter[str]] = {}
        self._after_flush = Counts(table.SCHEDULED_AFTER_FLUSH, [((), 0)])
        self._remedies_sought = Counts(table.PREEMPTION_ATTEMPTS, [((), 0)])
        self._attempts = Histogram(table.POD_SCHEDULING_ATTEMPTS)
        self._attempt_durations = Histogram(table.SCHEDULING_ATTEMPT_DURATION)
        self._algorithm_durations = Histogram(table.SCHEDULING_ALGORITHM_DURATION)
        self._sli_durations = Histogram(table.POD_SCHEDULING_SLI_DURATION)
        self._point_durations = Histogram(table.EXTENSION_POINT_DURATION)
        self._plugin_durations = Histogram(table.PLUGIN_EXECUTION_DURATION)
        self._hint_durations = Histogram(table.GET_NODE_HINT_DURATION)
        self._store_durations = Histogram(table.STORE_RESULTS_DURATION)
        self._permit_waits = Histogram(table.PERMIT_WAIT_DURATION)
        self._device_waits = Histogram(table.DEVICE_WAIT_DURATION)
        self._devices_waited = Counts(table.DEVICES_WAITED)
        self._wake_durations = Histogram(table.QUEUEING_HINT_DURATION)
        self._event_durations = Histogram(table.EVENT_HANDLING_DURATION)

    # Attempts

    def attempt_began(self) -> float:
        self.is_sampling = next(self._turns)
        self.began = began = self.clock()
        return began

    def batch_durations(self, profile: str) -> array[float]:
        return self._ranked.setdefault(profile, array("d"))

    def decision_made(self, profile: str, served: bool, found: bool) -> None:
        took = self.clock() - self.began
        self._hint_durations.observe(("hint" if served else "no_hint", profile), took)
        if found:
            self._algorithm_durations.observe((), took)

    def step_ended(self) -> None:
        for durations in self._ranked.values():
            if len(durations) > _MANY:
                self._work_out()
                return

    def attempt_failed(self, began: float) -> None:
        self._algorithm_durations.observe((), self.clock() - began)

    def pod_failed(self, profile: str, result: str, began: float) -> None:
        self._attempt_durations.observe((result, profile), self.clock() - began)

    def pod_scheduled(
        self, profile: str, began: float, attempts: int, waited: float | None
    ) -> None:
        kept = self._scheduled.get(profile)
        if kept is None:
            kept = self._scheduled[profile] = array("d")
        kept.extend((began, self.clock(), attempts, nan if waited is None else waited))
        if len(kept) > _MANY:
            self._work_out()

    def flush_helped(self) -> None:
        self._after_flush.add()

    # Extension points

    def point_ran(self, point: str, status: str, profile: str, began: float) -> None:
        self._point_durations.observe((point, status, profile), self.clock() - began)

    def plugin_asked(self, point: str, plugin: str, status: str, began: float) -> None:
        self._plugin_durations.observe((plugin, point, status), self.clock() - began)

    def plugins_evaluated(self, profile: str, point: str, plugins: Iterable[str]) -> None:
        known = self._evaluations.get((point, profile))
        if known is None:
            known = self._evaluations[point, profile] = Counter()
        # Of a mapping, the values would be added up.
        known.update(iter(plugins))

    def answers_stored(self, profile: str, began: float) -> None:
        self._store_durations.observe((profile,), self.clock() - began)

    # What follows

    def permit_waited(self, status: str, seconds: float) -> None:
        self._permit_waits.observe((status,), seconds)

    def devices_waited(
        self, profile: str, drivers: Iterable[str], status: str, seconds: float
    ) -> None:
        for driver in drivers:
            self._devices_waited.add((profile, driver, status))
            self._device_waits.observe((profile, driver, status), seconds)

    def remedy_sought(self) -> None:
        self._remedies_sought.add()

    # Events

    def hint_answered(self, plugin: str, event: str, hint: str, began: float) -> None:
        self._wake_durations.observe((plugin, event, hint), self.clock() - began)

    def hint_broke(self, plugin: str, pod: str, event: str, error: BaseException) -> None:
        LOG.warning("Queueing hint failed", plugin=plugin, pod=pod, event=event, error=error)

    def event_handled(self, event: str, began: float) -> None:
        self._event_durations.observe((event,), self.clock() - began)

    # Reading

    def series(self) -> tuple[Series, ...]:
        """Returns all metrics that are observed."""
        self._work_out()
        kept = [each for each in vars(self).values() if isinstance(each, Counts | Histogram)]
        # Every attempt has a duration, so that these need not be counted apart.
        attempts = Counts(table.SCHEDULE_ATTEMPTS, _count(self._attempt_durations))
        groups = Counts(table.PODGROUP_ATTEMPTS, _count(self._group_durations))
        placements = Counts(table.PLACEMENT_EVALUATIONS, self._evaluated.items())
        for labels, count in _count(self._placement_durations):
            placements.add(labels, count)
        evaluations = Counts(
            table.PLUGIN_EVALUATION,
            (
                ((plugin, point, profile), count)
                for (point, profile), counted in self._evaluations.items()
                for plugin, count in counted.items()
            ),
        )
        return (*kept, attempts, groups, placements, evaluations)

    def _work_out(self) -> None:
        for profile, durations in self._ranked.items():
            took = _drain(durations)
            self._hint_durations.observe_all(("hint", profile), took)
            self._algorithm_durations.observe_all((), took)
        for profile, kept in self._scheduled.items():
            began, ended, attempts, waited = _drain(kept).reshape(-1, 4).T
            self._attempt_durations.observe_all(("scheduled", profile), ended - began)
            self._attempts.observe_all((), attempts)
            self._work_out_waits(attempts, waited)

    def _work_out_waits(self, attempts: NDArray[np.float64], waited: NDArray[np.float64]) -> None:
        known = ~np.isnan(waited)
        counted = np.minimum(attempts, _MANY_ATTEMPTS).astype(np.int64)
        for number in np.unique(counted).tolist():
            label = f"{number}+" if number == _MANY_ATTEMPTS else str(number)
            self._sli_durations.observe_all((label,), waited[known & (counted == number)])


def _drain(numbers: array[float]) -> NDArray[np.float64]:
    """Takes all numbers out of an array."""
    taken = np.array(numbers)
    del numbers[:]
    return taken


def _count(histogram: Histogram) -> Iterator[tuple[Labels, int]]:
    for labels, buckets in histogram:
        yield labels, buckets.count
