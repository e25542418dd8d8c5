"""Calls of plugins: what a plugin raises is caught here, and what it answers is checked here.

A plugin that raises, or that answers what its extension point does not allow, fails the attempt of
one pod. The `PluginError` names the plugin and the point, and the scheduler goes on.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Change, HandleRegistry, Nodes, RowFacts, Rows, Scope
from mooring.cluster.extended.informers import describe
from mooring.config import FeatureGates
from mooring.documents.errors import ConfigError
from mooring.objects.pod import Pod

from .advice import AdviseEviction, EvictionAdvice
from .attempt import Failed
from .observe import Caller, Named, call_plainly
from .plugin import (
    MAX_SCORE,
    Filter,
    Levels,
    Narrowed,
    NoRemedy,
    PendingPermits,
    Permit,
    Plugin,
    PostFilter,
    PreBind,
    Preempt,
    PreEnqueue,
    PreFilter,
    Preparation,
    PreScore,
    ProposedEviction,
    Reduction,
    Remedy,
    Rescore,
    Reserve,
    Score,
    Scores,
    Sign,
    SignedParts,
    Wait,
)
from .series import Counts, Histogram
from .status import BrokenRowsError, Code, PluginError, Reason, Rejected, check_items
from .verdict import Verdict
from .wakeups import Action, ClusterEvent, Wakeup

if TYPE_CHECKING:
    from .profile import Profile

#: Exceptions that are not the plugin's: they pass the fence. Everything else that a plugin raises
#: stays inside, `SystemExit` included.
PASSING = (KeyboardInterrupt,)

# What is done at the points that most plugins serve; the texts are kube-scheduler's.
FILTERING = 'running "{}" filter plugin'
SCORING = 'running Score plugin "{}"'

_BOOL, _INT64, _INTP = np.dtype(np.bool_), np.dtype(np.int64), np.dtype(np.intp)


def broken(what: str, error: BaseException, plugin: str = "") -> PluginError:
    """The error to raise for what a plugin raised; `what` names the plugin and the point."""
    if isinstance(error, PluginError):
        return PluginError(f"{what}: {error}", plugin or error.plugin)
    return PluginError(f"{what}: {describe(error)}", plugin)


def make_plugin_error(what: str, plugin: Named, error: BaseException) -> PluginError:
    """The same for a plugin; its name takes the place of the braces in `what`."""
    return broken(what.format(plugin.name), error, plugin.name)


class PluginFence:
    """Turns whatever is raised inside into a PluginError, as `broken_at` does.

    What is asked for every pod or row has a `try` of its own, which costs nothing.
    """

    __slots__ = ("_plugin", "_what")

    def __init__(self, what: str, plugin: Named) -> None:
        self._what, self._plugin = what, plugin

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, PASSING):
            return
        raise make_plugin_error(self._what, self._plugin, error) from error


# Answers


def expect(answer: object, *kinds: type) -> None:
    """Raises unless the answer is of one of these kinds."""
    if not isinstance(answer, kinds):
        raise PluginError(f"returned {type(answer).__name__}, expected {_name_kinds(kinds)}")


def _name_kinds(kinds: type | tuple[type, ...]) -> str:
    several = kinds if isinstance(kinds, tuple) else (kinds,)
    return " or ".join("None" if each is type(None) else each.__name__ for each in several)


def check_verdict(answer: object, count: int) -> Verdict:
    """A verdict over so many rows."""
    if type(answer) is not Verdict:
        raise PluginError(f"returned {type(answer).__name__}, expected Verdict")
    reasons, failed = answer.reasons, answer.failed
    if (
        type(failed) is not np.ndarray
        or (failed.dtype is not _BOOL and failed.dtype != _BOOL)
        or failed.shape != (len(reasons), count)
    ):
        shown = _show(failed)
        raise PluginError(
            f"returned a Verdict over {shown}, expected bool[{len(reasons)}, {count}]"
        )
    for reason in reasons:
        if type(reason) is not Reason:
            raise PluginError(f"returned a Verdict with {type(reason).__name__}, expected Reason")
    return answer


def check_scores(answer: object, count: int) -> Scores:
    """One whole number for each of so many rows."""
    if type(answer) is np.ndarray and answer.shape == (count,):
        if answer.dtype is _INT64 or answer.dtype == _INT64:
            return answer
        if answer.dtype.kind in "iu":
            return answer.astype(np.int64)
    raise PluginError(f"returned {_show(answer)}, expected int64[{count}]")


def check_levels(answer: object, count: int) -> Levels:
    """Some whole numbers, and a place among them for each of so many rows."""
    if type(answer) is not Levels:
        raise PluginError(f"returned {type(answer).__name__}, expected Levels")
    numbers, places = answer.numbers, answer.places
    if type(numbers) is not np.ndarray or numbers.dtype != _INT64 or numbers.ndim != 1:
        raise PluginError(f"returned Levels of {_show(numbers)}, expected int64[...]")
    if type(places) is not np.ndarray or places.dtype != _INTP or places.shape != (count,):
        raise PluginError(f"returned Levels over {_show(places)}, expected intp[{count}]")
    return answer


def check_range(scores: Scores) -> Scores:
    """Scores that are normalised."""
    # Read without a sign, negative numbers are the largest.
    if len(scores) and scores.view(np.uint64).max() > MAX_SCORE:
        raise PluginError(
            f"returns an invalid score, it should be in the range of [0, {MAX_SCORE}]"
        )
    return scores


def check_rejection(answer: object) -> Rejected | None:
    """A rejection or None."""
    if answer is None or isinstance(answer, Rejected):
        return answer
    raise PluginError(f"returned {type(answer).__name__}, expected Rejected or None")


def _show(answer: object) -> str:
    if isinstance(answer, np.ndarray):
        return f"{answer.dtype}{list(answer.shape)}"
    return type(answer).__name__


# Making plugins


def create(kind: type[Plugin], args: Any, gates: FeatureGates, handles: HandleRegistry) -> Plugin:
    """A plugin for a profile. A mistake in its class is an error at the start."""
    try:
        plugin = kind.create_sharing(args, gates, handles)
        _check_plugin(plugin, kind)
        return plugin
    except (ConfigError, *PASSING):
        raise
    except BaseException as error:
        raise broken(f'creating plugin "{kind.name}"', error, kind.name) from error


def _check_plugin(plugin: Plugin, kind: type[Plugin]) -> None:
    expect(plugin, kind)
    metrics = plugin.metrics()
    expect(metrics, tuple)
    for each in metrics:
        expect(each, Counts, Histogram)
    # Profiles keep plugins in dictionaries.
    hash(plugin)
    for attribute, wanted in _ATTRIBUTES.items():
        value = getattr(plugin, attribute, None)
        if hasattr(plugin, attribute) and not isinstance(value, wanted):
            raise PluginError(f"{attribute} is {value!r}, expected {_name_kinds(wanted)}")


#: What a plugin says of itself, and the type of it.
_ATTRIBUTES: Mapping[str, type | tuple[type, ...]] = {
    "name": str,
    "reads": Change,
    "scope": Scope,
    "reads_figures_only": bool,
    "reduces": Reduction,
    "is_steady": bool,
    "signs": (SignedParts, type(None)),
}


# Points


def ask_wakeups(plugin: Plugin) -> tuple[Wakeup, ...]:
    """The events that the plugin wants to hear of."""
    with PluginFence('asking plugin "{}" for its wakeups', plugin):
        answer = plugin.wakeups()
        expect(answer, tuple)
        for each in answer:
            expect(each, Wakeup)
            expect(each.event, ClusterEvent)
            expect(each.event.resource, str)
            expect(each.event.action, Action)
            if each.hint is not None and not callable(each.hint):
                raise PluginError(f"a hint is {type(each.hint).__name__}, expected a function")
        return answer


def ask_pre_enqueue(plugin: PreEnqueue, pod: Pod) -> Rejected | None:
    """Why the plugin holds the pod back. One that breaks holds it back as well."""
    try:
        answer = plugin.pre_enqueue(pod)
        return None if answer is None else check_rejection(answer)
    except PASSING:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a plugin raises
        broke = make_plugin_error('running PreEnqueue plugin "{}"', plugin, error)
        return Rejected(Code.ERROR, (str(broke),))


def ask_pre_filter(
    plugin: PreFilter[Any], pod: Pod, nodes: Nodes, ask: Caller = call_plainly
) -> Any | Narrowed[Any] | Rejected | None:
    """What the plugin prepares for its filter."""
    try:
        answer = ask(plugin, plugin.pre_filter, pod, nodes)
        if type(answer) is Rejected and answer.code is Code.ERROR:
            raise PluginError(answer.message)
        return answer
    except PASSING:
        raise
    except BaseException as error:
        raise make_plugin_error('running PreFilter plugin "{}"', plugin, error) from error


def ask_filter(
    plugin: Filter[Any], prepared: Any, nodes: Nodes, rows: Rows, ask: Caller = call_plainly
) -> Verdict:
    """The plugin's verdict on some rows. Raises BrokenRowsError if it broke on any of them."""
    verdict = ask_filter_in_part(plugin, prepared, nodes, rows, ask)
    if verdict.broken is not None:
        raise_broken_rows(plugin, verdict, np.array(nodes.numbers(rows))[verdict.broken])
    return verdict


