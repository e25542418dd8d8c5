"""The extension points. A plugin's class header lists those it serves.

Points that decide are plain functions of columns; points that act are coroutines.
`F` is what a plugin prepares for filtering, `S` what it prepares for scoring: its own frozen
values, handed back to it untouched.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, HandleRegistry, Ledger, NodeView, RowFacts, Rows, Scope, View
from moorage.config import FeatureGates
from moorage.objects.pod import Pod

from .attempt import Failed
from .plugin_answers import (
    INFEASIBLE as INFEASIBLE,
    UNSIGNABLE as UNSIGNABLE,
    UPDATED as UPDATED,
    ClaimWrite as ClaimWrite,
    Narrowed as Narrowed,
    NoRemedy as NoRemedy,
    PendingPermit as PendingPermit,
    Preparation as Preparation,
    ProposedEviction as ProposedEviction,
    Reduction as Reduction,
    Remedy as Remedy,
    Rescore as Rescore,
    VolumeWrite as VolumeWrite,
    Wait as Wait,
)
from .pod_trace import PodReads
from .series import Series
from .status import Reason, Rejected
from .verdict import Verdict
from .wakeups import Action, Resource, Wakeup, on

if TYPE_CHECKING:
    from .profile import Profile

F = TypeVar("F")
S = TypeVar("S")

MAX_SCORE = 100
Scores = NDArray[np.int64]


class Plugin(ABC):
    """The base of every plugin: a name, arguments, and what it depends on."""

    name: ClassVar[str]
    #: The type of its arguments in the configuration, if it takes any.
    Args: ClassVar[type[msgspec.Struct] | None] = None
    #: The kinds of row change that can alter its answer for an unchanged pod.
    reads: Change = Change.ALL
    #: What it counts of the pods on each row; their changes are among what it reads.
    ledgers: ClassVar[tuple[Ledger[Any], ...]] = ()
    #: How far such a change reaches. ROW promises that a row's answer depends on the pod and that
    #: row alone; what is prepared, and whether the plugin skips the pod, depends on the pod.
    scope: ClassVar[Scope] = Scope.CLUSTER

    @classmethod
    def create(cls, args: Any, gates: FeatureGates) -> Self:
        """Builds the plugin for a profile."""
        return cls() if cls.Args is None else cls(args)  # type: ignore[call-arg]

    @classmethod
    def create_sharing(cls, args: Any, gates: FeatureGates, handles: HandleRegistry) -> Self:
        """Builds a plugin that uses extended resources, and registers their handles here."""
        return cls.create(args, gates)

    def see_cluster(self, nodes: View) -> None:  # noqa: B027 - most have no use for it
        """Called once before any pod, because some points and hints get no nodes."""

    def watch(self, pod: Pod, nodes: View) -> Change:
        """Returns the changes that can alter its answer for such a pod: `reads` or fewer.

        It depends on what the plugin signs of the pod, and on nothing else.
        """
        return self.reads

    def remarks(self) -> tuple[str, ...]:
        """Returns remarks for the author of its arguments, which are logged at the start."""
        return ()

    def metrics(self) -> tuple[Series, ...]:
        """Returns the metrics that the plugin declares; /metrics shows them with the profile."""
        return ()

    def wakeups(self) -> tuple[Wakeup, ...]:
        """Returns the events after which a rejected pod is worth another try: by default all."""
        return (on(Resource.ANYTHING, Action.ALL),)


class QueueSort(Plugin):
    """Decides which waiting pod comes first."""

    @abstractmethod
    def key(self, pod: Pod, timestamp: float) -> Any:
        """Returns a sort key: the pod with the smallest is scheduled next."""


class PreEnqueue(Plugin):
    """Holds a pod back before it is queued."""

    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Rejected | None:
        """Returns why the pod may not be queued; None lets it in."""


class PreFilter(Plugin, Generic[F]):
    """Looks at the pod once, before any node."""

    @abstractmethod
    def pre_filter(self, pod: Pod, nodes: View) -> F | Narrowed[F] | Rejected | None:
        """Returns what `filter` needs; None skips the plugin's filter for this pod."""

    def add_pod(self, prepared: F, nodes: View, pod: Pod, row: int) -> F:
        """Returns the prepared value as if one more pod ran on a row. Rows carry their own part."""
        return prepared

    def remove_pod(self, prepared: F, nodes: View, pod: Pod, row: int) -> F:
        """Returns the prepared value as if a pod no longer ran on a row."""
        return prepared


class Filter(Plugin, Generic[F]):
    """Says which nodes can take the pod. Without a `pre_filter`, `prepared` is the pod itself."""

    @abstractmethod
    def filter(self, prepared: F, nodes: View, rows: Rows) -> Verdict:
        """Returns one answer per row, in the order of `rows`."""

    def recheck(self, prepared: F, nodes: View, row: RowFacts) -> Rescore:
        """Answers quickly for one changed row: INFEASIBLE, UPDATED (it fits) or UNKNOWN."""
        return Rescore.UNKNOWN


