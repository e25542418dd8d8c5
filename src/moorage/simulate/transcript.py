"""What a simulation has decided, and the same as plain values for JSON and YAML.

    placements: [{namespace, pod, node, profile, priority, attempts}]   in the order of decision
    pending: [{namespace, pod, reason, message, scheduler, priority, attempts}]   as given
    preempted: [{namespace, pod, node, by}]   in the order of decision; by is namespace/name
    volumes: [{namespace, claim, volume, provisioned, pod}]   in the order of decision
    summary: {nodes, placed, pending, preempted,
              resources: {NAME: {unit, allocatable, before, after}},
              reuse: {PROFILE: {decisions, alike, reused, ways: {HOW: COUNT}, flushes: {WHY: COUNT},
                                longestRun, lookedAt, aloneOnNode, verified, differences}}}

Amounts are integers: cpu in millicores, memory and storage in bytes, everything else counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moorage.engine.actions import Action
from moorage.engine.classes.statistics import Statistics
from moorage.objects.pod import Pod
from moorage.objects.resources import CPU, is_size
from moorage.world import ClaimedVolume

from .place_study import PlaceStudy


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A pod and the node that was found for it."""

    pod: Pod
    node: str
    profile: str
    attempts: int


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A pod without a node, and why. `reason` is one word, `message` the full text."""

    pod: Pod
    reason: str
    message: str
    attempts: int


@dataclass(frozen=True, slots=True)
class PreemptedPod:
    """A pod that had to leave its node, and the namespace and name of the pod that replaced it."""

    pod: Pod
    node: str
    by: str


@dataclass(frozen=True, slots=True)
class Use:
    """How much of a resource all nodes have and pods request, in native units."""

    allocatable: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Reuse:
    """What identical pods of a profile shared, and how they were placed."""

    statistics: Statistics
    places: PlaceStudy


@dataclass(frozen=True, slots=True)
class Transcript:
    """The result, and every action on the way with its virtual time in seconds."""

    placed: tuple[PlacedPod, ...]
    pending: tuple[PendingPod, ...]
    preempted: tuple[PreemptedPod, ...]
    volumes: tuple[ClaimedVolume, ...]
    #: By resource; only those of which there is any or any is asked for.
    use: dict[str, Use]
    nodes: int
    #: By profile, what like pods shared.
    reuse: dict[str, Reuse]
    story: tuple[tuple[float, Action], ...]


def to_builtins(transcript: Transcript) -> dict[str, Any]:
    """Returns the transcript as mappings, lists, strings and numbers."""
    return {
        "placements": [_placement(each) for each in transcript.placed],
        "pending": [_pending(each) for each in transcript.pending],
        "preempted": [_encode_preemption(each) for each in transcript.preempted],
        "volumes": [_encode_claim(each) for each in transcript.volumes],
        "summary": {
            "nodes": transcript.nodes,
            "placed": len(transcript.placed),
            "pending": len(transcript.pending),
            "preempted": len(transcript.preempted),
            "resources": {
                name: {
                    "unit": find_unit(name),
                    "allocatable": use.allocatable,
                    "before": use.before,
                    "after": use.after,
                }
                for name, use in transcript.use.items()
            },
            "reuse": {name: _reuse(each) for name, each in transcript.reuse.items()},
        },
    }


def _reuse(reuse: Reuse) -> dict[str, Any]:
    statistics, places = reuse.statistics, reuse.places
    return {
        "decisions": statistics.decisions,
        "alike": statistics.alike,
        "reused": statistics.reused,
        "ways": {way.value: count for way, count in statistics.paths.items()},
        "flushes": {why.value: count for why, count in statistics.flushes.items()},
        "longestRun": places.longest_run,
        "lookedAt": places.looked_at,
        "aloneOnNode": places.alone_on_node,
        "verified": statistics.verified,
        "differences": statistics.differences,
    }


def describe_reuse(profile: str, reuse: Reuse) -> str:
    """Describes in one line which answers like pods of a profile shared, and why not more."""
    statistics, places = reuse.statistics, reuse.places
    others = (
        f"{count} {way.value}"
        for way, count in sorted(statistics.paths.items())
        if not way.is_reuse
    )
    reused = f"{statistics.reused} of {statistics.decisions} decisions of {profile} reused answers"
    line = "; ".join((reused, *others))
    if places.looked_at:
        share = 100 * places.alone_on_node // places.looked_at
        line += f"; {share}% of places took no second such pod"
    if statistics.verified:
        line += f"; {statistics.verified} verified, {statistics.differences} differed"
    return line


def find_unit(resource: str) -> str:
    """Returns the unit in which a resource is counted."""
    if resource == CPU:
        return "millicores"
    return "bytes" if is_size(resource) else "count"


def _placement(placed: PlacedPod) -> dict[str, Any]:
    return {
        "namespace": placed.pod.namespace,
        "pod": placed.pod.name,
        "node": placed.node,
        "profile": placed.profile,
        "priority": placed.pod.priority,
        "attempts": placed.attempts,
    }


def _pending(pending: PendingPod) -> dict[str, Any]:
    return {
        "namespace": pending.pod.namespace,
        "pod": pending.pod.name,
        "reason": pending.reason,
        "message": pending.message,
        "scheduler": pending.pod.spec.scheduler_name,
        "priority": pending.pod.priority,
        "attempts": pending.attempts,
    }


def _encode_preemption(preempted: PreemptedPod) -> dict[str, Any]:
    return {
        "namespace": preempted.pod.namespace,
        "pod": preempted.pod.name,
        "node": preempted.node,
        "by": preempted.by,
    }


def _encode_claim(claimed: ClaimedVolume) -> dict[str, Any]:
    return {
        "namespace": claimed.claim.namespace,
        "claim": claimed.claim.name,
        "volume": claimed.volume.name,
        "provisioned": claimed.provisioned,
        "pod": claimed.pod,
    }
