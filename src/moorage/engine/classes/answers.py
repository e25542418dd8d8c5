"""What plugins say of all rows, kept by what they are asked about a pod."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, Cluster, Figures, RowFacts, Rows, Scope
from moorage.cluster.row_view import RowView
from moorage.framework.calls import (
    ask_filter,
    ask_pre_filter,
    ask_pre_score,
    ask_recheck,
    ask_rescore,
    ask_score,
    ask_watch,
)
from moorage.framework.observe import (
    FILTER,
    PRE_FILTER,
    PRE_SCORE,
    SCORE,
    make_caller,
)
from moorage.framework.plugin import (
    INFEASIBLE,
    MAX_SCORE,
    UPDATED,
    Narrowed,
    Plugin,
    PreFilter,
    PreScore,
    Reduction,
    Score,
    reads_figures,
)
from moorage.framework.plugin_fence import check_range
from moorage.framework.profile import Profile
from moorage.framework.status import Rejected
from moorage.objects.pod import Pod

from .statistics import Statistics

S = TypeVar("S", bound=np.generic)
K = TypeVar("K", bound="KeptAnswer[Any]")

# If nodes and pods are alike, rows have few distinct figures. If there are more than this, looking
# up answers by figures saves no time.
MOST_FIGURES = 512

# Answers of a pre-filter that concern the pod as a whole.
_AS_A_WHOLE = (Rejected, Narrowed)


class Unserved(Exception):
    """No answers can be kept for such pods; they are decided one by one."""


class KeptAnswer(RowView[S]):
    """What one plugin says of all rows, for pods about which it is asked the same."""

    def __init__(self, plugin: Any, pod: Pod, answers: Answers) -> None:
        """Asks about all rows. Raises Unserved if the plugin rejects or narrows such pods."""
        self.plugin = plugin
        self._answers = answers
        nodes = answers.nodes
        #: Whether its answer for a row depends on other rows.
        self.is_wide = plugin.scope is not Scope.ROW
        #: How often it was asked about all rows.
        self.renewals = 0
        #: The pod for which the plugin is asked from now on: those before it may be gone.
        self.asker = pod
        #: What the plugin has prepared, and for which pod. None if it has no say on such pods.
        self.prepared: Any = None
        self.pod = pod
        #: Its values by the figures of a row; None if it reads more than these.
        self._known: dict[Figures, Any] | None = None
        self._labels_version = nodes.labels_version
        super().__init__(nodes, 0)

    def meet(self, pod: Pod) -> None:
        """Makes sure that the answer holds for a pod, which is asked about from now on.

        What was prepared for one pod holds for another only if all labels that selectors read of
        them are equal.
        """
        self.asker = pod
        version = self.nodes.labels_version
        if version != self._labels_version:
            self._labels_version = version
            read = self.nodes.labels_that_matter
            if read(self.pod) != read(pod):
                self.renew()

    def reaches_all(self, union: int) -> bool:
        # While it has no say, its values stay as they are.
        return self.prepared is not None or self._has_turned()

    def renew(self) -> None:
        pod = self.pod = self.asker
        kinds = self._find_kinds()
        self.kinds = kinds
        self.renewals += 1
        self._answers.renewals += 1
        is_far = self.is_wide or self.plugin in self._answers.widened
        self.reaching = kinds if is_far else 0
        self.prepared = self.prepare(pod)
        self._known = {} if self._is_of_figures() else None
        super().renew()

    def prepare(self, pod: Pod) -> Any:
        """Returns what the plugin prepares for a pod; None if it has no say."""
        raise NotImplementedError

    def compute_row(self, row: int) -> Any:
        if self.prepared is None:
            return 0
        facts = self.nodes.known_facts.get(row) or self.nodes.facts(row)
        known = self._known
        if known is None:
            return self.answer_row(facts)
        figures = facts.known_figures or facts.figures
        value = known.get(figures)
        if value is None:
            if len(known) >= MOST_FIGURES:
                known.clear()
            value = known[figures] = self.answer_row(facts)
        return value

    def answer_row(self, facts: RowFacts) -> Any:
        """Returns the plugin's answer for a row that has a node."""
        raise NotImplementedError

    def _is_of_figures(self) -> bool:
        return not self.is_wide and reads_figures(self.plugin, self.kinds)

    def check(self) -> bool:
        """Asks about all rows again; returns whether the answer was right, row by row."""
        before = self.values
        self.renew()
        return self.is_wide or np.array_equal(before, self.values)

    def _find_kinds(self) -> int:
        if self.plugin in self._answers.widened:
            return int(Change.ALL)
        return ask_watch(self.plugin, self.asker, self.nodes)

    def _has_turned(self) -> bool:
        """Returns whether the plugin watches something else, or begins or ceases to have a say."""
        if self._find_kinds() != self.kinds:
            return True
        return (self.prepare(self.asker) is None) != (self.prepared is None)


