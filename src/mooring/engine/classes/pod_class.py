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

from mooring.cluster import Cluster, Mask, RowFacts, Rows, Scope
from mooring.cluster.arrays import freeze
from mooring.cluster.changes import EVERYWHERE, Change, ChangeLog, RowChanges, unite
from mooring.framework.attempt import Failed, Filtered, Layer, PreFiltered, Scored
from mooring.framework.calls import (
    FILTERING,
    ask_filter,
    ask_levels,
    ask_normalize,
    ask_pre_filter,
    ask_pre_score,
    ask_score,
    ask_watch,
    find_occurring,
)
from mooring.framework.observe import FILTER, SCORE, Caller, PointTimer, make_caller
from mooring.framework.plugin import (
    INFEASIBLE,
    UPDATED,
    Filter,
    Narrowed,
    Plugin,
    PreFilter,
    PreScore,
    Reduction,
    Rescore,
    Score,
    Scores,
)
from mooring.framework.plugin_fence import PASSING, check_range, make_plugin_error
from mooring.framework.points import pre_filter, pre_filter_again
from mooring.framework.profile import Profile
from mooring.framework.status import Rejected
from mooring.framework.verdict import Verdict
from mooring.objects.pod import Pod

from .batch import LEVEL_BYTES, RANKED_BYTES, DomainBatch
from .parts import (
    Asked,
    RelativeAnswer,
    RelativeScore,
    RowFilter,
    ScoreColumn,
    Unserved,
    WideFilter,
    ignores_feasible_rows,
    is_kept,
    may_find_levels,
)
from .scores import ClassScores
from .stances import Point, Stances
from .statistics import Flush, Statistics

# Plugins are asked about more changed rows than this in columns: one by one would take longer.
_ROW_BY_ROW = 16
# More changes than this are read from the log in columns: one by one would take longer.
_CHANGE_BY_CHANGE = 64

# A ranking is made once no wide filter has rejected a row for so many pods in succession.
_WORTH_RANKING = 4

# A plain integer, because combining flags of an enum takes many times as long.
_MEMBERSHIP = int(Change.MEMBERSHIP)

# Answers of a pre-filter with which no class is made.
_NO_COLUMN = (Rejected, Narrowed)

_DEAD = np.int64(1) << np.int64(62)

