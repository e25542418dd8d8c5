"""What if: how many gangs of copies of a pod would fit, where, and what the next one lacks.

Each question gets an engine of its own, which is thrown away after it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import msgspec

from moorage.engine import Engine
from moorage.engine.explain import GangExplanation, explain_gang
from moorage.engine.explain.explanation import ExplanationPart
from moorage.engine.gangs.group_decision import GroupDecision
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.world import Scene, World

from .drain import Drain, study_drain
from .pod_fit import NodeShare


class GangPlace(ExplanationPart, frozen=True):
    """Where one gang goes."""

    #: The topology domain; empty if it does not matter.
    domain: str
    nodes: tuple[NodeShare, ...]


class GangFit(ExplanationPart, frozen=True):
    """How many gangs find a place one after the other, without evicting any pod."""

    node_count: int
    size: int
    topology_key: str
    asked: int
    gangs: tuple[GangPlace, ...] = ()
    #: About the first that finds none.
    why: GangExplanation | None = None
    #: About nodes that are drained.
    drain: Drain | None = None

    @property
    def placed(self) -> int:
        return len(self.gangs)


class GangComparison(ExplanationPart, frozen=True):
    """The result now and after the change."""

    before: GangFit
    after: GangFit


@dataclass(frozen=True, slots=True)
class GangQuestion:
    """A number of gangs of copies of a pod, each on nodes that share a value of a label."""

    template: Pod
    size: int
    count: int = 1
    #: Empty if the members may be anywhere.
    topology_key: str = ""

    def group(self, number: int) -> PodGroup:
        name = f"{self.template.name}-{number}"
        return PodGroup(
            namespace=self.template.namespace,
            name=name,
            uid=f"gang/{self.template.namespace}/{name}",
            min_count=self.size,
            is_gang=True,
            priority=self.template.priority,
            topology_key=self.topology_key,
        )

    def members(self, group: PodGroup) -> list[Pod]:
        return [
            msgspec.structs.replace(
                self.template,
                name=f"{group.name}-{number}",
                uid=f"{group.uid}/{number}",
                node_name="",
                group_name=group.name,
            )
            for number in range(1, self.size + 1)
        ]


def fit_gangs(engine: Engine, scene: Scene, question: GangQuestion) -> GangFit:
    """Places gangs one after the other in a new engine, until one does not fit.

    All gangs are alike: where one finds no place, no other does.
    """
    world = World(engine)
    for item in (*scene.around, *scene.nodes, *scene.running):
        world.apply(item, 0.0)
    found: list[GangPlace] = []
    why: GangExplanation | None = None
    while len(found) < question.count and why is None:
        placed = _place(engine, question, len(found) + 1)
        if isinstance(placed, GangPlace):
            found.append(placed)
        else:
            why = placed
    return GangFit(
        len(engine.cluster.nodes),
        question.size,
        question.topology_key,
        question.count,
        tuple(found),
        why,
        study_drain(scene),
    )


def _place(engine: Engine, question: GangQuestion, number: int) -> GangPlace | GangExplanation:
    group = question.group(number)
    members = question.members(group)
    engine.cluster.put_group(group)
    for pod in members:
        engine.cluster.expect(pod)
    if number == 1:
        # A pod may be gated, or name a scheduler that is not there; then all copies do.
        explained = explain_gang(engine, group)
        if not explained.has_place:
            return explained
    decision = engine.decide_group(group, members)
    if not decision.result.is_success:
        decision.trial.roll_back()
        return explain_gang(engine, group)
    decision.trial.keep()
    return _describe(decision)


def _describe(decision: GroupDecision) -> GangPlace:
    counts = Counter(each.node_name for each in decision.result.placed)
    domain = decision.result.domain
    return GangPlace(
        domain.name if domain is not None else "",
        tuple(NodeShare(name, count) for name, count in counts.most_common()),
    )
