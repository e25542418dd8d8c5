"""Everything Mooring has to say about one pod, in the words of a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from mooring.cluster import Nodes
from mooring.engine import Engine, diagnosis
from mooring.engine.cycle import Found, Window, decide, find_feasible
from mooring.engine.remedies import seek_remedy
from mooring.framework.attempt import Failed, Filtered, Scored
from mooring.framework.calls import ask_pre_enqueue
from mooring.framework.plugin import Scores
from mooring.framework.profile import Profile
from mooring.framework.run import score_rows
from mooring.framework.status import PluginError
from mooring.objects.pod import Pod
from mooring.plugins.preemption.default_preemption import DefaultPreemption

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """Who refused a node or a pod, and why; the order of the reasons means nothing."""

    plugin: str
    code: str
    reasons: frozenset[str]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node on which preemption would work: who must go, and how many of them break a budget."""

    victims: Names
    violations: int


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found for one pod. None is what was not looked at."""

    pre_enqueue: Refused | None = None
    rejected: Refused | None = None
    nodes: Names | None = None
    filter: Mapping[str, Refused] | None = None
    scores: Mapping[str, Mapping[str, int]] | None = None
    total: Mapping[str, int] | None = None
    best: Names = ()
    chosen: str | None = None
    message: str | None = None
    error: bool = False
    nominated: str | None = None
    victims: Names = ()
    candidates: Mapping[str, Candidate] | None = None
    clears_nomination: bool = False


def find(engine: Engine, pod: Pod, start: int = 0) -> Finding:
    """Evaluates a pod on all nodes, without changing anything."""
    profile = engine.profiles[pod.spec.scheduler_name]
    for plugin in profile.pre_enqueue:
        refused = ask_pre_enqueue(plugin, pod)
        if refused is not None:
            reasons = frozenset(refused.reasons)
            return Finding(pre_enqueue=Refused(plugin.name, refused.code, reasons))
    nodes = engine.cluster.nodes
    if not len(nodes):
        return Finding(message=diagnosis.NO_NODES)
    try:
        outcome = decide(profile, pod, nodes, Window(start))
        if isinstance(outcome, Found):
            return _placed(profile, pod, nodes, outcome)
    except PluginError as error:
        return Finding(message=str(error), error=True)
    return _failed(profile, pod, nodes, outcome)


def _placed(profile: Profile, pod: Pod, nodes: Nodes, found: Found) -> Finding:
    # A decision looks at no more than it needs; a recording tells of all nodes.
    filtered = find_feasible(profile, pod, found.pre_filtered, nodes, found.tried_first)
    scored = score_rows(profile, pod, nodes, filtered.feasible_rows)
    return Finding(
        nodes=_narrowed(found.pre_filtered.node_names),
        filter=_refusals(nodes, filtered),
        scores={name: _named(nodes, scored, of) for name, of in scored.by_plugin.items()},
        total=_named(nodes, scored, scored.totals),
        best=tuple(sorted(nodes.names(scored.best().tolist()))),
        chosen=nodes.name(found.row),
    )


def _failed(profile: Profile, pod: Pod, nodes: Nodes, failed: Failed) -> Finding:
    remedied = seek_remedy(profile, pod, failed, nodes)
    remedy = remedied.remedy
    rejected = failed.pre_filtered.rejected
    refused = None
    if rejected is not None:
        by = failed.pre_filtered.rejected_by
        refused = Refused(by, rejected.code, frozenset(rejected.reasons))
    return Finding(
        rejected=refused,
        nodes=_narrowed(failed.pre_filtered.node_names),
        filter={} if failed.filtered is None else _refusals(nodes, failed.filtered),
        scores={},
        total={},
        message=diagnosis.message(failed, remedied.text),
        nominated=None if remedy is None else remedy.node_name,
        victims=() if remedy is None else tuple(pod.key for pod in remedy.victims),
        candidates=None if remedy is None else _candidates(profile, pod, failed, nodes),
        clears_nomination=remedied.nominate == "",
    )


def _candidates(profile: Profile, pod: Pod, failed: Failed, nodes: Nodes) -> dict[str, Candidate]:
    named: dict[str, Candidate] = {}
    for plugin in profile.post_filter:
        if isinstance(plugin, DefaultPreemption):
            found = plugin.candidates(pod, failed, nodes, profile, Counter())
            for at, row in enumerate(found.rows.tolist()):
                victims = tuple(victim.key for victim in found.victims(at))
                named[nodes.name(row)] = Candidate(victims, int(found.violations[at]))
    return named


def _narrowed(names: frozenset[str] | None) -> Names | None:
    return None if names is None else tuple(sorted(names))


def _refusals(nodes: Nodes, filtered: Filtered) -> dict[str, Refused]:
    return {
        nodes.name(row): Refused(why.plugin, why.code, frozenset(why.reasons))
        for row, why in filtered.refusals()
    }


def _named(nodes: Nodes, scored: Scored, scores: Scores) -> dict[str, int]:
    return dict(zip(nodes.names(scored.rows.tolist()), scores.tolist(), strict=True))
