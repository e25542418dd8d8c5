"""Runs the extension points of a profile for one pod, over rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.cluster import Nodes, Rows
from moorage.objects.pod import Pod

from .attempt import Filtered, Layer, PreFiltered, Scored
from .calls import (
    ask_filter,
    ask_filter_in_part,
    ask_normalize,
    ask_pre_filter,
    ask_pre_score,
    ask_recheck,
    ask_score,
    raise_broken_rows,
)
from .observe import (
    FILTER,
    NORMALIZE,
    PRE_FILTER,
    PRE_SCORE,
    SCORE,
    PointTimer,
    make_caller,
)
from .plugin import Filter, Narrowed, PreFilter, PreScore, Rescore, Scores
from .profile import Profile, once_per_profile
from .status import Code, PluginError, Rejected, unresolvable

# Looked up once, because that takes long for an enum.
_UNKNOWN, _INFEASIBLE = Rescore.UNKNOWN, Rescore.INFEASIBLE


def pre_filter(profile: Profile, pod: Pod, nodes: Nodes) -> PreFiltered:
    """Runs the pre-filters in order until one says that the pod can be placed nowhere."""
    with PointTimer(profile.observer, PRE_FILTER, profile.name) as running:
        outcome = _pre_filter(profile, pod, nodes)
        if outcome.rejected is not None:
            running.status = outcome.rejected.code.value
    had_a_say = filter(None, (*outcome.prepared, outcome.rejected_by))
    profile.observer.plugins_evaluated(profile.name, PRE_FILTER, had_a_say)
    return outcome


def _pre_filter(profile: Profile, pod: Pod, nodes: Nodes) -> PreFiltered:
    ask = make_caller(profile.observer, PRE_FILTER)
    prepared: dict[str, Any] = {}
    skipped: set[str] = set()
    names: frozenset[str] | None = None
    narrowed_by: list[str] = []
    rejected: tuple[str, Rejected] | None = None

    for plugin in profile.pre_filter:
        answer = ask_pre_filter(plugin, pod, nodes, ask)
        if answer is None:
            skipped.add(plugin.name)
        elif isinstance(answer, Rejected):
            rejected = plugin.name, answer
            if answer.code is Code.UNRESOLVABLE:
                break
        elif isinstance(answer, Narrowed):
            prepared[plugin.name] = answer.prepared
            narrowed_by.append(plugin.name)
            names = answer.node_names if names is None else names & answer.node_names
            if not names:
                rejected = "", unresolvable(_describe_narrowing(narrowed_by))
                break
        else:
            prepared[plugin.name] = answer

    who, why = rejected or ("", None)
    return PreFiltered(prepared, frozenset(skipped), names, tuple(narrowed_by), why, who)


def pre_filter_again(
    before: PreFiltered, plugins: Iterable[PreFilter[Any]], pod: Pod, nodes: Nodes
) -> PreFiltered | None:
    """Runs some pre-filters for a pod like the one before, of which they prepared something.

    Returns None if one of them skips, rejects or narrows this one.
    """
    prepared = dict(before.prepared)
    for plugin in plugins:
        answer = ask_pre_filter(plugin, pod, nodes)
        if answer is None or isinstance(answer, Rejected | Narrowed):
            return None
        prepared[plugin.name] = answer
    return replace(before, prepared=prepared)


def _describe_narrowing(narrowed_by: list[str]) -> str:
    if len(narrowed_by) == 1:
        return f"node(s) didn't satisfy plugin {narrowed_by[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowed_by))}] simultaneously"


def rows_to_filter(pre_filtered: PreFiltered, nodes: Nodes) -> Rows:
    """Returns all rows, or those of the nodes that the pre-filters left."""
    if pre_filtered.node_names is None:
        return nodes.everything
    known = (nodes.row(name) for name in pre_filtered.node_names)
    return np.array(sorted(row for row in known if row is not None), np.intp)


def filter_rows(
    profile: Profile,
    pod: Pod,
    pre_filtered: PreFiltered,
    nodes: Nodes,
    rows: Rows,
    only: Iterable[Filter[Any]] | None = None,
) -> Filtered:
    """Runs the filters, or only some, over rows. The first that rejects a row gives the reasons."""
    numbers = np.arange(len(nodes.alive))[rows] if isinstance(rows, slice) else rows
    feasible = nodes.alive[rows]
    layers: list[Layer] = []
    ask = make_caller(profile.observer, FILTER)
    asked: list[str] = []
    for plugin in active_filters(profile, pre_filtered) if only is None else only:
        asked.append(plugin.name)
        prepared = _find_prepared(plugin, pod, pre_filtered.prepared)
        verdict = ask_filter_in_part(plugin, prepared, nodes, rows, ask)
        if verdict.broken is not None:
            raise_broken_rows(plugin, verdict, numbers[feasible & verdict.broken])
        if verdict.reasons:
            rejected = verdict.rejected
            decided = feasible & rejected
            if np.count_nonzero(decided):
                layers.append(Layer(plugin.name, verdict, decided))
                feasible = feasible & ~rejected
                if not np.count_nonzero(feasible):
                    break
    profile.observer.plugins_evaluated(profile.name, FILTER, asked)
    return Filtered(numbers, feasible, tuple(layers))


def fits_on(profile: Profile, pod: Pod, pre_filtered: PreFiltered, nodes: Nodes, row: int) -> bool:
    """Whether no filter rejects one row. It answers like `filter_rows`, without the reasons."""
    facts, known = nodes.facts(row), pre_filtered.prepared
    for plugin, needs_prepared, rechecks in _list_active(profile, pre_filtered.skipped):
        prepared = _find_prepared(plugin, pod, known) if needs_prepared else pod
        answer = _UNKNOWN
        if rechecks:
            answer = ask_recheck(plugin, prepared, nodes, facts)
        if answer is _UNKNOWN:
            if ask_filter(plugin, prepared, nodes, np.array([row], np.intp)).rejected[0]:
                return False
        elif answer is _INFEASIBLE:
            return False
    return True


def active_filters(profile: Profile, pre_filtered: PreFiltered) -> Iterator[Filter[Any]]:
    """Returns the filters that do not skip the pod."""
    return (plugin for plugin in profile.filter if plugin.name not in pre_filtered.skipped)


@once_per_profile
def _list_active(
    profile: Profile, skipped: frozenset[str]
) -> tuple[tuple[Filter[Any], bool, bool], ...]:
    """Returns the filters that do not skip a pod, and of each whether it pre-filters and rechecks.

    The result is kept, because single rows are asked about often.
    """
    asked = (plugin for plugin in profile.filter if plugin.name not in skipped)
    return tuple(
        (plugin, isinstance(plugin, PreFilter), type(plugin).recheck is not Filter.recheck)
        for plugin in asked
    )


def _find_prepared(plugin: Filter[Any], pod: Pod, prepared: Mapping[str, Any]) -> Any:
    if plugin.name in prepared:
        return prepared[plugin.name]
    if not isinstance(plugin, PreFilter):
        return pod
    # Another plugin rejected the pod first. Only an explanation runs filters after that.
    raise PluginError(f'running "{plugin.name}" filter plugin: nothing is prepared', plugin.name)


def score_rows(profile: Profile, pod: Pod, nodes: Nodes, feasible: NDArray[np.intp]) -> Scored:
    """Runs the scores over the feasible rows; without any score plugin every row gets 1."""
    totals = np.zeros(len(feasible), np.int64)
    if not profile.score:
        return Scored(feasible, {}, totals + 1)
    observer = profile.observer
    with PointTimer(observer, PRE_SCORE, profile.name):
        prepared = _pre_score(profile, pod, nodes, feasible)
    observer.plugins_evaluated(profile.name, PRE_SCORE, prepared)
    with PointTimer(observer, SCORE, profile.name):
        by_plugin = _score(profile, pod, nodes, _widest(nodes, feasible), prepared)
    observer.plugins_evaluated(profile.name, SCORE, by_plugin)
    for scores in by_plugin.values():
        totals += scores
    return Scored(feasible, by_plugin, totals)


def _score(
    profile: Profile, pod: Pod, nodes: Nodes, rows: Rows, prepared: Mapping[str, Any]
) -> dict[str, Scores]:
    """Returns the scores by plugin, normalised and weighted."""
    score, normalize = (
        make_caller(profile.observer, SCORE),
        make_caller(profile.observer, NORMALIZE),
    )
    by_plugin: dict[str, Scores] = {}
    for plugin, weight in profile.score:
        if isinstance(plugin, PreScore) and plugin.name not in prepared:
            continue
        value = prepared.get(plugin.name, pod)
        raw = ask_score(plugin, value, nodes, rows, score)
        scores = ask_normalize(plugin, value, raw, normalize)
        by_plugin[plugin.name] = scores * weight if weight != 1 else scores
    return by_plugin


def _pre_score(
    profile: Profile, pod: Pod, nodes: Nodes, feasible: NDArray[np.intp]
) -> dict[str, Any]:
    ask = make_caller(profile.observer, PRE_SCORE)
    prepared: dict[str, Any] = {}
    for plugin in profile.pre_score:
        answer = ask_pre_score(plugin, pod, nodes, feasible, ask)
        if answer is not None:
            prepared[plugin.name] = answer
    return prepared


def _widest(nodes: Nodes, feasible: NDArray[np.intp]) -> Rows:
    """Returns a slice if all rows are feasible, because reading a slice copies nothing."""
    everything = nodes.everything
    return everything if len(feasible) == nodes.count(everything) else feasible
