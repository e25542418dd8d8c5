"""Checks all pods of a group before it is tried, with kube-scheduler's messages."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup

_DEFAULT_POLICY = "PreemptLowerPriority"

_ALL = "all pods in a single pod group should have the same"


def find_fault(
    group: PodGroup, members: Sequence[Pod], placed: Iterable[Pod], profiles: Container[str]
) -> str | None:
    """Returns why a group cannot be tried as it is; None if it can."""
    name, policy = members[0].spec.scheduler_name, preemption_policy(members[0])
    priority = group.priority_beside(members[0])
    # Of the first one, nothing but its priority can differ.
    alike = members[0].spec if members[0].priority == priority else None
    for pod in (*members, *placed):
        if pod.spec is alike:
            # What is compared is of the template.
            continue
        fault = _differs(pod, name, priority, policy)
        if fault is not None:
            return fault
        alike = pod.spec
    if name not in profiles:
        return f'profile not found for scheduler name "{name}"'
    return None


def _differs(pod: Pod, name: str, priority: int, policy: str) -> str | None:
    found = pod.spec.scheduler_name
    if found != name:
        return f'{_ALL} .spec.schedulerName set, got: "{found}" and "{name}"'
    if pod.priority != priority:
        return f"{_ALL} priority as the pod group's priority, got {pod.priority} and {priority}"
    if preemption_policy(pod) != policy:
        return f"{_ALL} preemption policy, got {preemption_policy(pod)} and {policy}"
    return None


def preemption_policy(pod: Pod) -> str:
    return pod.spec.preemption_policy or _DEFAULT_POLICY