def ask_filter_in_part(
    plugin: Filter[Any], prepared: Any, nodes: Nodes, rows: Rows, ask: Caller = call_plainly
) -> Verdict:
    """The same for callers who look at `Verdict.broken` themselves."""
    try:
        return check_verdict(ask(plugin, plugin.filter, prepared, nodes, rows), nodes.count(rows))
    except PASSING:
        raise
    except BaseException as error:
        raise make_plugin_error(FILTERING, plugin, error) from error


def raise_broken_rows(plugin: Filter[Any], verdict: Verdict, rows: NDArray[np.intp]) -> None:
    """Raises if the plugin broke on any row that matters."""
    if len(rows):
        what = FILTERING.format(plugin.name)
        raise BrokenRowsError(what, plugin.name, rows.tolist(), verdict.describe)


def ask_recheck(plugin: Filter[Any], prepared: Any, nodes: Nodes, row: RowFacts) -> Rescore:
    """The plugin's quick answer for one row; an answer that is none counts as UNKNOWN."""
    try:
        answer = plugin.recheck(prepared, nodes, row)
        return answer if type(answer) is Rescore else Rescore.UNKNOWN
    except PASSING:
        raise
    except BaseException as error:
        raise make_plugin_error(FILTERING, plugin, error) from error


def ask_sees(plugin: Filter[Any], prepared: Any, nodes: Nodes) -> int:
    """By which changes pods that come or go can alter the plugin's answer, as a plain number."""
    try:
        answer = plugin.sees(prepared, nodes)
        expect(answer, Change)
        return int(answer)
    except PASSING:
        raise
    except BaseException as error:
        raise make_plugin_error('asking plugin "{}" what it sees', plugin, error) from error


