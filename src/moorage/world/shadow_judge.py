"""Judges another scheduler: what Moorage would have decided for each pod that it places.

After each pod the real cluster counts, so that one difference does not cause others. Nothing is
assumed and nothing is written.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from moorage.engine import Engine, budget
from moorage.engine.cycle import EVERY_NODE, decide, first_best
from moorage.engine.events import Applied, Event, Removed
from moorage.engine.fence import describe as describe_error
from moorage.framework.attempt import Failed, Scored
from moorage.framework.profile import Profile
from moorage.objects.meta import failure_to_place
from moorage.objects.pod import Pod

from .shadow_report import Agreement, JudgedPlacement, ShadowReport

# The differences that are kept whole; all of them are counted.
_MOST_KEPT = 1_000


@dataclass(slots=True)
class Shadow:
    """Follows the events of a cluster in an engine, and judges another scheduler's placements."""

    engine: Engine
    #: Seconds that pass while deciding; the time of events is given with them.
    clock: Callable[[], float]
    #: Hears of each placement as it is judged.
    on_judged: Callable[[JudgedPlacement], None] = lambda judged: None
    counts: Counter[Agreement] = field(default_factory=Counter)
    differences: deque[JudgedPlacement] = field(default_factory=lambda: deque(maxlen=_MOST_KEPT))
    placeable: dict[str, str] = field(default_factory=dict)
    our_seconds: float = 0.0
    their_seconds: float = 0.0

    def handle(self, event: Event, now: float) -> None:
        """Takes in an event; a placed pod is judged before it counts.

        `now` is in seconds since the epoch, as the times in objects are.
        """
        self.engine.cluster.tell_time(now)
        match event:
            case Applied(Pod() as pod):
                self._take_pod(event, pod, now)
            case Removed(Pod() as pod):
                self.placeable.pop(pod.key, None)
                self.engine.handle(event, now)
            case _:
                self.engine.handle(event, now)

    def _take_pod(self, event: Applied, pod: Pod, now: float) -> None:
        if pod.node_name and pod.uid in self.engine.pending_pods:
            self._judge(pod, now)
        self.engine.handle(event, now)
        if pod.uid in self.engine.pending_pods:
            self._look_at_waiting(pod)

    def report(self) -> ShadowReport:
        """Returns a report of everything seen so far."""
        placed, counts = self.counts.total(), self.counts.items()
        best = sum(count for agreement, count in counts if agreement.is_same)
        return ShadowReport(
            placed,
            {agreement.value: self.counts[agreement] for agreement in Agreement},
            100.0 * best / placed if placed else None,
            dict(self.placeable),
            self.our_seconds / max(placed, 1),
            self.their_seconds / max(placed, 1),
            tuple(self.differences),
        )

    def _judge(self, bound: Pod, now: float) -> None:
        pod = self.engine.pending_pods[bound.uid]
        began = self.clock()
        outcome = self._decide(pod)
        self.our_seconds += self.clock() - began
        if pod.created is not None:
            self.their_seconds += max(now - pod.created, 0.0)
        found = self._compare(pod, bound.node_name, outcome)
        self.on_judged(found)
        self.counts[Agreement(found.agreement)] += 1
        if not Agreement(found.agreement).is_same:
            self.differences.append(found)
        self.placeable.pop(bound.key, None)

    def _decide(self, pod: Pod) -> Scored | str | None:
        """Returns feasible rows and their totals; None if there are none, a text if it fails."""
        profile = self.engine.profiles.get(pod.spec.scheduler_name)
        if profile is None:
            return None
        if too_costly := budget.excess(pod, self.engine.cluster):
            return too_costly
        try:
            return self._score(profile, pod)
        except Exception as error:  # noqa: BLE001 - other pods are judged all the same
            return describe_error(error)

    def _score(self, profile: Profile, pod: Pod) -> Scored | None:
        nodes = self.engine.cluster.nodes
        known = self.engine.classes[profile.name].find_feasible(pod, EVERY_NODE, again=True)
        if known is not None:
            kept, rows = known
            return kept.scored(pod, rows) if len(rows) else None
        outcome = decide(profile, pod, nodes)
        if isinstance(outcome, Failed):
            return None
        only = Scored(np.array([outcome.row], np.intp), {}, np.zeros(1, np.int64))
        return outcome.scored or only

    def _compare(self, pod: Pod, theirs: str, outcome: Scored | str | None) -> JudgedPlacement:
        if not isinstance(outcome, Scored):
            agreement = Agreement.ERROR if outcome else Agreement.NOWHERE
            return JudgedPlacement(pod.key, agreement, theirs, reason=outcome or "")
        nodes = self.engine.cluster.nodes
        best = first_best(outcome, nodes, 0)
        ours, row = nodes.name(best), nodes.row(theirs)
        if row == best:
            return JudgedPlacement(pod.key, Agreement.SAME, theirs, ours)
        found = np.flatnonzero(outcome.rows == row)
        if row is None or not len(found):
            return JudgedPlacement(pod.key, Agreement.REFUSED, theirs, ours)
        mine, other = int(outcome.totals.max()), int(outcome.totals[found[0]])
        agreement = Agreement.EQUAL if mine == other else Agreement.LOWER
        return JudgedPlacement(pod.key, agreement, theirs, ours, other, mine)

    def _look_at_waiting(self, pod: Pod) -> None:
        """Notes a pod that the other scheduler could not place but Moorage could."""
        if failure_to_place(pod.status.conditions) is None:
            return
        outcome, nodes = self._decide(pod), self.engine.cluster.nodes
        if isinstance(outcome, Scored):
            self.placeable[pod.key] = nodes.name(first_best(outcome, nodes, 0))
        else:
            self.placeable.pop(pod.key, None)
