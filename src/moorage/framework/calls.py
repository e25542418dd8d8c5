"""Calls of plugins at the extension points: `plugin_fence` catches errors and checks answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, Nodes, RowFacts, Rows, Scope
from moorage.cluster.view import View, see, see_more, see_no_rows, see_row
from moorage.documents.errors import STOPPED
from moorage.objects.pod import Pod

from .advice import Advice, Advise, AdviseEviction, EvictionAdvice
from .attempt import Failed
from .device_writes import ClaimRelease
from .observe import Caller, call_plainly
from .plugin import (
    Filter,
    Narrowed,
    NoRemedy,
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
    Remedy,
    Rescore,
    Reserve,
    Score,
    Scores,
    Wait,
)
from .plugin_fence import (
    PluginFence,
    check_range,
    check_rejection,
    check_scores,
    check_verdict,
    expect,
    make_plugin_error,
)
from .status import BrokenRowsError, Code, PluginError, Rejected, check_items
from .verdict import Verdict

if TYPE_CHECKING:
    from .gang_points import ReleaseClaims
    from .profile import Profile

# What is done at the points that most plugins serve; the texts are kube-scheduler's.
FILTERING = 'running "{}" filter plugin'
SCORING = 'running Score plugin "{}"'


def ask_pre_enqueue(plugin: PreEnqueue, pod: Pod) -> Rejected | None:
    """Returns why the plugin holds the pod back. A plugin that fails holds it back as well."""
    try:
        answer = plugin.pre_enqueue(pod)
        return None if answer is None else check_rejection(answer)
    except STOPPED as error:  # the queue asks
        broke = make_plugin_error('running PreEnqueue plugin "{}"', plugin, error)
        return Rejected(Code.ERROR, (str(broke),))


def ask_pre_filter(
    plugin: PreFilter[Any], pod: Pod, nodes: Nodes, ask: Caller = call_plainly
) -> Any | Narrowed[Any] | Rejected | None:
    """Returns what the plugin prepares for its filter."""
    try:
        answer = ask(plugin, plugin.pre_filter, pod, _see_to_prepare(plugin, nodes))
        if type(answer) is Rejected and answer.code is Code.ERROR:
            raise PluginError(answer.message)
        return answer
    except Exception as error:
        raise make_plugin_error('running PreFilter plugin "{}"', plugin, error) from error


def _see_to_prepare(plugin: Plugin, nodes: Nodes) -> View:
    return see_no_rows(plugin, nodes) if plugin.scope is Scope.ROW else see(plugin, nodes)


def ask_filter(
    plugin: Filter[Any], prepared: Any, nodes: Nodes, rows: Rows, ask: Caller = call_plainly
) -> Verdict:
    """Returns the plugin's verdict on some rows.

    Raises BrokenRowsError if it failed on any of them.
    """
    verdict = ask_filter_in_part(plugin, prepared, nodes, rows, ask)
    if verdict.broken is not None:
        raise_broken_rows(plugin, verdict, np.array(nodes.numbers(rows))[verdict.broken])
    return verdict


def ask_filter_in_part(
    plugin: Filter[Any], prepared: Any, nodes: Nodes, rows: Rows, ask: Caller = call_plainly
) -> Verdict:
    """Returns the same for callers that check `Verdict.broken` themselves."""
    try:
        answer = ask(plugin, plugin.filter, prepared, see(plugin, nodes), rows)
        return check_verdict(answer, nodes.count(rows))
    except Exception as error:
        raise make_plugin_error(FILTERING, plugin, error) from error


def raise_broken_rows(plugin: Filter[Any], verdict: Verdict, rows: NDArray[np.intp]) -> None:
    """Raises if the plugin failed on any row that matters."""
    if len(rows):
        what = FILTERING.format(plugin.name)
        raise BrokenRowsError(what, plugin.name, rows.tolist(), verdict.describe)


def ask_recheck(plugin: Filter[Any], prepared: Any, nodes: Nodes, row: RowFacts) -> Rescore:
    """Returns the plugin's quick answer for one row; an invalid answer counts as UNKNOWN."""
    try:
        view = see(plugin, nodes)
        answer = plugin.recheck(prepared, view, see_row(view, row))
        return answer if type(answer) is Rescore else Rescore.UNKNOWN
    except Exception as error:
        raise make_plugin_error(FILTERING, plugin, error) from error


def ask_watch(plugin: Plugin, pod: Pod, nodes: Nodes) -> int:
    """Returns the changes that can alter the plugin's answer for such a pod, as a number."""
    try:
        answer = plugin.watch(pod, _see_to_prepare(plugin, nodes))
        expect(answer, Change)
        return int(answer)
    except Exception as error:
        raise make_plugin_error('asking plugin "{}" what it watches', plugin, error) from error


