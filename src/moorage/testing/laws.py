"""The laws of plugins, as functions that raise AssertionError where a plugin breaks one.

A plugin that reads what it does not declare raises UndeclaredFact.

Moorage asks a plugin about many nodes at once, keeps its answers for like pods, and asks again only
about nodes that changed in a way the plugin says it reads. A plugin that keeps these laws gives the
same decisions with all of that as without.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Cluster, Nodes, Rows, Scope, check
from moorage.cluster.changes import EVERYWHERE
from moorage.framework.calls import ask_turns
from moorage.framework.plugin import (
    MAX_SCORE,
    UNSIGNABLE,
    Filter,
    Narrowed,
    Plugin,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreScore,
    Reduction,
    Rescore,
    Reserve,
    Score,
    Sign,
)
from moorage.framework.signing import has_no_say
from moorage.framework.status import PluginError, Rejected
from moorage.framework.wakeups import Hint
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.storage import StorageObject

from .builders import cluster as build_cluster
from .declarations import Declarations
from .variations import UNNOTED, make_changes, twins, variations

SKIPPED = ("skip",)


class NotAsked(NamedTuple):
    """Why there is no answer per row: the plugin skips the pod, or rejects it as a whole."""

    why: tuple[str, ...]


def check_laws(
    plugin: Plugin,
    objects: Sequence[Node | Pod | StorageObject],
    pods: Sequence[Pod],
    make_cluster: Callable[..., Cluster] = build_cluster,
) -> None:
    """Checks all laws that apply to a plugin, in a cluster of these objects, for these pods.

    While it is asked, the plugin sees no more of the cluster than it declares. Give nodes and pods
    about which the plugin has something to say. A plugin that counts extended resources needs a
    `make_cluster` of its own, which takes objects and registers its handles.
    """
    plugin = Declarations().limited(plugin)
    made = make_cluster(*objects)
    nodes, changes = made.nodes, make_changes(made)
    guest = msgspec.structs.replace(pods[0], name="guest", uid="guest")
    for each in pods:
        check_inputs_unchanged(plugin, each, make_cluster(*objects))
        check_skips(plugin, each, nodes)
        _check_rows(plugin, each, nodes)
        for change in changes:
            check_reads(plugin, each, make_cluster(*objects), change)
        for change in UNNOTED:
            check_unnoted(plugin, each, make_cluster(*objects), change)
        for row in nodes.rows.tolist() if _moves_pods(plugin) else ():
            check_moved_pod(plugin, each, make_cluster(*objects), guest, row)
    check_hints(plugin, [each for each in objects if isinstance(each, Node | Pod)], pods)
    if isinstance(plugin, Sign):
        _check_signing(plugin, pods, nodes)


def _check_signing(plugin: Sign, pods: Sequence[Pod], nodes: Nodes) -> None:
    for one, other in combinations(pods, 2):
        check_signatures(plugin, one, other, nodes)
    for each in pods:
        for other in variations(each):
            check_signatures(plugin, each, other, nodes)


def _check_rows(plugin: Plugin, pod: Pod, nodes: Nodes) -> None:
    if isinstance(plugin, Filter):
        check_filter_rows(plugin, pod, nodes)
    if isinstance(plugin, Score):
        check_score_rows(plugin, pod, nodes, nodes.rows)
        check_normal_scores(plugin, pod, nodes)
        check_feasible_rows(plugin, pod, nodes, nodes.rows[: len(nodes.rows) // 2])


def _moves_pods(plugin: Plugin) -> bool:
    return isinstance(plugin, Filter) and hasattr(plugin, "add_pod")


# Asking a plugin


def prepare_filter(plugin: Any, pod: Pod, nodes: Nodes) -> Any:
    """Runs pre-filter, if there is one; returns what the filter needs, or NotAsked."""
    if not isinstance(plugin, PreFilter):
        return pod
    try:
        prepared = plugin.pre_filter(pod, nodes)
    except PluginError as error:
        return NotAsked(("error", str(error)))
    if prepared is None:
        return NotAsked(SKIPPED)
    if isinstance(prepared, Rejected):
        return NotAsked((prepared.code, *prepared.reasons))
    return prepared.prepared if isinstance(prepared, Narrowed) else prepared


def prepare_score(plugin: Any, pod: Pod, nodes: Nodes, feasible: NDArray[np.intp]) -> Any:
    """Runs pre-score, if there is one; returns what the score needs, or NotAsked."""
    if not isinstance(plugin, PreScore):
        return pod
    try:
        prepared = plugin.pre_score(pod, nodes, feasible)
    except PluginError as error:
        return NotAsked(("error", str(error)))
    return NotAsked(SKIPPED) if prepared is None else prepared


def filter_answers(plugin: Any, prepared: Any, nodes: Nodes, rows: Rows) -> list[tuple[str, ...]]:
    """Returns for each row why it is rejected; an empty tuple if it is not."""
    if isinstance(prepared, NotAsked):
        return [() if prepared.why == SKIPPED else prepared.why] * nodes.count(rows)
    verdict = plugin.filter(prepared, nodes, rows)
    assert verdict.failed.shape == (len(verdict.reasons), nodes.count(rows))
    return [
        (verdict.code(at), *verdict.texts(at)) if no else ()
        for at, no in enumerate(verdict.rejected.tolist())
    ]


def score_answers(plugin: Any, prepared: Any, nodes: Nodes, rows: Rows) -> list[int]:
    """Returns for each row the raw score."""
    if isinstance(prepared, NotAsked):
        return [0] * nodes.count(rows)
    scores = plugin.score(prepared, nodes, rows)
    assert scores.dtype == np.int64
    assert scores.shape == (nodes.count(rows),)
    return list(scores.tolist())


def collect_answers(plugin: Any, pod: Pod, nodes: Nodes) -> dict[str, tuple[Any, ...]]:
    """Returns all that a plugin answers about a pod, by node name."""
    rows = nodes.rows
    by_row: list[list[Any]] = [[] for _ in rows]
    if isinstance(plugin, Filter):
        prepared = prepare_filter(plugin, pod, nodes)
        for answers, answer in zip(
            by_row, filter_answers(plugin, prepared, nodes, rows), strict=True
        ):
            answers.append(answer)
    if isinstance(plugin, Score):
        prepared = prepare_score(plugin, pod, nodes, rows)
        for answers, score in zip(
            by_row, score_answers(plugin, prepared, nodes, rows), strict=True
        ):
            answers += (isinstance(prepared, NotAsked), score)
    return dict(zip(nodes.names(rows.tolist()), map(tuple, by_row), strict=True))


# The laws


def check_filter_rows(
    plugin: Any, pod: Pod, nodes: Nodes, order: Sequence[int] | None = None
) -> None:
    """Checks that a row gets the same verdict alone, in a slice, and among rows in any order.

    `order` lists positions of rows to ask about; by default every second row, last one first.
    """
    rows = nodes.rows
    prepared = prepare_filter(plugin, pod, nodes)
    if isinstance(prepared, NotAsked):
        return
    answers = filter_answers(plugin, prepared, nodes, rows)
    alone = [filter_answers(plugin, prepared, nodes, np.array([row])) for row in rows]
    assert [[answer] for answer in answers] == alone
    everywhere = filter_answers(plugin, prepared, nodes, nodes.everything)
    assert [everywhere[row] for row in rows] == answers
    some = list(range(len(rows)))[::-2] if order is None else list(order)
    chosen = np.array(rows[some], np.intp)
    assert filter_answers(plugin, prepared, nodes, chosen) == [answers[at] for at in some]
    for answer, row in zip(answers, rows.tolist(), strict=True):
        again = plugin.recheck(prepared, nodes, nodes.facts(row))
        assert again in (Rescore.UNKNOWN, Rescore.INFEASIBLE if answer else Rescore.UPDATED)


def check_score_rows(
    plugin: Any,
    pod: Pod,
    nodes: Nodes,
    feasible: NDArray[np.intp],
    order: Sequence[int] | None = None,
) -> None:
    """Checks that a row gets the same score alone, in a slice, and among rows in any order.

    `order` is a permutation of the feasible rows; by default they are reversed.
    """
    prepared = prepare_score(plugin, pod, nodes, feasible)
    if isinstance(prepared, NotAsked):
        return
    raw = score_answers(plugin, prepared, nodes, feasible)
    alone = [score_answers(plugin, prepared, nodes, np.array([row])) for row in feasible]
    assert [[score] for score in raw] == alone
    everywhere = score_answers(plugin, prepared, nodes, nodes.everything)
    assert [everywhere[row] for row in feasible] == raw
    turned = np.array(range(len(feasible))[::-1] if order is None else order, np.intp)
    assert score_answers(plugin, prepared, nodes, feasible[turned]) == [raw[at] for at in turned]
    normal = plugin.normalize(prepared, np.array(raw, np.int64))
    assert plugin.normalize(prepared, np.array(raw, np.int64)[turned]).tolist() == [
        normal[at] for at in turned
    ]
    column = np.zeros(len(nodes.alive), np.int64)
    for score, row in zip(raw, feasible.tolist(), strict=True):
        answer = plugin.rescore(prepared, nodes, nodes.facts(row), column)
        assert answer in (Rescore.UNKNOWN, Rescore.UPDATED)
        if answer is Rescore.UPDATED:
            assert column[row] == score


def check_normal_scores(plugin: Any, pod: Pod, nodes: Nodes) -> None:
    """Checks that normalised scores are from 0 to 100 and keep or reverse the order of raw ones."""
    prepared = prepare_score(plugin, pod, nodes, nodes.rows)
    if isinstance(prepared, NotAsked):
        return
    raw = plugin.score(prepared, nodes, nodes.rows)
    before = raw.copy()
    normal = plugin.normalize(prepared, raw)
    assert normal.dtype == np.int64
    assert all(0 <= score <= MAX_SCORE for score in normal.tolist())
    # A raw score of -1 stands for a node that is not compared.
    pairs = sorted(zip(before.tolist(), normal.tolist(), strict=True))
    ranked = [score for raw_score, score in pairs if raw_score >= 0]
    assert ranked in (sorted(ranked), sorted(ranked, reverse=True))
    # What normalising does not look at must not matter.
    if plugin.reduces is not Reduction.EVERYTHING:
        largest = [before.max()] if plugin.reduces is Reduction.LARGEST and len(before) else []
        for number, expected in zip(before.tolist(), normal.tolist(), strict=True):
            few = np.array([number, *largest], np.int64)
            assert plugin.normalize(prepared, few)[0] == expected


def check_feasible_rows(plugin: Any, pod: Pod, nodes: Nodes, feasible: NDArray[np.intp]) -> None:
    """Checks that a plugin skips a score for some feasible rows only if it skips it for all."""
    some, every = (prepare_score(plugin, pod, nodes, rows) for rows in (feasible, nodes.rows))
    assert isinstance(some, NotAsked) == isinstance(every, NotAsked)


def check_inputs_unchanged(plugin: Any, pod: Pod, cluster: Cluster) -> None:
    """Checks that a plugin changes no column, and answers the same when asked again."""
    first = collect_answers(plugin, pod, cluster.nodes)
    assert collect_answers(plugin, pod, cluster.nodes) == first
    check(cluster)


def check_signatures(plugin: Any, one: Pod, other: Pod, nodes: Nodes) -> None:
    """Checks that pods with equal signatures get equal answers."""
    signature = plugin.sign(one, nodes)
    hash(signature)
    if signature is not UNSIGNABLE and signature == plugin.sign(other, nodes):
        answers = collect_answers(plugin, one, nodes)
        assert answers == collect_answers(plugin, other, nodes)


def check_skips(plugin: Any, pod: Pod, nodes: Nodes) -> None:
    """Checks that a plugin which signs a pod with None lets it through and does nothing for it."""
    if not has_no_say(plugin, pod):
        return
    done: dict[str, Any] = {}
    for row in nodes.rows.tolist()[:1]:
        if isinstance(plugin, Reserve):
            done["reserves"] = plugin.reserve(pod, nodes, row)
        if isinstance(plugin, PreBind):
            done["prepares"] = plugin.prepare(pod, nodes, nodes.name(row))
    if isinstance(plugin, PreEnqueue):
        done["says"] = plugin.pre_enqueue(pod)
    for what, answer in done.items():
        assert answer is None, f"{plugin.name} {what} something for {pod.name}, which it signs None"


def check_hints(plugin: Plugin, objects: Sequence[Node | Pod], pods: Sequence[Pod]) -> None:
    """Checks that a hint which is `alike` says the same to pods of one template.

    Each object is told as new, as changed and as gone.
    """
    hints = [each.hint for each in plugin.wakeups() if each.alike and each.hint is not None]
    for hint in hints:
        for each in pods:
            for item in objects:
                for old, new in ((None, item), (item, item), (item, None)):
                    said = {_ask_hint(hint, like, old, new) for like in (each, *twins(each))}
                    assert len(said) == 1, f"a hint of {plugin.name} tells like pods apart"


def _ask_hint(hint: Hint, pod: Pod, old: Any, new: Any) -> bool:
    """Returns what a hint says; one that cannot read an object of this kind says yes."""
    try:
        return bool(hint(pod, old, new))
    except Exception:  # noqa: BLE001 - an object of another kind than the hint is for
        return True


def check_moved_pod(plugin: Any, pod: Pod, cluster: Cluster, guest: Pod, row: int) -> None:
    """Checks that `add_pod` and `remove_pod` change a prepared value as the cluster would.

    Puts the guest on the row, so that the cluster is another one afterwards.
    """
    nodes, here = cluster.nodes, np.array([row])
    placed = guest.on(nodes.name(row))
    before = prepare_filter(plugin, pod, nodes)
    cluster.nominate(guest, "nowhere")
    added = before
    if not isinstance(before, NotAsked):
        added = plugin.add_pod(before, nodes, placed, row)
    cluster.put_pod(placed)
    after = prepare_filter(plugin, pod, nodes)
    if isinstance(before, NotAsked) or isinstance(after, NotAsked):
        return
    # The columns have the guest by now, and so have the prepared values.
    expected = filter_answers(plugin, after, nodes, here)
    assert filter_answers(plugin, added, nodes, here) == expected
    removed = plugin.remove_pod(after, nodes, placed, row)
    again = plugin.add_pod(removed, nodes, placed, row)
    assert filter_answers(plugin, again, nodes, here) == expected


def check_reads(plugin: Any, pod: Pod, cluster: Cluster, change: Callable[[Cluster], None]) -> None:
    """Checks that a change which the plugin does not read changes none of its answers."""
    kind = type(plugin)
    before = collect_answers(plugin, pod, cluster.nodes)
    generation, signature = cluster.changes.generation, _signature(plugin, pod, cluster)
    watched, stance = plugin.watch(pod, cluster.nodes), _stance(plugin, pod, cluster.nodes)
    assert watched | plugin.reads == plugin.reads, f"{kind.name} watches what it does not read"

    change(cluster)

    noted = cluster.changes.since(generation)
    assert noted is not None
    if _stands(plugin, pod, noted, signature, _signature(plugin, pod, cluster)):
        steady = _stance(plugin, pod, cluster.nodes) == stance
        assert steady, f"{kind.name} has scope ROW: the cluster may not decide whether it skips"
    after = collect_answers(plugin, pod, cluster.nodes)
    if signature is UNSIGNABLE:
        # Such a pod is decided alone, so that no answer for it is kept.
        return
    names = before.keys() & after.keys()
    same = _find_untouched(cluster, noted, plugin.reads, kind.scope, names)
    # A pod that is signed otherwise is another pod's like now.
    if _signature(plugin, pod, cluster) == signature:
        same += _find_untouched(cluster, noted, watched, kind.scope, names)
    assert {name: after[name] for name in same} == {name: before[name] for name in same}


def check_unnoted(
    plugin: Any, pod: Pod, cluster: Cluster, change: Callable[[Cluster], None]
) -> None:
    """Checks that a change which the cluster does not note changes no answer at all."""
    before, generation = collect_answers(plugin, pod, cluster.nodes), cluster.changes.generation
    change(cluster)
    assert cluster.changes.generation == generation
    assert collect_answers(plugin, pod, cluster.nodes) == before


def _stands(
    plugin: Any, pod: Pod, noted: Mapping[int, int], before: Hashable, after: Hashable
) -> bool:
    """Whether the plugin promises to treat the pod as a whole as it did before the changes."""
    if before != after or after is UNSIGNABLE:
        return False
    turns_with = ask_turns(plugin, pod, int(plugin.reads))
    return not any(kinds & turns_with for kinds in noted.values())


def _stance(plugin: Any, pod: Pod, nodes: Nodes) -> tuple[Any, ...]:
    """Returns what must not depend on the cluster if the scope of a plugin is ROW."""
    prepared = prepare_filter(plugin, pod, nodes), prepare_score(plugin, pod, nodes, nodes.rows)
    whole = tuple(each if isinstance(each, NotAsked) else None for each in prepared)
    return (plugin.watch(pod, nodes), *whole)


def _signature(plugin: Any, pod: Pod, cluster: Cluster) -> Hashable:
    return plugin.sign(pod, cluster.nodes) if isinstance(plugin, Sign) else None


def _find_untouched(
    cluster: Cluster, noted: Mapping[int, int], reads: int, scope: Scope, names: Iterable[str]
) -> list[str]:
    """Returns the nodes whose answer must be what it was."""
    touched = {row for row, kinds in noted.items() if kinds & reads}
    if EVERYWHERE in touched or (touched and scope is not Scope.ROW):
        return []
    return sorted(name for name in names if cluster.nodes.row(name) not in touched)
