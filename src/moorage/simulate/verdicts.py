"""Verdicts about one pod: as kube-scheduler was recorded, and as Moorage finds it.

A file of recorded verdicts has one scenario a line, each with a verdict per pending pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from moorage.cluster import Nodes
from moorage.documents.errors import InputError
from moorage.documents.files import LineReader
from moorage.engine import Engine, diagnosis
from moorage.engine.cycle import EVERY_NODE, Found, Window, decide, find_feasible
from moorage.engine.remedies import RemedyResult, seek_remedy
from moorage.framework.attempt import Failed, Filtered, Scored
from moorage.framework.calls import ask_pre_enqueue
from moorage.framework.plugin import Scores
from moorage.framework.points import score_rows
from moorage.framework.profile import Profile
from moorage.framework.status import PluginError, Rejected
from moorage.objects.pod import Pod
from moorage.plugins.preemption.default_preemption import DefaultPreemption

from .device_verdicts import (
    NO_DEVICES,
    DeviceVerdict,
    RecordedDevices,
    find_devices,
    find_failed_devices,
)
from .recorded_extenders import ExtenderRule, RecordedCall

Names = tuple[str, ...]


class RecordedRefusal(msgspec.Struct, frozen=True):
    """Why a node, or the pod as a whole, was refused."""

    plugin: str
    code: str
    reasons: tuple[str, ...] = ()


class RecordedPreFilter(msgspec.Struct, frozen=True, rename="camel"):
    """A pod rejected as a whole, or the only nodes that were considered."""

    rejected_by: str | None = None
    code: str = ""
    reasons: tuple[str, ...] = ()
    nodes: tuple[str, ...] | None = None


class RecordedCandidate(msgspec.Struct, frozen=True, rename="camel"):
    """A node on which preemption would work."""

    victims: tuple[str, ...]
    pdb_violations: int = 0


class RecordedMember(msgspec.Struct, frozen=True, rename="camel"):
    """What was found for one member of a group after the members before it were placed."""

    pod: str
    prefilter: RecordedPreFilter | None = None
    filter: dict[str, RecordedRefusal] | None = None
    total: dict[str, int] | None = None
    best: tuple[str, ...] = ()
    chosen: str | None = None
    nominated_path: bool = False
    scoring_skipped: bool = False


class RecordedPlacement(msgspec.Struct, frozen=True, rename="camel"):
    """The result of trying a group in one topology domain."""

    name: str
    nodes: int
    feasible: bool
    message: str = ""
    members: tuple[RecordedMember, ...] = ()
    scores: dict[str, int] | None = None
    total: int = 0


class RecordedGroupPreemption(msgspec.Struct, frozen=True, rename="camel"):
    """How room was sought for a group: which lesser pods had to go."""

    trial: tuple[RecordedMember, ...] = ()
    victims: tuple[str, ...] = ()


class RecordedOutcome(msgspec.Struct, frozen=True, rename="camel"):
    """The outcome for one member of a group."""

    pod: str
    node: str | None = None
    reason: str | None = None
    message: str | None = None
    nominated: str | None = None
    cleared: bool = False


class RecordedGroupCondition(msgspec.Struct, frozen=True):
    """The condition that was written to the group."""

    type: str
    status: str
    reason: str
    message: str


class GroupStep(msgspec.Struct, frozen=True, rename="camel"):
    """What kube-scheduler found for a group of pods; names are empty if a step is about a pod."""

    group: str = ""
    pods: tuple[str, ...] = ()
    scheduled: int = 0
    members: tuple[RecordedMember, ...] | None = None
    placements: tuple[RecordedPlacement, ...] | None = None
    placement: str | None = None
    best_placements: tuple[str, ...] = ()
    status: str | None = None
    preemption: RecordedGroupPreemption | None = None
    outcomes: tuple[RecordedOutcome, ...] = ()
    condition: RecordedGroupCondition | None = None


class RecordedStep(GroupStep, frozen=True, rename="camel"):
    """What kube-scheduler found for one pod or a group, and what it did."""

    pod: str = ""
    signature: str | None = None
    #: The plugin that holds the pod back; in a step about a group, those for each member.
    pre_enqueue: dict[str, Any] | None = None
    nominations: dict[str, str] = {}
    start: int = 0
    prefilter: RecordedPreFilter | None = None
    filter: dict[str, RecordedRefusal] | None = None
    scores: dict[str, dict[str, int]] | None = None
    total: dict[str, int] | None = None
    best: tuple[str, ...] | None = None
    chosen: str | None = None
    scoring_skipped: bool = False
    nominated_path: bool = False
    message: str | None = None
    error: bool = False
    nominated: str | None = None
    nominated_any: tuple[str, ...] = ()
    victims: tuple[str, ...] | None = None
    candidates: dict[str, RecordedCandidate] | None = None
    nomination: str = ""
    #: Who is asked whether an event may help the pod.
    unschedulable_plugins: tuple[str, ...] | None = None
    #: What extenders were asked.
    calls: tuple[RecordedCall, ...] = ()
    #: The pod was placed before, and nothing else is recorded.
    placed: bool = False
    #: What was found and written about the claims of the pod.
    dra: RecordedDevices = RecordedDevices()


class Scenario(msgspec.Struct, frozen=True, rename="camel"):
    """A cluster, its configuration and the pods to schedule, in order."""

    name: str
    category: str
    config: dict[str, Any] | None
    objects: tuple[dict[str, Any], ...]
    pending: tuple[dict[str, Any], ...]
    feature_gates: dict[str, bool] = {}
    #: Pods whose binding never gets as far as to write anything.
    hold: tuple[str, ...] = ()
    #: How the extenders of the configuration answer, by the end of their URL prefix.
    fake_extenders: dict[str, ExtenderRule] = {}

    @property
    def pods(self) -> tuple[dict[str, Any], ...]:
        """The pods to schedule, without those that are tried once more."""
        return tuple(raw for raw in self.pending if "retry" not in raw)


class RecordedVerdicts(msgspec.Struct, frozen=True):
    """The verdicts of one scenario."""

    name: str
    steps: tuple[RecordedStep, ...]


class RecordedScenario(msgspec.Struct, frozen=True):
    """One line of a file."""

    scenario: Scenario
    golden: RecordedVerdicts


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """The plugin that refused a node or a pod, and why. The order of the reasons means nothing."""

    plugin: str
    code: str
    reasons: frozenset[str]


@dataclass(frozen=True, slots=True)
class PreemptionCandidate:
    """A node on which preemption would work: its victims, and how many of them break a budget."""

    victims: Names
    violations: int


@dataclass(frozen=True, slots=True)
class PodVerdict:
    """What was found for one pod. None means that it was not looked at."""

    #: By every plugin that holds the pod back.
    pre_enqueue: tuple[NodeRefusal, ...] = ()
    rejected: NodeRefusal | None = None
    nodes: Names | None = None
    filter: Mapping[str, NodeRefusal] | None = None
    scores: Mapping[str, Mapping[str, int]] | None = None
    total: Mapping[str, int] | None = None
    best: Names = ()
    chosen: str | None = None
    message: str | None = None
    error: bool = False
    nominated: str | None = None
    victims: Names = ()
    candidates: Mapping[str, PreemptionCandidate] | None = None
    clears_nomination: bool = False
    devices: DeviceVerdict = NO_DEVICES
    rejectors: frozenset[str] | None = None
    calls: tuple[RecordedCall, ...] = ()


def find_verdict(engine: Engine, pod: Pod, start: int = 0) -> PodVerdict:
    """Evaluates a pod on all nodes, without changing anything."""
    early = find_early_verdict(engine, pod)
    if early is not None:
        return early
    profile, nodes = engine.profiles[pod.spec.scheduler_name], engine.cluster.nodes
    try:
        outcome = decide(profile, pod, nodes, Window(start))
        if isinstance(outcome, Found):
            return _describe_placement(profile, pod, nodes, outcome)
    except PluginError as error:
        return PodVerdict(message=str(error), error=True)
    remedied = seek_remedy(profile, pod, outcome, nodes)
    verdict = describe_failure(profile, pod, nodes, outcome, remedied)
    devices = find_failed_devices(engine.cluster, profile, pod, outcome, verdict.nominated)
    return replace(verdict, devices=devices)


def find_early_verdict(engine: Engine, pod: Pod) -> PodVerdict | None:
    """Returns the verdict if it is known before any node is looked at; else None."""
    held = find_held(engine, pod)
    if held:
        return PodVerdict(pre_enqueue=held)
    if not len(engine.cluster.nodes):
        return PodVerdict(message=diagnosis.NO_NODES)
    return None


def find_held(engine: Engine, pod: Pod) -> tuple[NodeRefusal, ...]:
    """Returns why the pod may not be queued, from every plugin that refuses."""
    plugins = engine.profiles[pod.spec.scheduler_name].pre_enqueue
    answers = ((plugin.name, ask_pre_enqueue(plugin, pod)) for plugin in plugins)
    return tuple(
        describe_refusal(name, refused) for name, refused in answers if refused is not None
    )


def describe_refusal(plugin: str, refused: Rejected) -> NodeRefusal:
    return NodeRefusal(plugin, refused.code, frozenset(refused.reasons))


def describe_member(
    profile: Profile, pod: Pod, nodes: Nodes, outcome: Found | Failed, window: Window
) -> PodVerdict:
    """Returns what was found for a member of a group on the nodes of a domain."""
    if isinstance(outcome, Found):
        return _describe_placement(profile, pod, nodes, outcome, window)
    filtered = outcome.filtered
    return PodVerdict(filter={} if filtered is None else find_refusals(nodes, filtered), total={})


def _describe_placement(
    profile: Profile, pod: Pod, nodes: Nodes, found: Found, window: Window = EVERY_NODE
) -> PodVerdict:
    # A decision looks at no more than it needs; a recording tells of all nodes.
    try:
        filtered = find_feasible(profile, pod, found.pre_filtered, nodes, found.tried_first, window)
    except PluginError:
        if not found.nominated_path:
            raise
        # The pod goes where it is nominated to, so a filter that breaks elsewhere is no error.
        name = nodes.name(found.row)
        return PodVerdict(
            nodes=sort_names(found.pre_filtered.node_names),
            chosen=name,
            devices=find_devices(profile, pod, nodes, found.filtered, name),
        )
    verdict = PodVerdict(
        nodes=sort_names(found.pre_filtered.node_names),
        filter=find_refusals(nodes, filtered),
        best=(nodes.name(found.row),),
        chosen=nodes.name(found.row),
        devices=find_devices(profile, pod, nodes, filtered, nodes.name(found.row)),
    )
    try:
        scored = score_rows(profile, pod, nodes, filtered.feasible_rows)
    except PluginError:
        if found.scored is not None:
            raise
        # The decision needed no scores, so a score that breaks is no error of it.
        return verdict
    return replace(
        verdict,
        scores={name: name_scores(nodes, scored, of) for name, of in scored.by_plugin.items()},
        total=name_scores(nodes, scored, scored.totals),
        best=tuple(sorted(nodes.names(scored.best().tolist()))),
    )


def describe_failure(
    profile: Profile, pod: Pod, nodes: Nodes, failed: Failed, remedied: RemedyResult
) -> PodVerdict:
    """Returns why no node was found, and which pods would be evicted."""
    remedy = remedied.remedy
    rejected = failed.pre_filtered.rejected
    refused = None
    if rejected is not None:
        refused = describe_refusal(failed.pre_filtered.rejected_by, rejected)
    return PodVerdict(
        rejected=refused,
        nodes=sort_names(failed.pre_filtered.node_names),
        filter={} if failed.filtered is None else find_refusals(nodes, failed.filtered),
        scores={},
        total={},
        message=diagnosis.message(failed, remedied.text),
        nominated=None if remedy is None else remedy.node_name,
        victims=() if remedy is None else tuple(pod.key for pod in remedy.victims),
        candidates=None if remedy is None else _find_candidates(profile, pod, failed, nodes),
        clears_nomination=remedied.nominate == "",
    )


def _find_candidates(
    profile: Profile, pod: Pod, failed: Failed, nodes: Nodes
) -> dict[str, PreemptionCandidate]:
    named: dict[str, PreemptionCandidate] = {}
    for plugin in profile.post_filter:
        if isinstance(plugin, DefaultPreemption):
            found = plugin.candidates(pod, failed, nodes, profile, Counter())
            for at, row in enumerate(found.rows.tolist()):
                victims = tuple(victim.key for victim in found.victims(at))
                named[nodes.name(row)] = PreemptionCandidate(victims, int(found.violations[at]))
    return named


def sort_names(names: frozenset[str] | None) -> Names | None:
    return None if names is None else tuple(sorted(names))


def find_refusals(nodes: Nodes, filtered: Filtered) -> dict[str, NodeRefusal]:
    return {
        nodes.name(row): NodeRefusal(why.plugin, why.code, frozenset(why.reasons))
        for row, why in filtered.refusals()
    }


def name_scores(nodes: Nodes, scored: Scored, scores: Scores) -> dict[str, int]:
    return dict(zip(nodes.names(scored.rows.tolist()), scores.tolist(), strict=True))


def read_refusal(recorded: RecordedRefusal | None) -> NodeRefusal | None:
    if recorded is None:
        return None
    return NodeRefusal(recorded.plugin, recorded.code, frozenset(recorded.reasons))


_DECODER = msgspec.json.Decoder(RecordedScenario)


def read_scenarios(path: Path) -> Iterator[RecordedScenario]:
    """Yields the recordings of a file, which may be compressed."""
    lines = LineReader(path, keep_last=True)
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _decode_scenario(path, number, line)
    if lines.is_cut:
        raise InputError(path, "the compressed data was cut off")


def _decode_scenario(path: Path, number: int, line: bytes) -> RecordedScenario:
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(path, f"line {number}: {error}") from error
