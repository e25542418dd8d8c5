"""What a drain would do: which budgets forbid it, and which pods it would end for good."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from moorage.engine.explain.explanation import Explanation, ExplanationPart, Names, Suggestion
from moorage.framework.edits import Uncordon
from moorage.objects.kinds import Object
from moorage.objects.pod import Pod
from moorage.objects.workload import PodDisruptionBudget
from moorage.world import Scene

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


class Drain(ExplanationPart, frozen=True):
    """What an administrator should know before nodes are drained."""

    nodes: Names
    pods: int
    #: Whether a budget allows none of its pods to leave, so that the drain would not end.
    forbidden: bool
    budgets: tuple[TouchedBudget, ...] = ()
    #: Pods without a controller, which are not created again.
    lost: Names = ()
    #: Pods that find no other node.
    left: Names = ()


def find_budgets(objects: Iterable[Object], moved: Iterable[Pod]) -> tuple[TouchedBudget, ...]:
    """Returns the budgets of the pods, those that are exceeded most first."""
    pods = list(moved)
    found = [
        TouchedBudget(f"{item.namespace}/{item.name}", count, item.disruptions_allowed)
        for item in objects
        if isinstance(item, PodDisruptionBudget)
        and (count := sum(1 for pod in pods if item.covers(pod)))
    ]
    return tuple(sorted(found, key=lambda each: each.allowed - each.moved))


def study_drain(scene: Scene, left: Iterable[str] = ()) -> Drain | None:
    """Returns what is to know about the drained nodes of a scene; None if none is drained."""
    if not scene.drained:
        return None
    pods = [pod for pod, _ in scene.leaving]
    budgets = find_budgets(scene.around, pods)
    ours = {pod.key for pod in pods}
    return Drain(
        tuple(sorted(scene.drained)),
        len(pods),
        any(not each.allowed for each in budgets),
        budgets,
        tuple(pod.key for pod in pods if pod.owner is None),
        tuple(key for key in left if key in ours),
    )


def keep_drained(explanation: Explanation, drained: frozenset[str]) -> Explanation:
    """Returns the explanation without the advice to uncordon a node that is to be drained."""
    if not drained:
        return explanation
    found = tuple(_keep_drained(explanation.suggestions, drained))
    return replace(explanation, suggestions=found)


def _keep_drained(
    suggestions: Iterable[Suggestion], drained: frozenset[str]
) -> Iterator[Suggestion]:
    for each in suggestions:
        nodes = tuple(name for name in each.nodes if name not in drained)
        if nodes == each.nodes:
            yield each
        elif nodes:
            edits = tuple(
                Uncordon(tuple(name for name in edit.nodes if name not in drained))
                if isinstance(edit, Uncordon)
                else edit
                for edit in each.edits
            )
            remedy = " and ".join(edit.text for edit in edits)
            yield replace(each, edits=edits, remedy=remedy, nodes=nodes, count=len(nodes))


def describe_refusals(drain: Drain) -> Iterator[str]:
    """Yields why the drain would not end."""
    for each in drain.budgets:
        if not each.allowed:
            yield f"the drain is forbidden: {_describe(each)}"


def describe_delays(drain: Drain) -> Iterator[str]:
    """Yields what slows the drain down, and what it ends for good."""
    for each in drain.budgets:
        if each.allowed and each.is_exceeded:
            yield f"the drain has to wait: {_describe(each)}"
    if drain.lost:
        lost = len(drain.lost)
        pods = "1 pod" if lost == 1 else f"{lost:,} pods"
        are = "is" if lost == 1 else "are"
        more = f" and {lost - _MOST_NAMES:,} more" if lost > _MOST_NAMES else ""
        names = ", ".join(drain.lost[:_MOST_NAMES]) + more
        yield f"{pods} without a controller {are} not created again: {names}"


def _describe(budget: TouchedBudget) -> str:
    allowed = "no disruption" if not budget.allowed else f"{budget.allowed} at once"
    leave = "has" if budget.moved == 1 else "have"
    return f"budget {budget.budget} allows {allowed}, and {budget.moved} of its pods {leave} to go"
