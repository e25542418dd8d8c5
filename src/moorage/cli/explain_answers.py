"""What `moorage explain` finds out about a pod, a workload, a node, or all pods that wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from moorage.cluster.extended.resources import extended_figures
from moorage.documents.errors import InputError
from moorage.engine import Engine
from moorage.engine.events import Applied
from moorage.engine.explain import Explanation, NoSuchNode, explain as explain_pod
from moorage.objects.kinds import Object
from moorage.objects.meta import failure_to_place
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.resources import describe_amount
from moorage.objects.workload import owner_text
from moorage.simulate.outlook import Outlook, WaitingPods, explain_running, group_by_owner
from moorage.world import Scene

from .explain_gangs import answer_gang
from .explain_targets import ExplainTarget, find_node, find_pod, find_pods_of
from .explain_text import NodeNames, advice_lines, explanation_parts
from .rendering import count, indent, line, shorten, table

if TYPE_CHECKING:
    from rich.console import RenderableType

# So many groups are explained in one answer; each takes milliseconds and some lines.
_MOST_GROUPS = 50


class Answer(Protocol):
    """An answer to print, as text or as JSON."""

    @property
    def value(self) -> object: ...

    @property
    def has_place(self) -> bool: ...

    @property
    def notes(self) -> Sequence[str]: ...

    def parts(self) -> Iterator[RenderableType]: ...


def answer(
    make_engine: Callable[[], Engine], objects: Sequence[Object], target: ExplainTarget, node: str
) -> Answer:
    """Answers from the objects of a cluster; raises InputError if the target is not there."""
    if target.name and target.kind == "PodGroup":
        return answer_gang(make_engine(), objects, target)
    if target.name and target.kind == "Node":
        return _report_node(make_engine(), objects, target)
    pods = [item for item in objects if isinstance(item, Pod)]
    if target.name and target.kind == "Pod":
        return _explain_pod(make_engine, objects, find_pod(pods, target), node)
    members = find_pods_of(pods, target) if target.name else []
    outlook = Outlook.of(make_engine, Scene.of(objects))
    if not target.name:
        return _explain_waiting(outlook)
    waiting = [pod for pod in outlook.scene.waiting if pod in members]
    return WorkloadAnswer(target, members, outlook.explain_by_owner(waiting))


def _explain_pod(
    make_engine: Callable[[], Engine], objects: Sequence[Object], pod: Pod, node: str
) -> PodAnswer:
    scene, notes = Scene.of(objects), []
    try:
        if pod.node_name:
            explanation = explain_running(make_engine(), scene, pod, node)
        else:
            outlook = Outlook.of(make_engine, scene)
            explanation = outlook.explain(pod, node)
            placed = outlook.count_placed_before(pod)
            if placed:
                others = "other waiting pod is" if placed == 1 else "other waiting pods are"
                notes.append(f"{placed:,} {others} placed first, as the scheduler would")
    except NoSuchNode:
        raise InputError(f"node {node}", "there is no such node") from None
    return PodAnswer(explanation, (*notes, *_contradictions(pod, explanation)))


def _explain_waiting(outlook: Outlook) -> WaitingAnswer:
    ours = outlook.served()
    left = [pod for pod in ours if not outlook.fits(pod)]
    evicting = sum(1 for pod in left if outlook.evicts(pod))
    others = Counter(pod.spec.scheduler_name for pod in outlook.scene.waiting)
    others -= Counter(pod.spec.scheduler_name for pod in ours)
    explained = outlook.explain_by_owner(left, _MOST_GROUPS)
    counts = PodCounts(len(ours) - len(left), evicting, len(left) - evicting)
    return WaitingAnswer(counts, explained, others)


def _report_node(engine: Engine, objects: Sequence[Object], target: ExplainTarget) -> NodeReport:
    node = find_node([item for item in objects if isinstance(item, Node)], target)
    for item in objects:
        engine.handle(Applied(item), 0.0)
    return NodeReport(engine, node, group_by_owner(engine, Scene.of(objects).waiting))


def _contradictions(pod: Pod, explanation: Explanation) -> Iterator[str]:
    """Yields a note if the pod's scheduler gave other reasons than this explanation."""
    said = failure_to_place(pod.status.conditions)
    if not said or pod.node_name:
        return
    reasons = [reason for each in explanation.rejections for reason in each.reasons]
    if explanation.state == "fits" or not any(reason in said for reason in reasons or [said]):
        yield f"its scheduler said otherwise: {said}"
        yield "it may have another configuration: --config reads it, --url asks the scheduler"