# The bytes of a class besides its columns: what plugins prepared, and their answers by figures.
_BYTES = 65_536
# The bytes per row: for the bits, plain scores, totals and rankings; for the numbers of a score;
# for the verdict of a wide filter and what it prepared.
_ROW_BYTES = 24 + RANKED_BYTES
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
        self.generation = self._cluster.changes.generation
        self.pre_filtered = pre_filter(self.profile, self.pod, self._nodes)
        if self.pre_filtered.rejected is not None or self.pre_filtered.node_names is not None:
            raise Unserved
        #: What `newest_prepared` returns; None until it is found anew.
        self._newest_prepared: PreFiltered | None = None
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
        self.wide_filters: list[WideFilter] = []
        #: Both, in the order in which they are asked.
        self._in_order: list[RowFilter | WideFilter] = []
        self.bits: NDArray[np.int64] = np.where(nodes.alive[rows], 0, _DEAD)
        for plugin in self.profile.filter:
            watch = ask_watch(plugin, self.pod, nodes)
            if plugin.scope is not Scope.ROW:
                wide = WideFilter(plugin, watch, isinstance(plugin, PreFilter))
                self.wide_filters.append(wide)
                self._in_order.append(wide)
                self._ask_wide(wide)
                continue
            skips = plugin.name in self.pre_filtered.skipped
            self._stances.note(plugin, self.pod, Point.FILTER, watch, skips=skips)
            if not skips:
                bit = 1 << len(self.row_filters)
                narrow = RowFilter(plugin, self._find_prepared(plugin), watch, bit, plugin.recheck)
                self.row_filters.append(narrow)
                self._in_order.append(narrow)
                verdict = ask_filter(plugin, narrow.prepared, nodes, rows, ask)
                self.bits |= verdict.rejected * np.int64(bit)
        self._note_rejections()

    def _find_prepared(self, plugin: Filter[Any]) -> Any:
        prepared = self.pre_filtered.prepared
        return prepared[plugin.name] if isinstance(plugin, PreFilter) else self.pod

    def _ask_wide(self, wide: WideFilter) -> None:
        plugin: Any = wide.plugin
        nodes = self._nodes
        wide.prepared = self.pod
        if wide.prepares:
            wide.prepared = ask_pre_filter(plugin, self.pod, nodes)
            if isinstance(wide.prepared, _NO_COLUMN):
                raise Unserved
        self._newest_prepared = None
        wide.verdict, wide.rejected, wide.rejects_all = None, None, False
        if wide.prepared is not None:
            verdict = ask_filter(plugin, wide.prepared, nodes, nodes.everything)
            rejected = verdict.rejected if verdict.reasons else None
            count = 0 if rejected is None else np.count_nonzero(rejected)
            if rejected is not None and count:
                wide.verdict, wide.rejected = verdict, rejected
                wide.rejects_all = count == len(rejected)

    def _ask_scores(self) -> None:
        self.columns: list[ScoreColumn] = []
        self.relative: list[RelativeScore] = []
        for plugin, weight in self.profile.score:
            watch = ask_watch(plugin, self.pod, self._nodes)
            if is_kept(plugin):
                self._add_column(plugin, watch, weight)
            else:
                prepares, levels = isinstance(plugin, PreScore), may_find_levels(plugin)
                score = RelativeScore(plugin, watch, weight, prepares, levels)
                score.is_active = self._may_score(score)
                self.relative.append(score)
        self.scores = ClassScores(self.columns, self.bits, self._nodes)

    def _add_column(self, plugin: Score[Any], watch: int, weight: int) -> None:
        prepared = self._pre_score(plugin, isinstance(plugin, PreScore))
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
                    plugin.rescore,
                )
            )

    def _pre_score(self, plugin: Any, prepares: bool) -> Any:
        if not prepares:
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
        log = self._cluster.changes
        if not unlike and (self.generation == log.generation or self._take_newest(log)):
            return
        found = read_changes(log, self.generation)
        if found is None or found[1] & _MEMBERSHIP:
            self._begin_anew(Flush.BEHIND if found is None else Flush.MEMBERSHIP)
            return
        self.generation = log.generation
        changed, everywhere, union = found
        if self._stances.watch & union and self._stances.have_turned(pod, union):
            self._begin_anew(Flush.SKIPPING)
            return
        if unlike or self._wide_watch & union:
            self._refresh_wide(union, unlike)
        self._refresh_rows(changed, everywhere, union)

    def _find_unlike(self, own: Mapping[Plugin, Hashable]) -> Sequence[Plugin]:
        """Returns the plugins that do not sign a pod like the one before it; notes the new part."""
        if own is self._own:
            return ()
        before, self._own = self._own, own
        return [plugin for plugin, part in own.items() if part != before[plugin]]

    def _take_newest(self, log: ChangeLog) -> bool:
        """Takes in the newest change if it is the only one and concerns one row alone, as most do.

        Returns whether it did.
        """
        if log.generation - self.generation != 1 or log.newest is None:
            return False
        row, kinds = log.newest
        if row == EVERYWHERE or kinds & self._beyond_watch:
            return False
        self.generation = log.generation
        if kinds & self._near_watch:
            self._refresh_row(row, kinds)
        return True

    def _begin_anew(self, why: Flush) -> None:
        self._statistics.flushes[why] += 1
        self.rebuild(self.pod, self._own)

    def _refresh_wide(self, union: int, unlike: Sequence[Plugin] = ()) -> None:
        """Asks the wide plugins again that read such changes, or tell the pod from the last one."""
        pod, nodes = self.pod, self._nodes
        is_same = True
        for wide in self.wide_filters:
            if wide.watch & union or wide.plugin in unlike:
                watched, skipped = wide.watch, wide.prepared is None
                wide.watch = ask_watch(wide.plugin, pod, nodes)
                self._ask_wide(wide)
                is_same &= wide.watch == watched and (wide.prepared is None) == skipped
        self._note_rejections()
        for score in self.relative:
            is_unlike = score.is_due or score.plugin in unlike
            if score.watch & union or is_unlike:
                # No score is asked about a pod that fits nowhere.
                score.is_due = self.fits_nowhere
                if score.is_due:
                    continue
                watched, was_active = score.watch, score.is_active
                score.watch = ask_watch(score.plugin, pod, nodes)
                # An active score is asked for every pod, and `ask_relatively` notes when it skips.
                stays = was_active and not is_unlike
                score.is_active = stays or self._may_score(score)
                is_same &= score.watch == watched and score.is_active == was_active
        if unlike:
            self.pre_filtered = self.newest_prepared()
        if not is_same:
            self._look_wide()
        self._count_unrejected()

    def _note_rejections(self) -> None:
        """Notes what the wide filters reject."""
        rejecting = [wide for wide in self.wide_filters if wide.rejected is not None]
        #: The rows that each of them rejects, if it rejects any.
        self._rejections = [wide.rejected for wide in rejecting if wide.rejected is not None]
        #: Whether one of them rejects every row.
        self.fits_nowhere = any(wide.rejects_all for wide in rejecting)

    def _may_score(self, score: RelativeScore) -> bool:
        """Returns whether a relative score may add something for such pods."""
        plugin = score.plugin
        if not ignores_feasible_rows(plugin):
            return True
        return self._pre_score(plugin, score.prepares) is not None

    def _count_unrejected(self) -> None:
        """Counts the pods in succession for which no wide filter rejects a row."""
        if not self.is_narrow:
            self._unrejected = 0 if self._rejections else self._unrejected + 1
            # Making a ranking takes long, so it must serve several pods.
            self.is_ranked = self.has_own_totals and self._unrejected >= _WORTH_RANKING

    def _look_wide(self) -> None:
        """Notes what the wide plugins watch, and whether any of them is active."""
        self._wide_watch = unite(
            (*(each.watch for each in self.wide_filters), *(each.watch for each in self.relative))
        )
        # The kinds of change that concern more than the row that changed.
        self._beyond_watch = self._wide_watch | self._stances.watch | self._far_watch
        wide = sum(each.prepared is not None for each in self.wide_filters)
        per_row = _ROW_BYTES + _COLUMN_BYTES * len(self.columns) + _WIDE_BYTES * wide
        if any(each.is_active and each.has_levels for each in self.relative):
            per_row += LEVEL_BYTES
        #: How many bytes the class takes, at most, if plugins prepare no more than some columns.
        self.size = _BYTES + per_row * len(self.bits)
        #: Whether the total of a row depends on that row alone.
        self.has_own_totals = not any(each.is_active for each in self.relative)
        #: Whether the bits alone say where such pods fit: no wide filter is active.
        self.is_narrow = not wide
        self._unrejected = 0
        #: Whether the best row can be taken from a ranking: at present, no answer for a row depends
        #: on other rows.
        self.is_ranked = self.has_own_totals and self.is_narrow

    def _refresh_rows(
        self, changed: dict[int, int] | RowChanges, everywhere: int, union: int
    ) -> None:
        if self._far_watch & union or self._near_watch & everywhere:
            # Changes that concern all rows are rare, and asking every plugin again is exact.
            self._begin_anew(Flush.EVERYWHERE)
        elif isinstance(changed, RowChanges):
            self._refresh_together(changed.rows, union)
        else:
            near = self._near_watch
            for row, kinds in changed.items():
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
            except PASSING:
                raise
            except BaseException as error:
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

    def feasible(self) -> Mask:
        """Returns for each row whether such a pod fits, without regard to nominated pods."""
        fits: Mask = self.bits == 0
        for rejected in self._rejections:
            fits &= ~rejected
        return fits

    def takes(self, row: int) -> bool:
        """Returns whether such a pod fits on a row, without regard to nominated pods."""
        if self.bits.item(row):
            return False
        return not any(rejected[row] for rejected in self._rejections)

    def feasible_among(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Returns those of some rows where such a pod fits, without regard to nominated pods."""
        fits = self.bits[rows] == 0
        for rejected in self._rejections:
            fits &= ~rejected[rows]
        return rows[fits]

    def list_feasible(self) -> NDArray[np.intp]:
        """Returns the rows where such a pod fits, without regard to nominated pods."""
        if self._rejections:
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
        answers: list[RelativeAnswer] = []
        ask = make_caller(self.profile.observer, SCORE)
        for score in self.relative:
            if not score.is_active:
                continue
            plugin: Any = score.plugin
            prepared: Any = pod
            if score.prepares:
                prepared = ask_pre_score(plugin, pod, self._nodes, feasible)
            if prepared is not None:
                levels = (
                    ask_levels(plugin, prepared, self._nodes, ask) if score.has_levels else None
                )
                answers.append(RelativeAnswer(score, prepared, levels))
            elif ignores_feasible_rows(plugin):
                score.is_active = False
                self._look_wide()
        return answers

    def choose_by_level(self, answers: list[RelativeAnswer], ranking: DomainBatch) -> int | None:
        """Returns the best of all rows that no filter rejects; None without a ranking by levels."""
        levels = answers[0].levels if len(answers) == 1 else None
        if levels is None or not levels.are_kept or self._rejections:
            return None
        score, prepared, _ = answers[0]
        ranked = self.scores.rank_levels(ranking, levels.places, self._cluster.changes)
        occurring = ranked.occurring
        if not 0 <= occurring.item(0) <= occurring.item(-1) < len(levels.numbers):
            return None
        normal = ask_normalize(score.plugin, prepared, levels.numbers[occurring])
        return ranked.best((normal * score.weight).tolist())

    def add_relatively(self, answers: list[RelativeAnswer], feasible: NDArray[np.intp]) -> Scores:
        """Returns what relative scores add to the totals of feasible rows."""
        rows = self._widen(feasible)
        added: Scores | None = None
        ask = make_caller(self.profile.observer, SCORE)
        for answer in answers:
            numbers = self._find_relative(answer, rows, ask)
            added = numbers if added is None else added + numbers
        return np.zeros(len(feasible), np.int64) if added is None else added

    def _find_relative(self, answer: RelativeAnswer, rows: Rows, ask: Caller) -> Scores:
        """Returns what one relative score adds to the totals of rows."""
        score, prepared, levels = answer
        plugin, nodes = score.plugin, self._nodes
        if levels is None:
            raw = ask_score(plugin, prepared, nodes, rows, ask)
            return ask_normalize(plugin, prepared, raw) * score.weight
        # There are far fewer distinct numbers than rows, so only these are normalised.
        places = levels.places[rows]
        occurring = find_occurring(plugin, levels, places)
        numbers = np.zeros(len(levels.numbers), np.int64)
        normal = ask_normalize(plugin, prepared, levels.numbers[occurring])
        numbers[occurring] = normal * score.weight
        added: Scores = numbers.take(places)
        return added

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
        if self._newest_prepared is not None:
            return self._newest_prepared
        prepared = dict(self.pre_filtered.prepared)
        skipped = set(self.pre_filtered.skipped)
        for wide in self.wide_filters:
            if wide.prepares:
                name = wide.plugin.name
                prepared.pop(name, None)
                skipped.discard(name)
                if wide.prepared is None:
                    skipped.add(name)
                else:
                    prepared[name] = wide.prepared
        self._newest_prepared = PreFiltered(prepared, frozenset(skipped))
        return self._newest_prepared


def read_changes(
    log: ChangeLog, generation: int
) -> tuple[dict[int, int] | RowChanges, int, int] | None:
    """Returns the rows that changed, the changes of the whole cluster, and all kinds in one number.

    Few rows are returned as a dictionary, because plugins are asked about them one by one. None if
    the log has dropped some of these changes.
    """
    newest = log.newest
    if log.generation - generation == 1 and newest is not None and newest[0] != EVERYWHERE:
        return {newest[0]: newest[1]}, 0, newest[1]
    if log.generation - generation > _CHANGE_BY_CHANGE:
        many = log.gather(generation)
        if many is None:
            return None
        changed = many if len(many.rows) > _ROW_BY_ROW else many.by_row()
        return changed, many.everywhere, many.everywhere | many.unite()
    few = log.since(generation)
    if few is None:
        return None
    everywhere = few.pop(EVERYWHERE, 0)
    union = everywhere | unite(few.values())
    return (RowChanges.of(few) if len(few) > _ROW_BY_ROW else few), everywhere, union
