"""Compares recorded verdicts about groups of pods with Moorage's decisions.

The engine itself decides a group. Only the choice among equally good nodes is taken from the
recording: it is arbitrary, and later choices depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from moorage.engine import Engine
from moorage.engine.cycle import Found, Window, decide
from moorage.engine.gangs.admission import GANG_SCHEDULING, hold_member
from moorage.engine.gangs.group_decision import GroupDecision
from moorage.engine.gangs.group_result import Domain, GroupResult
from moorage.framework.attempt import Failed
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.world import place_pod

from .tied_choices import Comparison, compare_chosen, compare_held, has_scores
from .verdicts import (
    NodeRefusal,
    PodVerdict,
    RecordedMember,
    RecordedStep,
    describe_member,
    describe_refusal,
    find_held,
    read_refusal,
)


@dataclass(slots=True)
class GroupReplay:
    """Decides a group of a recording, with the recorded choices among equally good nodes."""

    engine: Engine
    group: PodGroup
    members: Sequence[Pod]
    step: RecordedStep
    comparisons: list[Comparison] = field(default_factory=list)
    #: What was recorded for each member, by the domain in which it was tried.
    _recorded: dict[str, dict[str, RecordedMember]] = field(default_factory=dict)
    _is_trial: bool = False

    def compare(self) -> Iterator[Comparison]:
        """Decides the group and takes it back; returns the triples to compare."""
        yield "pods", self.step.pods, tuple(pod.key for pod in self.members)
        held = find_held_members(self.engine, self.members)
        recorded = self.step.pre_enqueue or {}
        for name in recorded.keys() | held.keys():
            yield from compare_held(recorded.get(name), held.get(name, ()))
        if held or recorded:
            return
        self._read_members()
        profile = self.engine.profiles[self.members[0].spec.scheduler_name]
        decision = self.engine.gangs.decide(
            self.group, self.members, profile, self._decide, is_literal=True
        )
        decision.trial.roll_back()
        yield from self.comparisons
        yield from _compare_placements(self.step, decision.result, self.engine)
        yield from _compare_decision(self.step, decision)

    def _read_members(self) -> None:
        step = self.step
        placements = {each.name: each.members for each in step.placements or ()}
        for name, members in (placements or {"": step.members or ()}).items():
            self._recorded[name] = {each.pod: each for each in members}

    def _decide(self, pod: Pod, domain: Domain) -> Found | Failed | None:
        engine = self.engine
        nodes = engine.cluster.nodes
        if not len(nodes):
            return None
        profile = engine.profiles[pod.spec.scheduler_name]
        window = Window(rows=domain.rows)
        outcome = decide(profile, pod, nodes, window)
        recorded = self._find_recorded(pod, domain)
        if recorded is None:
            return outcome
        found = describe_member(profile, pod, nodes, outcome, window)
        where = f"{pod.key} in {domain.name}" if domain.name else pod.key
        self.comparisons += [
            (f"{where}: {what}", theirs, ours)
            for what, theirs, ours in _compare_member(recorded, found)
        ]
        row = nodes.row(recorded.chosen or "")
        if isinstance(outcome, Found) and row is not None and recorded.chosen in found.best:
            return msgspec.structs.replace(outcome, row=row)
        return outcome

    def _find_recorded(self, pod: Pod, domain: Domain) -> RecordedMember | None:
        """Returns what was recorded for a member at this point; None if nothing was."""
        known = self._recorded.get(domain.name, {}).pop(pod.key, None)
        if known is not None or self.step.preemption is None:
            return known
        # It was tried here before: this is the trial without any pod of lower priority.
        trial = next((each for each in self.step.preemption.trial if each.pod == pod.key), None)
        if trial is None or domain.rows is None:
            return trial
        row = self.engine.cluster.nodes.row(trial.chosen or "")
        return trial if row is not None and row in domain.rows else None


def find_held_members(engine: Engine, members: Sequence[Pod]) -> dict[str, tuple[NodeRefusal, ...]]:
    """Returns why members may not be queued, for those that may not."""
    found = {pod.key: _find_held_member(engine, pod) for pod in members}
    return {name: refusals for name, refusals in found.items() if refusals}


def _find_held_member(engine: Engine, pod: Pod) -> tuple[NodeRefusal, ...]:
    refused = hold_member(pod, engine.cluster.groups)
    by_group = () if refused is None else (describe_refusal(GANG_SCHEDULING, refused),)
    return (*find_held(engine, pod), *by_group)


def _compare_member(recorded: RecordedMember, found: PodVerdict) -> Iterator[Comparison]:
    filters = {name: read_refusal(each) for name, each in (recorded.filter or {}).items()}
    yield "filter", filters, dict(found.filter or {})
    if has_scores(recorded, found):
        yield "total", recorded.total or {}, dict(found.total or {})
    yield from compare_chosen(recorded, found)


def _compare_placements(
    step: RecordedStep, result: GroupResult, engine: Engine
) -> Iterator[Comparison]:
    if step.placements is None:
        return
    tried = {each.domain.name: each for each in result.tried if each.domain is not None}
    yield "placements", [each.name for each in step.placements], list(tried)
    for recorded in step.placements:
        ours = tried.get(recorded.name)
        if ours is None or ours.domain is None:
            continue
        rows = ours.domain.rows
        count = len(engine.cluster.nodes) if rows is None else len(rows)
        what = f"placement {recorded.name}"
        yield f"{what}: nodes", recorded.nodes, count
        yield f"{what}: feasible", recorded.feasible, ours.is_success
        yield f"{what}: message", recorded.message, ours.status.message
        yield f"{what}: scores", recorded.scores, ours.scores
    if step.best_placements:
        chosen = result.domain.name if result.domain is not None else None
        if chosen not in step.best_placements:
            yield "placement", step.placement, chosen


def _compare_decision(step: RecordedStep, decision: GroupDecision) -> Iterator[Comparison]:
    status = decision.status
    yield "status", step.status, status.code
    yield "message", step.message or "", status.message
    condition = decision.condition()
    recorded = step.condition
    yield (
        "condition",
        None if recorded is None else msgspec.structs.astuple(recorded),
        None
        if condition is None
        else (condition.type, condition.status, condition.reason, condition.message),
    )
    victims = decision.remedy.victims if decision.remedy is not None else ()
    theirs = () if step.preemption is None else step.preemption.victims
    yield "victims", tuple(sorted(theirs)), tuple(sorted(pod.key for pod in victims))
    yield from _compare_outcomes(step, decision)


def _compare_outcomes(step: RecordedStep, decision: GroupDecision) -> Iterator[Comparison]:
    failures = {pod.key: failure for pod, failure in decision.failures()}
    placed = {each.pod.key: each.node_name for each in decision.result.placed}
    for recorded in step.outcomes:
        failure = failures.get(recorded.pod)
        node = placed.get(recorded.pod) if failure is None else None
        yield f"{recorded.pod}: node", recorded.node, node
        if failure is None:
            continue
        yield f"{recorded.pod}: reason", recorded.reason, failure.reason
        yield f"{recorded.pod}: text", recorded.message, failure.message
        yield f"{recorded.pod}: nominated", recorded.nominated, failure.nominate or None
        before = step.nominations.get(recorded.pod, "")
        cleared = bool(before) and failure.nominate == ""
        yield f"{recorded.pod}: cleared", recorded.cleared, cleared


def apply_group_step(engine: Engine, pending: dict[str, Pod], step: RecordedStep) -> None:
    """Applies the recorded outcome of a group, without its condition."""
    cluster = engine.cluster
    victims = step.preemption.victims if step.preemption is not None else ()
    for victim in [placed for placed in cluster.pods.values() if placed.key in victims]:
        cluster.remove_pod(victim.uid)
        pending.pop(victim.key, None)
    for outcome in step.outcomes:
        pod = pending[outcome.pod]
        if outcome.node is not None:
            cluster.nominate(pod, "")
            cluster.dismiss(pod)
            place_pod(engine.cluster, engine.profiles[pod.spec.scheduler_name], pod, outcome.node)
        elif outcome.nominated:
            cluster.nominate(pod, outcome.nominated)
        elif outcome.cleared:
            cluster.nominate(pod, "")
