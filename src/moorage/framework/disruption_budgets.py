"""Disruption budgets: which evictions would break one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from moorage.objects.pod import Pod
from moorage.objects.workload import PodDisruptionBudget


class BudgetIndex:
    """The disruption budgets, and which of them cover a pod."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._by_namespace: dict[str, list[PodDisruptionBudget]] = {}
        for budget in budgets:
            self._by_namespace.setdefault(budget.namespace, []).append(budget)
        self._selecting: dict[Hashable, list[PodDisruptionBudget]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_namespace)

    def breaking(self, victims: Sequence[Pod]) -> list[bool]:
        """Returns for each pod, evicted in this order, whether that exceeds some budget."""
        disrupted: Counter[str] = Counter()
        broken = []
        for pod in victims:
            breaks = False
            for budget in self._covering(pod):
                disrupted[budget.key] += 1
                breaks = breaks or disrupted[budget.key] > budget.disruptions_allowed
            broken.append(breaks)
        return broken

    def _covering(self, pod: Pod) -> list[PodDisruptionBudget]:
        known = self._by_namespace.get(pod.namespace)
        if known is None:
            return []
        labels = pod.namespace, *sorted(pod.labels.items())
        selecting = self._selecting.get(labels)
        if selecting is None:
            selecting = [budget for budget in known if budget.selects(pod)]
            self._selecting[labels] = selecting
        return [budget for budget in selecting if pod.name not in budget.disrupted]