class FilterAnswer(KeptAnswer[np.bool_]):
    """The rows that a filter rejects. A pre-filter without a filter rejects none."""

    def __init__(self, plugin: Plugin, pod: Pod, answers: Answers) -> None:
        self.is_filter = plugin in answers.profile.filter
        super().__init__(plugin, pod, answers)

    @property
    def has_say(self) -> bool:
        """Whether it may reject a row."""
        return self.is_filter and self.prepared is not None

    def prepare(self, pod: Pod) -> Any:
        if not isinstance(self.plugin, PreFilter):
            return pod
        ask = make_caller(self._answers.observer, PRE_FILTER)
        prepared = ask_pre_filter(self.plugin, pod, self.nodes, ask)
        if isinstance(prepared, _AS_A_WHOLE):
            raise Unserved
        return prepared

    def count_rejected(self) -> int:
        """Returns how many rows it rejects."""
        return int(np.count_nonzero(self.values))

    def compute(self, rows: Rows) -> NDArray[np.bool_]:
        if not self.has_say:
            return self.nodes.nothing(rows)
        ask = make_caller(self._answers.observer, FILTER)
        return ask_filter(self.plugin, self.prepared, self.nodes, rows, ask).rejected

    def answer_row(self, facts: RowFacts) -> bool:
        if self.is_filter:
            answer = ask_recheck(self.plugin, self.prepared, self.nodes, facts)
            if answer is INFEASIBLE:
                return True
            if answer is not UPDATED:
                return bool(self.compute_alone(facts.number))
        return False


class ScoreAnswer(KeptAnswer[np.int64]):
    """The numbers of a score for all rows, before they are normalised."""

    def __init__(self, plugin: Score[Any], pod: Pod, answers: Answers) -> None:
        #: Whether its numbers are used without normalising.
        self.is_plain = plugin.reduces is Reduction.NOTHING
        super().__init__(plugin, pod, answers)

    @property
    def is_flat(self) -> bool:
        """Whether all nodes have the same number, so that normalising prefers none of them."""
        among = self.values[self.nodes.rows]
        return not len(among) or bool((among == among[0]).all())

    def prepare(self, pod: Pod) -> Any:
        if not isinstance(self.plugin, PreScore):
            return pod
        ask = make_caller(self._answers.observer, PRE_SCORE)
        return ask_pre_score(self.plugin, pod, self.nodes, self.nodes.rows, ask)

    def compute(self, rows: Rows) -> NDArray[np.int64]:
        if self.prepared is None:
            return np.zeros(self.nodes.count(rows), np.int64)
        if isinstance(rows, slice):
            ask = make_caller(self._answers.observer, SCORE)
            scores = ask_score(self.plugin, self.prepared, self.nodes, rows, ask)
        else:
            scores = ask_score(self.plugin, self.prepared, self.nodes, rows)
        return check_range(scores) if self.is_plain else scores

    def answer_row(self, facts: RowFacts) -> int:
        row, values = facts.number, self._values
        answer = ask_rescore(self.plugin, self.prepared, self.nodes, facts, values)
        if answer is not UPDATED:
            return int(self.compute_alone(row))
        score: int = values.item(row)
        if self.is_plain and not 0 <= score <= MAX_SCORE:
            raise Unserved
        return score

    def _is_of_figures(self) -> bool:
        return self.is_plain and super()._is_of_figures()


class Answers:
    """The answers of a profile's plugins. An answer is freed with the last class that uses it."""

    def __init__(
        self,
        profile: Profile,
        cluster: Cluster,
        statistics: Statistics,
        report: Callable[[str], None],
    ) -> None:
        self.profile = profile
        self.cluster = cluster
        self.nodes = cluster.nodes
        self.observer = profile.observer
        self.statistics = statistics
        #: Reports a plugin whose answers were wrong, by name.
        self.report = report
        #: How often plugins were asked about all rows.
        self.renewals = 0
        #: The plugins whose answers for single rows were found to be wrong. They are asked about
        #: all rows after every change.
        self.widened: set[Plugin] = set()
        self._kept: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
        self._empty: RowView[np.bool_] | None = None
        # The visit order, a start and the turns from there.
        self._turns: tuple[NDArray[np.intp], int, NDArray[np.intp]] | None = None

    @property
    def empty_rows(self) -> RowView[np.bool_]:
        """Returns the rows that have no node."""
        if self._empty is None:
            nodes = self.nodes
            self._empty = RowView(nodes, Change.MEMBERSHIP, lambda rows: ~nodes.alive[rows])
        return self._empty

    def forget(self) -> None:
        """Forgets all answers, because the state that they were found from is gone."""
        self._kept.clear()
        self._empty = self._turns = None

    def find_turns(self, start: int) -> NDArray[np.intp]:
        """Returns the turn of each row in the visit order from a start, the same array for all."""
        order, known = self.nodes.order, self._turns
        if known is None or known[0] is not order or known[1] != start:
            turns = np.zeros(self.nodes.count(self.nodes.everything), np.intp)
            turns[np.roll(order, -start)] = np.arange(len(order))
            known = self._turns = order, start, turns
        return known[2]

    def find(self, kind: type[K], plugin: Plugin, ask: Hashable, pod: Pod) -> K:
        """Returns a plugin's answer for pods about which it is asked that, up to date."""
        key = kind, plugin, ask
        known: K | None = self._kept.get(key)
        if known is None:
            known = self._kept[key] = kind(plugin, pod, self)
        else:
            known.meet(pod)
            known.current()
        return known
