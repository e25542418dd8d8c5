"""Diagnoses a failed attempt: the message for users, the plugins to blame, the status to write."""

from __future__ import annotations

from collections import Counter

import msgspec

from moorage.framework.attempt import Failed, Filtered, PreFiltered
from moorage.framework.status import Code, Rejected
from moorage.objects.pod import Pod

from .actions import PatchPodStatus, PodRef, PodScheduledCondition

NO_NODES = "no nodes available to schedule pods"


UNSCHEDULABLE, SCHEDULER_ERROR = "Unschedulable", "SchedulerError"


class Failure(msgspec.Struct, frozen=True):
    """Why an attempt failed, and what follows. A nomination of None is left alone."""

    reason: str
    message: str
    rejectors: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    nominate: str | None = ""
    #: How long the pod is left alone at least, in seconds.
    delay: float = 0.0
    #: Whether it fits nowhere and no pod can make way, which is true of pods like it, too.
    is_shared: bool = False


def rejectors(failed: Failed) -> frozenset[str]:
    """Returns the plugins whose rejection a change in the cluster might lift."""
    named = {*failed.pre_filtered.narrowed_by, *failed.overruled}
    if failed.pre_filtered.rejected_by:
        named.add(failed.pre_filtered.rejected_by)
    filtered = failed.filtered
    if filtered is not None:
        named.update(failed.digest("rejectors", lambda: frozenset(filtered.rejectors())))
    return frozenset(named)


def message(failed: Failed, post_filter_message: str = "") -> str:
    """Returns the text of the PodScheduled condition."""
    text = f"0/{failed.node_count} nodes are available:"
    if failed.pre_filtered.rejected is not None:
        text += f" {failed.pre_filtered.rejected.message}."
    elif failed.pre_filtered.node_names is None:
        # That follows from what filters said alone.
        text += failed.digest("reasons", lambda: f" {', '.join(_histogram(failed))}.")
    else:
        text += f" {', '.join(_histogram(failed))}."
    if post_filter_message:
        text += f" {post_filter_message}"
    return text


def describe_refusal(reasons: tuple[str, ...]) -> str:
    """Returns the text if a reserve or permit plugin refused the chosen node afterwards."""
    return f"0/1 nodes are available: {', '.join(f'1 {each}' for each in sorted(reasons))}."


def _histogram(failed: Failed) -> list[str]:
    """Returns counted reasons, sorted as texts, so that "10 x" comes before "2 x"."""
    counts: Counter[str] = Counter()
    explicit = 0
    if failed.filtered is not None:
        for reason, count in failed.filtered.reason_counts():
            counts[reason] += count
        explicit = failed.filtered.rejected_count
    if failed.pre_filtered.node_names is not None:
        counts[describe_outside(find_narrowing(failed.pre_filtered, failed.tried_first))] += (
            failed.node_count - explicit
        )
    return sorted(f"{count} {reason}" for reason, count in counts.items() if count)


def describe_outside(plugins: set[str]) -> str:
    """Returns why nodes that pre-filters left out were not looked at."""
    return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}]"


def find_narrowing(pre_filtered: PreFiltered, tried_first: Filtered | None) -> set[str]:
    """Returns the plugins that are reported to have left nodes out."""
    # A nominated node is tried before the others: plugins that rejected it are listed as well.
    return {*pre_filtered.narrowed_by, *(tried_first.rejectors() if tried_first else ())}


def refusal(plugin: str, answer: Rejected) -> Failure:
    if answer.code is Code.ERROR:
        return Failure(SCHEDULER_ERROR, answer.message)
    message = describe_refusal(answer.reasons)
    return Failure(UNSCHEDULABLE, message, rejectors=frozenset({plugin}))


def patch(pod: Pod, failure: Failure) -> PatchPodStatus | None:
    """Returns the patch of the pod's status; None if the status says so already."""
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
