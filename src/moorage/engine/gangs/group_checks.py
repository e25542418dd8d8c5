"""Checks all pods of a group before it is tried, with kube-scheduler's messages."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from moorage.objects.pod import Pod
from moorage.objects.pod_group import EVICTS, PodGroup

_ALL = "all pods in a single pod group should have the same"
_AS_GROUP = " as the pod group's preemption policy"


def find_fault(
    group: PodGroup,
    members: Sequence[Pod],
    placed: Iterable[Pod],
    profiles: Container[str],
    *,
    ranked_as_one: bool,
) -> str | None:
    """Returns why a group cannot be tried as it is; None if it can.

    With `ranked_as_one`, pods on nodes are looked at as well, and priorities are compared.
    """
    first = members[0]
    # The first one can differ only from the group itself.
    alike = first.spec if _find_rank(first, first, group) is None else None
    for pod in (*members, *placed) if ranked_as_one else members:
        if pod.spec is alike:
            # What is compared is of the template.
            continue
        fault = _find_stranger(pod, first)
        if fault is None and ranked_as_one:
            fault = _find_rank(pod, first, group)
        if fault is not None:
            return fault
        alike = pod.spec
    name = first.spec.scheduler_name
    return None if name in profiles else f'profile not found for scheduler name "{name}"'


def _find_stranger(pod: Pod, first: Pod) -> str | None:
    found, name = pod.spec.scheduler_name, first.spec.scheduler_name
    return None if found == name else f'{_ALL} .spec.schedulerName set, got: "{found}" and "{name}"'


def _find_rank(pod: Pod, first: Pod, group: PodGroup) -> str | None:
    priority, policy = group.priority_beside(first), group.policy_beside(first)
    own = pod.spec.preemption_policy or EVICTS
    if pod.priority != priority:
        return f"{_ALL} priority as the pod group's priority, got {pod.priority} and {priority}"
    if own != policy:
        of_group = "" if group.preemption_policy is None else _AS_GROUP
        return f"{_ALL} preemption policy{of_group}, got {own} and {policy}"
    return None
