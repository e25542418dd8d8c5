"""Keeps the victims on each node for identical pods, until something changes there.

Many identical pods may need victims at once. The effect of evictions on a node depends on that node
alone, as long as the filters see other pods only by counts. So each of the pods looks only at nodes
that changed, and chooses among all as if it had looked at them itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, View
from moorage.cluster.pods import PodTable
from moorage.cluster.row_view import RowView
from moorage.cluster.what_if import predict_facts_with_pods
from moorage.framework.calls import ask_recheck, ask_watch
from moorage.framework.plugin import INFEASIBLE, UNSIGNABLE, Filter, Sign, reads_figures
from moorage.framework.points import active_filters
from moorage.framework.profile import Profile, once_per_profile
from moorage.framework.signing import sign_to_share
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodSpec

from .preemption_candidates import Candidates, VictimWeights
from .preemption_dry_run import CountsDryRun, DryRun

# What matters besides what filters read: who is there, who comes, and what budgets allow.
_ALWAYS = Change.PODS | Change.REQUESTED | Change.NOMINATED | Change.MEMBERSHIP | Change.BUDGETS

# For so many kinds of pods the victims are kept, at some fifty bytes per node.
_MOST_KINDS = 8

# So few rows are looked at in plain numbers first. Mostly they are kept for pods like this one.
_ROW_BY_ROW = 4


class VictimColumns:
    """The effect of evictions on each row, for identical pods."""

    def __init__(self, spec: PodSpec, reads: Change) -> None:
        # Its identity is part of the key, so that it has to stay alive.
        self._spec = spec
        self._reads = int(reads | _ALWAYS)
        self._of: tuple[NDArray[np.intp], PodTable] | None = None

    def candidates(self, run: DryRun, rows: NDArray[np.intp], wanted: int) -> Candidates:
        """Returns the same as `DryRun.candidates`, without counted reasons."""
        self._catch_up(run.nodes)
        # On rows that are kept for other pods, evicting does not help.
        looked_at = wanted + wanted // 4
        while True:
            helping = self._find_helping(run, rows[:looked_at])
            found = Candidates(helping, helping, self._weights, partial(self._name, helping))
            enough = found.enough(wanted)
            if enough is not None:
                return found.first(enough)
            if looked_at >= len(rows):
                return found
            looked_at *= 2

    def _find_helping(self, run: DryRun, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Returns those of some rows on which evicting helps."""
        versions = self._find_versions(rows)
        unknown = self._known.take(rows) != versions
        if unknown.any():
            self._learn(run, rows[unknown])
            self._known[rows] = versions
        return rows[self._helps.take(rows)]

    def _name(self, rows: NDArray[np.intp], at: int) -> tuple[Pod, ...]:
        found, place = self._places[rows.item(at)]
        return found.victims(place)

    def _learn(self, run: DryRun, rows: NDArray[np.intp]) -> None:
        found = self._find_candidates(run, rows)
        self._helps[rows] = False
        if found is None:
            return
        self._helps[found.rows] = True
        self._weights.put(found.rows, found.columns)
        for at, row in enumerate(found.rows.tolist()):
            self._places[row] = found, at

    def _find_candidates(self, run: DryRun, rows: NDArray[np.intp]) -> Candidates | None:
        """Returns those of some rows on which evicting helps; None if it helps on none."""
        if len(rows) <= _ROW_BY_ROW:
            hopeful = find_hopeful(run, rows.tolist())
            if not hopeful:
                return None
            rows = np.array(hopeful, np.intp)
        lesser = run.nodes.lesser_pods(run.pod.priority, rows)
        return CountsDryRun(run, lesser).candidates() if len(lesser.rows) else None

    def _catch_up(self, nodes: View) -> None:
        """Finds which rows have changed since they were looked at."""
        order, table = nodes.order, nodes.pod_table()
        if self._of is None or self._of[0] is not order or self._of[1] is not table:
            self._of = order, table
            self._forget_all(nodes)
        self._changes.current()
        self._restarts = table.count_restarts(len(self._known))

    def _find_versions(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """Returns numbers of rows that grow with each change."""
        versions: NDArray[np.int64] = self._changes.values.take(rows) + self._restarts.take(rows)
        return versions

    def _forget_all(self, nodes: View) -> None:
        size, turns = nodes.count(nodes.everything), count(1)
        self._changes = RowView(
            nodes, self._reads, lambda rows: np.full(nodes.count(rows), next(turns))
        )
        #: Per row, its version when it was looked at, and whether evicting helps there.
        self._known = np.zeros(size, np.int64)
        self._helps = np.zeros(size, np.bool_)
        #: The row is the place.
        self._weights = VictimWeights.nothing(size)
        #: Per row where evicting helps, what was found together, and its position there.
        self._places: dict[int, tuple[Candidates, int]] = {}


class KnownVictims:
    """The columns of the kinds of pods that needed victims lately."""

    def __init__(self) -> None:
        self._columns: dict[Hashable, VictimColumns] = {}

    def candidates(self, run: DryRun, rows: NDArray[np.intp], wanted: int) -> Candidates | None:
        """Returns the candidates that `DryRun` would find; None if only it can tell."""
        nodes, pod = run.nodes, run.pod
        # Rows that only would be have no log, and who is nominated sees its own node differently.
        if nodes.changes is None or nodes.nominations.node_of(pod) or not run.in_columns:
            return None
        if nodes.groups.are_placed:
            return None
        key = (
            _find_template(run),
            pod.namespace,
            pod.node_name,
            pod.owner,
            tuple(pod.labels.items()),
            tuple(pod.annotations.items()),
            run.profile.filter,
            run.pre_filtered.skipped,
        )
        columns = self._columns.pop(key, None)
        if columns is None:
            reads = Change.NONE
            for plugin in active_filters(run.profile, run.pre_filtered):
                reads |= plugin.reads
            columns = VictimColumns(pod.spec, reads)
        self._columns[key] = columns
        if len(self._columns) > _MOST_KINDS:
            del self._columns[next(iter(self._columns))]
        return columns.candidates(run, rows, wanted)


def _find_template(run: DryRun) -> Hashable:
    """Returns what pods share for which evictions have the same effect: a template.

    For a pod with volumes, which has a template of its own, it is everything but the volumes, and
    what each filter reads of the pod.
    """
    spec = run.pod.spec
    if not spec.volumes:
        return id(spec)
    readers = _find_readers(run.profile, run.pre_filtered.skipped)
    if readers is None:
        return id(spec)
    signed = [sign_to_share(each, run.pod, run.nodes) for each in readers]
    if any(part is UNSIGNABLE for part in signed):
        return id(spec)
    return spec.without_volumes, *signed


@once_per_profile
def _find_readers(profile: Profile, skipped: frozenset[str]) -> tuple[Sign, ...] | None:
    """Returns the filters that do not skip a pod; None if one does not say what it reads."""
    asked = [plugin for plugin in profile.filter if plugin.name not in skipped]
    signing = tuple(plugin for plugin in asked if isinstance(plugin, Sign))
    return signing if len(signing) == len(asked) else None


def find_hopeful(run: DryRun, rows: Sequence[int]) -> list[int]:
    """Returns rows with lesser pods that might have room without these.

    Pods that are nominated to a row take their room there. Only filters that read nothing but
    figures are asked, so a returned row may still have no room.
    """
    asked = [
        each for each in run.counting if reads_figures(each, ask_watch(each, run.pod, run.nodes))
    ]
    return [row for row in rows if _is_hopeful(run, row, asked)]


def _is_hopeful(run: DryRun, row: int, asked: Sequence[Filter[Any]]) -> bool:
    priority = run.pod.priority
    lesser = [each for each in run.nodes.pods(row).values() if each.priority < priority]
    return bool(lesser) and not _lacks_room(run, row, lesser, asked)


def _lacks_room(run: DryRun, row: int, lesser: Sequence[Pod], asked: Sequence[Filter[Any]]) -> bool:
    nodes, pod = run.nodes, run.pod
    coming = [
        each
        for each in nodes.nominations.on(nodes.name(row)).values()
        if each.priority >= pod.priority and each.uid != pod.uid
    ]
    facts = predict_facts_with_pods(nodes, row, lesser, coming)
    if facts is None:
        return False
    prepared = run.pre_filtered.prepared
    return any(
        ask_recheck(each, prepared.get(each.name, pod), nodes, facts) is INFEASIBLE
        for each in asked
    )
