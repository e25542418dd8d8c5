"""A class of like pods: what every plugin answers for them, row by row, kept up to date.

The generation says for which state of the cluster the answers are good. Whatever changed since is
looked up in the change log: a plugin is asked again only about rows whose kinds of change it
reads, and about all rows only where its answers reach beyond a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Cluster, Mask, RowFacts, Scope
from mooring.cluster.changes import EVERYWHERE, Change
from mooring.framework.attempt import PreFiltered, Scored
from mooring.framework.plugin import (
    MAX_SCORE,
    Filter,
    Narrowed,
    PreFilter,
    PreScore,
    Reduction,
    Rescore,
    Score,
    Scores,
)
from mooring.framework.profile import Profile
from mooring.framework.run import pre_filter
from mooring.framework.status import Rejected
from mooring.objects.pod import Pod

from .class_parts import (
    RelativeScore,
    RowFilter,
    ScoreColumn,
    Unserved,
    WideFilter,
    checked,
    skips_steadily,
    united,
)
from .ranking import Ranking, Turns
from .statistics import Flush, Statistics

# More changed rows than this are asked about in columns: one by one would take longer.
_ROW_BY_ROW = 16

# Looked up once: these are compared with for every row that changes.
UNKNOWN, INFEASIBLE, UPDATED = Rescore.UNKNOWN, Rescore.INFEASIBLE, Rescore.UPDATED

# A plain integer: combining flags of an enum takes many times as long.
_MEMBERSHIP = int(Change.MEMBERSHIP)

_DEAD = np.int64(1) << np.int64(62)


class PodClass:
    """The answers for one class. `bits` has one bit per row filter that rejects a row."""

    def __init__(
        self, profile: Profile, pod: Pod, cluster: Cluster, statistics: Statistics
    ) -> None:
        self._statistics = statistics
        self.profile = profile
        self._cluster = cluster
        self._nodes = cluster.nodes
        #: Where the last pod of the class went.
        self.last_row: int | None = None
        self.rebuild(pod)

    def rebuild(self, pod: Pod) -> None:
        """Asks every plugin about every row."""
        self.pod = pod
        self.generation = self._cluster.changes.generation
        self.pre_filtered = pre_filter(self.profile, self.pod, self._nodes)
        if self.pre_filtered.rejected is not None or self.pre_filtered.node_names is not None:
            raise Unserved
        self.ranking: Ranking | None = None
        self._ask_filters()
        self._ask_scores()
        self._look_wide()
        filtering = {plugin.name for plugin in self.profile.filter}
        self._door_watch = united(
            int(plugin.watch(pod, self._nodes))
            for plugin in self.profile.pre_filter
            if plugin.scope is not Scope.ROW and plugin.name not in filtering
        )
        far = [column for column in self.columns if column.plugin.scope is not Scope.ROW]
        self._far_watch = united(column.watch for column in far)
        self._near_watch = united(
            (*(each.watch for each in self.row_filters), *(each.watch for each in self.columns))
        )
        self._by_kinds: dict[int, tuple[list[RowFilter], list[ScoreColumn]]] = {}
        #: Rows that take no such pod, and what changed there since they were scored.
        self._unscored: dict[int, int] = {}

    # Asking about all rows

    def _ask_filters(self) -> None:
        nodes, rows = self._nodes, self._nodes.everything
        self.row_filters: list[RowFilter] = []
        self.wide_filters: list[WideFilter] = []
        self.bits: NDArray[np.int64] = np.where(nodes.alive[rows], 0, _DEAD)
        for plugin in self.profile.filter:
            watch = int(plugin.watch(self.pod, nodes))
            if plugin.scope is not Scope.ROW:
                wide = WideFilter(plugin, watch)
                self.wide_filters.append(wide)
                self._ask_wide(wide)
            elif plugin.name not in self.pre_filtered.skipped:
                bit = 1 << len(self.row_filters)
                narrow = RowFilter(plugin, self._prepared(plugin), watch, bit, plugin.recheck)
                self.row_filters.append(narrow)
                self.bits |= plugin.filter(narrow.prepared, nodes, rows).rejected * np.int64(bit)

    def _prepared(self, plugin: Filter[Any]) -> Any:
        prepared = self.pre_filtered.prepared
        return prepared[plugin.name] if isinstance(plugin, PreFilter) else self.pod

    def _ask_wide(self, wide: WideFilter) -> None:
        plugin, nodes = wide.plugin, self._nodes
        wide.prepared = self.pod
        if isinstance(plugin, PreFilter):
            wide.prepared = plugin.pre_filter(self.pod, nodes)
            if isinstance(wide.prepared, Rejected | Narrowed):
                raise Unserved
        wide.rejected = None
        if wide.prepared is not None:
            wide.rejected = plugin.filter(wide.prepared, nodes, nodes.everything).rejected

    def _ask_scores(self) -> None:
        self.columns: list[ScoreColumn] = []
        self.relative: list[RelativeScore] = []
        for plugin, weight in self.profile.score:
            watch = int(plugin.watch(self.pod, self._nodes))
            if plugin.reduces is Reduction.EVERYTHING or (
                plugin.reduces is Reduction.LARGEST and plugin.scope is not Scope.ROW
            ):
                active = not skips_steadily(plugin) or self._pre_score(plugin) is not None
                self.relative.append(RelativeScore(plugin, watch, weight, active))
            else:
                self._add_column(plugin, watch, weight)
        self._normalized = [
            column for column in self.columns if column.plugin.reduces is Reduction.LARGEST
        ]
        self._normalize()

    def _add_column(self, plugin: Score[Any], watch: int, weight: int) -> None:
        prepared = self._pre_score(plugin)
        if prepared is not None:
            raw = plugin.score(prepared, self._nodes, self._nodes.everything)
            if plugin.reduces is Reduction.NOTHING:
                checked(raw)
            # Scores come as new arrays; a place of this one is written when its row changes.
            self.columns.append(
                ScoreColumn(
                    plugin,
                    prepared,
                    watch,
                    weight,
                    raw,
                    plugin.reduces is Reduction.NOTHING,
                    plugin.rescore,
                )
            )

    def _pre_score(self, plugin: Score[Any]) -> Any:
        if not isinstance(plugin, PreScore):
            return self.pod
        return plugin.pre_score(self.pod, self._nodes, self._nodes.rows)

    def _normalize(self) -> None:
        """Finds all totals anew; the ranking is no longer what it was."""
        self._add_up()
        self.ranking = None

    def _add_up(self) -> None:
        """Brings totals up to date with the numbers of all rows."""
        #: What the plugins add up to whose numbers are used as they are.
        self.plain: Scores = np.zeros(len(self.bits), np.int64)
        for column in self.columns:
            if column.is_plain:
                self.plain += column.raw * column.weight
        self.totals: Scores = self.plain.copy()
        self._largest: dict[str, tuple[int, int]] = {}
        feasible = np.flatnonzero(self.bits == 0)
        for column in self._normalized if len(feasible) else ():
            among = column.raw[feasible]
            largest = int(among.max())
            count = int(np.count_nonzero(among == largest))
            self._largest[column.plugin.name] = largest, count
            column.flat = None
            normal = self._normal(column, feasible)
            if (column.raw == column.raw[0]).all():
                column.flat = int(normal[0])
            self.totals[feasible] += normal
        self._is_behind = False

    def _normal(self, column: ScoreColumn, rows: NDArray[np.intp]) -> Scores:
        """What a normalised column adds to the totals of rows, if these are the feasible ones."""
        normal = column.plugin.normalize(column.prepared, column.raw[rows])
        return checked(normal) * column.weight

    # Catching up

    def refresh(self, pod: Pod) -> None:
        """Brings every answer up to date with the cluster.

        A pod that is like the others now takes the place of the one that was asked about before,
        whose volumes may be in use or no longer what they were.
        """
        self.pod = pod
        log = self._cluster.changes
        if self.generation == log.generation:
            return
        changed = log.since(self.generation)
        if changed is None or changed.get(EVERYWHERE, 0) & _MEMBERSHIP:
            self._begin_anew(Flush.BEHIND if changed is None else Flush.MEMBERSHIP)
            return
        self.generation = log.generation
        union = united(changed.values())
        everywhere = changed.pop(EVERYWHERE, 0)
        if self._door_watch & union:
            self._begin_anew(Flush.EVERYWHERE)
            return
        self._refresh_wide(union)
        self._refresh_rows(changed, everywhere, union)

    def _begin_anew(self, why: Flush) -> None:
        self._statistics.flushes[why] += 1
        self.rebuild(self.pod)

    def _refresh_wide(self, union: int) -> None:
        if not self._wide_watch & union:
            return
        for wide in self.wide_filters:
            if wide.watch & union:
                wide.watch = int(wide.plugin.watch(self.pod, self._nodes))
                self._ask_wide(wide)
        for score in self.relative:
            if score.watch & union:
                score.watch = int(score.plugin.watch(self.pod, self._nodes))
                # One that is active is asked for every pod, and shows by itself when it is not.
                score.is_active = score.is_active or self._pre_score(score.plugin) is not None
        self._look_wide()

    def _look_wide(self) -> None:
        """Notes what the wide plugins watch, and whether any has a say."""
        self._wide_watch = united(
            (*(each.watch for each in self.wide_filters), *(each.watch for each in self.relative))
        )
        #: Whether the best row can be taken from a ranking: nothing depends on other rows.
        self.is_ranked = not any(each.is_active for each in self.relative) and all(
            each.prepared is None for each in self.wide_filters
        )

    def _refresh_rows(self, changed: dict[int, int], everywhere: int, union: int) -> None:
        if self._far_watch & union or self._near_watch & everywhere:
            # A change that reaches everywhere is rare; asking about everything is exact.
            self._begin_anew(Flush.EVERYWHERE)
        elif len(changed) > _ROW_BY_ROW:
            self._refresh_together(changed)
        else:
            for row, kinds in changed.items():
                self._refresh_row(row, kinds)

    def _refresh_together(self, changed: dict[int, int]) -> None:
        """Asks about many rows at once, whatever changed there."""
        for row, kinds in self._unscored.items():
            changed[row] = changed.get(row, 0) | kinds
        self._unscored.clear()
        if self._is_behind:
            self._add_up()
        rows = np.fromiter(changed, np.intp, len(changed))
        filters, columns = self._asked(united(changed.values()))
        before = self.bits[rows]
        bits = before.copy()
        for each in filters:
            rejected = each.plugin.filter(each.prepared, self._nodes, rows).rejected
            bits = (bits & ~np.int64(each.bit)) | (rejected * np.int64(each.bit))
        self.bits[rows] = bits
        # Who comes or goes may be what others are normalised by.
        stale = bool(self._normalized) and bool(((before == 0) != (bits == 0)).any())
        for column in columns:
            scores = column.plugin.score(column.prepared, self._nodes, rows)
            if column.plugin.reduces is Reduction.NOTHING:
                gain = (checked(scores) - column.raw[rows]) * column.weight
                self.plain[rows] += gain
                self.totals[rows] += gain
            else:
                stale = True
            column.raw[rows] = scores
        if stale:
            self._normalize()
        elif self.ranking is not None:
            self._rank(rows, bits)

    def _rank(self, rows: NDArray[np.intp], bits: NDArray[np.int64]) -> None:
        assert self.ranking is not None
        totals = self.totals[rows].tolist()
        for row, rejecting, total in zip(rows.tolist(), bits.tolist(), totals, strict=True):
            if rejecting:
                self.ranking.drop(row)
            else:
                self.ranking.put(row, total)

    def _refresh_row(self, row: int, kinds: int) -> None:
        filters, columns = self._asked(kinds)
        nodes = self._nodes
        facts = nodes.facts(row)
        before = bits = int(self.bits[row])
        for each in filters:
            answer = each.recheck(each.prepared, nodes, facts)
            if answer is UNKNOWN:
                answer = self._recheck(each, row)
            bits = bits | each.bit if answer is INFEASIBLE else bits & ~each.bit
        if bits != before:
            self.bits[row] = bits
        if bits:
            self._unscored[row] = self._unscored.get(row, 0) | kinds
            if not before:
                self._leave(row)
        elif before:
            columns = self._asked(kinds | self._unscored.pop(row, 0))[1]
            self._enter(row, facts, columns)
        else:
            self._move(row, self._rescore(row, facts, columns))

    def _leave(self, row: int) -> None:
        """A row no longer takes such pods. What it would score is not kept up to date."""
        if self._moves_largest(row):
            self._normalize()
        elif self.ranking is not None:
            self.ranking.drop(row)

    def _enter(self, row: int, facts: RowFacts, columns: list[ScoreColumn]) -> None:
        """A row takes such pods again."""
        gain = self._rescore(row, facts, columns)
        if gain is None or self._raises_largest(row):
            self._normalize()
            return
        if self.ranking is None:
            self.plain[row] += gain
            self.totals[row] = self._total(row)
        else:
            self._is_behind = True
            self.ranking.put(row, self._total(row))

    def _move(self, row: int, gain: int | None) -> None:
        """A row that takes such pods is better or worse by so much; None leaves that open."""
        if gain is None:
            self._normalize()
        elif gain and self.ranking is not None:
            # The ranking is enough to go on with.
            self._is_behind = True
            self.ranking.move(row, gain)
        elif gain:
            self.plain[row] += gain
            self.totals[row] += gain

    def _rescore(self, row: int, facts: RowFacts, columns: list[ScoreColumn]) -> int | None:
        """Brings the numbers of a row up to date; tells by how much its total grows, if it can."""
        nodes = self._nodes
        gain = 0
        relative = False
        for column in columns:
            raw = column.raw
            before = raw.item(row)
            if column.rescore(column.prepared, nodes, facts, raw) is not UPDATED:
                raw[row] = column.plugin.score(column.prepared, nodes, np.array([row]))[0]
            if column.is_plain:
                after = raw.item(row)
                if not 0 <= after <= MAX_SCORE:
                    raise Unserved
                gain += (after - before) * column.weight
            else:
                relative = True
        return None if relative else gain

    def _total(self, row: int) -> int:
        """The total of a feasible row, from its numbers."""
        total = sum(each.raw.item(row) * each.weight for each in self.columns if each.is_plain)
        for column in self._normalized:
            largest, _ = self._largest[column.plugin.name]
            pair = np.array([column.raw[row], largest])
            total += int(column.plugin.normalize(column.prepared, pair)[0]) * column.weight
        return total

    def _recheck(self, each: RowFilter, row: int) -> Rescore:
        """Asks a filter about one row in the ordinary way."""
        verdict = each.plugin.filter(each.prepared, self._nodes, np.array([row]))
        return Rescore.INFEASIBLE if verdict.rejected[0] else Rescore.UPDATED

    def _asked(self, kinds: int) -> tuple[list[RowFilter], list[ScoreColumn]]:
        """Who reads any of these kinds of change."""
        asked = self._by_kinds.get(kinds)
        if asked is None:
            asked = self._by_kinds[kinds] = (
                [each for each in self.row_filters if each.watch & kinds],
                [column for column in self.columns if column.watch & kinds],
            )
        return asked

    def _moves_largest(self, row: int) -> bool:
        """Whether a row's leaving changes what others are normalised by."""
        for column in self._normalized:
            largest, count = self._largest.get(column.plugin.name, (0, 0))
            if column.raw[row] == largest:
                if count <= 1:
                    return True
                self._largest[column.plugin.name] = largest, count - 1
        return False

    def _raises_largest(self, row: int) -> bool:
        """Whether a row's coming changes what others are normalised by."""
        for column in self._normalized:
            largest, count = self._largest.get(column.plugin.name, (0, 0))
            if not count or column.raw[row] > largest:
                return True
            if column.raw[row] == largest:
                self._largest[column.plugin.name] = largest, count + 1
        return False

    # Choosing

    def best_ranked(self, turns: Turns) -> int | None:
        """The best row by the ranking, which is made when there is none."""
        ranking = self.ranking
        if ranking is None or ranking.turns is not turns or ranking.is_worn:
            if self._is_behind:
                self._add_up()
            rows = np.flatnonzero(self.bits == 0)
            ranking = self.ranking = Ranking(rows, self.totals[rows], turns)
        return ranking.best()

    def feasible(self) -> Mask:
        """Where such a pod fits, nominated pods left aside."""
        fits: Mask = self.bits == 0
        for wide in self.wide_filters:
            if wide.rejected is not None:
                fits &= ~wide.rejected
        return fits

    def scored(self, pod: Pod, feasible: NDArray[np.intp]) -> Scored:
        """The totals of feasible rows; what depends on which these are is asked anew."""
        totals = self._own_totals(feasible)
        for score in self.relative:
            if not score.is_active:
                continue
            plugin = score.plugin
            prepared: Any = pod
            if isinstance(plugin, PreScore):
                prepared = plugin.pre_score(pod, self._nodes, feasible)
            if prepared is not None:
                raw = plugin.score(prepared, self._nodes, feasible)
                totals += checked(plugin.normalize(prepared, raw)) * score.weight
            elif skips_steadily(plugin):
                score.is_active = False
                self._look_wide()
        return Scored(feasible, {}, totals)

    def _own_totals(self, feasible: NDArray[np.intp]) -> Scores:
        if self._is_behind:
            self._normalize()
        totals = self.plain[feasible]
        for column in self._normalized:
            totals += self._normal(column, feasible) if column.flat is None else column.flat
        return totals

    def newest_prepared(self) -> PreFiltered:
        """What was prepared for the filters, with the newest of those that are asked anew."""
        prepared = dict(self.pre_filtered.prepared)
        skipped = set(self.pre_filtered.skipped)
        for wide in self.wide_filters:
            if isinstance(wide.plugin, PreFilter):
                name = wide.plugin.name
                prepared.pop(name, None)
                skipped.discard(name)
                if wide.prepared is None:
                    skipped.add(name)
                else:
                    prepared[name] = wide.prepared
        return PreFiltered(prepared, frozenset(skipped))