def ask_watch(plugin: Plugin, pod: Pod, nodes: Nodes) -> int:
    """The changes that can alter the plugin's answer for such a pod, as a plain number."""
    try:
        answer = plugin.watch(pod, nodes)
        expect(answer, Change)
        return int(answer)
    except PASSING:
        raise
    except BaseException as error:
        raise make_plugin_error('asking plugin "{}" what it watches', plugin, error) from error


def ask_turns(plugin: Plugin, pod: Pod, watch: int) -> int:
    """The changes after which it may skip, reject or narrow such a pod otherwise than before."""
    if plugin.is_steady or not watch:
        return 0
    try:
        answer = plugin.turns_with(pod)
        if answer is None:
            return watch
        expect(answer, Change)
        return watch & int(answer)
    except PASSING:
        raise
    except BaseException as error:
        raise make_plugin_error('asking plugin "{}" what it turns with', plugin, error) from error


def ask_sign(plugin: Sign, pod: Pod, nodes: Nodes) -> Hashable:
    """What the plugin reads of a pod."""
    try:
        answer = plugin.sign(pod, nodes)
        hash(answer)
        return answer
    except PASSING:
        raise
    except BaseException as error:
        raise make_plugin_error('asking plugin "{}" for a signature', plugin, error) from error


def ask_skips(plugin: Plugin, pod: Pod) -> bool:
    """Whether the plugin has nothing to do with pods of a template."""
    with PluginFence('asking plugin "{}" whom it skips', plugin):
        answer = plugin.skips(pod)
        expect(answer, bool)
        return answer


def ask_reserves_for(plugin: Reserve, pod: Pod, nodes: Nodes) -> bool:
    """Whether the plugin may reserve something for a pod."""
    with PluginFence('asking plugin "{}" for whom it reserves', plugin):
        answer = plugin.reserves_for(pod, nodes)
        expect(answer, bool)
        return answer


