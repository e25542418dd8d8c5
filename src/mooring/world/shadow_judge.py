"""Beside another scheduler: what Mooring would have decided for each pod that the other places.

The truth of the cluster counts after each pod, so that one difference does not breed others.
Nothing is assumed and nothing is written.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from mooring.cluster.recount import Identity, identity
from mooring.engine import Engine, budget
from mooring.engine.cycle import EVERY_NODE, decide, first_best
from mooring.engine.events import Applied, Event, Removed
from mooring.engine.explain.explanation import ExplanationPart
from mooring.engine.fence import describe as describe_error
from mooring.framework.attempt import Failed, Scored
from mooring.framework.profile import Profile
from mooring.objects.kinds import Object
from mooring.objects.meta import failure_to_place
from mooring.objects.node import Node
from mooring.objects.pod import Pod

from .cluster_use import ClusterUse, measure_use, tabulate
from .shadow_history import RECENT_SECONDS, ShadowHistory, Turn

# A placement that is not understood is looked at again when so many pods have come that were
# decided before it, and when the last of them has.
_LOOKS_AGAIN = frozenset((1, 2, 4, 8, 16, 32))
# So many such placements are kept at a time.
_MOST_OPEN = 16

# Of fewer nodes kube-scheduler looks at all, and it finds at least so many.
_ALWAYS_LOOKED_AT = 100
# The differences that are kept whole; all of them are counted.
_MOST_KEPT = 1_000


class Agreement(StrEnum):
    """How a placement of the other scheduler compares with what Mooring would have done."""

    SAME = "the same node"
    EQUAL = "a node that scores the same"
    LOWER = "a node that scores less"
    MOVED = "best in the state in which it was decided"
    SAMPLED = "best of the part of the nodes that it looks at"
    REFUSED = "a node that Mooring refuses"
    NOWHERE = "Mooring finds no node"
    ERROR = "Mooring cannot decide"

    @property
    def is_best(self) -> bool:
        """Whether both chose from the same best nodes, of the state in which they decided."""
        return self in (Agreement.SAME, Agreement.EQUAL, Agreement.MOVED)

    @property
    def is_explained(self) -> bool:
        """Whether they agree, as far as they looked at the same nodes in the same state."""
        return self.is_best or self is Agreement.SAMPLED


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
    #: Percent of placements that are so, or that looking at a part of the nodes explains.
    explained: float
    #: Pods that the other scheduler leaves pending and Mooring would place, by key, with the node.
    placeable: dict[str, str]
    #: Seconds to decide a pod here, and from a pod's creation until it was bound there, on average.
    our_seconds: float
    their_seconds: float
    differences: tuple[JudgedPlacement, ...]
    #: How the cluster is used now, and how it would be if Mooring had placed all of it.
    use: tuple[ClusterUse, ...] = ()


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
    #: The percentage of nodes that the other looks at; 0 is kube-scheduler's own choice.
    percentage: int = 100
    counts: Counter[Agreement] = field(default_factory=Counter)
    differences: deque[JudgedPlacement] = field(default_factory=lambda: deque(maxlen=_MOST_KEPT))
    placeable: dict[str, str] = field(default_factory=dict)
    our_seconds: float = 0.0
    their_seconds: float = 0.0
    #: All that exists, as it was written.
    objects: dict[Identity, Object] = field(default_factory=dict)
    #: Placements that are not understood yet: pods that come next may explain them.
    _open: deque[_OpenCase] = field(default_factory=lambda: deque(maxlen=_MOST_OPEN))
    _history: ShadowHistory = field(init=False)

    def __post_init__(self) -> None:
        self._history = ShadowHistory(self.engine)

    def handle(self, event: Event, now: float) -> None:
        """Takes in what happened; a pod that was placed is judged before it counts.

        `now` is in seconds since the epoch, as the times in objects are.
        """
        self.engine.cluster.tell_time(now)
        match event:
            case Applied(Pod() as pod):
                self.objects[identity(pod)] = pod
                self._take_pod(event, pod, now)
                return
            case Applied(Node() as node):
                self._take_node(event, node, now)
                return
            case Applied(item):
                self.objects[identity(item)] = item
            case Removed(item):
                self.objects.pop(identity(item), None)
                if isinstance(item, Pod):
                    self._see_off(item, now)
                elif isinstance(item, Node):
                    self._history.note_node(item, None, now)
        self.engine.handle(event, now)

    def _take_node(self, event: Applied, node: Node, now: float) -> None:
        known = self.objects.get(identity(node))
        self.objects[identity(node)] = node
        self.engine.handle(event, now)
        before = known if isinstance(known, Node) else None
        if self._history.note_node(before, node, now):
            # The watches of nodes and of pods do not wait for each other.
            for case in list(self._open):
                self._settle(case, now)

    def _take_pod(self, event: Applied, pod: Pod, now: float) -> None:
        if pod.node_name and pod.uid in self.engine.pending_pods:
            self._judge(pod, now)
        there = self.engine.cluster.pods.get(pod.uid)
        self.engine.handle(event, now)
        is_there = pod.uid in self.engine.cluster.pods
        if is_there and there is None:
            self._history.note_came(pod, now)
            self._look_again(pod.uid, now)
        elif there is not None and not is_there:
            self._history.note_went(there, now)
        elif not pod.node_name:
            self._history.note_waiting(pod)
            self._look_at_waiting(pod, now)

    def _see_off(self, pod: Pod, now: float) -> None:
        self.placeable.pop(pod.key, None)
        self._history.forget(pod)
        if pod.uid in self.engine.cluster.pods:
            self._history.note_went(self.engine.cluster.pods[pod.uid], now)
        else:
            self._look_again(pod.uid, now)

    def measure_use(self) -> ClusterUse:
        """How the cluster is used now."""
        pods = [item for item in self.objects.values() if isinstance(item, Pod)]
        there = [pod for pod in pods if pod.node_name and not pod.is_finished]
        waiting = len(self.engine.pending_pods)
        return measure_use("now", self.engine.cluster, there, waiting)

    def report(self) -> ShadowReport:
        """What was seen so far."""
        placed, counts = self.counts.total(), self.counts.items()
        best = sum(count for agreement, count in counts if agreement.is_best)
        explained = sum(count for agreement, count in counts if agreement.is_explained)
        return ShadowReport(
            placed,
            {agreement.value: self.counts[agreement] for agreement in Agreement},
            100.0 * best / placed if placed else 100.0,
            100.0 * explained / placed if placed else 100.0,
            dict(self.placeable),
            self.our_seconds / max(placed, 1),
            self.their_seconds / max(placed, 1),
            tuple(self.differences),
            (self.measure_use(),),
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
        if self.looks_back and not Agreement(found.agreement).is_explained:
            found = self._look_back(pod, bound, found, now)
        self.counts[Agreement(found.agreement)] += 1
        if not _agrees(found):
            self.differences.append(found)
        self.placeable.pop(bound.key, None)

    def _look_back(
        self, pod: Pod, bound: Pod, found: JudgedPlacement, now: float
    ) -> JudgedPlacement:
        """Looks for the state in which the other decided; what comes next may tell, too."""
        turn = self._history.find_turn(pod)
        why = self._find_why(
            pod, bound.node_name, lambda is_best: self._history.was_so(turn, now, is_best)
        )
        if why is not None:
            return _replace_agreement(found, why)
        earlier = self._history.list_earlier(turn)
        self._open.append(_OpenCase(pod, bound, found, turn, earlier, now + RECENT_SECONDS))
        return found

    def _find_why(
        self, pod: Pod, theirs: str, look: Callable[[Callable[[], bool]], bool]
    ) -> Agreement | None:
        """What explains a placement in one of the states that are looked at; None if nothing."""
        seen: set[str] = set()

        def is_best() -> bool:
            found = self._compare(pod, theirs, self._decide(pod))
            seen.add(found.agreement)
            return _agrees(found)

        if look(is_best):
            return Agreement.MOVED
        # The state had moved, and the other looked at a part of the nodes.
        return Agreement.SAMPLED if Agreement.SAMPLED in seen else None

    def _decide(self, pod: Pod) -> Scored | str | None:
        """The feasible rows and their totals; a text if it cannot be decided, None if nowhere."""
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
        if agreement is Agreement.LOWER and self._may_be_sampled(outcome, other):
            agreement = Agreement.SAMPLED
        return JudgedPlacement(pod.key, agreement, theirs, ours, other, mine)

    def _may_be_sampled(self, outcome: Scored, score: int) -> bool:
        """Whether a search that stops early may have missed all nodes that score more."""
        enough = find_enough(self.percentage, len(self.engine.cluster.nodes))
        return int((outcome.totals > score).sum()) <= len(outcome.rows) - enough

    def _look_again(self, uid: str, now: float) -> None:
        """Whether placements are understood now that the other has dealt with one more pod."""
        for case in [each for each in self._open if uid in each.earlier]:
            case.earlier.discard(uid)
            case.looks += 1
            if not case.earlier or case.looks in _LOOKS_AGAIN:
                self._settle(case, now)

    def _settle(self, case: _OpenCase, now: float) -> None:
        """Looks at a placement again; it is closed if it is understood, or is too old to be."""
        if now > case.until or case.bound.uid not in self.engine.cluster.pods:
            self._open.remove(case)
            return
        why = self._find_why(
            case.pod,
            case.bound.node_name,
            lambda is_best: self._history.was_so_in_turn(case.turn, now, is_best),
        )
        if why is not None:
            self._open.remove(case)
            self.counts[Agreement(case.difference.agreement)] -= 1
            self.counts[why] += 1
            self.differences.remove(case.difference)
            self.differences.append(_replace_agreement(case.difference, why))

    def _look_at_waiting(self, pod: Pod, now: float) -> None:
        """Notes a pod that the other scheduler could not place, and Mooring could."""
        if failure_to_place(pod.status.conditions) is None:
            return
        self._look_again(pod.uid, now)
        outcome, nodes = self._decide(pod), self.engine.cluster.nodes
        if isinstance(outcome, Scored):
            self.placeable[pod.key] = nodes.name(first_best(outcome, nodes, 0))
        else:
            self.placeable.pop(pod.key, None)


@dataclass(slots=True, eq=False)
class _OpenCase:
    """A placement that is not understood yet."""

    pod: Pod
    bound: Pod
    difference: JudgedPlacement
    turn: Turn
    #: Pods that were decided earlier and are not bound yet.
    earlier: set[str]
    until: float
    looks: int = 0


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


def find_enough(percentage: int, count: int) -> int:
    """How many feasible nodes end kube-scheduler's search; all of them if it looks at all."""
    if percentage >= 100 or count < _ALWAYS_LOOKED_AT:
        return count
    share = percentage or max(5, 50 - count // 125)
    return max(count * share // 100, _ALWAYS_LOOKED_AT)


def describe(report: ShadowReport, *, with_use: bool = True) -> Iterator[str]:
    """The report in sentences, and the use of the cluster as a table if it is wanted."""
    share = f"{report.agreement:.2f}% on a node that is best here"
    yield f"{report.placed} pods placed by the other scheduler, {share}"
    if report.explained != report.agreement:
        yield f"{report.explained:.2f}% if it looks at a part of the nodes"
    for agreement, count in report.by_agreement.items():
        if count:
            yield f"    {count:>8,}  {agreement}"
    if report.placeable:
        yield f"{len(report.placeable)} pods wait there that Mooring would place"
    yield (
        f"{1000 * report.our_seconds:.2f} ms to decide a pod here; "
        f"{report.their_seconds:.2f} s from its creation to its binding there"
    )
    for name, cells in tabulate(report.use if with_use else ()):
        yield f"    {name:36}" + "".join(f"{cell:>22}" for cell in cells)