class PostFilter(Plugin):
    """Looks for a remedy when no node suits.

    If it finds none for a pod, it is still asked about the next like pod, unless it is `Sign`,
    signs both alike, and nothing that it reads has changed.
    """

    @abstractmethod
    def post_filter(
        self, pod: Pod, failed: Failed, nodes: View, profile: Profile
    ) -> Remedy | NoRemedy:
        """Returns a remedy, which ends the search; so does any code but Unschedulable."""


class Preempt(PostFilter):
    """A post-filter whose proposals extenders may change before it chooses one."""

    @abstractmethod
    def propose(
        self, pod: Pod, failed: Failed, nodes: View, profile: Profile
    ) -> tuple[ProposedEviction, ...] | NoRemedy:
        """Returns all evictions that would help; at least one."""

    @abstractmethod
    def choose(self, proposals: Sequence[ProposedEviction], nodes: View) -> Remedy | NoRemedy:
        """Returns the best of the remaining proposals."""


class PreScore(Plugin, Generic[S]):
    """Looks at the nodes that are left, before they are scored."""

    @abstractmethod
    def pre_score(self, pod: Pod, nodes: View, rows: NDArray[np.intp]) -> S | None:
        """Returns what `score` needs, given the feasible rows; None skips the plugin's score.

        A plugin that says what it `reads` promises that skipping does not depend on the rows.
        """


class Score(Plugin, Generic[S]):
    """Prefers nodes. Without a `pre_score`, `prepared` is the pod itself."""

    @abstractmethod
    def score(self, prepared: S, nodes: View, rows: Rows) -> Scores:
        """Returns one number per row, in the order of `rows`."""

    def normalize(self, prepared: S, scores: Scores) -> Scores:
        """Scales the numbers of all feasible rows to 0 to 100."""
        return scores

    #: What `normalize` looks at beyond the row itself.
    reduces: ClassVar[Reduction] = Reduction.EVERYTHING

    def rescore(self, prepared: S, nodes: View, row: RowFacts, scores: Scores) -> Rescore:
        """Updates the number of one changed row in `scores`, before normalising."""
        return Rescore.UNKNOWN


class Sign(Plugin):
    """Says what it reads of a pod, so that like pods can share answers."""

    @abstractmethod
    def sign(self, pod: Pod, nodes: View) -> Hashable:
        """Returns all that the plugin reads of a pod, or UNSIGNABLE if it must be decided alone.

        What it reads for that is traced. It is asked about the next pod of the template only if
        that may differ. None, if it reads the template alone, means that it has nothing to do with
        such pods: it holds none of them back, and neither reserves nor prepares anything.
        """


class Reserve(Plugin):
    """Reserves something for a pod whose node is chosen."""

    #: The facts that it decides: STORAGE and CLAIMS. The view of `reserve`, `unreserve` and
    #: `prepare` then has `reservations` or `device_decisions`, and no other view has them.
    writes: ClassVar[Change] = Change.NONE

    @abstractmethod
    def reserve(self, pod: Pod, nodes: View, row: int) -> Rejected | None:
        """Takes what the pod needs there; returns None on success."""

    def reserves_for(self, pod: Pod, nodes: View) -> bool:
        """Whether `reserve` may take something for such a pod on any node."""
        return True

    @abstractmethod
    def unreserve(self, pod: Pod, nodes: View, node_name: str) -> None:
        """Gives it back. Also called for plugins whose `reserve` did not run."""


class PendingPermits(ABC):
    """The pods that wait for the permit of one plugin. All threads may use it.

    A call takes effect when the decision under way has ended. A pod that does not wait is left
    alone.
    """

    @abstractmethod
    def __iter__(self) -> Iterator[PendingPermit]:
        """Yields the pods that wait now, in the order in which they began to wait."""

    @abstractmethod
    def allow(self, uid: str) -> None:
        """Allows the binding of a pod, as far as this plugin is concerned."""

    @abstractmethod
    def refuse(self, uid: str, message: str) -> None:
        """Sends a pod back to the queue without its node; users read the message."""


class Permit(Plugin):
    """Decides last whether a pod may be bound."""

    def attach(self, waiting: PendingPermits) -> None:
        """Called once before any pod. A plugin that answers `Wait` keeps this to let pods go."""

    @abstractmethod
    def permit(self, pod: Pod, node_name: str) -> Rejected | Wait | None:
        """Returns None to allow the binding, a rejection, or Wait."""


