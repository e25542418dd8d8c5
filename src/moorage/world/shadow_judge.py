"""Judges another scheduler: what Moorage would have decided for each pod that it places.

After each pod the real cluster counts, so that one difference does not cause others. Nothing is
assumed and nothing is written.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.cluster.recount import Identity, identity
from moorage.engine import Engine, budget
from moorage.engine.cycle import EVERY_NODE, decide, first_best
from moorage.engine.events import Applied, Event, Removed
from moorage.engine.fence import describe as describe_error
from moorage.engine.intake import count_by
from moorage.framework.attempt import Failed, Scored
from moorage.framework.profile import Profile
from moorage.objects.kinds import Object
from moorage.objects.meta import failure_to_place
from moorage.objects.pod import Pod

from .cluster_use import ClusterUse, measure_use
from .shadow_history import QueueTurn, ShadowHistory, is_same_there
from .shadow_report import Agreement, JudgedPlacement, ShadowReport
from .shadow_states import PastStates

# A placement that is not understood is kept for so long, and so many are at a time: nodes may be
# seen later, and pods that were decided earlier may be bound later.
_NODES_SECONDS = 2.0
_BINDINGS_SECONDS = 8.0
_MOST_OPEN = 256
# So many states are looked at as soon as a placement may be understood, and in the end.
_FEW_STATES = 48
_MANY_STATES = 2_000

_UNEXPLAINED = "best in no state in which it may have been decided"

# Of fewer nodes kube-scheduler looks at all, and it finds at least so many.
_ALWAYS_LOOKED_AT = 100
# Workers look at nodes side by side, so that the nodes of a search need not come in turn. That it
# missed all better ones by chance is believed if it is not less likely.
_LEAST_CHANCE = 1e-4
# The differences that are kept whole; all of them are counted.
_MOST_KEPT = 1_000


@dataclass(slots=True)
class Shadow:
    """Follows the events of a cluster in an engine, and judges another scheduler's placements."""

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
    _open: deque[_UnexplainedPlacement] = field(default_factory=lambda: deque(maxlen=_MOST_OPEN))
    _history: ShadowHistory = field(init=False)
    _now: float = 0.0

    def __post_init__(self) -> None:
        self._history = ShadowHistory(self.engine)

    def begin(self) -> None:
        """Treats everything known so far as old, so that it explains no placement."""
        self._history.recent.clear()

    def handle(self, event: Event, now: float) -> None:
        """Takes in an event; a placed pod is judged before it counts.

        `now` is in seconds since the epoch, as the times in objects are.
        """
        self.engine.cluster.tell_time(now)
        self._now = now
        match event:
            case Applied(Pod() as pod):
                self._take_pod(event, pod, now)
            case Applied(item):
                known = self.objects.get(identity(item))
                self.objects[identity(item)] = item
                self.engine.handle(event, now)
                self._history.note_object(known, item, now)
            case Removed(item):
                known = self.objects.pop(identity(item), item)
                if isinstance(item, Pod):
                    self._see_off(event, item, now)
                else:
                    self.engine.handle(event, now)
                    self._history.note_object(known, None, now)
            case _:
                self.engine.handle(event, now)
        if self._open and now > self._open[0].until:
            self._close(self._open.popleft())

    def _take_pod(self, event: Applied, pod: Pod, now: float) -> None:
        if pod.node_name and pod.uid in self.engine.pending_pods:
            self._judge(pod, now)
        before = self._find_placed(pod.uid)
        self.objects[identity(pod)] = pod
        self.engine.handle(event, now)
        after = self._find_placed(pod.uid)
        if before is None and after is None:
            if not pod.node_name:
                self._history.note_waiting(pod)
                self._look_at_waiting(pod)
        elif before is None or after is None or not is_same_there(before, after):
            self._history.note_pod(before, after, now)
            self._look_again(pod.uid)

    def _find_placed(self, uid: str) -> Pod | None:
        """Returns a pod that takes room on a node, as it was written, counted as by the engine."""
        item = self.objects.get((Pod.__name__, uid))
        if not isinstance(item, Pod) or uid not in self.engine.cluster.pods:
            return None
        return count_by(self.engine.configuration.gates.version, item)

    def _see_off(self, event: Removed, pod: Pod, now: float) -> None:
        self.placeable.pop(pod.key, None)
        self._history.forget(pod)
        before = self.engine.cluster.pods.get(pod.uid)
        self.engine.handle(event, now)
        if before is not None:
            self._history.note_pod(before, None, now)
        self._look_again(pod.uid)

    def measure_use(self) -> ClusterUse:
        """Measures how the cluster is used now."""
        pods = [item for item in self.objects.values() if isinstance(item, Pod)]
        there = [pod for pod in pods if pod.node_name and not pod.is_finished]
        waiting = len(self.engine.pending_pods)
        return measure_use("now", self.engine.cluster, there, waiting)

    def report(self) -> ShadowReport:
        """Returns a report of everything seen so far."""
        for case in list(self._open):
            if not case.earlier and self._settle(case, _MANY_STATES):
                self._open.remove(case)
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
            found = self._look_back(pod, bound.node_name, found)
        self.counts[Agreement(found.agreement)] += 1
        if not Agreement(found.agreement).is_same:
            self.differences.append(found)
        self.placeable.pop(bound.key, None)

    def _look_back(self, pod: Pod, theirs: str, found: JudgedPlacement) -> JudgedPlacement:
        """Looks for the state in which the other scheduler decided; later events may help."""
        turn = self._history.find_turn(pod)
        earlier = self._history.list_earlier(turn)
        until = self._now + (_BINDINGS_SECONDS if earlier else _NODES_SECONDS)
        case = _UnexplainedPlacement(
            pod, theirs, found, turn, self._history.number + 1, earlier, until
        )
        why = None if earlier else self._find_why(case, _FEW_STATES)
        if why is None:
            self._open.append(case)
        return why or found

    def _find_why(self, case: _UnexplainedPlacement, most: int) -> JudgedPlacement | None:
        """Returns what explains a placement in a state in which it may have been decided."""
        sampled: JudgedPlacement | None = None

        def is_best() -> bool:
            nonlocal sampled
            found = self._compare(case.pod, case.theirs, self._decide(case.pod))
            if sampled is None and found.agreement == Agreement.SAMPLED:
                sampled = found
            return Agreement(found.agreement).is_same

        past = PastStates(self._history, case.pod.uid, case.turn, case.bound, self._now)
        state = past.find(is_best, most)
        if state is not None:
            return replace(case.difference, agreement=Agreement.MOVED, reason=state)
        # The state had moved, and the other looked at a part of the nodes.
        return sampled

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
        if agreement is Agreement.LOWER and (sampled := self._tell_sampled(outcome, int(found[0]))):
            return JudgedPlacement(
                pod.key, Agreement.SAMPLED, theirs, ours, other, mine, reason=sampled
            )
        return JudgedPlacement(pod.key, agreement, theirs, ours, other, mine)

    def _tell_sampled(self, outcome: Scored, theirs: int) -> str:
        """Returns how a search that stops early may have missed all better nodes; None if not."""
        nodes = self.engine.cluster.nodes
        enough, feasible = find_enough(self.percentage, len(nodes)), len(outcome.rows)
        better = outcome.totals > outcome.totals[theirs]
        count = int(better.sum())
        if enough >= feasible:
            return ""
        # It looks at nodes in turn, from where the search before it ended.
        stretch = _find_stretch(nodes.ranks[outcome.rows], better, theirs)
        text = f"{count} of {feasible} feasible nodes score more; a search ends with {enough}"
        if stretch >= enough:
            return f"{text}, and {stretch} come in turn without these"
        return text if (1 - enough / feasible) ** count >= _LEAST_CHANCE else ""

    def _look_again(self, uid: str) -> None:
        """Looks at open placements again after the other scheduler has handled a pod."""
        for case in [each for each in self._open if uid in each.earlier]:
            case.earlier.discard(uid)
            if not case.earlier and self._settle(case, _FEW_STATES):
                self._open.remove(case)

    def _settle(self, case: _UnexplainedPlacement, most: int) -> bool:
        """Looks at a placement again; returns whether it is explained now."""
        if case.looked == (self._history.number, most):
            return False
        case.looked = self._history.number, most
        why = self._find_why(case, most)
        if why is not None:
            self.counts[Agreement(case.difference.agreement)] -= 1
            self.counts[Agreement(why.agreement)] += 1
            if case.difference in self.differences:
                self.differences.remove(case.difference)
            self.differences.append(why)
        return why is not None

    def _close(self, case: _UnexplainedPlacement) -> None:
        """Looks at a placement for the last time."""
        if not self._settle(case, _MANY_STATES) and case.difference in self.differences:
            self.differences.remove(case.difference)
            self.differences.append(replace(case.difference, reason=_UNEXPLAINED))

    def _look_at_waiting(self, pod: Pod) -> None:
        """Notes a pod that the other scheduler could not place but Moorage could."""
        if failure_to_place(pod.status.conditions) is None:
            return
        self._look_again(pod.uid)
        outcome, nodes = self._decide(pod), self.engine.cluster.nodes
        if isinstance(outcome, Scored):
            self.placeable[pod.key] = nodes.name(first_best(outcome, nodes, 0))
        else:
            self.placeable.pop(pod.key, None)