def ask_to_add(plugin: PreFilter[Any], prepared: Any, nodes: Nodes, pod: Pod, row: int) -> Any:
    """The prepared value as if one more pod ran on a row."""
    with PluginFence('running AddPod on PreFilter plugin "{}"', plugin):
        return _check_moved(plugin.add_pod(prepared, nodes, pod, row), prepared)


def ask_to_remove(plugin: PreFilter[Any], prepared: Any, nodes: Nodes, pod: Pod, row: int) -> Any:
    """The prepared value as if a pod no longer ran on a row."""
    with PluginFence('running RemovePod on PreFilter plugin "{}"', plugin):
        return _check_moved(plugin.remove_pod(prepared, nodes, pod, row), prepared)


def _check_moved(answer: Any, prepared: Any) -> Any:
    if answer is None and prepared is not None:
        raise PluginError(f"returned None, expected {type(prepared).__name__}")
    return answer


def ask_pre_score(
    plugin: PreScore[Any],
    pod: Pod,
    nodes: Nodes,
    rows: NDArray[np.intp],
    ask: Caller = call_plainly,
) -> Any | None:
    """What the plugin prepares for its score."""
    try:
        return ask(plugin, plugin.pre_score, pod, nodes, rows)
    except PASSING:
        raise
    except BaseException as error:
        raise make_plugin_error('running PreScore plugin "{}"', plugin, error) from error


def ask_score(
    plugin: Score[Any], prepared: Any, nodes: Nodes, rows: Rows, ask: Caller = call_plainly
) -> Scores:
    """The plugin's numbers for some rows, before they are normalised."""
    try:
        return check_scores(ask(plugin, plugin.score, prepared, nodes, rows), nodes.count(rows))
    except PASSING:
        raise
    except BaseException as error:
        raise make_plugin_error(SCORING, plugin, error) from error


def ask_levels(
    plugin: Score[Any], prepared: Any, nodes: Nodes, ask: Caller = call_plainly
) -> Levels | None:
    """The same for all rows, by the few numbers that occur; None if the plugin does not say."""
    try:
        answer = ask(plugin, plugin.find_levels, prepared, nodes)
        return None if answer is None else check_levels(answer, nodes.count(nodes.everything))
    except PASSING:
        raise
    except BaseException as error:
        raise make_plugin_error(SCORING, plugin, error) from error


def find_occurring(
    plugin: Score[Any], levels: Levels, places: NDArray[np.intp]
) -> NDArray[np.intp]:
    """The places that some rows have, in order."""
    try:
        counts = np.bincount(places, minlength=len(levels.numbers))
    except ValueError as error:
        raise make_plugin_error(SCORING, plugin, error) from error
    if len(counts) > len(levels.numbers):
        found = f"place {len(counts) - 1} of {len(levels.numbers)}"
        raise make_plugin_error(SCORING, plugin, PluginError(f"returned Levels with {found}"))
    return counts.nonzero()[0]


def ask_normalize(
    plugin: Score[Any], prepared: Any, scores: Scores, ask: Caller = call_plainly
) -> Scores:
    """The plugin's scores: its numbers normalised."""
    count = len(scores)
    try:
        answer = ask(plugin, plugin.normalize, prepared, scores)
        return check_range(check_scores(answer, count))
    except PASSING:
        raise
    except BaseException as error:
        raise make_plugin_error(SCORING, plugin, error) from error


def ask_post_filter(
    plugin: PostFilter, ask: Caller, pod: Pod, failed: Failed, nodes: Nodes, profile: Profile
) -> Remedy | NoRemedy:
    """What the plugin would do for a pod that fits nowhere."""
    with PluginFence('running PostFilter plugin "{}"', plugin):
        answer: Remedy | NoRemedy = ask(plugin, plugin.post_filter, pod, failed, nodes, profile)
        expect(answer, Remedy, NoRemedy)
        if isinstance(answer, Remedy):
            _check_remedy(answer, nodes)
        return answer


def ask_to_propose(
    plugin: Preempt, ask: Caller, pod: Pod, failed: Failed, nodes: Nodes, profile: Profile
) -> tuple[ProposedEviction, ...] | NoRemedy:
    """The evictions that a plugin proposes for a pod that fits nowhere."""
    with PluginFence('running PostFilter plugin "{}"', plugin):
        answer: tuple[ProposedEviction, ...] | NoRemedy = ask(
            plugin, plugin.propose, pod, failed, nodes, profile
        )
        if not isinstance(answer, NoRemedy):
            check_items("propose", answer, ProposedEviction)
        return answer


