"""Beside another scheduler: what Mooring would have decided for each pod that the other places.

The truth of the cluster counts after each pod, so that one difference does not breed others.
Nothing is assumed and nothing is written.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from mooring.engine import Engine, budget
from mooring.engine.cycle import Found, decide
from mooring.engine.events import Applied, Event, Removed
from mooring.engine.explain.explanation import ExplanationPart
from mooring.engine.fence import describe as describe_error
from mooring.framework.attempt import Failed
from mooring.objects.meta import failure_to_place
from mooring.objects.pod import Pod

# Another scheduler binds a pod some time after it decided, and in any order: a pod that is bound
# earlier may have been decided later. The state in which it decided is looked for among so many
# pods and seconds before the binding, and so many pods after it.
_RECENT_SECONDS = 5.0
_MOST_RECENT = 32
_MOST_LATER = 16
# The differences that are kept whole; all of them are counted.
_MOST_KEPT = 1_000


class Agreement(StrEnum):
    """How a placement of the other scheduler compares with what Mooring would have done."""

    SAME = "the same node"
    EQUAL = "a node that scores the same"
    LOWER = "a node that scores less"
    MOVED = "best in the state in which it was decided"
    REFUSED = "a node that Mooring refuses"
    NOWHERE = "Mooring finds no node"
    ERROR = "Mooring cannot decide"

    @property
    def is_best(self) -> bool:
        """Whether both chose from the same best nodes, of the state in which they decided."""
        return self in (Agreement.SAME, Agreement.EQUAL, Agreement.MOVED)


class JudgedPlacement(ExplanationPart, frozen=True):
    """A placement of the other scheduler, and what Mooring would have done."""

    pod: str
    agreement: str
    theirs: str
    ours: str = ""
    #: What the nodes score here; 0 where there is nothing to choose.
    their_score: int = 0
    our_score: int = 0
    reason: str = ""


class ShadowReport(ExplanationPart, frozen=True):
    """What was seen so far."""

    placed: int
    by_agreement: dict[str, int]
    #: Percent of placements on one of the nodes that are best here, too.
    agreement: float
    #: Pods that the other scheduler leaves pending and Mooring would place, by key, with the node.
    placeable: dict[str, str]
    #: Seconds to decide a pod here, and from a pod's creation until it was bound there, on average.
    our_seconds: float
    their_seconds: float
    differences: tuple[JudgedPlacement, ...]


@dataclass(slots=True)
class Shadow:
    """Follows events of a cluster in an engine, and judges the placements of another scheduler."""

    engine: Engine
    #: Seconds that pass while deciding; the time of events is given with them.
    clock: Callable[[], float]
    #: Whether the state in which the other decided is looked for where it does not seem to be best.
    looks_back: bool = True
    #: Hears of each placement as it is judged at first, by the state in which it is seen.
    on_judged: Callable[[JudgedPlacement], None] = lambda judged: None
    counts: Counter[Agreement] = field(default_factory=Counter)
    differences: deque[JudgedPlacement] = field(default_factory=lambda: deque(maxlen=_MOST_KEPT))
    placeable: dict[str, str] = field(default_factory=dict)
    our_seconds: float = 0.0
    their_seconds: float = 0.0
    _recent: deque[tuple[float, Pod]] = field(default_factory=deque)
    #: Placements that are not understood yet: pods that come next may explain them.
    _open: deque[_OpenCase] = field(default_factory=lambda: deque(maxlen=_MOST_LATER))

    def handle(self, event: Event, now: float) -> None:
        """Takes in what happened; a pod that was placed is judged before it counts.

        `now` is in seconds since the epoch, as the times in objects are.
        """
        self.engine.cluster.tell_time(now)
        pod = event.object if isinstance(event, Applied | Removed) else None
        if isinstance(pod, Pod) and isinstance(event, Applied):
            if pod.node_name and pod.uid in self.engine.pending_pods:
                self._judge(pod, now)
            is_new = pod.uid not in self.engine.cluster.pods
            self.engine.handle(event, now)
            if not pod.node_name:
                self._look_at_waiting(pod)
            elif is_new:
                self._look_again(now)
            return
        if isinstance(pod, Pod):
            self.placeable.pop(pod.key, None)
        self.engine.handle(event, now)

    def report(self) -> ShadowReport:
        """What was seen so far."""
        placed = self.counts.total()
        best = sum(count for agreement, count in self.counts.items() if agreement.is_best)
        return ShadowReport(
            placed,
            {agreement.value: self.counts[agreement] for agreement in Agreement},
            100.0 * best / placed if placed else 100.0,
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
        if self.looks_back and not _agrees(found):
            found = self._look_back(pod, bound, found, now)
        self.counts[Agreement(found.agreement)] += 1
        if not _agrees(found):
            self.differences.append(found)
        self.placeable.pop(bound.key, None)
        self._recent.append((now, bound))
        while self._recent and (
            len(self._recent) > _MOST_RECENT or now - self._recent[0][0] > _RECENT_SECONDS
        ):
            self._recent.popleft()

    def _look_back(
        self, pod: Pod, bound: Pod, found: JudgedPlacement, now: float
    ) -> JudgedPlacement:
        """Looks for the state in which the other decided; what comes next may tell, too."""
        if self._was_best(pod, bound.node_name, now):
            return _replace_agreement(found, Agreement.MOVED)
        self._open.append(_OpenCase(pod, bound, found, now + _RECENT_SECONDS))
        return found

    def _decide(self, pod: Pod) -> Found | Failed | str | None:
        """The decision as things are; a text if it cannot be made, None for others' pods."""
        profile = self.engine.profiles.get(pod.spec.scheduler_name)
        if profile is None:
            return None
        if too_costly := budget.excess(pod, self.engine.cluster):
            return too_costly
        try:
            return decide(profile, pod, self.engine.cluster.nodes)
        except Exception as error:  # noqa: BLE001 - other pods are judged all the same
            return describe_error(error)

    def _compare(
        self, pod: Pod, theirs: str, outcome: Found | Failed | str | None
    ) -> JudgedPlacement:
        nodes = self.engine.cluster.nodes
        row = nodes.row(theirs)
        if not isinstance(outcome, Found):
            text = outcome if isinstance(outcome, str) else ""
            agreement = Agreement.ERROR if text else Agreement.NOWHERE
            return JudgedPlacement(pod.key, agreement, theirs, reason=text)
        ours = nodes.name(outcome.row)
        if row == outcome.row:
            return JudgedPlacement(pod.key, Agreement.SAME, theirs, ours)
        totals = _totals(outcome)
        if row is None or row not in totals:
            return JudgedPlacement(pod.key, Agreement.REFUSED, theirs, ours)
        mine, other = totals[outcome.row], totals[row]
        agreement = Agreement.EQUAL if mine == other else Agreement.LOWER
        return JudgedPlacement(pod.key, agreement, theirs, ours, other, mine)

    def _was_best(self, pod: Pod, theirs: str, now: float) -> bool:
        """Whether the node was among the best before some of the pods that came just now."""
        taken: list[Pod] = []
        try:
            for _, recent in reversed(self._recent):
                self.engine.handle(Removed(recent), now)
                taken.append(recent)
                if _agrees(self._compare(pod, theirs, self._decide(pod))):
                    return True
            return False
        finally:
            for recent in reversed(taken):
                self.engine.handle(Applied(recent), now)

    def _look_again(self, now: float) -> None:
        """Whether a pod that just came explains a placement that was not understood."""
        for case in list(self._open):
            is_gone = case.bound.uid not in self.engine.cluster.pods
            if is_gone or not case.tries or now > case.until:
                self._open.remove(case)
                continue
            case.tries -= 1
            # The pod that came last is the one that is judged itself at first.
            self.engine.handle(Removed(case.bound), now)
            found = self._compare(case.pod, case.bound.node_name, self._decide(case.pod))
            self.engine.handle(Applied(case.bound), now)
            if _agrees(found):
                self._open.remove(case)
                self.counts[Agreement(case.difference.agreement)] -= 1
                self.counts[Agreement.MOVED] += 1
                self.differences.remove(case.difference)
                self.differences.append(_replace_agreement(case.difference, Agreement.MOVED))

    def _look_at_waiting(self, pod: Pod) -> None:
        """Notes a pod that the other scheduler could not place, and Mooring could."""
        if failure_to_place(pod.status.conditions) is None:
            return
        outcome = self._decide(pod)
        if isinstance(outcome, Found):
            self.placeable[pod.key] = self.engine.cluster.nodes.name(outcome.row)
        else:
            self.placeable.pop(pod.key, None)


