"""What would happen to the pods that wait: the answer that explain, fit and the library share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from moorage.engine import Engine
from moorage.engine.classes.signature import Signer, Unsigned
from moorage.engine.explain import Explanation, explain
from moorage.engine.explain.explanation import ExplanationPart, Names
from moorage.objects.pod import Pod
from moorage.objects.workload import owner_text
from moorage.world import Scene, World

from .likeness import trace_reads
from .simulation import Run
from .transcript import Transcript


class WaitingPods(ExplanationPart, frozen=True):
    """Waiting pods of one owner and one template, and the explanation of the first of them."""

    owner: str
    pods: Names
    explanation: Explanation


@dataclass(slots=True)
class Outlook:
    """The pods of a scene that wait, once each has had its turn.

    Some fit, some fit only by evicting others, and the rest fit nowhere.
    """

    make_engine: Callable[[], Engine]
    scene: Scene
    run: Run
    transcript: Transcript
    #: The pods that are evicted, by the pod or the group for which they are.
    victims: dict[str, list[str]]

    @classmethod
    def of(cls, make_engine: Callable[[], Engine], scene: Scene) -> Outlook:
        """Simulates what the scheduler does with the pods that wait. Asks no extenders."""
        run = Run.start(make_engine(), scene)
        while run.goes_on():
            run.advance()
        transcript = run.finish()
        victims = defaultdict(list)
        for each in transcript.preempted:
            victims[each.by].append(each.pod.key)
        return cls(make_engine, scene, run, transcript, dict(victims))

    def fits(self, pod: Pod) -> bool:
        """Returns whether a waiting pod gets a node without evicting others."""
        return pod.uid in self.run.placed and not self.evicts(pod)

    def evicts(self, pod: Pod) -> bool:
        """Returns whether others are evicted for a pod, or for its group."""
        group = f"{pod.namespace}/{pod.group_name}" if pod.group_name else ""
        return pod.key in self.victims or group in self.victims

    def message(self, pod: Pod) -> str:
        """Returns why a pod gets no node, or none without evicting others."""
        if pod.uid in self.run.placed:
            return self.run.message_of_failure(pod)
        return self.run.why(pod).message

    def count_placed_before(self, pod: Pod) -> int:
        """Returns how many other pods have their node when a pod's turn comes."""
        turns = self.run.turns
        mine = turns.get(pod.uid, self.run.decisions + 1)
        return sum(1 for uid in self.run.placed if uid != pod.uid and turns[uid] < mine)

    def served(self) -> list[Pod]:
        """Returns the waiting pods that are not another scheduler's."""
        profiles = self.run.engine.profiles
        return [pod for pod in self.scene.waiting if pod.spec.scheduler_name in profiles]

    def explain(self, pod: Pod, node: str = "") -> Explanation:
        """Explains a waiting or a running pod, and if wanted its relation to one node.

        A pod that fits, or evicts others, is explained as it is when its turn comes, one that fits
        nowhere as it is in the end. One that runs is explained in the cluster as it is, without
        what it takes itself. Raises NoSuchNode.
        """
        if pod.node_name:
            return explain_running(self.make_engine(), self.scene, pod, node)
        return self._explain([pod], node)[0]

    def explain_by_owner(self, pods: Iterable[Pod], most: int | None = None) -> list[WaitingPods]:
        """Explains waiting pods by owner and template, the largest group first."""
        groups = group_by_owner(self.run.engine, pods)[:most]
        found = self._explain([group[0] for group in groups])
        return [
            WaitingPods(owner_text(group[0]), tuple(pod.key for pod in group), explanation)
            for group, explanation in zip(groups, found, strict=True)
        ]

    def _explain(self, pods: Sequence[Pod], node: str = "") -> list[Explanation]:
        turns = {pod.uid: self.run.turns[pod.uid] for pod in pods if pod.uid in self.run.turns}
        found: dict[str, Explanation] = {}
        if turns:
            # Decisions depend on neither clock nor chance: the same happens again.
            again = Run.start(self.make_engine(), self.scene)
            for pod in sorted(
                (pod for pod in pods if pod.uid in turns), key=lambda each: turns[each.uid]
            ):
                while again.goes_on() and again.decisions + 1 < turns[pod.uid]:
                    again.advance()
                seen = explain(again.engine.decider, again.world.pods[pod.uid], node)
                found[pod.uid] = self._as_placed(seen, pod)
        decider = self.run.engine.decider
        return [found.get(pod.uid) or explain(decider, pod, node) for pod in pods]

    def _as_placed(self, explanation: Explanation, pod: Pod) -> Explanation:
        """Returns the explanation with the one of several equally good nodes that the pod got."""
        placed = self.run.placed.get(pod.uid)
        is_tie = placed is not None and placed.node in explanation.equally_good
        chosen = placed.node if placed is not None and is_tie else explanation.chosen
        return replace(explanation, running_on="", chosen=chosen)


def explain_running(engine: Engine, scene: Scene, pod: Pod, node: str = "") -> Explanation:
    """Explains a running pod in the cluster without that pod."""
    world = World(engine)
    others = (each for each in scene.running if each.uid != pod.uid)
    for item in (*scene.around, *scene.nodes, *others, *scene.waiting):
        world.apply(item, 0.0)
    found = explain(engine.decider, replace(pod, node_name=""), node)
    return replace(found, running_on=pod.node_name)


def group_by_owner(engine: Engine, pods: Iterable[Pod]) -> list[list[Pod]]:
    """Groups pods by owner and template, the largest group first.

    Pods without an owner are in one group only if every plugin signs them alike.
    """
    signers = {name: Signer(profile) for name, profile in engine.profiles.items()}
    pods = list(pods)
    for name, profile in engine.profiles.items():
        ours = (pod for pod in pods if pod.spec.scheduler_name == name and pod.owner is None)
        trace_reads(profile, engine.cluster.nodes, ours)
    groups: dict[Hashable, list[Pod]] = {}
    for pod in pods:
        owner = pod.namespace if pod.owner is None else owner_text(pod)
        signature: Hashable = None
        if pod.owner is None and pod.spec.scheduler_name in signers:
            signed = signers[pod.spec.scheduler_name].sign(pod, engine.cluster.nodes)
            signature = pod.uid if isinstance(signed, Unsigned) else signed
        groups.setdefault((owner, pod.group_name, id(pod.spec), signature), []).append(pod)
    return sorted(groups.values(), key=len, reverse=True)