def ask_to_choose(
    plugin: Preempt, proposals: Sequence[ProposedEviction], nodes: Nodes
) -> Remedy | NoRemedy:
    """The best of the evictions that are left."""
    with PluginFence('running PostFilter plugin "{}"', plugin):
        answer = plugin.choose(proposals, nodes)
        expect(answer, Remedy, NoRemedy)
        if isinstance(answer, Remedy):
            _check_remedy(answer, nodes)
        return answer


def _check_remedy(remedy: Remedy, nodes: Nodes) -> None:
    row = nodes.row(remedy.node_name)
    if row is None:
        raise PluginError(f"there is no node {remedy.node_name!r}")
    there = nodes.pods(row)
    for victim in remedy.victims:
        group = nodes.groups.of(victim)
        is_whole = group is not None and group.is_evicted_whole
        if victim.uid not in there and not is_whole:
            raise PluginError(f"pod {victim.key} is not on node {remedy.node_name}")


def ask_eviction_advice(
    plugin: AdviseEviction, pod: Pod, failed: Failed, nodes: Nodes, profile: Profile
) -> EvictionAdvice | None:
    """What would let the plugin's post-filter help a pod."""
    with PluginFence('asking plugin "{}" for advice', plugin):
        answer = plugin.advise_eviction(pod, failed, nodes, profile)
        expect(answer, EvictionAdvice, type(None))
        return answer


def ask_reserve(
    plugin: Reserve, ask: Caller | None, pod: Pod, nodes: Nodes, row: int
) -> Rejected | None:
    """Why the plugin cannot set aside what the pod needs; None where it could."""
    try:
        # Every pod comes by here, and mostly nobody wants to know how long it takes.
        answer = (
            plugin.reserve(pod, nodes, row)
            if ask is None
            else ask(plugin, plugin.reserve, pod, nodes, row)
        )
        return None if answer is None else check_rejection(answer)
    except PASSING:
        raise
    except BaseException as error:
        raise make_plugin_error('running Reserve plugin "{}"', plugin, error) from error


def show_cluster(plugin: Plugin, nodes: Nodes) -> None:
    """Hands a plugin the cluster, when the scheduler starts."""
    with PluginFence('showing plugin "{}" the cluster', plugin):
        plugin.see_cluster(nodes)


def ask_remarks(plugin: Plugin) -> tuple[str, ...]:
    """What a plugin has to say of its arguments."""
    with PluginFence('asking plugin "{}" for its remarks', plugin):
        answer = plugin.remarks()
        expect(answer, tuple)
        for each in answer:
            expect(each, str)
        return answer


def attach(plugin: Permit, waiting: PendingPermits) -> None:
    """Hands a plugin the pods that wait for its permit, when the scheduler starts."""
    with PluginFence('attaching Permit plugin "{}"', plugin):
        plugin.attach(waiting)


def ask_permit(plugin: Permit, ask: Caller, pod: Pod, node_name: str) -> Rejected | Wait | None:
    """Whether the plugin lets a pod be bound."""
    with PluginFence('running Permit plugin "{}"', plugin):
        answer: Rejected | Wait | None = ask(plugin, plugin.permit, pod, node_name)
        expect(answer, Rejected, Wait, type(None))
        return answer


def ask_prepare(plugin: PreBind, pod: Pod, nodes: Nodes, node_name: str) -> Preparation | None:
    """What is to be written before a pod is bound."""
    try:
        answer = plugin.prepare(pod, nodes, node_name)
        if answer is not None:
            expect(answer, Preparation, type(None))
        return answer
    except PASSING:
        raise
    except BaseException as error:
        raise make_plugin_error('running PreBind plugin "{}"', plugin, error) from error


def ask_is_prepared(plugin: PreBind, pod: Pod, nodes: Nodes, node_name: str) -> bool | Rejected:
    """Whether what was written has come true."""
    with PluginFence('running PreBind plugin "{}"', plugin):
        answer = plugin.is_prepared(pod, nodes, node_name)
        expect(answer, bool, np.bool_, Rejected)
        return answer
