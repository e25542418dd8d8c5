"""Suggestions: plugins advise, and advice that helps when it is tried is suggested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import msgspec
import numpy as np

from moorage.framework.advice import MOST_EDITS, Advice, Advise, AdviseEviction
from moorage.framework.attempt import Failed
from moorage.framework.calls import ask_advice, ask_eviction_advice
from moorage.framework.edits import Edit, LowerRequest, RecoverNodes, SetNodeSelector, Uncordon
from moorage.framework.plugin import PreFilter
from moorage.framework.plugin_fence import PluginFence
from moorage.framework.status import PluginError

from .case import NO_ROWS, Case, RowNumbers
from .explanation import Suggestion
from .steps import Steps

replace = msgspec.structs.replace

# Each piece of advice is tried on all nodes, so a plugin may give only so much of it.
_MOST_ADVICE = 24

# Of nodes that two plugins reject, the largest groups, and of each the most promising pairs.
_MOST_PAIRS = 4
_PER_PLUGIN = 3

_HALF = 0.5

# The fields of a suggestion that only says what stands in the way.
_HOPELESS: Mapping[str, Any] = {
    "remedy": "",
    "effect": "none",
    "edits": (),
    "count": 0,
    "nodes": (),
}

# What is no change of the pod, but has to happen: it is not tried.
_INSTRUCTIONS = ("node-size", "claims")

Pattern = tuple[tuple[str, ...], RowNumbers]


@dataclass(frozen=True, slots=True)
class TriedAdvice:
    """Advice, the plugins that it is about, and the rows that it helps."""

    plugins: tuple[str, ...]
    advice: Advice
    helped: RowNumbers


def make_suggestions(
    case: Case, patterns: Iterable[Pattern], infeasible: RowNumbers
) -> Steps[tuple[Suggestion, ...]]:
    """Suggests what would help where one or two plugins reject nodes.

    All advice is tried on all infeasible rows, so that a suggestion is true and complete at the
    moment when it is tried. The cluster may change between two steps.
    """
    known = list(patterns)
    pairs = [pattern for pattern in known if len(pattern[0]) == 2][:_MOST_PAIRS]
    found: dict[frozenset[Edit], TriedAdvice] = {}
    hopeless: list[TriedAdvice] = []
    for pattern in [*(each for each in known if len(each[0]) == 1), *pairs]:
        all_tried = yield from _try_advice(case, pattern, infeasible)
        for tried in all_tried:
            if tried.advice.edits:
                found.setdefault(frozenset(tried.advice.edits), tried)
            else:
                hopeless.append(tried)
    chosen = (*_drop_larger(found), *hopeless)
    return tuple(make_suggestion(case, each.plugins, each.advice, each.helped) for each in chosen)


def rank_suggestions(case: Case, found: Iterable[Suggestion]) -> tuple[Suggestion, ...]:
    """Returns the suggestions that say something new: small changes first, then the most helpful.

    What the owner of the pod or of the cluster can do comes first, and what hurts others last. Of
    one kind the smallest change comes first.
    """
    suggestions = tuple(found)

    def near(each: Suggestion) -> tuple[int, ...]:
        is_instruction, evicts = each.kind in _INSTRUCTIONS, each.effect == "evicts"
        useless = not each.count and not is_instruction
        distance = 1 if is_instruction else 2 * _is_far(case, each.edits)
        # A label that was mistyped is corrected, where others are given up.
        gives_up = not any(isinstance(edit, SetNodeSelector) for edit in each.edits)
        return useless, evicts, distance, gives_up, len(each.edits)

    most: Counter[tuple[object, ...]] = Counter()
    for each in suggestions:
        group = near(each), each.kind
        most[group] = max(most[group], each.count)

    def rank(each: Suggestion) -> tuple[Any, ...]:
        helps = -most[near(each), each.kind]
        return near(each), helps, each.kind, _share_less(case, each.edits), -each.count

    ranked = list(_drop_repeated(sorted(suggestions, key=rank)))
    wanted = [each for each in ranked if _share_less(case, each.edits) < 1]
    if not wanted:
        # To ask for nothing of what the pod is about helps nobody; what is short is worth saying.
        return tuple(replace(each, **_HOPELESS) for each in ranked)
    return tuple(_drop_contained(wanted))


def _share_less(case: Case, edits: Iterable[Edit]) -> float:
    """Returns by which share the pod would request less: 1 means all of it."""
    asked = dict(case.pod.spec.requests)
    return max(
        (
            edit.by / max(asked.get(edit.resource, 0), 1)
            for edit in edits
            if isinstance(edit, LowerRequest)
        ),
        default=0.0,
    )


def _drop_contained(ranked: Iterable[Suggestion]) -> Iterator[Suggestion]:
    """Drops suggestions that extend a smaller change but help less than half as many nodes more."""
    known: list[Suggestion] = []
    for each in ranked:
        if not any(
            _contains(each, other) and each.count - other.count < _HALF * other.count
            for other in known
        ):
            known.append(each)
            yield each


def _contains(larger: Suggestion, smaller: Suggestion) -> bool:
    if not smaller.edits or larger.effect != smaller.effect:
        return False
    return all(any(_covers(mine, edit) for mine in larger.edits) for edit in smaller.edits)


def _covers(edit: Edit, other: Edit) -> bool:
    if isinstance(edit, LowerRequest) and isinstance(other, LowerRequest):
        return edit.resource == other.resource and edit.by >= other.by
    return edit == other


def _drop_repeated(found: Iterable[Suggestion]) -> Iterator[Suggestion]:
    """Keeps the first of equal suggestions: a cordon is also a taint, so two plugins may say it."""
    known = set()
    for each in found:
        said = each.remedy or each.problem, each.nodes
        if said not in known:
            known.add(said)
            yield each


def _is_far(case: Case, edits: Iterable[Edit]) -> bool:
    """Whether the pod would be a different one: it would request less than half of something."""
    return _share_less(case, edits) > _HALF


def _try_advice(case: Case, pattern: Pattern, infeasible: RowNumbers) -> Steps[list[TriedAdvice]]:
    """Yields the advice for rows that the same plugins reject, if it helps such a row."""
    plugins, rows = pattern
    each: list[tuple[str, list[Advice]]] = []
    for plugin in plugins:
        each.append((plugin, list(_ask_for_advice(case.latest(), plugin, rows))))
        yield
    good: list[TriedAdvice] = []
    for plugin, found in each:
        # What mends one may mend another too: a cordon comes with its own taint.
        for advice in found:
            helped = _find_helped(case, advice, infeasible)
            if np.isin(helped, rows).any() or (len(plugins) == 1 and not advice.edits):
                good.append(TriedAdvice((plugin,), advice, helped))
            yield
    if not good and len(each) > 1:
        good = yield from _try_pairs(case, each, pattern, infeasible)
    return good


def _find_helped(case: Case, advice: Advice, infeasible: RowNumbers) -> RowNumbers:
    """Returns the rows that take the pod after some edits."""
    if not advice.edits:
        return NO_ROWS
    latest = case.latest()
    if latest is not case:
        # Where the pod has a place by now, nothing has to help it.
        infeasible = np.setdiff1d(infeasible, latest.feasible(infeasible))
    try:
        return latest.helped(advice.edits, infeasible)
    except LookupError:
        # What it is about is gone since it was given.
        return NO_ROWS


def _try_pairs(
    case: Case,
    each: list[tuple[str, list[Advice]]],
    pattern: Pattern,
    infeasible: RowNumbers,
) -> Steps[list[TriedAdvice]]:
    """Tries two at once: the first that helps is the nearest, and of near ones the best counts."""
    plugins, rows = pattern
    first, second = ([one for one in found if one.edits][:_PER_PLUGIN] for _, found in each)
    good: list[TriedAdvice] = []
    for both in (_combine(left, right) for left, right in product(first, second)):
        if len(both.edits) > MOST_EDITS:
            continue
        helped = _find_helped(case, both, infeasible)
        if np.isin(helped, rows).any():
            good.append(TriedAdvice(plugins, both, helped))
        yield
    if not good:
        return []
    near = [one for one in good if not _is_far(case, one.advice.edits)]
    return [good[0], max(near or good[:1], key=lambda one: len(one.helped))]


def _combine(left: Advice, right: Advice) -> Advice:
    edits = tuple(dict.fromkeys((*left.edits, *right.edits)))
    problem = f"{left.problem}; {right.problem}"
    return Advice(problem, edits, (*left.blockers, *right.blockers), kind="several")


def _drop_larger(found: Mapping[frozenset[Edit], TriedAdvice]) -> Iterator[TriedAdvice]:
    """Keeps advice that helps some node which no smaller change helps."""
    for key, each in found.items():
        smaller = [other.helped for edits, other in found.items() if edits < key]
        if not smaller or not np.isin(each.helped, np.concatenate(smaller)).all():
            yield each


def make_suggestion(
    case: Case, plugins: tuple[str, ...], advice: Advice, helped: RowNumbers
) -> Suggestion:
    """Makes the suggestion that is shown: what would help, and where."""
    names = tuple(case.actual.names(helped.tolist()))
    edits = tuple(_limit(edit, frozenset(names)) for edit in advice.edits) if names else ()
    return Suggestion(
        kind=advice.kind,
        plugins=plugins,
        problem=advice.problem,
        remedy=" and ".join(edit.text for edit in edits),
        effect="fits" if names else "none",
        edits=edits,
        count=len(names),
        nodes=names,
        blockers=advice.blockers,
    )


def _limit(edit: Edit, names: frozenset[str]) -> Edit:
    """Returns the edit for no more nodes than it helps."""
    if isinstance(edit, Uncordon | RecoverNodes):
        return replace(edit, nodes=tuple(name for name in edit.nodes if name in names))
    return edit


# Asking plugins


def _ask_for_advice(case: Case, name: str, rows: RowNumbers) -> Iterator[Advice]:
    """Returns a plugin's advice about rows that it rejects, if it advises at all."""
    plugin = case.profile.plugins.get(name)
    if not isinstance(plugin, Advise):
        return
    values = case.prepared.prepared
    prepared = values.get(plugin.name) if isinstance(plugin, PreFilter) else case.pod
    try:
        with PluginFence('asking plugin "{}" for advice', plugin):
            found = list(
                islice(ask_advice(plugin, case.pod, prepared, case.nodes, rows), _MOST_ADVICE)
            )
            for each in found:
                _check(each, case)
    except PluginError as error:
        # A plugin that breaks must not cost the explanation.
        yield Advice(str(error))
        return
    yield from found


def _check(advice: object, case: Case) -> None:
    if not isinstance(advice, Advice):
        raise TypeError(f"{type(advice).__name__} is no Advice")
    for edit in advice.edits:
        # A field of a wrong type fails here, and not where the edit is written.
        msgspec.convert(msgspec.to_builtins(edit), type(edit))
    # Edits of what is not there fail here, and not where everybody's are tried.
    case.after(advice.edits)


def suggest_eviction(case: Case, failed: Failed) -> Suggestion | None:
    """Suggests what would let a post-filter evict other pods for this one."""
    if failed.filtered is None or case.gone:
        return None
    for plugin in case.profile.post_filter:
        if not isinstance(plugin, AdviseEviction):
            continue
        found = ask_eviction_advice(plugin, case.pod, failed, case.actual, case.profile)
        if found is not None:
            made = make_suggestion(case, (plugin.name,), found.advice, found.rows)
            return replace(made, effect="evicts")
    return None