def ask_turns(plugin: Plugin, pod: Pod, watch: int) -> int:
    """Returns the changes after which it may skip, reject or narrow such a pod differently."""
    # With scope ROW it sees no rows before it is asked about them.
    return 0 if plugin.scope is Scope.ROW else watch


def ask_reserves_for(plugin: Reserve, pod: Pod, nodes: Nodes) -> bool:
    """Whether the plugin may reserve something for a pod."""
    with PluginFence('asking plugin "{}" for whom it reserves', plugin):
        answer = plugin.reserves_for(pod, see(plugin, nodes))
        expect(answer, bool)
        return answer


def ask_to_add(plugin: PreFilter[Any], prepared: Any, nodes: Nodes, pod: Pod, row: int) -> Any:
    """Returns the prepared value as if one more pod ran on a row."""
    with PluginFence('running AddPod on PreFilter plugin "{}"', plugin):
        return _check_moved(plugin.add_pod(prepared, see(plugin, nodes), pod, row), prepared)


def ask_to_remove(plugin: PreFilter[Any], prepared: Any, nodes: Nodes, pod: Pod, row: int) -> Any:
    """Returns the prepared value as if a pod no longer ran on a row."""
    with PluginFence('running RemovePod on PreFilter plugin "{}"', plugin):
        return _check_moved(plugin.remove_pod(prepared, see(plugin, nodes), pod, row), prepared)


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
    """Returns what the plugin prepares for its score."""
    try:
        return ask(plugin, plugin.pre_score, pod, _see_to_prepare(plugin, nodes), rows)
    except Exception as error:
        raise make_plugin_error('running PreScore plugin "{}"', plugin, error) from error


def ask_score(
    plugin: Score[Any], prepared: Any, nodes: Nodes, rows: Rows, ask: Caller = call_plainly
) -> Scores:
    """Returns the plugin's numbers for some rows, before they are normalised."""
    try:
        answer = ask(plugin, plugin.score, prepared, see(plugin, nodes), rows)
        return check_scores(answer, nodes.count(rows))
    except Exception as error:
        raise make_plugin_error(SCORING, plugin, error) from error


def ask_rescore(
    plugin: Score[Any], prepared: Any, nodes: Nodes, row: RowFacts, scores: Scores
) -> Rescore:
    """Returns whether the plugin has updated the number of one row."""
    try:
        view = see(plugin, nodes)
        return plugin.rescore(prepared, view, see_row(view, row), scores)
    except Exception as error:
        raise make_plugin_error(SCORING, plugin, error) from error


def ask_normalize(
    plugin: Score[Any], prepared: Any, scores: Scores, ask: Caller = call_plainly
) -> Scores:
    """Returns the plugin's normalised scores."""
    count = len(scores)
    try:
        answer = ask(plugin, plugin.normalize, prepared, scores)
        return check_range(check_scores(answer, count))
    except Exception as error:
        raise make_plugin_error(SCORING, plugin, error) from error


def ask_post_filter(
    plugin: PostFilter, ask: Caller, pod: Pod, failed: Failed, nodes: Nodes, profile: Profile
) -> Remedy | NoRemedy:
    """Returns what the plugin would do for a pod that fits nowhere."""
    with PluginFence('running PostFilter plugin "{}"', plugin):
        view = _see_failure(plugin, nodes)
        answer: Remedy | NoRemedy = ask(plugin, plugin.post_filter, pod, failed, view, profile)
        expect(answer, Remedy, NoRemedy)
        if isinstance(answer, Remedy):
            _check_remedy(answer, nodes)
        return answer


def ask_to_propose(
    plugin: Preempt, ask: Caller, pod: Pod, failed: Failed, nodes: Nodes, profile: Profile
) -> tuple[ProposedEviction, ...] | NoRemedy:
    """Returns the evictions that a plugin proposes for a pod that fits nowhere."""
    with PluginFence('running PostFilter plugin "{}"', plugin):
        answer: tuple[ProposedEviction, ...] | NoRemedy = ask(
            plugin, plugin.propose, pod, failed, _see_failure(plugin, nodes), profile
        )
        if not isinstance(answer, NoRemedy):
            check_items("propose", answer, ProposedEviction)
        return answer


def ask_to_choose(
    plugin: Preempt, proposals: Sequence[ProposedEviction], nodes: Nodes
) -> Remedy | NoRemedy:
    """Returns the best of the remaining evictions."""
    with PluginFence('running PostFilter plugin "{}"', plugin):
        answer = plugin.choose(proposals, _see_failure(plugin, nodes))
        expect(answer, Remedy, NoRemedy)
        if isinstance(answer, Remedy):
            _check_remedy(answer, nodes)
        return answer


