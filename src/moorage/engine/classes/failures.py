"""Known failures of like pods, kept up to date while they stay failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.cluster import Cluster, Figures, Scope
from moorage.cluster.changes import Change, unite
from moorage.cluster.row_view import Changed, LogReader
from moorage.cluster.what_if import predict_facts
from moorage.framework.attempt import Failed, Filtered, PreFiltered
from moorage.framework.calls import ask_watch
from moorage.framework.nominated import (
    filter_crowded,
    filter_with_nominated,
    find_counted,
    reads_figures,
    sees_only_counts,
)
from moorage.framework.observe import FILTER, PointTimer
from moorage.framework.plugin import Filter, Plugin, PreFilter
from moorage.framework.points import fits_on, pre_filter_again
from moorage.framework.profile import Profile
from moorage.objects.pod import Pod

from .answer_cache import AnswerCache, Key
from .refusals import Refusals
from .stances import Point, Stances
from .statistics import Statistics

_MEMBERSHIP, _NOMINATED = int(Change.MEMBERSHIP), int(Change.NOMINATED)

# Every failure depends on how many nodes there are, and on pods that are nominated to them.
_ALWAYS = _MEMBERSHIP | _NOMINATED

# More rows that changed are asked about in columns.
_ROW_BY_ROW = 4

# More changes are first looked at together.
_FEW_CHANGES = 8

# Like rows have few figures; beyond this, looking them up saves nothing.
_MOST_FIGURES = 64

# The pods of a cluster are skipped by few sets of filters; beyond this, they are found anew.
_MOST_SKIPPED = 256

# What a failure takes besides its arrays: what plugins prepared, reasons, the message.
_BYTES = 8_192


class FixedWatch(msgspec.Struct, frozen=True):
    """The changes that alter answers of plugins whose watch is the same for all pods."""

    watch: int
    #: What their filters watch, but for those that skip themselves, by the reach of a change.
    row_watch: int
    wide_watch: int
    wide: tuple[PreFilter[Any], ...]

    @classmethod
    def of(
        cls, plugins: Sequence[Plugin], filters: Sequence[Filter[Any]], skipped: frozenset[str]
    ) -> FixedWatch:
        """Makes the watch of some plugins and the filters among them, some of which skip."""
        asked = [each for each in filters if each.name not in skipped]
        wide = [each for each in asked if each.scope is not Scope.ROW]
        return cls(
            unite(int(each.reads) for each in plugins),
            unite(int(each.reads) for each in asked if each.scope is Scope.ROW),
            unite(int(each.reads) for each in wide),
            tuple(each for each in wide if isinstance(each, PreFilter)),
        )


class AskedWatch(msgspec.Struct, frozen=True):
    """The changes that alter answers of the other plugins, which were asked about a pod."""

    watches: Mapping[Plugin, int]
    filters: tuple[Filter[Any], ...]
    #: The pre-filters without a filter.
    doors: tuple[PreFilter[Any], ...]


class KnownFailure:
    """A failure, the state of the cluster for which it holds, and what may change it.

    What was prepared for the filters may hold for longer than their answers.
    """

    def __init__(
        self, pod: Pod, failed: Failed, cluster: Cluster, fixed: FixedWatch, asked: AskedWatch
    ) -> None:
        self.failed = failed
        #: Where in the log of changes the answers, and what was prepared for them, are up to date.
        self.reader, self.prepared_reader = (LogReader(cluster.changes) for _ in range(2))
        self.labels_version = cluster.nodes.labels_version
        #: The changes that can alter what plugins say.
        self.watch = _ALWAYS | fixed.watch | unite(asked.watches.values())
        #: Those that alter what filters say of the row where they happen, and of that row alone.
        self.row_watch = _NOMINATED | fixed.row_watch
        #: Those that alter what they say of other rows, too.
        self.wide_watch = fixed.wide_watch
        #: The filters that look at other rows, or at what tells like pods apart: their volumes.
        self.wide: list[PreFilter[Any]] = [*fixed.wide]
        self.stances = Stances(cluster.nodes)
        self._note(pod, asked)
        self._refusals: Refusals | None = None
        #: What filters say of single rows, by what these have and what is or will be used there.
        self.crowded: dict[Figures, Sequence[Filtered]] = {}

    def _note(self, pod: Pod, asked: AskedWatch) -> None:
        skipped = self.failed.pre_filtered.skipped
        for plugin in asked.filters:
            watch, skips = asked.watches[plugin], plugin.name in skipped
            self.stances.note(plugin, pod, Point.FILTER, watch, skips=skips)
            if skips:
                continue
            if plugin.scope is Scope.ROW:
                self.row_watch |= watch
            else:
                self.wide_watch |= watch
                if isinstance(plugin, PreFilter):
                    self.wide.append(plugin)
        for each in asked.doors:
            self.stances.note(each, pod, Point.PRE_FILTER, asked.watches[each])

    def keep_crowded(self, figures: Figures, answers: Sequence[Filtered]) -> None:
        """Keeps the filters' answer for a row with these figures, nominated pods included."""
        if len(self.crowded) >= _MOST_FIGURES:
            self.crowded.clear()
        self.crowded[figures] = answers

    def close(self) -> None:
        """Called when the failure is dropped: it follows nothing."""

    @property
    def is_of_all_rows(self) -> bool:
        """Whether every row was asked about, so that changed rows can be asked about again."""
        failed = self.failed
        return (
            failed.filtered is not None
            and failed.tried_first is None
            and failed.pre_filtered.node_names is None
        )

    def may_outlast(self, kinds: int) -> bool:
        """Whether only rows that changed in such ways have to be asked about again."""
        return self.is_of_all_rows and not kinds & self.wide_watch

    def renew(self) -> None:
        """Notes that the filters answer as before; the search for a remedy may differ."""
        self.failed = replace(self.failed, known={})

    def put(self, prepared: PreFiltered, answers: Sequence[Filtered], node_count: int) -> None:
        """Takes over the filters' answers for changed rows."""
        known = self._refusals
        if known is not None and all(map(known.say, answers)):
            # All that follows from what filters said is as before.
            digests = self.failed.digests
            self.failed = Failed(prepared, self.failed.filtered, node_count, digests=digests)
            return
        if known is None or known.has_too_many_reasons:
            assert self.failed.filtered is not None, "filters were asked"
            known = self._refusals = Refusals(self.failed.filtered)
        for each in answers:
            known.put(each)
        self.failed = Failed(prepared, known.show(), node_count)


