"""Compares Moorage's verdicts with recorded verdicts of kube-scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import msgspec

from moorage.config import ConfigError, Configuration, FeatureGates, default, load_mapping
from moorage.config.kubernetes_versions import DEFAULT_VERSION, VERSIONS, KubernetesVersion
from moorage.documents.errors import DecodeError, InputError
from moorage.engine import Engine
from moorage.engine.actions import AskExtender
from moorage.engine.events import Applied, ExtenderAnswered
from moorage.engine.extenders.consultation import find_interested
from moorage.engine.extenders.questions import PRIORITIZE, encode_manifest
from moorage.engine.intake import count_by
from moorage.framework.plugin import Registry
from moorage.framework.profile import known_plugins
from moorage.objects.decode import from_builtins
from moorage.objects.kinds import READ_KINDS, Object
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.plugins.preemption.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from moorage.world import place_pod

from .device_verdicts import apply_devices, compare_devices
from .extended_verdicts import find_extended_verdict
from .group_verdicts import GroupReplay, apply_group_step
from .recorded_extenders import RecordedCall, RecordedExtenders
from .tied_choices import Comparison, compare_chosen, compare_held, has_scores, word_as_recorded
from .verdicts import (
    NodeRefusal,
    PodVerdict,
    PreemptionCandidate,
    RecordedScenario,
    RecordedStep,
    Scenario,
    find_verdict,
    read_refusal,
)

# After these words follows what another implementation says in its own.
_UNTIL = ("CEL compile error: ", "CEL runtime error: ")

# Everything that was recorded lies in the past.
_LATER = 4e9


@dataclass(frozen=True, slots=True)
class VerdictDifference:
    """A value that differs from the recorded one."""

    scenario: str
    pod: str
    what: str
    recorded: Any
    found: Any


@dataclass(slots=True)
class CategoryResult:
    """The outcome of one category."""

    scenarios: int = 0
    steps: int = 0
    differences: list[VerdictDifference] = field(default_factory=list)
    #: Scenarios that ask for what Moorage does not have, and what that is.
    skipped: list[str] = field(default_factory=list)


def conform(
    recordings: Iterable[RecordedScenario],
    registry: Registry,
    version: KubernetesVersion | None = None,
) -> dict[str, CategoryResult]:
    """Replays recordings; returns the result per category.

    The version is that of the kube-scheduler that made the recordings. By default, recordings with
    pod groups are of the newest version, which was the first to have groups, and all others of the
    default version.
    """
    results: dict[str, CategoryResult] = {}
    for recording in recordings:
        result = results.setdefault(recording.scenario.category, CategoryResult())
        try:
            engine = make_engine(recording.scenario, registry, version)
        except ConfigError as error:
            result.skipped.append(f"{recording.scenario.name}: {error}")
            continue
        result.scenarios += 1
        for differences in compare_steps(recording, engine):
            result.steps += 1
            result.differences += differences
    return results


def compare_steps(recording: RecordedScenario, engine: Engine) -> Iterator[list[VerdictDifference]]:
    """Evaluates every pod; returns the differences."""
    scenario = recording.scenario
    manifests = ScenarioManifests(scenario)
    extenders = RecordedExtenders(
        engine.configuration.extenders, scenario.fake_extenders, manifests
    )
    has_groups = _has_groups(scenario)
    for step, item in _walk(recording, engine):
        if isinstance(item, GroupReplay):
            compared = item.compare()
        else:
            found = _find(engine, item, step, extenders)
            compared = _compare(step, _sort_victims(found) if has_groups else found, item)
        yield [
            VerdictDifference(scenario.name, step.pod or step.group, what, recorded, ours)
            for what, recorded, ours in compared
            if recorded != ours
        ]


def _sort_victims(found: PodVerdict) -> PodVerdict:
    """Sorts victims by name, because members of a group that leave together have no order."""
    candidates = {
        name: replace(each, victims=tuple(sorted(each.victims)))
        for name, each in (found.candidates or {}).items()
    }
    victims = tuple(sorted(found.victims))
    return replace(found, victims=victims, candidates=candidates or None)


def _find(engine: Engine, pod: Pod, step: RecordedStep, extenders: RecordedExtenders) -> PodVerdict:
    if not find_interested(engine.configuration.extenders, pod):
        return find_verdict(engine, pod, step.start)
    calls: list[RecordedCall] = []

    def answer(ask: AskExtender) -> ExtenderAnswered:
        answered, call = extenders.answer(ask)
        calls.append(call)
        return answered

    verdict = find_extended_verdict(
        engine, pod, step.start, answer, lambda ask: extenders.answer(ask)[0]
    )
    return replace(verdict, calls=tuple(calls))


class ScenarioManifests:
    """The objects of a scenario as extenders get them."""

    def __init__(self, scenario: Scenario) -> None:
        pods = [raw for raw in scenario.objects if raw.get("kind") == "Pod"]
        self._pods = {raw["metadata"]["uid"]: raw for raw in (*pods, *scenario.pods)}
        self._nodes = {
            raw["metadata"]["name"]: raw for raw in scenario.objects if raw.get("kind") == "Node"
        }

    def pod(self, uid: str) -> bytes:
        return encode_manifest("Pod", self._pods[uid])

    def node(self, name: str) -> bytes:
        return encode_manifest("Node", self._nodes[name])


def walk_steps(recording: RecordedScenario, engine: Engine) -> Iterator[tuple[RecordedStep, Pod]]:
    """Brings the engine into the state before each step about a pod, and yields.

    Recorded outcomes are applied, so that a difference does not spread.
    """
    for step, item in _walk(recording, engine):
        if isinstance(item, Pod):
            yield step, item


def walk_groups(
    recording: RecordedScenario, engine: Engine
) -> Iterator[tuple[RecordedStep, GroupReplay]]:
    """Does the same for each step about a group."""
    for step, item in _walk(recording, engine):
        if isinstance(item, GroupReplay):
            yield step, item


def _walk(
    recording: RecordedScenario, engine: Engine
) -> Iterator[tuple[RecordedStep, Pod | GroupReplay]]:
    scenario = recording.scenario
    pending = {pod.key: pod for pod in _load(engine, scenario)}
    for step in recording.golden.steps:
        _check_nodes(scenario, engine, step)
        if step.group:
            replay = _find_group(engine, step, pending)
            yield step, replay
            apply_group_step(engine, pending, step)
            continue
        if step.pod not in pending:
            raise InputError(scenario.name, f"there is no pending pod {step.pod}")
        pod = pending[step.pod]
        if step.placed:
            continue
        yield step, pod
        _apply(engine, pod, step)
        for victim in step.victims or ():
            pending.pop(victim, None)


def _check_nodes(scenario: Scenario, engine: Engine, step: RecordedStep) -> None:
    """Raises InputError if a recorded outcome names a node that does not exist."""
    for name in (step.chosen, step.nominated, *(outcome.node for outcome in step.outcomes)):
        if name and engine.cluster.nodes.row(name) is None:
            raise InputError(scenario.name, f"there is no node {name}")


def _find_group(engine: Engine, step: RecordedStep, pending: Mapping[str, Pod]) -> GroupReplay:
    """Returns the group of a step and its members without a node, in the order of their turn."""
    groups = engine.cluster.groups
    group = next((each for each in groups if each.key == step.group), None)
    namespace, _, name = step.group.partition("/")
    if group is None:
        group = PodGroup(namespace=namespace, name=name)
    members = [
        pod
        for pod in pending.values()
        if groups.key_of(pod) == group.group_key and engine.cluster.pod(pod.uid) is None
    ]
    members.sort(key=lambda pod: -pod.priority)
    return GroupReplay(engine, group, members, step)


def _has_groups(scenario: Scenario) -> bool:
    return scenario.feature_gates.get("GenericWorkload", False)


def make_engine(
    scenario: Scenario, registry: Registry, version: KubernetesVersion | None = None
) -> Engine:
    """Makes an engine as the scenario configures it; raises ConfigError if that is not possible."""
    known = known_plugins(registry)
    if version is None:
        version = VERSIONS[-1] if _has_groups(scenario) else DEFAULT_VERSION
    gates = FeatureGates.parse(scenario.feature_gates, version=version)
    if scenario.config is None:
        return Engine(_try_all_nodes(default(known, gates)), registry)
    configuration = load_mapping(scenario.config, known=known, gates=gates, source=scenario.name)
    return Engine(_try_all_nodes(configuration), registry)


def _try_all_nodes(configuration: Configuration) -> Configuration:
    """Sets preemption to try every node, as the recorder did."""
    everywhere = DefaultPreemptionArgs(min_candidate_nodes_absolute=2**31)
    profiles = tuple(
        msgspec.structs.replace(each, args={**each.args, DefaultPreemption.name: everywhere})
        for each in configuration.profiles
    )
    return msgspec.structs.replace(configuration, profiles=profiles)


def _load(engine: Engine, scenario: Scenario) -> list[Pod]:
    engine.cluster.tell_time(_LATER)
    for raw in scenario.objects:
        if raw.get("kind") in READ_KINDS:
            engine.handle(Applied(_decode(scenario, raw["kind"], raw)), now=0.0)
    decoded = (_decode(scenario, "Pod", raw) for raw in scenario.pods)
    version = engine.configuration.gates.version
    pods = [count_by(version, pod) for pod in decoded if isinstance(pod, Pod)]
    for pod in pods:
        engine.cluster.nominate(pod, pod.nominated_node_name)
        engine.cluster.expect(pod)
    return pods


def _decode(scenario: Scenario, kind: str, raw: dict[str, Any]) -> Object:
    try:
        return from_builtins(kind, raw)
    except DecodeError as error:
        raise InputError(scenario.name, kind, str(error)) from error


def _compare(step: RecordedStep, found: PodVerdict, pod: Pod) -> Iterator[Comparison]:
    """Yields triples: the name of a value, the recorded one and the found one."""
    if step.pre_enqueue is not None or found.pre_enqueue:
        yield from compare_held(step.pre_enqueue, found.pre_enqueue)
        return
    yield from _compare_calls(step, found)
    yield "error", step.error, found.error
    message = word_as_recorded(step, found)
    yield "message", strip_expression_errors(step.message), strip_expression_errors(message)
    if step.error or found.error:
        return
    if step.unschedulable_plugins is not None and found.rejectors is not None:
        yield "unschedulablePlugins", frozenset(step.unschedulable_plugins), found.rejectors
    yield from _compare_nodes(step, found)
    yield from _compare_remedy(step, found)
    is_placed = bool(step.chosen or step.nominated) and (found.chosen or found.nominated) == (
        step.chosen or step.nominated
    )
    yield from compare_devices(step.dra, found.devices, pod, is_placed)


def _compare_calls(step: RecordedStep, found: PodVerdict) -> Iterator[Comparison]:
    """Compares the questions to extenders, in order; scores are asked for at the same time."""
    made = sorted(found.calls, key=lambda call: call.extender * (call.verb == PRIORITIZE))
    for number, (recorded, ours) in enumerate(zip_longest(step.calls, made)):
        if recorded is not None and ours is not None:
            for field_name in RecordedCall.__struct_fields__:
                if field_name in ("body", "answer") and recorded.body is None:
                    continue
                before, after = getattr(recorded, field_name), getattr(ours, field_name)
                yield f"call {number} {field_name}", before, after
        else:
            yield f"call {number}", recorded, ours


def strip_expression_errors(message: str | None) -> str | None:
    """Returns a message without the parts that depend on the implementation of CEL."""
    for words in _UNTIL:
        if message is not None and words in message:
            message = message[: message.index(words) + len(words)]
    return message


def _compare_nodes(step: RecordedStep, found: PodVerdict) -> Iterator[Comparison]:
    recorded = step.prefilter
    rejected_by = None if recorded is None else recorded.rejected_by
    if recorded is not None and rejected_by is not None:
        refused = NodeRefusal(rejected_by, recorded.code, frozenset(recorded.reasons))
        yield "prefilter", refused, found.rejected
        return
    yield "prefilter", None, found.rejected
    nodes = None if recorded is None or recorded.nodes is None else tuple(sorted(recorded.nodes))
    yield "prefilter nodes", nodes, found.nodes
    if found.filter is None and found.chosen is not None:
        # Filters break on nodes that the decision did not look at.
        yield "chosen", step.chosen, found.chosen
        return
    refusals = {name: read_refusal(refusal) for name, refusal in (step.filter or {}).items()}
    yield from _compare_each("filter", refusals, found.filter or {})
    yield from _compare_scores(step, found)


def _compare_scores(step: RecordedStep, found: PodVerdict) -> Iterator[Comparison]:
    if has_scores(step, found):
        recorded, ours = step.scores or {}, found.scores or {}
        for plugin in sorted(recorded.keys() | ours.keys()):
            of_plugin = recorded.get(plugin, {}), ours.get(plugin, {})
            yield from _compare_each(f"score {plugin}", *of_plugin)
        yield from _compare_each("total", step.total or {}, found.total or {})
    yield from compare_chosen(step, found)


def _compare_remedy(step: RecordedStep, found: PodVerdict) -> Iterator[Comparison]:
    if found.nominated is None or found.nominated not in step.nominated_any:
        yield "nominated", step.nominated, found.nominated
        yield "victims", tuple(step.victims or ()), found.victims
    recorded = {
        name: PreemptionCandidate(each.victims, each.pdb_violations)
        for name, each in (step.candidates or {}).items()
    }
    yield from _compare_each("candidate", recorded, found.candidates or {})
    if step.nomination:
        yield "nomination", step.nomination == "cleared", found.clears_nomination


def _compare_each(
    what: str, recorded: Mapping[str, Any], ours: Mapping[str, Any]
) -> Iterator[Comparison]:
    for name in sorted(recorded.keys() | ours.keys()):
        yield f"{what} {name}", recorded.get(name), ours.get(name)


def _apply(engine: Engine, pod: Pod, step: RecordedStep) -> None:
    """Applies the recorded outcome."""
    cluster = engine.cluster
    if step.nomination == "cleared":
        cluster.nominate(pod, "")
    victims = [placed for placed in cluster.pods.values() if placed.key in (step.victims or ())]
    for victim in victims:
        cluster.remove_pod(victim.uid)
    if step.nominated is not None and not all(victim.terminating for victim in victims):
        _outrank(engine, pod, step.nominated)
    node_name = step.chosen or step.nominated
    if node_name is not None:
        cluster.nominate(pod, "")
        place_pod(engine.cluster, engine.profiles[pod.spec.scheduler_name], pod, node_name)
    apply_devices(engine, pod, step.dra)
    if step.dra.bind_error is not None:
        # Its claims keep their devices, though it is not bound.
        cluster.nodes.device_decisions.release(pod.uid)
        cluster.forget(pod.uid)


def _outrank(engine: Engine, pod: Pod, node_name: str) -> None:
    """Removes the nominations of pods of lower priority to the node."""
    for other in list(engine.cluster.nodes.nominations.on(node_name).values()):
        if other.priority < pod.priority:
            engine.cluster.nominate(other, "")