@dataclass(slots=True, eq=False)
class _OpenCase:
    """A placement that is not understood yet."""

    pod: Pod
    bound: Pod
    difference: JudgedPlacement
    until: float
    tries: int = _MOST_LATER


def _agrees(found: JudgedPlacement) -> bool:
    return Agreement(found.agreement) in (Agreement.SAME, Agreement.EQUAL)


def _replace_agreement(found: JudgedPlacement, agreement: Agreement) -> JudgedPlacement:
    return JudgedPlacement(
        found.pod,
        agreement,
        found.theirs,
        found.ours,
        found.their_score,
        found.our_score,
        found.reason,
    )


def _totals(outcome: Found) -> dict[int, int]:
    """What each feasible row scores."""
    if outcome.scored is None:
        return {outcome.row: 0}
    rows, totals = outcome.scored.rows.tolist(), outcome.scored.totals.tolist()
    return dict(zip(rows, totals, strict=True))


def describe(report: ShadowReport) -> Iterator[str]:
    """The report in sentences."""
    share = f"{report.agreement:.2f}% on a node that is best here"
    yield f"{report.placed} pods placed by the other scheduler, {share}"
    for agreement, count in report.by_agreement.items():
        if count:
            yield f"    {count:>8,}  {agreement}"
    if report.placeable:
        yield f"{len(report.placeable)} pods wait there that Mooring would place"
    yield (
        f"{1000 * report.our_seconds:.2f} ms to decide a pod here; "
        f"{report.their_seconds:.2f} s from its creation to its binding there"
    )