@dataclass(frozen=True, slots=True)
class PodAnswer:
    """One pod, explained."""

    value: Explanation
    notes: tuple[str, ...] = ()

    @property
    def has_place(self) -> bool:
        return self.value.has_place

    def parts(self) -> Iterator[RenderableType]:
        return explanation_parts(self.value)


@dataclass(frozen=True, slots=True)
class PodCounts:
    """How many waiting pods fit, fit only by evicting others, and fit nowhere."""

    fit: int
    evict: int
    wait: int

    @property
    def text(self) -> str:
        texts = (
            (self.wait, "nowhere"),
            (self.evict, "only by evicting others"),
            (self.fit, "now"),
        )
        found = (f"{_fits(number)} {how}" for number, how in texts if number)
        return "; ".join(found) or "no pod has to wait"


def _fits(number: int) -> str:
    return f"{count(number, 'pod')} fit{'s' * (number == 1)}"


@dataclass(frozen=True, slots=True)
class WaitingAnswer:
    """The pods that still wait when all that fit are placed, by owner, with what helps most."""

    counts: PodCounts
    value: Sequence[WaitingPods]
    #: How many pods wait for schedulers that no profile serves, by their names.
    others: Counter[str]
    notes: tuple[str, ...] = ()

    @property
    def has_place(self) -> bool:
        return all(each.explanation.has_place for each in self.value)

    def parts(self) -> Iterator[RenderableType]:
        counts = self.counts
        left = counts.wait + counts.evict
        others = [_name_schedulers(self.others)] if self.others else []
        yield line("; ".join((counts.text, *others)), "bold" if left else "bold green")
        for each in self.value:
            yield ""
            yield from _group_parts(each)
        left -= sum(len(each.pods) for each in self.value)
        if left:
            yield line(f"and {count(left, 'pod')} of other owners")


def _group_parts(group: WaitingPods) -> Iterator[RenderableType]:
    explanation = group.explanation
    of = "" if group.owner.startswith("pod ") else f" of {group.owner}"
    # The names of pods repeat that of their owner.
    names = f" ({shorten(group.pods, 2)})" if not of else ""
    yield line(f"{count(len(group.pods), 'pod')}{of}{names}", "bold")
    yield indent(line(_first_sentence(explanation.message)))
    for text in advice_lines(explanation, 1):
        yield indent(line(text, "cyan"))


def _name_schedulers(pods: Counter[str]) -> str:
    names = shorten(sorted(pods))
    total = pods.total()
    belong = "belongs" if total == 1 else "belong"
    return f"{count(total, 'pod')} {belong} to another scheduler ({names})"


def _first_sentence(message: str) -> str:
    """Returns the message without the part about preemption."""
    return message.partition(". ")[0].rstrip(".")


@dataclass(frozen=True, slots=True)
class WorkloadAnswer:
    """The pods of a workload: where they run, and why others wait."""

    target: ExplainTarget
    members: Sequence[Pod]
    groups: Sequence[WaitingPods]
    notes: tuple[str, ...] = ()

    @property
    def value(self) -> object:
        return {
            "workload": self.target.text,
            "pods": {pod.key: pod.node_name for pod in self.members},
            "waiting": self.groups,
        }

    @property
    def has_place(self) -> bool:
        return all(each.explanation.has_place for each in self.groups)

    def parts(self) -> Iterator[RenderableType]:
        placed = Counter(pod.node_name for pod in self.members if pod.node_name)
        waiting = sum(len(each.pods) for each in self.groups)
        yield line(
            f"{self.target.text}: {count(len(self.members), 'pod')}, "
            f"{placed.total()} on {count(len(placed), 'node')}, {waiting} waiting",
            "bold",
        )
        if placed:
            names = NodeNames(placed)
            where = [f"{names.shorten(node)} ({held})" for node, held in placed.most_common()]
            yield line(f"on {shorten(where, 6)}")
        for each in self.groups:
            yield ""
            if len(each.pods) > 1:
                yield line(f"{count(len(each.pods), 'pod')} like this one:", "dim")
            yield from explanation_parts(each.explanation)


