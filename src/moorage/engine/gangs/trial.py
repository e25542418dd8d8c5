"""A trial on the live columns: pods are placed and lifted, and a journal can undo it all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from moorage.cluster import Cluster, Nodes
from moorage.engine import budget, placement
from moorage.engine.diagnosis import Failure
from moorage.engine.placement import Placement
from moorage.framework.observe import Observer
from moorage.framework.profile import Profile
from moorage.framework.stamps import find_stamp
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodSpec
from moorage.queue import Entity

# Nobody waits for what is only tried.
_NOBODY = Entity("", Pod(namespace="", name="", uid="", spec=PodSpec()), 0.0, 0)


@dataclass(eq=False, slots=True)
class Trial:
    """Changes of the cluster that are undone unless they are kept.

    Tried changes count like all others, so that plugins need not know of them. A trial begins and
    ends within one decision.
    """

    cluster: Cluster
    profile: Profile
    observer: Observer
    #: What was placed, and how all else is undone.
    _journal: list[Placement | Callable[[], None]] = field(default_factory=list)
    #: What plugins said wrong while they gave back what they had reserved.
    problems: list[str] = field(default_factory=list)
    #: What is placed by now, by the uid of the pod.
    placements: dict[str, Placement] = field(default_factory=dict)
    #: How much more may be tried before it takes too long.
    work_left: int = field(default_factory=lambda: budget.MOST_GROUP_WORK)
    # What trying a member takes, by the id of its template.
    _member_work: dict[int, int] = field(default_factory=dict)

    @property
    def nodes(self) -> Nodes:
        return self.cluster.nodes

    @property
    def is_spent(self) -> bool:
        """Whether nothing more should be tried."""
        return self.work_left <= 0

    def member_work(self, pod: Pod) -> int:
        """Returns the work of trying one member."""
        known = self._member_work.get(id(pod.spec))
        if known is None:
            known = budget.member_work(pod, self.cluster)
            self._member_work[id(pod.spec)] = known
        return known

    def mark(self) -> int:
        """Returns a point to roll back to."""
        return len(self._journal)

    def place(
        self, pod: Pod, node_name: str, *, stays_nominated: bool = False
    ) -> Placement | Failure:
        """Assumes a pod on a node and lets plugins reserve; a refusal leaves no trace.

        The pod is not nominated any more, unless it is to stay so and count there as well.
        """
        mark = len(self._journal)
        if self.nodes.nominations.are_there and not stays_nominated:
            self._end_nomination(pod)
        assumed = self.cluster.assume(pod, node_name, find_stamp(self.profile, pod))
        placed = Placement(_NOBODY, assumed, node_name, self.profile)
        self._journal.append(placed)
        self.placements[pod.uid] = placed
        refused = placement.reserve(placed, self.nodes, self.observer)
        if refused is None:
            return placed
        self.roll_back(mark)
        return refused

    def _end_nomination(self, pod: Pod) -> None:
        nominated = self.nodes.nominations.node_of(pod)
        if nominated:
            self.cluster.nominate(pod, "")
            self._journal.append(lambda: self.cluster.nominate(pod, nominated))

    def lift(self, pod: Pod) -> None:
        """Takes a placed pod off its node."""
        lifted = self.cluster.lift(pod.uid)
        if lifted is not None:
            self._journal.append(lambda: self.cluster.put_back(lifted))

    def lift_all(self, pods: Iterable[Pod]) -> None:
        """Takes pods off their nodes, the newest first, so that they return in their order."""
        lifted = {pod.uid for pod in pods}
        # They are put back as well.
        self.work_left -= 2 * budget.LIFT_WORK * len(lifted)
        for pod in [pod for pod in self.cluster.newest_pods() if pod.uid in lifted]:
            self.lift(pod)

    def put_back(self, pod: Pod) -> None:
        """Returns a lifted pod to its node."""
        self.work_left -= 2 * budget.LIFT_WORK
        self.cluster.put_back(pod)
        self._journal.append(lambda: self._lift_again(pod.uid))

    def roll_back(self, mark: int = 0) -> None:
        """Undoes everything since a point, the last change first."""
        while len(self._journal) > mark:
            self._undo_last()

    def _undo_last(self) -> None:
        last = self._journal.pop()
        if isinstance(last, Placement):
            self._take_back(last)
        else:
            last()

    def keep(self) -> None:
        """Makes everything that was tried final."""
        self._journal.clear()

    def _lift_again(self, uid: str) -> None:
        self.cluster.lift(uid)

    def _take_back(self, placed: Placement) -> None:
        del self.placements[placed.pod.uid]
        self.problems += placement.unreserve(placed, self.cluster.nodes, self.observer)
        self.cluster.forget(placed.pod.uid)
