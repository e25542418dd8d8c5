"""A class of identical pods: whose answers it sums, and what they say of the pod at hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask
from moorage.cluster.changes import Change
from moorage.cluster.row_view import EVERYTHING, Changed, RowViews
from moorage.engine.cycle import Window
from moorage.framework.attempt import Failed, PreFiltered, Scored
from moorage.framework.nominated import find_refused_by_nominated
from moorage.framework.observe import FILTER, SCORE, PointTimer
from moorage.framework.plugin import Plugin
from moorage.framework.points import pre_filter_again
from moorage.objects.pod import Pod

from .answers import Answers, FilterAnswer, K, KeptAnswer, ScoreAnswer, Unserved
from .failure import Failure, is_row_local
from .ranking import Column, Ranking
from .relative_scores import RelativeScores, is_kept
from .signature import Asks
from .statistics import Flush

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

    def __init__(self, answers: Answers, pod: Pod, asks: Asks) -> None:
        self.profile = profile = answers.profile
        self.nodes = nodes = answers.nodes
        self._answers = answers
        #: The pod that was decided last, and what plugins are asked about it.
        self.pod, self.asks = pod, asks
        #: The row of the last pod of the class.
        self.last_row: int | None = None
        # The priority of the last pod that fitted nowhere, and why, once a second one did not.
        self._failed_priority: int | None = None
        self._failure: Failure | None = None
        self._labels_version = nodes.labels_version
        #: The answers of all filters, and of pre-filters without a filter, in their order.
        self._filters: list[FilterAnswer] = []
        self._pre_filtered: PreFiltered | None = None
        with PointTimer(profile.observer, FILTER, profile.name):
            self._find_filters()
        self.relative = RelativeScores(profile, answers.cluster)
        with PointTimer(profile.observer, SCORE, profile.name):
            self._columns = list(self._find_columns())
        narrow = [each for each in self._filters if not self._is_apart(each)]
        self.ranking = Ranking(
            [answers.empty_rows, *narrow], self._columns, nodes.count(nodes.everything)
        )
        #: All answers, brought up to date together.
        self.views = RowViews(answers.cluster.changes, self._list_answers())
        # How often answers had been renewed when they were looked at: those of all classes, and
        # those of this one.
        self._renewals = self._stamp = 0
        self._look()
        self._tell_observer()

    def close(self) -> None:
        """Lets go of the answers, because the class is dropped."""
        self.ranking.close()
        self._failure = None

    # Asking

    def _find_filters(self) -> None:
        filters = frozenset[Plugin](self.profile.filter)
        doors = [each for each in self.profile.pre_filter if each not in filters]
        self._filters += [
            self._find(FilterAnswer, plugin) for plugin in (*doors, *self.profile.filter)
        ]

    def _find(self, kind: type[K], plugin: Plugin) -> K:
        return self._answers.find(kind, plugin, self.asks.parts.get(plugin), self.pod)

    def _find_columns(self) -> Iterator[Column]:
        for plugin, weight in self.profile.score:
            if is_kept(plugin) and plugin not in self.asks.own:
                yield Column(self._find(ScoreAnswer, plugin), weight)
            else:
                self.relative.add(plugin, weight, self.pod)

    def _look_again(self) -> None:
        """Looks at the answers again if one was renewed, by another class that shares it maybe."""
        if self._renewals != self._answers.renewals:
            self._renewals = self._answers.renewals
            if self._stamp != self._find_stamp():
                self._look()

    def _find_stamp(self) -> int:
        """Returns a number that grows when an answer is renewed."""
        return sum([each.renewals for each in self._all])

    def _look(self) -> None:
        """Notes which wide filters have a say on the pod at hand, and which reject some row."""
        self._all = self._list_answers()
        self.views.put(self._all)
        wide = [each for each in self._filters if self._is_apart(each) and each.has_say]
        self._wide = wide
        counts = [each.count_rejected() for each in wide]
        self._rejecting = [each for each, count in zip(wide, counts, strict=True) if count]
        self._failed_priority = self._failure = None
        #: Whether a wide filter rejects every row.
        self.fits_nowhere = any(0 < count == len(wide[0].values) for count in counts)
        self._pre_filtered = None
        self._renewals, self._stamp = self._answers.renewals, self._find_stamp()

    def _is_apart(self, answer: FilterAnswer) -> bool:
        """Whether an answer is not in the sum, because it is another one for each pod."""
        return answer.is_wide or answer.plugin in self.asks.own

    def _list_answers(self) -> list[KeptAnswer[Any]]:
        return [*self._filters, *(each.answer for each in self._columns)]

    def _tell_observer(self) -> None:
        observer, name = self.profile.observer, self.profile.name
        asked = [each for each in self._filters if each.prepared is not None and each.is_filter]
        observer.plugins_evaluated(name, FILTER, [each.plugin.name for each in asked])
        observer.plugins_evaluated(name, SCORE, [each.answer.plugin.name for each in self._columns])

    @property
    def size(self) -> int:
        """Returns how many bytes the class takes, at most, if no answer is shared."""
        per_row = _ROW_BYTES + _FILTER_BYTES * len(self._filters)
        per_row += _SCORE_BYTES * len(self._columns)
        per_row += _WIDE_BYTES * sum(each.is_wide for each in self._filters)
        return _BYTES + per_row * self.ranking.size

    # Refreshing

    def refresh(self, pod: Pod, asks: Asks) -> None:
        """Brings every answer up to date with the cluster, for this pod.

        Plugins are asked about it from now on, not about the one before it, whose volumes may be in
        use or may have changed.
        """
        self.pod = pod
        unlike = self._turn_to(asks) if asks is not self.asks else ()
        if self._labels_version != self.nodes.labels_version:
            self._labels_version = self.nodes.labels_version
            for each in self._all:
                each.meet(pod)
        self._look_again()
        changed = self.views.read()
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
                self._filters[at] = self._find(FilterAnswer, answer.plugin)
        self._look()
        return unlike

    def _take(self, changed: Changed, pod: Pod) -> None:
        if changed is EVERYTHING:
            self._answers.statistics.flushes[Flush.BEHIND] += 1
        if self._failure is not None and changed.union & self._failure.watch:
            self._failure.forget_remedies()
        for answer in self.views.find_altered(changed.union):
            answer.asker = pod
            answer.take(changed)
        if changed.union & _MEMBERSHIP:
            self._answers.empty_rows.current()
            self._failed_priority = self._failure = None
        if is_checked(self._answers.cluster.changes.generation):
            self._check()
        self._look_again()

    def _check(self) -> None:
        """Compares what plugins have said row by row with what they say of all rows now.

        A plugin that reads more than it declares is asked about all rows from now on.
        """
        for each in self._all:
            each.asker = self.pod
            if not each.check() and each.plugin not in self._answers.widened:
                self._answers.widened.add(each.plugin)
                self._answers.report(each.plugin.name)
                each.renew()

    # What such pods are like

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

    def list_feasible(self, pod: Pod, among: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
        """Returns the rows where a pod fits, or those of some, with regard to nominated pods."""
        rejections = [each.values for each in self._rejecting]
        if among is None and not rejections:
            rows = self.ranking.list_fitting()
        else:
            fits: Mask = self.keys > 0 if among is None else self.keys[among] > 0
            for rejected in rejections:
                fits &= ~(rejected if among is None else rejected[among])
            rows = fits.nonzero()[0] if among is None else among[fits]
        return self._without_crowded(pod, rows) if self.nodes.nominations.are_there else rows

    def _without_crowded(self, pod: Pod, feasible: NDArray[np.intp]) -> NDArray[np.intp]:
        """Returns the feasible rows where the pod also fits beside the pods nominated to them."""
        prepared = self.prepare_for(pod)
        crowded = find_refused_by_nominated(self.profile, pod, prepared, self.nodes, feasible)
        refused = np.zeros(len(self.nodes.alive), np.bool_)
        refused[crowded] = True
        return feasible[~refused[feasible]]

    def fits(self, row: int) -> bool:
        """Returns whether such a pod fits on a node, without nominated pods."""
        return not any(each.values[row] for each in self._filters)

    def has_failed(self, pod: Pod) -> bool:
        """Returns whether the last pod of that priority fitted nowhere."""
        return self._failed_priority == pod.priority

    def fail(self, pod: Pod) -> Failed | None:
        """Returns why a pod fits nowhere.

        None if it fits on a row, if it is the first of its class to fail (often the only one),
        or if a nominated pod may affect other rows than its own.
        """
        if not self.has_failed(pod):
            self._failed_priority, self._failure = pod.priority, None
            return None
        prepared = self.prepare_for(pod)
        if not is_row_local(self.profile, pod, prepared, self.nodes, self._filters):
            return None
        if self._failure is None:
            with PointTimer(self.profile.observer, FILTER, self.profile.name):
                self._failure = Failure(self.profile, pod, prepared, self.nodes, self._filters)
        return self._failure.find(pod, prepared)

    # The best row

    def rank(self, start: int) -> None:
        """Ranks the rows by the present answers, equals in the visit order from a start."""
        self.ranking.sum(self._answers.find_turns(start))

    def choose(self, pod: Pod, window: Window) -> tuple[bool, int | None]:
        """Returns whether the sum alone says which row is the best, and that row, if any."""
        if self.fits_nowhere:
            return False, None
        self.rank(window.start)
        is_ranked = not self.relative.has_active and not self.nodes.nominations.are_there
        is_ranked = is_ranked and not self._rejecting
        if is_ranked and window.rows is None:
            return is_ranked, self.ranking.best()
        feasible = self.list_feasible(pod, window.rows)
        if len(feasible) <= 1:
            return is_ranked, feasible.item(0) if len(feasible) else None
        with PointTimer(self.profile.observer, SCORE, self.profile.name):
            return is_ranked, self._best_of(pod, feasible)

    def _best_of(self, pod: Pod, feasible: NDArray[np.intp]) -> int:
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