@dataclass(frozen=True, slots=True)
class NodeReport:
    """A node: how much of it is used, and why it rejects the pods that wait."""

    engine: Engine
    node: Node
    groups: Sequence[list[Pod]]
    notes: tuple[str, ...] = ()
    #: A node has no place to find.
    has_place: bool = True

    @property
    def value(self) -> object:
        return {
            "node": self.node.name,
            "resources": {
                name: dict(zip(("allocatable", "used"), amounts, strict=True))
                for name, amounts in self._amounts()
            },
            "extendedResources": self._find_extended(),
            "waiting": [self._explain(group) for group in self.groups[:_MOST_GROUPS]],
        }

    def _find_extended(self) -> dict[str, dict[str, int]]:
        """Returns what plugins count of the node beyond its allocatable resources."""
        found = extended_figures(self.engine.cluster.extended)
        return {
            resource_type: dict(nodes[self.node.name])
            for resource_type, nodes in found.items()
            if self.node.name in nodes
        }

    def _amounts(self) -> Iterator[tuple[str, tuple[int, int]]]:
        cluster = self.engine.cluster
        held: Counter[str] = Counter()
        row = cluster.nodes.row(self.node.name)
        pods = cluster.nodes.pods(row).values() if row is not None else ()
        for pod in pods:
            held.update(dict(pod.held.requests))
            held["pods"] += 1
        for name, amount in dict(self.node.allocatable).items():
            yield name, (amount, held[name])

    def _explain(self, group: Sequence[Pod]) -> dict[str, Any]:
        explanation = explain_pod(self.engine.decider, group[0], self.node.name)
        return {
            "owner": owner_text(group[0]),
            "pods": [pod.key for pod in group],
            "answer": explanation.node,
        }

    def parts(self) -> Iterator[RenderableType]:
        state = ", cordoned" if self.node.unschedulable else ""
        yield line(f"node {self.node.name}{state}", "bold")
        taints = [
            f"{each.key}{f'={each.value}' * bool(each.value)}:{each.effect}"
            for each in self.node.taints
        ]
        if taints:
            yield line(f"tainted {', '.join(taints)}")
        rows = [
            (
                name,
                describe_amount(name, whole),
                describe_amount(name, used),
                f"{100 * used // whole if whole else 0}%",
            )
            for name, (whole, used) in self._amounts()
            if whole or used
        ]
        yield ""
        yield table(("RESOURCE", "ALLOCATABLE", "USED", "SHARE"), rows, numbers_from=1)
        counted = [
            (kind, ", ".join(f"{name} {describe_amount('', n)}" for name, n in each.items()))
            for kind, each in self._find_extended().items()
        ]
        if counted:
            yield ""
            yield table(("EXTENDED RESOURCE", "COUNTED"), counted)
        yield from self._waiting_parts()

    def _waiting_parts(self) -> Iterator[RenderableType]:
        """Yields what the node answers to pods that wait. Names may be too long for a table."""
        if self.groups:
            yield ""
            yield line("WHY WAITING PODS ARE NOT PLACED HERE", "bold")
        for group in self.groups[:_MOST_GROUPS]:
            found = explain_pod(self.engine.decider, group[0], self.node.name)
            takes = found.node is not None and found.node.feasible
            owner = owner_text(group[0])
            many = "" if owner.startswith("pod ") else f"{count(len(group), 'pod')} of "
            yield line(f"{many}{owner}")
            yield indent(line(_answer_text(found), "green" if takes else ""))
        left = len(self.groups) - _MOST_GROUPS
        if left > 0:
            yield line(f"and pods of {count(left, 'other owner')}")


def _answer_text(explanation: Explanation) -> str:
    answer = explanation.node
    if answer is None:
        return explanation.message or explanation.state
    if answer.feasible:
        return "fits"
    return "; ".join(f"{each.plugin}: {', '.join(each.reasons)}" for each in answer.refusals)
