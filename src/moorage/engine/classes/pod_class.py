"""A class of like pods: the answers of every plugin for them on all rows, kept up to date.

The generation says for which state of the cluster the answers hold. The change log has all changes
since. A plugin is asked again only about rows with kinds of change that it reads. It is asked about
all rows only if its answers for a row depend on other rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Cluster, Mask, RowFacts, Rows, Scope
from moorage.cluster.arrays import freeze
from moorage.cluster.changes import Change, unite
from moorage.cluster.row_view import Changed, LogReader
from moorage.framework.attempt import Failed, Filtered, Layer, PreFiltered, Scored
from moorage.framework.calls import (
    FILTERING,
    ask_filter,
    ask_pre_score,
    ask_score,
    ask_watch,
    make_recheck,
    make_rescore,
)
from moorage.framework.observe import FILTER, SCORE, PointTimer, make_caller
from moorage.framework.plugin import (
    INFEASIBLE,
    UPDATED,
    Filter,
    Plugin,
    PreFilter,
    PreScore,
    Reduction,
    Rescore,
    Score,
    Scores,
)
from moorage.framework.plugin_fence import check_range, make_plugin_error
from moorage.framework.points import pre_filter, pre_filter_again
from moorage.framework.profile import Profile
from moorage.framework.verdict import Verdict
from moorage.objects.pod import Pod

from .batch import LEVEL_BYTES, RANKED_BYTES, DomainBatch
from .parts import (
    Asked,
    RelativeAnswer,
    RowFilter,
    ScoreColumn,
    Unserved,
    WideFilter,
    is_kept,
)
from .relative_scores import RelativeScores
from .scores import ClassScores
from .stances import Point, Stances
from .statistics import Flush, Statistics
from .wide_filters import WideFilters

# A ranking is made once no wide filter has rejected a row for so many pods in succession.
_WORTH_RANKING = 4

# More changed rows than these are asked about in columns: one by one would take longer.
_ROW_BY_ROW = 16

# A plain integer, because combining flags of an enum takes many times as long.
_MEMBERSHIP = int(Change.MEMBERSHIP)

_DEAD = np.int64(1) << np.int64(62)

# The bytes of a class besides its columns: what plugins prepared, and their answers by figures.
_BYTES = 65_536
# The bytes per row: for the bits, plain scores, totals, verdicts of row filters and rankings; for
# the numbers of a score; for the verdict of a wide filter and what it prepared.
_ROW_BYTES = 24 + 8 + RANKED_BYTES
_COLUMN_BYTES = 8
_WIDE_BYTES = 9


#: What pods of a class have of their own that are alike in everything.
ALIKE: Mapping[Plugin, Hashable] = {}


class PodClass:
    """The answers for one class. `bits` has for each row one bit per row filter that rejects it."""

    def __init__(
        self,
        profile: Profile,
        pod: Pod,
        cluster: Cluster,
        statistics: Statistics,
        own: Mapping[Plugin, Hashable] = ALIKE,
    ) -> None:
        self._statistics = statistics
        self.profile = profile
        self._cluster = cluster
        self._nodes = cluster.nodes
        #: The row of the last pod of the class.
        self.last_row: int | None = None
        #: The last failure of the class.
        self.failed: Failed | None = None
        #: For how many pods in succession no wide filter has rejected a row.
        self._unrejected = 0
        self.rebuild(pod, own)

    def rebuild(self, pod: Pod, own: Mapping[Plugin, Hashable] = ALIKE) -> None:
        """Asks every plugin about every row."""
        self.pod = pod
        #: What some plugins sign of this pod that they need not sign of all pods of the class.
        self._own = own
        #: Where in the log of changes the answers are up to date.
        self.reader = LogReader(self._cluster.changes)
        self.pre_filtered = pre_filter(self.profile, self.pod, self._nodes)
        if self.pre_filtered.rejected is not None or self.pre_filtered.node_names is not None:
            raise Unserved
        self._labels_version = self._nodes.labels_version
        self._stances = Stances(self._nodes)
        self._ask_everyone()
        for plugin in self.profile.pre_filter:
            if not isinstance(plugin, Filter) or plugin not in self.profile.filter:
                watch = ask_watch(plugin, pod, self._nodes)
                self._stances.note(plugin, pod, Point.PRE_FILTER, watch)
        far = [column for column in self.columns if column.plugin.scope is not Scope.ROW]
        self._far_watch = unite(column.watch for column in far)
        self._near_watch = unite(
            (*(each.watch for each in self.row_filters), *(each.watch for each in self.columns))
        )
        self._look_wide()
        #: The rows that no row filter rejects; None until they are listed anew.
        self._unrejected_rows: NDArray[np.intp] | None = None
        self._by_kinds: dict[int, Asked] = {}
        #: The rows where such pods do not fit, with the kinds of change since they were scored.
        self._unscored: dict[int, int] = {}

    # Asking about all rows

    def _ask_everyone(self) -> None:
        observer, name = self.profile.observer, self.profile.name
        with PointTimer(observer, FILTER, name):
            self._ask_filters()
        with PointTimer(observer, SCORE, name):
            self._ask_scores()
        wide = [each.plugin.name for each in self.wide_filters if each.prepared is not None]
        observer.plugins_evaluated(
            name, FILTER, (*(each.plugin.name for each in self.row_filters), *wide)
        )
        observer.plugins_evaluated(name, SCORE, (each.plugin.name for each in self.columns))

    def _ask_filters(self) -> None:
        nodes, rows = self._nodes, self._nodes.everything
        ask = make_caller(self.profile.observer, FILTER)
        self.row_filters: list[RowFilter] = []
        self.wide_filters = WideFilters(self.pre_filtered, nodes)
        #: Both, in the order in which they are asked.
        self._in_order: list[RowFilter | WideFilter] = []
        self.bits: NDArray[np.int64] = np.where(nodes.alive[rows], 0, _DEAD)
        for plugin in self.profile.filter:
            watch = ask_watch(plugin, self.pod, nodes)
            if plugin.scope is not Scope.ROW:
                self._in_order.append(self.wide_filters.add(plugin, watch, self.pod))
                continue
            skips = plugin.name in self.pre_filtered.skipped
            self._stances.note(plugin, self.pod, Point.FILTER, watch, skips=skips)
            if not skips:
                bit, recheck = 1 << len(self.row_filters), make_recheck(plugin, nodes)
                narrow = RowFilter(plugin, self._find_prepared(plugin), watch, bit, recheck)
                self.row_filters.append(narrow)
                self._in_order.append(narrow)
                verdict = ask_filter(plugin, narrow.prepared, nodes, rows, ask)
                self.bits |= verdict.rejected * np.int64(bit)

    def _find_prepared(self, plugin: Filter[Any]) -> Any:
        prepared = self.pre_filtered.prepared
        return prepared[plugin.name] if isinstance(plugin, PreFilter) else self.pod

    def _ask_scores(self) -> None:
        self.columns: list[ScoreColumn] = []
        self.relative = RelativeScores(self.profile, self._cluster)
        for plugin, weight in self.profile.score:
            watch = ask_watch(plugin, self.pod, self._nodes)
            if is_kept(plugin):
                self._add_column(plugin, watch, weight)
            else:
                self.relative.add(plugin, watch, weight, self.pod)
        self.scores = ClassScores(self.columns, self.bits, self._nodes)

    def _add_column(self, plugin: Score[Any], watch: int, weight: int) -> None:
        prepared = self._pre_score(plugin)
        self._stances.note(plugin, self.pod, Point.SCORE, watch, skips=prepared is None)
        if prepared is not None:
            ask = make_caller(self.profile.observer, SCORE)
            rows = self._nodes.everything
            raw = ask_score(plugin, prepared, self._nodes, rows, ask)
            if plugin.reduces is Reduction.NOTHING:
                check_range(raw)
            self.columns.append(
                ScoreColumn(
                    plugin,
                    prepared,
                    watch,
                    weight,
                    # Values are overwritten when rows change, and the plugin may keep its array.
                    raw.copy(),
                    plugin.reduces is Reduction.NOTHING,
                    make_rescore(plugin, self._nodes),
                )
            )

    def _pre_score(self, plugin: Score[Any]) -> Any:
        if not isinstance(plugin, PreScore):
            return self.pod
        return ask_pre_score(plugin, self.pod, self._nodes, self._nodes.rows)

    # Refreshing

    def refresh(self, pod: Pod, own: Mapping[Plugin, Hashable] = ALIKE) -> None:
        """Brings every answer up to date with the cluster.

        Plugins are asked about this pod from now on, not about the one before it, whose volumes
        may be in use or may have changed. Those that do not sign the two alike are asked anew.
        """
        before, self.pod = self.pod, pod
        unlike = self._find_unlike(own)
        if self._labels_version != self._nodes.labels_version:
            self._labels_version = self._nodes.labels_version
            # What was prepared for one pod holds for another only if all labels that are read of
            # them are equal.
            if self._nodes.labels_that_matter(before) != self._nodes.labels_that_matter(pod):
                self._begin_anew(Flush.LABELS)
                return
        if not unlike and self.reader.is_current:
            return
        changed = self.reader.read()
        if changed is None or changed.everywhere & _MEMBERSHIP:
            self._begin_anew(Flush.BEHIND if changed is None else Flush.MEMBERSHIP)
            return
        union = changed.union
        if self._stances.watch & union and self._stances.have_turned(pod, union):
            self._begin_anew(Flush.SKIPPING)
            return
        if unlike or self._wide_watch & union:
            self._refresh_wide(union, unlike)
        self._refresh_rows(changed, union)

    def _find_unlike(self, own: Mapping[Plugin, Hashable]) -> Sequence[Plugin]:
        """Returns the plugins that do not sign a pod like the one before it; notes the new part."""
        if own is self._own:
            return ()
        before, self._own = self._own, own
        return [plugin for plugin, part in own.items() if part != before[plugin]]

    def _begin_anew(self, why: Flush) -> None:
        self._statistics.flushes[why] += 1
        self.rebuild(self.pod, self._own)

    def _refresh_wide(self, union: int, unlike: Sequence[Plugin] = ()) -> None:
        """Asks the wide plugins again that read such changes, or tell the pod from the last one."""
        pod, wide = self.pod, self.wide_filters
        is_same = wide.refresh(pod, union, unlike)
        is_same &= self.relative.refresh(pod, union, unlike, fits_nowhere=wide.reject_all)
        if unlike:
            self.pre_filtered = self.newest_prepared()
        if not is_same:
            self._look_wide()
        self._count_unrejected()

    def _count_unrejected(self) -> None:
        """Counts the pods in succession for which no wide filter rejects a row."""
        if not self.is_narrow:
            self._unrejected = 0 if self.wide_filters.rejections else self._unrejected + 1
            # Making a ranking takes long, so it must serve several pods.
            self.is_ranked = self.has_own_totals and self._unrejected >= _WORTH_RANKING

    def _look_wide(self) -> None:
        """Notes what the wide plugins watch, and whether any of them is active."""
        self._wide_watch = unite(
            (*(each.watch for each in self.wide_filters), *(each.watch for each in self.relative))
        )
        wide = sum(each.prepared is not None for each in self.wide_filters)
        self._active_scores = self.relative.count_active()
        per_row = _ROW_BYTES + _COLUMN_BYTES * len(self.columns) + _WIDE_BYTES * wide
        if any(each.is_active and each.has_levels for each in self.relative):
            per_row += LEVEL_BYTES
        #: How many bytes the class takes, at most, if plugins prepare no more than some columns.
        self.size = _BYTES + per_row * len(self.bits)
        #: Whether the total of a row depends on that row alone.
        self.has_own_totals = not self._active_scores
        #: Whether the bits alone say where such pods fit: no wide filter is active.
        self.is_narrow = not wide
        self._unrejected = 0
        #: Whether the best row can be taken from a ranking: at present, no answer for a row depends
        #: on other rows.
        self.is_ranked = self.has_own_totals and self.is_narrow

    def _refresh_rows(self, changed: Changed, union: int) -> None:
        if self._far_watch & union or self._near_watch & changed.everywhere:
            # Changes that concern all rows are rare, and asking every plugin again is exact.
            self._begin_anew(Flush.EVERYWHERE)
        elif len(changed.rows) > _ROW_BY_ROW:
            rows = np.fromiter(changed.rows, np.intp, len(changed.rows))
            self._refresh_together(rows, union)
        else:
            near = self._near_watch
            for row, kinds in changed.rows.items():
                if kinds & near:
                    self._refresh_row(row, kinds)

    def _refresh_together(self, rows: NDArray[np.intp], union: int) -> None:
        """Updates many rows at once, for all kinds of change that any of them had."""
        if self._unscored:
            changed = np.zeros(len(self.bits), np.bool_)
            changed[rows] = changed[list(self._unscored)] = True
            rows = np.flatnonzero(changed)
            union |= unite(self._unscored.values())
            self._unscored.clear()
        asked = self._find_readers(union)
        before = self.bits[rows]
        bits = before.copy()
        asked.forget_verdicts()
        for each in asked.filters:
            rejected = ask_filter(each.plugin, each.prepared, self._nodes, rows).rejected
            bits = (bits & ~np.int64(each.bit)) | (rejected * np.int64(each.bit))
        self.bits[rows] = bits
        self._unrejected_rows = None
        self.scores.refresh(rows, asked.columns, before)

    def _refresh_row(self, row: int, kinds: int) -> None:
        asked = self._by_kinds.get(kinds) or self._find_readers(kinds)
        # Known facts are looked up here without a call, because this runs for every changed row.
        facts = self._nodes.known_facts.get(row) or self._nodes.facts(row)
        before = bits = self.bits.item(row)
        if asked.bits:
            asked.forget_verdicts()
            known: int | None = None
            if asked.are_filters_alike:
                known = asked.rejections.get(facts.known_figures or facts.figures)
            rejecting = self._find_rejecting(asked, facts) if known is None else known
            bits = before & ~asked.bits | rejecting
        if bits != before:
            self.bits[row] = bits
            self._unrejected_rows = None
        if bits:
            self._unscored[row] = self._unscored.get(row, 0) | kinds
            if not before:
                self.scores.leave(row)
        elif before:
            self.scores.enter(facts, self._find_readers(kinds | self._unscored.pop(row, 0)))
        elif asked.columns:
            self.scores.move(facts, asked)

    def _find_rejecting(self, asked: Asked, facts: RowFacts) -> int:
        """Returns the bits of the filters that reject a row."""
        bits = 0
        for each in asked.filters:
            try:
                answer = each.recheck(each.prepared, self._nodes, facts)
            except Exception as error:
                raise make_plugin_error(FILTERING, each.plugin, error) from error
            if answer is not INFEASIBLE and answer is not UPDATED:
                answer = self._recheck(each, facts.number)
            if answer is INFEASIBLE:
                bits |= each.bit
        if asked.are_filters_alike:
            asked.keep_rejection(facts.figures, bits)
        return bits

    def _recheck(self, each: RowFilter, row: int) -> Rescore:
        """Asks a filter about one row with `filter`, because its `recheck` gave no answer."""
        verdict = ask_filter(each.plugin, each.prepared, self._nodes, np.array([row]))
        return INFEASIBLE if verdict.rejected[0] else UPDATED

    def _find_readers(self, kinds: int) -> Asked:
        """Returns the plugins that read any of these kinds of change."""
        asked = self._by_kinds.get(kinds)
        if asked is None:
            asked = self._by_kinds[kinds] = Asked(
                [each for each in self.row_filters if each.watch & kinds],
                [column for column in self.columns if column.watch & kinds],
            )
        return asked

    # Choosing

    @property
    def fits_nowhere(self) -> bool:
        """Returns whether a wide filter rejects every row."""
        return self.wide_filters.reject_all

    def feasible(self) -> Mask:
        """Returns for each row whether such a pod fits, without regard to nominated pods."""
        fits: Mask = self.bits == 0
        for rejected in self.wide_filters.rejections:
            fits &= ~rejected
        return fits

    def feasible_among(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Returns those of some rows where such a pod fits, without regard to nominated pods."""
        fits = self.bits[rows] == 0
        for rejected in self.wide_filters.rejections:
            fits &= ~rejected[rows]
        return rows[fits]

    def list_feasible(self) -> NDArray[np.intp]:
        """Returns the rows where such a pod fits, without regard to nominated pods."""
        if self.wide_filters.rejections:
            return self._list(self.feasible())
        if self._unrejected_rows is None:
            self._unrejected_rows = self._list(self.bits == 0)
        return self._unrejected_rows

    def _list(self, fits: Mask) -> NDArray[np.intp]:
        if np.count_nonzero(fits) == len(fits):
            # All rows fit: the array of all rows is known and need not be made.
            return self.scores.everything
        return freeze(fits.nonzero()[0])

    def filter(self) -> Filtered:
        """Returns what `filter_rows` does for all rows; only who rejects some row is asked."""
        nodes, rows = self._nodes, self._nodes.everything
        feasible = nodes.alive[rows]
        rejecting = int(np.bitwise_or.reduce(self.bits))
        layers: list[Layer] = []
        for plugin, verdict in self._find_verdicts(rejecting):
            rejected = verdict.rejected
            decided = feasible & rejected
            if np.count_nonzero(decided):
                layers.append(Layer(plugin.name, verdict, decided))
                feasible = feasible & ~rejected
                if not np.count_nonzero(feasible):
                    break
        return Filtered(self.scores.everything, feasible, tuple(layers))

    def _find_verdicts(self, rejecting: int) -> Iterator[tuple[Filter[Any], Verdict]]:
        """Yields the verdicts with which some row is rejected, in the order of the filters."""
        nodes = self._nodes
        for each in self._in_order:
            if isinstance(each, RowFilter) and each.bit & rejecting and each.verdict is None:
                each.verdict = ask_filter(each.plugin, each.prepared, nodes, nodes.everything)
            if each.verdict is not None:
                yield each.plugin, each.verdict

    def scored(self, pod: Pod, feasible: NDArray[np.intp]) -> Scored:
        """Returns the totals of feasible rows; relative scores are asked anew."""
        added = self.add_relatively(self.ask_relatively(pod, feasible), feasible)
        totals = self.scores.totals_of(self._widen(feasible))
        totals += added
        return Scored(feasible, {}, totals)

    def _widen(self, feasible: NDArray[np.intp]) -> Rows:
        """Returns the same rows, as a slice if they are all: it is read many times faster."""
        return self._nodes.everything if feasible is self.scores.everything else feasible

    def ask_relatively(self, pod: Pod, feasible: NDArray[np.intp]) -> list[RelativeAnswer]:
        """Returns the answers of the scores that depend on which rows are feasible."""
        answers = self.relative.ask(pod, feasible)
        if self.relative.count_active() != self._active_scores:
            self._look_wide()
        return answers

    def choose_by_level(self, answers: list[RelativeAnswer], ranking: DomainBatch) -> int | None:
        """Returns the best of all rows that no filter rejects; None without a ranking by levels."""
        if self.wide_filters.rejections:
            return None
        return self.relative.choose_by_level(answers, self.scores, ranking)

    def add_relatively(self, answers: list[RelativeAnswer], feasible: NDArray[np.intp]) -> Scores:
        """Returns what relative scores add to the totals of feasible rows."""
        return self.relative.add_up(answers, self._widen(feasible))

    def prepare_for(self, pod: Pod) -> PreFiltered | None:
        """Returns what is prepared for a pod of the class, which may have volumes of its own.

        None if some plugin takes another stance towards it.
        """
        newest = self.newest_prepared()
        if not pod.spec.volumes:
            return newest
        wide = [each.plugin for each in self.wide_filters if each.prepared is not None]
        prepares = [each for each in wide if isinstance(each, PreFilter)]
        return pre_filter_again(newest, prepares, pod, self._nodes)

    def newest_prepared(self) -> PreFiltered:
        """Returns what is prepared for the filters, with the newest values for wide filters."""
        return self.wide_filters.newest_prepared()
