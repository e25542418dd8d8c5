"""What `moorage explain` finds out about a pod, a workload, a node, or all pods that wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from moorage.cluster.extended.resources import extended_figures
from moorage.documents.errors import InputError
from moorage.engine import Engine
from moorage.engine.classes.signature import Signer, Unsigned
from moorage.engine.events import Applied
from moorage.engine.explain import Explanation, NoSuchNode, explain as explain_pod
from moorage.objects.kinds import Object
from moorage.objects.meta import failure_to_place
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.resources import format_amount
from moorage.objects.workload import owner_text
from moorage.simulate.likeness import trace_reads
from moorage.simulate.simulation import simulate

from .explain_gangs import answer_gang
from .explain_targets import ExplainTarget, find_node, find_pod, find_pods_of
from .explain_text import NodeNames, explanation_parts
from .rendering import count, indent, line, shorten, table

if TYPE_CHECKING:
    from rich.console import RenderableType

replace = msgspec.structs.replace

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


def answer(engine: Engine, objects: Sequence[Object], target: ExplainTarget, node: str) -> Answer:
    """Answers from the objects of a cluster; raises InputError if the target is not there."""
    pods = [item for item in objects if isinstance(item, Pod)]
    if target.kind == "Pod" and target.name:
        pod = find_pod(pods, target)
        explanation = _explain_pod(engine, objects, pod, node)
        return PodAnswer(explanation, tuple(_contradictions(pod, explanation)))
    if not target.name:
        transcript = simulate(engine, objects)
        left = [each.pod for each in transcript.pending]
        ours = [pod for pod in left if pod.spec.scheduler_name in engine.profiles]
        others = Counter(pod.spec.scheduler_name for pod in left)
        others -= Counter(pod.spec.scheduler_name for pod in ours)
        explained = _explain_groups(engine, _group(engine, ours))
        return WaitingAnswer(len(transcript.placed), len(ours), explained, others)
    if target.kind == "PodGroup":
        return answer_gang(engine, objects, target)
    nodes = [item for item in objects if isinstance(item, Node)]
    for item in objects:
        engine.handle(Applied(item), 0.0)
    waiting = [pod for pod in pods if not pod.node_name and not pod.is_finished]
    if target.kind == "Node":
        return NodeReport(engine, find_node(nodes, target), _group(engine, waiting))
    members = find_pods_of(pods, target)
    groups = _group(engine, (pod for pod in members if pod in waiting))
    return WorkloadAnswer(target, members, _explain_groups(engine, groups))


def _explain_pod(engine: Engine, objects: Sequence[Object], pod: Pod, node: str) -> Explanation:
    """Explains a pod in the cluster without that pod, so that its own requests do not count."""
    for item in objects:
        if not (isinstance(item, Pod) and item.uid == pod.uid and pod.node_name):
            engine.handle(Applied(item), 0.0)
    unplaced = replace(pod, node_name="")
    try:
        explanation = explain_pod(engine.decider, unplaced, node)
    except NoSuchNode:
        raise InputError(f"node {node}", "there is no such node") from None
    return replace(explanation, running_on=pod.node_name)


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


class WaitingPodsOfOwner(msgspec.Struct, frozen=True, rename="camel"):
    """Waiting pods of one owner and one template, and why the first of them waits."""

    owner: str
    pods: tuple[str, ...]
    explanation: Explanation


def _group(engine: Engine, pods: Iterable[Pod]) -> list[list[Pod]]:
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
        groups.setdefault((owner, id(pod.spec), signature), []).append(pod)
    return sorted(groups.values(), key=len, reverse=True)


def _explain_groups(engine: Engine, groups: Sequence[list[Pod]]) -> tuple[WaitingPodsOfOwner, ...]:
    return tuple(
        WaitingPodsOfOwner(
            owner_text(group[0]),
            tuple(pod.key for pod in group),
            explain_pod(engine.decider, group[0]),
        )
        for group in groups[:_MOST_GROUPS]
    )


@dataclass(frozen=True, slots=True)
class WaitingAnswer:
    """The pods that still wait when all that fit are placed, by owner, with what helps most."""

    placed: int
    count: int
    value: tuple[WaitingPodsOfOwner, ...]
    #: How many pods wait for schedulers that no profile serves, by their names.
    others: Counter[str]
    notes: tuple[str, ...] = ()

    @property
    def has_place(self) -> bool:
        return all(each.explanation.has_place for each in self.value)

    def parts(self) -> Iterator[RenderableType]:
        fits = ""
        if self.placed:
            fits = f"; {count(self.placed, 'pod')} fit{'s' * (self.placed == 1)} now"
        if self.others:
            fits += f"; {_name_schedulers(self.others)}"
        if not self.count:
            yield line(f"no pod has to wait{fits}", "bold green")
            return
        yield line(f"{count(self.count, 'pod')} fit{'s' * (self.count == 1)} nowhere{fits}", "bold")
        for each in self.value:
            yield ""
            yield from _group_parts(each)
        left = self.count - sum(len(each.pods) for each in self.value)
        if left:
            yield line(f"and {count(left, 'pod')} of other owners")


def _group_parts(group: WaitingPodsOfOwner) -> Iterator[RenderableType]:
    explanation = group.explanation
    of = "" if group.owner.startswith("pod ") else f" of {group.owner}"
    # The names of pods repeat that of their owner.
    names = f" ({shorten(group.pods, 2)})" if not of else ""
    yield line(f"{count(len(group.pods), 'pod')}{of}{names}", "bold")
    yield indent(line(_first_sentence(explanation.message)))
    if explanation.suggestions:
        best = explanation.suggestions[0]
        nodes = count(best.count, "node")
        text = f"would fit {nodes} if {best.remedy}" if best.remedy else best.problem
        yield indent(line(text, "cyan"))


def _name_schedulers(pods: Counter[str]) -> str:
    names = shorten(sorted(pods))
    total = pods.total()
    return f"{count(total, 'pod')} {'is' if total == 1 else 'are'} another scheduler's: {names}"


def _first_sentence(message: str) -> str:
    """Returns the message without the part about preemption."""
    return message.partition(". ")[0].rstrip(".")


@dataclass(frozen=True, slots=True)
class WorkloadAnswer:
    """The pods of a workload: where they run, and why others wait."""

    target: ExplainTarget
    members: Sequence[Pod]
    groups: tuple[WaitingPodsOfOwner, ...]
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
                format_amount(name, whole),
                format_amount(name, used),
                f"{100 * used // whole if whole else 0}%",
            )
            for name, (whole, used) in self._amounts()
            if whole or used
        ]
        yield ""
        yield table(("RESOURCE", "ALLOCATABLE", "USED", "SHARE"), rows, numbers_from=1)
        counted = [
            (resource_type, ", ".join(f"{name} {value:,}" for name, value in figures.items()))
            for resource_type, figures in self._find_extended().items()
        ]
        if counted:
            yield ""
            yield table(("EXTENDED RESOURCE", "COUNTED"), counted)
        yield from self._waiting_parts()

    def _waiting_parts(self) -> Iterator[RenderableType]:
        """Yields what the node answers to pods that wait. Names may be too long for a table."""
        if self.groups:
            yield ""
            yield line("WHAT IT SAYS TO PODS THAT WAIT", "bold")
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
        return "takes it"
    return "; ".join(f"{each.plugin}: {', '.join(each.reasons)}" for each in answer.refusals)