@dataclass(slots=True, eq=False)
class _UnexplainedPlacement:
    """A placement that is not explained yet."""

    pod: Pod
    theirs: str
    difference: JudgedPlacement
    turn: QueueTurn
    #: The number under which it is noted.
    bound: int
    #: Pods whose turn was earlier and that are not bound yet.
    earlier: set[str]
    until: float
    #: What had been seen when it was looked at last, and how many states were looked at.
    looked: tuple[int, int] = (0, 0)


def _find_stretch(ranks: NDArray[np.intp], better: NDArray[np.bool_], theirs: int) -> int:
    """Counts the nodes around one, itself included, that come in turn without a better one."""
    order = np.argsort(ranks)
    turned = np.roll(better[order], -int(np.flatnonzero(order == theirs)[0]))
    (after,) = np.flatnonzero(turned)[:1]
    (before,) = np.flatnonzero(turned[::-1])[:1]
    return int(after + before)


def find_enough(percentage: int, count: int) -> int:
    """Returns how many feasible nodes end kube-scheduler's search; all if it looks at all."""
    if percentage >= 100 or count < _ALWAYS_LOOKED_AT:
        return count
    share = percentage or max(5, 50 - count // 125)
    return max(count * share // 100, _ALWAYS_LOOKED_AT)
