"""A class of identical pods: whose answers it sums, and what they say of the pod at hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Cluster, Mask
from moorage.cluster.changes import Change
from moorage.cluster.row_view import EVERYTHING, Changed, LogReader
from moorage.framework.attempt import Failed, PreFiltered, Scored
from moorage.framework.observe import FILTER, SCORE, PointTimer
from moorage.framework.plugin import Plugin
from moorage.framework.points import pre_filter_again
from moorage.framework.profile import Profile
from moorage.objects.pod import Pod

from .answers import Answers, FilterAnswer, KeptAnswer, Unserved
from .failure import Failure, is_row_local
from .ranking import Column, Ranking, Turns
from .relative_scores import RelativeScores, is_kept
from .signature import Asks
from .statistics import Flush, Statistics

# A plain integer, because combining flags of an enum takes many times as long.
_MEMBERSHIP = int(Change.MEMBERSHIP)

# A factor that spreads positions of the log evenly.
_HASH = 0x9E37_79B1

# The bytes of a class besides its columns: what plugins prepared, and their answers by figures.
_BYTES = 65_536
# The bytes per row: for keys, their normalised part, the rows that fit and reasons of a failure;
# for the rejections of a filter; for the numbers of a score; for what a wide filter prepared.
_ROW_BYTES, _FILTER_BYTES, _SCORE_BYTES, _WIDE_BYTES = 3 * 8 + 16, 1, 8, 8


def is_checked(generation: int) -> bool:
    """Returns whether answers are checked at a position of the log: at one of 4,096."""
    return (generation * _HASH & 0xFFFF_FFFF) >> 20 == 0


class PodClass:
    """The sum of the answers for all pods about which the plugins in it are asked the same.

    Other plugins look at other rows: how far their answers reach, or what they are asked, differs
    from pod to pod. These are the wide filters and the relative scores; they are not in the sum.
    """

    def __init__(
        self,
        profile: Profile,
        pod: Pod,
        cluster: Cluster,
        statistics: Statistics,
        answers: Answers,
        asks: Asks,
    ) -> None:
        self.profile = profile
        self._statistics = statistics
        self._cluster = cluster
        self.nodes = nodes = cluster.nodes
        self._answers = answers
        #: The pod that was decided last, and what plugins are asked about it.
        self.pod, self.asks = pod, asks
        #: The row of the last pod of the class.
        self.last_row: int | None = None
        # Why such pods fit nowhere; None if that is not known.
        self._failure: Failure | None = None
        #: Where in the log of changes the answers are up to date.
        self.reader = LogReader(cluster.changes)
        self._labels_version = nodes.labels_version
        #: The answers of all filters, and of pre-filters without a filter, in their order.
        self._filters: list[FilterAnswer] = []
        self._pre_filtered: PreFiltered | None = None
        with PointTimer(profile.observer, FILTER, profile.name):
            self._find_filters()
        self.relative = RelativeScores(profile, cluster)
        with PointTimer(profile.observer, SCORE, profile.name):
            self._columns = list(self._find_columns())
        narrow = [each for each in self._filters if not self._is_apart(each)]
        self.ranking = Ranking(
            [answers.empty_rows, *narrow], self._columns, nodes.count(nodes.everything)
        )
        self._note_kinds()
        self._tell_observer()

    def close(self) -> None:
        """Lets go of the answers, because the class is dropped."""
        self.ranking.close()
        self._failure = None

    # Asking

    def _find_filters(self) -> None:
        profile, find = self.profile, self._answers.find_filter
        filters = frozenset[Plugin](profile.filter)
        doors = [each for each in profile.pre_filter if each not in filters]
        for plugin in (*doors, *profile.filter):
            ask = self.asks.parts.get(plugin)
            self._filters.append(find(plugin, ask, self.pod, is_filter=plugin in filters))
        self._look_wide()

    def _find_columns(self) -> Iterator[Column]:
        for plugin, weight in self.profile.score:
            if is_kept(plugin) and plugin not in self.asks.own:
                ask = self.asks.parts.get(plugin)
                yield Column(self._answers.find_score(plugin, ask, self.pod), weight)
            else:
                self.relative.add(plugin, weight, self.pod)

    def _look_wide(self) -> None:
        """Notes which wide filters have a say on the pod at hand, and which reject some row."""
        #: What filters had prepared then.
        self._prepared: dict[KeptAnswer[Any], Any] = {each: each.prepared for each in self._filters}
        wide = [each for each in self._filters if self._is_apart(each) and each.has_say]
        self._wide = wide
        counts = [each.count_rejected() for each in wide]
        self._rejecting = [each for each, count in zip(wide, counts, strict=True) if count]
        self._failure = None
        #: Whether a wide filter rejects every row.
        self.fits_nowhere = any(0 < count == len(wide[0].values) for count in counts)
        self._pre_filtered = None

    def _is_apart(self, answer: FilterAnswer) -> bool:
        """Whether an answer is not in the sum, because it is another one for each pod."""
        return answer.is_wide or answer.plugin in self.asks.own

    def _note_kinds(self) -> None:
        self._answers_version = self._answers.version
        self._failure = None
        #: The answers that changes of some kinds may alter.
        self._by_union: dict[int, Sequence[KeptAnswer[Any]]] = {}

    def _find_readers(self, union: int) -> Sequence[KeptAnswer[Any]]:
        if self._answers_version != self._answers.version:
            self._note_kinds()
        readers = self._by_union.get(union)
        if readers is None:
            columns = [each.answer for each in self._columns]
            asked: list[KeptAnswer[Any]] = [*self._filters, *columns]
            # A node that comes or goes concerns everyone.
            everyone = union & _MEMBERSHIP
            readers = [each for each in asked if everyone or each.kinds & union]
            self._by_union[union] = readers
        return readers

    def _tell_observer(self) -> None:
        observer, name = self.profile.observer, self.profile.name
        asked = [each for each in self._filters if each.prepared is not None and each.is_filter]
        observer.plugins_evaluated(name, FILTER, [each.plugin.name for each in asked])
        observer.plugins_evaluated(name, SCORE, [each.answer.plugin.name for each in self._columns])

    @property
    def size(self) -> int:
        """Returns how many bytes the class takes, at most, if no answer is shared."""
        per_row = _ROW_BYTES + _FILTER_BYTES * len(self._filters)
        per_row += _SCORE_BYTES * len(self._columns) + _WIDE_BYTES * len(self._wide)
        return _BYTES + per_row * self.ranking.size

    # Refreshing

    def refresh(self, pod: Pod, asks: Asks) -> None:
        """Brings every answer up to date with the cluster, for this pod.

        Plugins are asked about it from now on, not about the one before it, whose volumes may be in
        use or may have changed.
        """
        self.pod = pod
        unlike: Sequence[Plugin] = ()
        if asks is not self.asks:
            unlike = self._turn_to(asks)
        if self._labels_version != self.nodes.labels_version:
            self._labels_version = self.nodes.labels_version
            for each in self._find_readers(_MEMBERSHIP):
                each.meet(pod)
            self._look_wide()
        changed = self.reader.read()
        if changed is None:
            self._statistics.flushes[Flush.BEHIND] += 1
            changed = EVERYTHING
        union = changed.union
        if union:
            self._take(changed, pod)
        if unlike or self.relative.watch & union:
            self.relative.refresh(pod, union, unlike, fits_nowhere=self.fits_nowhere)

    def _turn_to(self, asks: Asks) -> Sequence[Plugin]:
        """Finds the answers of plugins that are asked something else; returns these plugins."""
        before, self.asks = self.asks, asks
        unlike = [plugin for plugin, ask in asks.own.items() if ask != before.own.get(plugin)]
        for at, answer in enumerate(self._filters):
            if answer.plugin in unlike:
                ask = asks.own[answer.plugin]
                self._filters[at] = self._answers.find_filter(answer.plugin, ask, self.pod)
        self._note_kinds()
        self._look_wide()
        return unlike

    def _take(self, changed: Changed, pod: Pod) -> None:
        # Another class may have brought answers up to date before, and with them what they watch.
        has_turned = self._answers_version != self._answers.version
        if self._failure is not None and changed.union & self._failure.watch:
            self._failure.forget_remedies()
        for answer in self._find_readers(changed.union):
            answer.asker = pod
            answer.take(changed)
            known = self._prepared.get(answer, answer.prepared)
            if answer.prepared is not known or answer in self._wide:
                has_turned = True
        if changed.union & _MEMBERSHIP:
            self._answers.empty_rows.current()
            has_turned = True
        if is_checked(self._cluster.changes.generation):
            self._check()
            has_turned = True
        if has_turned:
            self._look_wide()

    def _check(self) -> None:
        """Compares what plugins have said row by row with what they say of all rows now.

        A plugin that reads more than it declares is asked about all rows from now on.
        """
        for each in self._find_readers(_MEMBERSHIP):
            each.asker = self.pod
            if not each.check() and each.plugin not in self._answers.widened:
                self._answers.widened.add(each.plugin)
                self._answers.report(each.plugin.name)
                each.renew()

    # What such pods are like

    @property
    def has_own_totals(self) -> bool:
        """Returns whether the total of a row depends on no other rows."""
        return not self.relative.has_active

    @property
    def is_narrow(self) -> bool:
        """Returns whether the keys alone say where such pods fit: no wide filter is active."""
        return not self._wide

    @property
    def keys(self) -> NDArray[np.int64]:
        """Returns a number per row that is above 0 where no filter but wide ones rejects it."""
        return self.ranking.keys

    @property
    def pre_filtered(self) -> PreFiltered:
        """Returns what filters have prepared."""
        known = self._pre_filtered
        if known is None:
            by_plugin = {each.plugin: each for each in self._filters}
            prepared, skipped = {}, set()
            for plugin in self.profile.pre_filter:
                value = by_plugin[plugin].prepared
                if value is None:
                    skipped.add(plugin.name)
                else:
                    prepared[plugin.name] = value
            known = self._pre_filtered = PreFiltered(prepared, frozenset(skipped))
        return known

    def count_wide(self) -> int:
        """Returns how many wide filters have a say on the pod at hand."""
        return len(self._wide)

    def prepare_for(self, pod: Pod) -> PreFiltered:
        """Returns what is prepared for a pod of the class, which may have volumes of its own.

        Raises Unserved if a plugin takes another stance towards it.
        """
        known = self.pre_filtered
        if not (pod.spec.volumes or pod.spec.resource_claims):
            return known
        prepares = [each for each in self.profile.pre_filter if each.name in known.prepared]
        prepared = pre_filter_again(known, prepares, pod, self.nodes)
        if prepared is None:
            raise Unserved
        return prepared

    # Where they fit

    @property
    def is_rejected(self) -> bool:
        """Returns whether a wide filter rejects some row."""
        return bool(self._rejecting)

    def list_feasible(self, among: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
        """Returns the rows where such a pod fits, or those of some, without nominated pods."""
        rejections = [each.values for each in self._rejecting]
        if among is None and not rejections:
            return self.ranking.list_fitting()
        fits: Mask = self.keys > 0 if among is None else self.keys[among] > 0
        for rejected in rejections:
            fits &= ~(rejected if among is None else rejected[among])
        rows = fits.nonzero()[0]
        return rows if among is None else among[rows]

    def fits(self, row: int) -> bool:
        """Returns whether such a pod fits on a node, without nominated pods."""
        return not any(each.values[row] for each in self._filters)

    def has_failed(self, pod: Pod) -> bool:
        """Returns whether the last pod of that priority fitted nowhere."""
        return self._failure is not None and self._failure.priority == pod.priority

    def fail(self, pod: Pod) -> Failed | None:
        """Returns why a pod fits nowhere.

        None if a row takes it, or if a nominated pod may matter on other rows than its own.
        """
        prepared = self.prepare_for(pod)
        if not is_row_local(self.profile, pod, prepared, self.nodes, self._filters):
            return None
        if self._failure is None or not self.has_failed(pod):
            self._failure = Failure(self.profile, pod, prepared, self.nodes, self._filters)
        return self._failure.find(pod, prepared)

    # The best row

    def rank(self, turns: Turns) -> None:
        """Makes sure that rows are ranked by the present answers, in a visit order."""
        self.ranking.sum(turns)

    def best(self) -> int | None:
        """Returns the best row, if the sum alone says where such pods fit and which is the best."""
        return self.ranking.best()

    def best_of(self, pod: Pod, feasible: NDArray[np.intp]) -> int:
        """Returns the best of some rows where the pod fits, of which there are at least two."""
        added = None
        if self.relative.has_active:
            rows = self.nodes.everything if len(feasible) == self.ranking.size else feasible
            answers = self.relative.ask(pod, feasible)
            added = self.relative.add_up(answers, rows, self.ranking.size)
        return self.ranking.best_of(feasible, added)

    def scored(self, pod: Pod, feasible: NDArray[np.intp]) -> Scored:
        """Returns the totals of feasible rows."""
        totals = self.ranking.totals_of(feasible)
        answers = self.relative.ask(pod, feasible)
        return Scored(feasible, {}, totals + self.relative.add_up(answers, feasible))