def ask_release(
    plugin: ReleaseClaims, pod: Pod, failed: Failed, nodes: Nodes
) -> ClaimRelease | None:
    """Returns what a member of a gang keeps in vain."""
    with PluginFence('asking plugin "{}" what to release', plugin):
        answer = plugin.find_release(pod, failed, _see_failure(plugin, nodes))
        expect(answer, ClaimRelease, type(None))
        return answer


def _see_failure(plugin: Plugin, nodes: Nodes) -> View:
    """Returns what a post-filter sees: those that evict run the filters of other plugins."""
    return see_more(plugin, nodes, -1) if isinstance(plugin, Preempt) else see(plugin, nodes)


def _check_remedy(remedy: Remedy, nodes: Nodes) -> None:
    row = nodes.row(remedy.node_name)
    if row is None:
        raise PluginError(f"there is no node {remedy.node_name!r}")
    there = nodes.pods(row)
    for victim in remedy.victims:
        if victim.uid in there:
            continue
        group = nodes.groups.of(victim)
        if group is None or not group.is_evicted_whole:
            raise PluginError(f"pod {victim.key} is not on node {remedy.node_name}")


def ask_advice(
    plugin: Advise[Any], pod: Pod, prepared: Any, nodes: Nodes, rows: NDArray[np.intp]
) -> Iterable[Advice]:
    """Returns what a plugin advises, which plays no part in decisions: it may read all facts."""
    return plugin.advise(pod, prepared, see_more(plugin, nodes, Change.ALL), rows)


def ask_eviction_advice(
    plugin: AdviseEviction, pod: Pod, failed: Failed, nodes: Nodes, profile: Profile
) -> EvictionAdvice | None:
    """Returns what would let the plugin's post-filter help a pod."""
    with PluginFence('asking plugin "{}" for advice', plugin):
        answer = plugin.advise_eviction(pod, failed, _see_failure(plugin, nodes), profile)
        expect(answer, EvictionAdvice, type(None))
        return answer


def ask_reserve(
    plugin: Reserve, ask: Caller | None, pod: Pod, nodes: Nodes, row: int
) -> Rejected | None:
    """Returns why the plugin cannot reserve what the pod needs; None if it could."""
    try:
        view = _see_to_write(plugin, nodes)
        # Every pod comes by here, and mostly nobody wants to know how long it takes.
        answer = (
            plugin.reserve(pod, view, row)
            if ask is None
            else ask(plugin, plugin.reserve, pod, view, row)
        )
        return None if answer is None else check_rejection(answer)
    except Exception as error:
        raise make_plugin_error('running Reserve plugin "{}"', plugin, error) from error


def ask_unreserve(plugin: Reserve, pod: Pod, nodes: Nodes, node_name: str) -> None:
    """Asks the plugin to give back what it reserved."""
    with PluginFence('running Unreserve plugin "{}"', plugin):
        plugin.unreserve(pod, _see_to_write(plugin, nodes), node_name)


def _see_to_write(plugin: Plugin, nodes: Nodes) -> View:
    """Returns a view through which a plugin writes what it says that it writes."""
    writes = getattr(plugin, "writes", Change.NONE)
    return see_more(plugin, nodes, Change.MEMBERSHIP, writes)


def ask_permit(plugin: Permit, ask: Caller, pod: Pod, node_name: str) -> Rejected | Wait | None:
    """Asks the plugin whether a pod may be bound."""
    with PluginFence('running Permit plugin "{}"', plugin):
        answer: Rejected | Wait | None = ask(plugin, plugin.permit, pod, node_name)
        expect(answer, Rejected, Wait, type(None))
        return answer


def ask_prepare(plugin: PreBind, pod: Pod, nodes: Nodes, node_name: str) -> Preparation | None:
    """Returns what must be written before a pod is bound."""
    try:
        answer = plugin.prepare(pod, _see_to_write(plugin, nodes), node_name)
        if answer is not None:
            expect(answer, Preparation, type(None))
        return answer
    except Exception as error:
        raise make_plugin_error('running PreBind plugin "{}"', plugin, error) from error


def ask_is_prepared(plugin: PreBind, pod: Pod, nodes: Nodes, node_name: str) -> bool | Rejected:
    """Asks whether what was written has come true."""
    with PluginFence('running PreBind plugin "{}"', plugin):
        answer = plugin.is_prepared(pod, see(plugin, nodes), node_name)
        expect(answer, bool, np.bool_, Rejected)
        return answer
