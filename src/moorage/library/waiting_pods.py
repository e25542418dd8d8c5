"""Why pods wait: one explanation for all pods of one owner and one template."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from moorage.engine.decider import Decider
from moorage.engine.explain import Explanation, explain
from moorage.engine.explain.explanation import ExplanationPart, Names
from moorage.objects.pod import Pod
from moorage.objects.workload import owner_text


class WaitingPods(ExplanationPart, frozen=True):
    """Waiting pods of one owner and one template, and why the first of them waits."""

    owner: str
    pods: Names
    explanation: Explanation


def explain_waiting(decider: Decider, pods: Iterable[Pod]) -> list[WaitingPods]:
    """Explains pods by owner and template, the largest group first; single pods each by itself."""
    groups: dict[Hashable, list[Pod]] = {}
    for pod in pods:
        owner = pod.uid if pod.owner is None else owner_text(pod)
        groups.setdefault((owner, pod.group_name, id(pod.spec)), []).append(pod)
    return [
        WaitingPods(
            owner_text(group[0]), tuple(pod.key for pod in group), explain(decider, group[0])
        )
        for group in sorted(groups.values(), key=len, reverse=True)
    ]
