"""Which victims would break a disruption budget."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.objects.pod import Pod
from mooring.objects.workload import PodDisruptionBudget


def breaking(victims: Sequence[Pod], budgets: Sequence[PodDisruptionBudget]) -> list[bool]:
    """Whether evicting each, in this order, is one disruption more than some budget allows."""
    allowed = [budget.disruptions_allowed for budget in budgets]
    broken = []
    for pod in victims:
        breaks = False
        for at, budget in enumerate(budgets):
            if budget.covers(pod):
                allowed[at] -= 1
                breaks = breaks or allowed[at] < 0
        broken.append(breaks)
    return broken