class Failures:
    """The failures of one profile, by signature and priority.

    The priority counts because nominated pods only hinder pods of lower or equal priority.
    """

    def __init__(
        self, profile: Profile, cluster: Cluster, cache: AnswerCache, statistics: Statistics
    ) -> None:
        self._profile = profile
        self._cluster = cluster
        self._cache = cache
        self._statistics = statistics
        plugins: dict[Plugin, None] = dict.fromkeys(
            (*profile.pre_filter, *profile.filter, *profile.post_filter)
        )
        self._fixed = tuple(each for each in plugins if _is_fixed(each))
        self._asked = tuple(each for each in plugins if each not in self._fixed)
        self._fixed_filters = tuple(each for each in profile.filter if each in self._fixed)
        self._asked_filters = tuple(each for each in profile.filter if each in self._asked)
        filters: set[Plugin] = {*profile.filter}
        doors = (each for each in profile.pre_filter if each not in filters)
        self._asked_doors = tuple(each for each in doors if each in self._asked)
        #: What is fixed, by the names of the filters that skip themselves.
        self._by_skipped: dict[frozenset[str], FixedWatch] = {}

    def find(self, signature: int, pod: Pod) -> Failed | None:
        """Returns the failure of a pod that is like a failed one; None if it may fit by now."""
        known = self._find(signature, pod)
        if known is None:
            return None
        if not self._catch_up(known, pod):
            self._cache.discard(self._make_key(signature, pod))
            return None
        return known.failed

    def find_prepared(self, signature: int, pod: Pod) -> PreFiltered | None:
        """Returns what is prepared for a pod like a failed one; None if it may be out of date.

        It serves only filters that are asked anew.
        """
        known = self._find(signature, pod)
        if known is None or known.failed.pre_filtered.rejected is not None:
            return None
        changed = known.prepared_reader.peek()
        if changed is None or not self._is_still_prepared(known, pod, changed):
            return None
        known.prepared_reader.skip()
        return self._prepare(known, pod)

    def _make_key(self, signature: int, pod: Pod) -> Key:
        return Key(self._profile.name, signature, pod.priority)

    def _find(self, signature: int, pod: Pod) -> KnownFailure | None:
        if not self._cache.failures:
            # Most pods that are placed are not like one that failed.
            return None
        known: KnownFailure | None = self._cache.find(self._make_key(signature, pod))
        return known

    def put(self, signature: int, pod: Pod, failed: Failed) -> None:
        """Keeps the failure of a pod for pods that are like it."""
        key = self._make_key(signature, pod)
        fixed = self._find_fixed(failed.pre_filtered.skipped)
        known = KnownFailure(pod, failed, self._cluster, fixed, self._watch(pod))
        size = _BYTES + 2 * _measure(failed.filtered) + _measure(failed.tried_first)
        self._cache.put(key, known, size, self._statistics)

    def _catch_up(self, known: KnownFailure, pod: Pod) -> bool:
        """Brings a failure up to date; returns False if it is outdated or no failure any more."""
        if known.reader.is_current:
            return True
        changed = None if self._is_outdated(known) else known.reader.read()
        if changed is None:
            return False
        union = changed.union
        if union & known.watch and not (
            known.may_outlast(union)
            and self._is_still_prepared(known, pod, changed)
            and self._ask_again(known, pod, _choose_rows(changed, known.row_watch))
        ):
            return False
        known.prepared_reader.skip()
        return True

    def _is_outdated(self, known: KnownFailure) -> bool:
        """Whether the kinds of change alone show that a failure is out of date.

        To find the rows of many changes takes long.
        """
        if known.reader.distance <= _FEW_CHANGES:
            return False
        kinds = known.reader.peek_kinds()
        return kinds is None or bool(kinds & known.watch and not known.may_outlast(kinds))

    def _is_still_prepared(self, known: KnownFailure, pod: Pod, changed: Changed) -> bool:
        """Whether what was prepared before some changes still holds for like pods."""
        union = changed.union
        return not (
            union & _MEMBERSHIP
            or changed.everywhere & known.row_watch
            or known.labels_version != self._cluster.nodes.labels_version
            or (union & known.stances.watch and known.stances.have_turned(pod, union))
        )

    def _prepare(self, known: KnownFailure, pod: Pod) -> PreFiltered | None:
        """Prepares for a like pod; returns None if some plugin takes another stance."""
        before = known.failed.pre_filtered
        if not known.wide:
            return before
        return pre_filter_again(before, known.wide, pod, self._cluster.nodes)

    def _ask_again(self, known: KnownFailure, pod: Pod, rows: NDArray[np.intp]) -> bool:
        """Asks the filters about changed rows; returns False if one of them suits by now."""
        if not len(rows):
            known.renew()
            return True
        prepared = self._prepare(known, pod)
        if prepared is None or not self._is_about_rows(known, prepared, pod):
            return False
        with PointTimer(self._profile.observer, FILTER, self._profile.name):
            answers = self._filter(known, prepared, pod, rows)
        refused = sum([len(each.feasible) - np.count_nonzero(each.feasible) for each in answers])
        if refused < len(rows):
            return False
        known.put(prepared, answers, len(self._cluster.nodes))
        return True

    def _is_about_rows(self, known: KnownFailure, prepared: PreFiltered, pod: Pod) -> bool:
        """Whether pods that are nominated to a row matter there only."""
        nodes = self._cluster.nodes
        if not known.wide_watch or not nodes.nominations:
            return True
        if known.wide_watch & find_counted(self._profile):
            return False
        return sees_only_counts(self._profile, pod, prepared, nodes)

    def _filter(
        self, known: KnownFailure, prepared: PreFiltered, pod: Pod, rows: NDArray[np.intp]
    ) -> Sequence[Filtered]:
        """Returns the filters' answers for rows, as `filter_with_nominated`, if few are crowded."""
        profile, nodes = self._profile, self._cluster.nodes
        if len(rows) > _ROW_BY_ROW:
            return (filter_with_nominated(profile, pod, prepared, nodes, rows),)
        # Mostly it is the row that was emptied for the pod before, and is kept for that.
        fitting = [fits_on(profile, pod, prepared, nodes, row) for row in rows.tolist()]
        if all(fitting):
            return self._filter_crowded(known, prepared, pod, rows)
        fits = np.array(fitting)
        answers = self._filter_crowded(known, prepared, pod, rows[fits])
        return (*answers, filter_with_nominated(profile, pod, prepared, nodes, rows[~fits]))

    def _filter_crowded(
        self, known: KnownFailure, prepared: PreFiltered, pod: Pod, rows: NDArray[np.intp]
    ) -> Sequence[Filtered]:
        """Returns the same for rows that take the pod without their nominated pods."""
        profile, nodes = self._profile, self._cluster.nodes
        weight = nodes.nominated_weight(pod)
        figures: Figures | None = None
        if len(rows) == 1 and weight is not None and reads_figures(profile, pod, prepared, nodes):
            row = rows.item(0)
            facts = predict_facts(nodes, row, weight, row)
            figures = None if facts is None else facts.figures
        if figures is None:
            return filter_crowded(profile, pod, prepared, nodes, rows)
        answers = known.crowded.get(figures)
        if answers is None:
            answers = filter_crowded(profile, pod, prepared, nodes, rows)
            known.keep_crowded(figures, answers)
        return tuple(replace(each, rows=rows) for each in answers)

    def _find_fixed(self, skipped: frozenset[str]) -> FixedWatch:
        """Returns what plugins watch for all pods that the same filters skip."""
        known = self._by_skipped.get(skipped)
        if known is None:
            if len(self._by_skipped) >= _MOST_SKIPPED:
                self._by_skipped.clear()
            known = self._by_skipped[skipped] = FixedWatch.of(
                self._fixed, self._fixed_filters, skipped
            )
        return known

    def _watch(self, pod: Pod) -> AskedWatch:
        """Returns the changes that can alter each other plugin's answer about a pod."""
        nodes = self._cluster.nodes
        try:
            watches = {each: ask_watch(each, pod, nodes) for each in self._asked}
        except Exception:  # noqa: BLE001 - then anything may
            watches = dict.fromkeys(self._asked, int(Change.ALL))
        return AskedWatch(watches, self._asked_filters, self._asked_doors)


def _is_fixed(plugin: Plugin) -> bool:
    """Whether a plugin watches the same for all pods, and never changes its stance."""
    return plugin.scope is Scope.ROW and getattr(plugin.watch, "__func__", None) is Plugin.watch


def _choose_rows(changed: Changed, kinds: int) -> NDArray[np.intp]:
    """Returns the rows that changed in one of some ways, in order."""
    return np.array(sorted(row for row, each in changed.rows.items() if each & kinds), np.intp)


def _measure(filtered: Filtered | None) -> int:
    """Returns the bytes of the arrays of a result."""
    if filtered is None:
        return 0
    layers = sum(each.verdict.failed.nbytes + each.decided.nbytes for each in filtered.layers)
    own = filtered.rows.nbytes + filtered.feasible.nbytes + layers
    return own + sum(map(_measure, filtered.amended))
