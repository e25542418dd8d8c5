"""What moving pods disturbs: disruption budgets, and pods that nobody would replace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mooring.engine.explain.explanation import ExplanationPart
from mooring.objects.kinds import Object
from mooring.objects.pod import Pod
from mooring.objects.workload import PodDisruptionBudget

# Enough names to see whose pods they are.
_MOST_NAMES = 3


class TouchedBudget(ExplanationPart, frozen=True):
    """A budget whose pods move: how many do, and how many may at once."""

    budget: str
    moved: int
    allowed: int

    @property
    def is_exceeded(self) -> bool:
        return self.moved > self.allowed


def find_budgets(objects: Iterable[Object], moved: Iterable[Pod]) -> tuple[TouchedBudget, ...]:
    """The budgets of the pods, those that are exceeded most first."""
    pods = list(moved)
    found = [
        TouchedBudget(f"{item.namespace}/{item.name}", count, item.disruptions_allowed)
        for item in objects
        if isinstance(item, PodDisruptionBudget)
        and (count := sum(1 for pod in pods if item.covers(pod)))
    ]
    return tuple(sorted(found, key=lambda each: each.allowed - each.moved))


def describe_drain(objects: Iterable[Object], leaving: Iterable[Pod]) -> Iterator[str]:
    """What an administrator should know before a drain."""
    pods = list(leaving)
    for each in find_budgets(objects, pods):
        if each.is_exceeded:
            allowed = "no disruption" if not each.allowed else f"{each.allowed} at once"
            yield f"budget {each.budget} allows {allowed}, and {each.moved} of its pods leave"
    alone = [pod.key for pod in pods if pod.owner is None]
    if alone:
        more = f" and {len(alone) - _MOST_NAMES} more" if len(alone) > _MOST_NAMES else ""
        names = ", ".join(alone[:_MOST_NAMES])
        yield f"nobody would replace pods without a controller: {names}{more}"
