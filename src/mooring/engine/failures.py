"""Attempts that came to nothing: why, and what is written about it."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.framework.status import Code, Rejected
from mooring.objects.pod import Pod

from . import diagnosis
from .actions import PatchPodStatus, PodRef, PodScheduledCondition

UNSCHEDULABLE, SCHEDULER_ERROR = "Unschedulable", "SchedulerError"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt came to nothing, and what follows. A nomination of None is left alone."""

    reason: str
    message: str
    rejectors: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    nominate: str | None = ""
    #: How long the pod is left alone at least, in seconds.
    delay: float = 0.0


def refusal(plugin: str, answer: Rejected) -> Failure:
    if answer.code is Code.ERROR:
        return Failure(SCHEDULER_ERROR, answer.message)
    message = diagnosis.refused(answer.reasons)
    return Failure(UNSCHEDULABLE, message, rejectors=frozenset({plugin}))


def patch(pod: Pod, failure: Failure) -> PatchPodStatus | None:
    """What is to be written to the pod's status; None when it says so already."""
    condition: PodScheduledCondition | None = PodScheduledCondition(
        failure.reason, failure.message, pod.generation
    )
    if any(
        known.type == "PodScheduled"
        and (known.status, known.reason, known.message)
        == ("False", failure.reason, failure.message)
        for known in pod.status.conditions or ()
    ):
        condition = None
    nominate = failure.nominate if failure.nominate != pod.nominated_node_name else None
    if condition is None and nominate is None:
        return None
    return PatchPodStatus(PodRef.to(pod), condition, nominate)