class PreBind(Plugin):
    """Prepares a binding, for example the pod's volumes.

    Writes and a condition to wait for are decided in `prepare` and `is_prepared`, and the engine
    watches them; everything else is done by the coroutine.
    """

    def prepare(self, pod: Pod, nodes: View, node_name: str) -> Preparation | None:
        """Returns what must be written first; None if nothing."""
        return None

    def is_prepared(self, pod: Pod, nodes: View, node_name: str) -> bool | Rejected:
        """Returns whether what was written has come true; a rejection ends the wait."""
        return True

    async def pre_bind(self, pod: Pod, node_name: str) -> Rejected | None:
        """Prepares the binding; returns None on success."""
        return None


class Bind(Plugin):
    """Binds a pod to its node."""

    @abstractmethod
    async def bind(self, pod: Pod, node_name: str) -> bool:
        """Binds the pod; returns False to leave it to the next bind plugin. Failures are raised."""


class PostBind(Plugin):
    """Is called after a pod was bound."""

    @abstractmethod
    async def post_bind(self, pod: Pod, node_name: str) -> None:
        """Called after the binding. Nothing depends on it."""


class NodeFilter(Filter[Pod]):
    """A filter in plain Python that is asked node by node. It is slower than columns."""

    #: What it has read of pods, if that is traced for want of a signature.
    _reads_of_pods: PodReads | None = None

    @abstractmethod
    def filter_node(self, pod: Pod, node: NodeView) -> str | Reason | None:
        """Returns why the node does not suit, or None if it does."""

    def filter(self, prepared: Pod, nodes: View, rows: Rows) -> Verdict:
        def ask(pod: Pod) -> list[str | Reason | None]:
            return [
                self.filter_node(pod, NodeView(nodes, row)) if nodes.alive[row] else None
                for row in nodes.numbers(rows)
            ]

        answers = (
            ask(prepared) if self._reads_of_pods is None else self._reads_of_pods.ask(prepared, ask)
        )
        found = [Reason(each) if isinstance(each, str) else each for each in answers]
        reasons = tuple(dict.fromkeys(each for each in found if each is not None))
        failed = np.array([[each == reason for each in found] for reason in reasons], np.bool_)
        return Verdict(reasons, failed.reshape(len(reasons), len(found)))


class NodeScore(Score[Pod]):
    """A score in plain Python that is asked node by node."""

    #: What it has read of pods, if that is traced for want of a signature.
    _reads_of_pods: PodReads | None = None

    @abstractmethod
    def score_node(self, pod: Pod, node: NodeView) -> int:
        """Returns a score, the higher the better; 0 to 100 unless `normalize` changes it."""

    def score(self, prepared: Pod, nodes: View, rows: Rows) -> Scores:
        def ask(pod: Pod) -> list[int]:
            return [
                self.score_node(pod, NodeView(nodes, row)) if nodes.alive[row] else 0
                for row in nodes.numbers(rows)
            ]

        scores = (
            ask(prepared) if self._reads_of_pods is None else self._reads_of_pods.ask(prepared, ask)
        )
        return np.array(scores, np.int64)


def find_pod_reads(plugin: Plugin) -> PodReads | None:
    """Returns what a plugin in plain Python has read of pods; None if that is not traced."""
    return plugin._reads_of_pods if isinstance(plugin, NodeFilter | NodeScore) else None


# The changes that alter figures of a row. A plain integer, because combining flags of an enum takes
# many times as long.
_OF_FIGURES = int(Change.ALLOCATABLE | Change.REQUESTED)


def reads_figures(plugin: Plugin, watch: int) -> bool:
    """Returns whether a plugin that watches such changes gives equal answers for equal figures.

    It sees neither the name of a node nor anything else that differs between rows.
    """
    return plugin.scope is Scope.ROW and not watch & ~_OF_FIGURES


def rescore_row(
    plugin: Score[S], prepared: S, nodes: View, row: RowFacts, scores: Scores
) -> Rescore:
    """Rescores by scoring the row anew, for plugins whose rows do not depend on each other."""
    scores[row.number] = plugin.score(prepared, nodes, np.array([row.number]))[0]
    return Rescore.UPDATED


def normalize_scores(scores: Scores, *, reverse: bool = False) -> Scores:
    """Scales to 0 to 100 by the largest; `reverse` makes the smallest the best."""
    largest = int(scores.max(initial=0))
    if largest == 0:
        return np.full_like(scores, MAX_SCORE) if reverse else scores
    scaled: Scores = scores * MAX_SCORE // largest
    return MAX_SCORE - scaled if reverse else scaled


#: The extension points by their name in the configuration.
POINTS: Mapping[str, type[Plugin]] = {
    "preEnqueue": PreEnqueue,
    "queueSort": QueueSort,
    "preFilter": PreFilter,
    "filter": Filter,
    "postFilter": PostFilter,
    "preScore": PreScore,
    "score": Score,
    "reserve": Reserve,
    "permit": Permit,
    "preBind": PreBind,
    "bind": Bind,
    "postBind": PostBind,
}

Registry = Mapping[str, type[Plugin]]
