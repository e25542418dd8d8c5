"""The two-pass filter: a node must take the pod with and without the pods nominated to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.cluster import Change, Nodes, Rows, Scope, WhatIf
from moorage.cluster.changes import unite
from moorage.cluster.ledger import Ledger
from moorage.objects.pod import Pod

from .attempt import Filtered, PreFiltered
from .calls import ask_to_add, ask_to_remove, ask_watch
from .plugin import Filter, PreFilter
from .points import filter_rows
from .profile import Profile, once_per_profile

# What a pod changes on its row besides what `Usage` counts: devices belong to claims, not to pods.
# Plain integers: combining flags of an enum takes many times as long.
_BEYOND_COUNTS = int(Change.ALL) & ~int(
    Change.REQUESTED
    | Change.ALLOCATABLE
    | Change.LABELS
    | Change.TAINTS
    | Change.UNSCHEDULABLE
    | Change.IMAGES
    | Change.FEATURES
    | Change.ANNOTATIONS
    | Change.CONDITIONS
    | Change.BUDGETS
    | Change.NAMESPACES
    | Change.SERVICES
    | Change.MEMBERSHIP
    | Change.STORAGE
    | Change.ATTACH_LIMITS
    | Change.SLICES
    | Change.CLAIMS
    | Change.CLASSES
)


def sees_only_counts(profile: Profile, pod: Pod, pre_filtered: PreFiltered, nodes: Nodes) -> bool:
    """Whether the filters for this pod read of other pods only what `Usage` counts."""
    beyond = _BEYOND_COUNTS & ~find_counted(profile)
    for plugin in _find_seeing(profile, pre_filtered.skipped):
        if ask_watch(plugin, pod, nodes) & beyond:
            return False
    return True


@once_per_profile
def _find_seeing(profile: Profile, skipped: frozenset[str]) -> tuple[Filter[Any], ...]:
    """Returns the filters that may read more of other pods than what `Usage` counts."""
    asked = (plugin for plugin in profile.filter if plugin.name not in skipped)
    beyond = _BEYOND_COUNTS & ~find_counted(profile)
    return tuple(plugin for plugin in asked if int(plugin.reads) & beyond)


@once_per_profile
def find_counted(profile: Profile) -> int:
    """Returns the kinds of change of what `Usage` counts: requests, and columns of ledgers."""
    ledgers = (each for plugin in profile.plugins.values() for each in plugin.ledgers)
    return int(Change.REQUESTED) | unite(each.change for each in ledgers if each.columns)


def filter_with_nominated(
    profile: Profile, pod: Pod, pre_filtered: PreFiltered, nodes: Nodes, rows: Rows
) -> Filtered:
    """Filters rows, counting pods of equal or higher priority that are nominated to them.

    If both passes fail, the one with the nominated pods gives the reasons.
    """
    outcome = filter_rows(profile, pod, pre_filtered, nodes, rows)
    for crowded in _with_nominated(profile, pod, pre_filtered, nodes, outcome.rows):
        outcome = outcome.replacing(crowded)
    return outcome


def find_refused_by_nominated(
    profile: Profile,
    pod: Pod,
    pre_filtered: PreFiltered,
    nodes: Nodes,
    rows: NDArray[np.intp],
) -> NDArray[np.intp]:
    """Returns the rows that would accept the pod if no other pods were nominated to them.

    All of the rows must accept the pod without the nominated pods.
    """
    counting = find_counting(profile, pre_filtered.skipped)
    answers = _with_nominated(profile, pod, pre_filtered, nodes, rows, counting)
    refused = [each.rows[~each.feasible] for each in answers]
    return np.concatenate([np.zeros(0, np.intp), *refused])


def _with_nominated(
    profile: Profile,
    pod: Pod,
    pre_filtered: PreFiltered,
    nodes: Nodes,
    rows: NDArray[np.intp],
    counting: Sequence[Filter[Any]] | None = None,
) -> Sequence[Filtered]:
    """Returns the answers for those of the rows that pods are nominated to, with these on them.

    If filters read only counts of other pods, and `counting` is given, only these filters run.
    """
    if not nodes.nominations:
        return ()
    if sees_only_counts(profile, pod, pre_filtered, nodes):
        crowded = _filter_by_counts(profile, pod, pre_filtered, nodes, rows, counting)
        return () if crowded is None else (crowded,)
    return _filter_crowded(profile, pod, pre_filtered, nodes, _weighing(pod, nodes, rows))


def _filter_by_counts(
    profile: Profile,
    pod: Pod,
    pre_filtered: PreFiltered,
    nodes: Nodes,
    rows: NDArray[np.intp],
    only: Sequence[Filter[Any]] | None,
) -> Filtered | None:
    """Returns the answers for rows, with the counts of their nominated pods added.

    It is None if no pods are nominated to the rows.
    """
    weight = nodes.nominated_weight(pod)
    if weight is None:
        return None
    nominated = rows[weight.pods()[rows] > 0]
    if not len(nominated):
        return None
    what_if = make_what_if(profile, nodes, nominated)
    what_if.shift(nominated, weight.at(nominated))
    return filter_rows(profile, pod, pre_filtered, what_if, nominated, only)


def find_ledgers(
    profile: Profile, pod: Pod, pre_filtered: PreFiltered, nodes: Nodes
) -> Sequence[Ledger[Any]] | None:
    """Returns the ledgers that filters read of nominated pods, besides the figures of their row.

    None if they read more than that.
    """
    counting = find_counting(profile, pre_filtered.skipped)
    watch = unite(ask_watch(each, pod, nodes) for each in counting)
    if watch & ~(int(Change.ALLOCATABLE) | find_counted(profile)):
        return None
    is_local = all(each.scope is Scope.ROW for each in counting)
    if not is_local or not sees_only_counts(profile, pod, pre_filtered, nodes):
        return None
    ledgers = dict.fromkeys(each for plugin in profile.plugins.values() for each in plugin.ledgers)
    return [each for each in ledgers if each.kinds & watch]


@once_per_profile
def find_counting(profile: Profile, skipped: frozenset[str]) -> tuple[Filter[Any], ...]:
    """Returns the filters that read what `Usage` counts of pods."""
    asked = (plugin for plugin in profile.filter if plugin.name not in skipped)
    return tuple(plugin for plugin in asked if int(plugin.reads) & find_counted(profile))


def make_what_if(profile: Profile, nodes: Nodes, rows: NDArray[np.intp]) -> WhatIf:
    """Returns rows to which pods can be added, for filters that are asked only about these."""
    return WhatIf(nodes, rows if _look_at_rows(profile) else None)


@once_per_profile
def _look_at_rows(profile: Profile) -> bool:
    """Whether every filter reads what is requested only of the rows that it is asked about."""
    return all(
        each.scope is Scope.ROW or not each.reads & Change.REQUESTED for each in profile.filter
    )


def _weighing(pod: Pod, nodes: Nodes, among: NDArray[np.intp]) -> dict[int, list[Pod]]:
    """Returns per row the nominated pods that count as running while this pod is filtered."""
    weighing: dict[int, list[Pod]] = {}
    for row, nominated in _find_nominated(nodes, among.tolist()):
        others = [
            other
            for other in nominated.values()
            if other.priority >= pod.priority and other.uid != pod.uid
        ]
        if others:
            weighing[row] = others
    return weighing


def _find_nominated(nodes: Nodes, among: list[int]) -> Iterator[tuple[int, Mapping[str, Pod]]]:
    """Yields the rows that pods are nominated to, with these pods."""
    if len(among) == 1:
        # Preemption asks about a single row many times.
        yield among[0], nodes.nominations.on(nodes.name(among[0]))
        return
    wanted = set(among)
    for name, nominated in nodes.nominations:
        row = nodes.row(name)
        if row is not None and row in wanted:
            yield row, nominated


def _filter_crowded(
    profile: Profile,
    pod: Pod,
    pre_filtered: PreFiltered,
    nodes: Nodes,
    weighing: Mapping[int, Sequence[Pod]],
) -> list[Filtered]:
    """Returns the filters' answers for rows with their nominated pods on them.

    Rows whose nominated pods change no prepared value are answered together.
    """
    if not weighing:
        return []
    what_if = WhatIf(nodes)
    together: list[int] = []
    apart: list[tuple[int, PreFiltered]] = []
    for row, others in weighing.items():
        adjusted = pre_filtered.prepared
        for other in others:
            what_if.add_pod(other, row)
            adjusted = with_pod(profile, adjusted, nodes, other, row)
        if adjusted is pre_filtered.prepared:
            together.append(row)
        else:
            apart.append((row, replace(pre_filtered, prepared=adjusted)))
    answers = [
        filter_rows(profile, pod, adjusted, what_if, np.array([row])) for row, adjusted in apart
    ]
    if together:
        answers.append(filter_rows(profile, pod, pre_filtered, what_if, np.array(together)))
    return answers


def with_pod(
    profile: Profile, prepared: Mapping[str, Any], nodes: Nodes, pod: Pod, row: int
) -> Mapping[str, Any]:
    """Returns the prepared values as if a pod ran on a row; the same mapping if it changes none."""
    return _move(
        profile, prepared, lambda plugin, value: ask_to_add(plugin, value, nodes, pod, row)
    )


def without_pod(
    profile: Profile, prepared: Mapping[str, Any], nodes: Nodes, pod: Pod, row: int
) -> Mapping[str, Any]:
    """Returns the prepared values as if a pod no longer ran on a row.

    It is the same mapping if the pod changes none.
    """
    return _move(
        profile, prepared, lambda plugin, value: ask_to_remove(plugin, value, nodes, pod, row)
    )


def _move(
    profile: Profile, prepared: Mapping[str, Any], move: Callable[[PreFilter[Any], Any], Any]
) -> Mapping[str, Any]:
    changed = {}
    for plugin in profile.pre_filter:
        if plugin.name in prepared:
            before = prepared[plugin.name]
            after = move(plugin, before)
            if after is not before:
                changed[plugin.name] = after
    return {**prepared, **changed} if changed else prepared
