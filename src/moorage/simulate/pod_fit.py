"""What if: how many pods would fit, where, and what runs out first.

Each question gets an engine of its own, which is thrown away after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from moorage.cluster import Nodes
from moorage.engine import diagnosis
from moorage.engine.cycle import Found, conclude, find_feasible
from moorage.engine.decider import Decider
from moorage.engine.engine import Engine
from moorage.engine.explain import explain
from moorage.engine.explain.explanation import Explanation, ExplanationPart, Names
from moorage.engine.explain.rejections import list_rejections, merge_rejections
from moorage.framework.attempt import Failed
from moorage.framework.calls import ask_pre_enqueue
from moorage.framework.points import pre_filter
from moorage.framework.profile import Profile
from moorage.framework.status import PluginError
from moorage.objects.kinds import Object
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.resources import CPU, MEMORY, describe_amount
from moorage.objects.storage import PersistentVolumeClaim, StorageClass
from moorage.world import Scene, World, place_pod
from moorage.world.claim_templates import copy_claims, without_user

from .drain import Drain, keep_drained, study_drain
from .freed_nodes import FreedNode, find_freed_nodes
from .new_claims import copy_ephemeral, settle_claims
from .outlook import Outlook

_INSTANCE_TYPE = "node.kubernetes.io/instance-type"


class NodeShare(ExplanationPart, frozen=True):
    """How many of the pods a node takes."""

    node: str
    count: int


class KindShare(ExplanationPart, frozen=True):
    """How many of the pods nodes of one kind take.

    Nodes of a kind share instance type or resources.
    """

    kind: str
    node_count: int
    #: How many of the nodes take some.
    used: int
    count: int


class Left(ExplanationPart, frozen=True):
    """Pods that find no node, all for the same reason."""

    message: str
    count: int
    pods: Names


class Move(ExplanationPart, frozen=True):
    """An existing pod: the node where it was, and the node where it goes; empty is none."""

    pod: str
    before: str
    after: str


class RunsOut(ExplanationPart, frozen=True):
    """Why nodes that took such pods at first take no more."""

    reasons: Names
    count: int
    nodes: Names


class Fit(ExplanationPart, frozen=True):
    """The result of placing some pods, one after the other, without evicting any."""

    node_count: int
    asked: int
    placed: int
    nodes: tuple[NodeShare, ...] = ()
    kinds: tuple[KindShare, ...] = ()
    left: tuple[Left, ...] = ()
    #: Only for copies of one pod: they all want the same.
    runs_out: tuple[RunsOut, ...] = ()
    #: Only for pods that are there already.
    moves: tuple[Move, ...] = ()
    #: About the first that finds no node.
    why: Explanation | None = None
    #: If policies say who is in its way: nodes that evictions would free, as many as such copies.
    freed: tuple[FreedNode, ...] = ()
    #: About nodes that are drained.
    drain: Drain | None = None


class Comparison(ExplanationPart, frozen=True):
    """The result now and after the change, and the pods for which they differ."""

    before: Fit
    after: Fit
    changed: tuple[Move, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """The pods to place: copies of a pod, or without one those that leave drained nodes."""

    template: Pod | None = None
    count: int = 1
    #: What the template needs that is not in the cluster: claims that were made for it.
    around: tuple[Object, ...] = ()
    #: The claims that are made for each pod of the template, as they are for the template itself.
    claims: tuple[PersistentVolumeClaim, ...] = ()

    def pods(self, world: World, scene: Scene) -> Iterator[Pod]:
        """Yields the pods to place, those that leave a drained node first.

        The claims of each pod are made just before it.
        """
        for pod, _ in scene.leaving:
            free_claims(pod, world)
            yield pod
        if self.template is not None:
            yield from self._copies(world, scene, self.template)

    def _copies(self, world: World, scene: Scene, template: Pod) -> Iterator[Pod]:
        known = {claim.key: claim for claim in world.engine.cluster.nodes.devices.claims}
        classes = [item for item in (*scene.around, *self.around) if isinstance(item, StorageClass)]
        for number in range(1, self.count + 1):
            copy, claims = copy_claims(template, _copy(template, number), known)
            ephemeral = settle_claims(copy_ephemeral(self.claims, template, copy), classes)
            for item in (*claims, *ephemeral):
                world.apply(item, 0.0)
            yield copy


def fit(engine: Engine, scene: Scene, question: Question) -> Fit:
    """Places pods one after the other in a new engine that serves nothing else."""
    world = World(engine)
    for item in (*scene.around, *question.around, *scene.nodes, *scene.running):
        world.apply(item, 0.0)
    run = PodPlacer(engine.decider, scene.drained)
    first = _find_feasible(engine.decider, question.template)
    for pod in question.pods(world, scene):
        run.place(pod)
    return run.summarize(scene, question, first)


def fit_waiting(make_engine: Callable[[], Engine], scene: Scene) -> Fit:
    """Returns which of the pods that wait fit without evicting others."""
    outlook = Outlook.of(make_engine, scene)
    placed = [each for each in outlook.transcript.placed if outlook.fits(each.pod)]
    left = [pod for pod in scene.waiting if not outlook.fits(pod)]
    counts = Counter(each.node for each in placed)
    nodes = outlook.run.engine.cluster.nodes
    messages: dict[str, list[str]] = {}
    for pod in left:
        messages.setdefault(_without_preemption(outlook.message(pod)), []).append(pod.key)
    moves = [Move(each.pod.key, "", each.node) for each in placed]
    profile = outlook.run.engine.profiles.get(left[0].spec.scheduler_name) if left else None
    return Fit(
        node_count=len(nodes),
        asked=len(scene.waiting),
        placed=len(placed),
        nodes=tuple(NodeShare(name, count) for name, count in counts.most_common()),
        kinds=_share_kinds(nodes, counts),
        left=_sort_left(messages),
        moves=(*moves, *(Move(pod.key, "", "") for pod in left)),
        why=outlook.explain(left[0]) if left else None,
        freed=find_freed_nodes(profile, left[0], nodes, 1) if profile else (),
    )


def _without_preemption(message: str) -> str:
    """Returns what a message says of the nodes as they are."""
    now, mark, _ = message.partition(". ")
    return f"{now}." if mark else now


def _sort_left(messages: Mapping[str, Sequence[str]]) -> tuple[Left, ...]:
    """Returns the pods that find no node, those with the most frequent reason first."""
    left = (Left(message, len(pods), tuple(pods)) for message, pods in messages.items())
    return tuple(sorted(left, key=lambda each: -each.count))


def free_claims(pod: Pod, world: World) -> None:
    """Frees the claims of a pod that leaves its node, unless others use them."""
    for claim in list(world.engine.cluster.nodes.devices.claims.used_by(pod)):
        left = without_user(claim, pod)
        world.apply(claim.deallocated() if left is None else left, 0.0)


def compare(before: Fit, after: Fit) -> Comparison:
    """Returns two results side by side, and the pods for which they differ."""
    known = {move.pod: move.after for move in before.moves}
    changed = tuple(
        Move(move.pod, known[move.pod], move.after)
        for move in after.moves
        if move.pod in known and known[move.pod] != move.after
    )
    return Comparison(before, after, changed)


@dataclass(slots=True)
class PodPlacer:
    """Places pods where a decider finds room."""

    decider: Decider
    #: Nodes that are drained, which no advice brings back.
    drained: frozenset[str] = frozenset()
    #: Where each pod went, by key; empty is nowhere.
    places: dict[str, str] = field(default_factory=dict)
    messages: dict[str, list[str]] = field(default_factory=dict)
    refused: Pod | None = None
    #: Copies are all alike: where one finds no place, none does.
    hopeless: dict[int, str] = field(default_factory=dict)

    def place(self, pod: Pod) -> str:
        """Places a pod if it can; returns why it cannot."""
        like = id(pod.spec)
        known = self.hopeless.get(like) if pod.uid.startswith(_COPIES) else None
        message = self._try(pod) if known is None else known
        if message is None:
            return ""
        if pod.uid.startswith(_COPIES):
            self.hopeless[like] = message
        self.refused = self.refused or pod
        self.places[pod.key] = ""
        self.messages.setdefault(message, []).append(pod.key)
        return message

    def explain(self, pod: Pod) -> Explanation:
        """Explains why a pod finds no node."""
        return keep_drained(explain(self.decider, pod), self.drained)

    def _try(self, pod: Pod) -> str | None:
        """Places a pod; returns why that failed."""
        profile = self.decider.profiles.get(pod.spec.scheduler_name)
        if profile is None:
            return f"no profile serves scheduler {pod.spec.scheduler_name}"
        for plugin in profile.pre_enqueue:
            held = ask_pre_enqueue(plugin, pod)
            if held is not None:
                return held.message
        try:
            outcome = self.decider.decide(profile, pod)
        except PluginError as error:
            return str(error)
        if isinstance(outcome, Found):
            return self._place(profile, pod, outcome.row)
        return diagnosis.NO_NODES if outcome is None else diagnosis.message(outcome)

    def _place(self, profile: Profile, pod: Pod, row: int) -> str | None:
        name = self.decider.cluster.nodes.name(row)
        refusal = place_pod(self.decider.cluster, profile, pod, name)
        if refusal is None:
            self.places[pod.key] = name
        return refusal

    def summarize(self, scene: Scene, question: Question, first: set[str]) -> Fit:
        counts = Counter(name for name in self.places.values() if name)
        there = {pod.key: node for pod, node in scene.leaving}
        return Fit(
            node_count=len(self.decider.cluster.nodes),
            asked=len(self.places),
            placed=sum(counts.values()),
            nodes=tuple(NodeShare(name, count) for name, count in counts.most_common()),
            kinds=_share_kinds(self.decider.cluster.nodes, counts),
            left=_sort_left(self.messages),
            runs_out=self._runs_out(question.template, first),
            moves=tuple(
                Move(key, there[key], node) for key, node in self.places.items() if key in there
            ),
            why=None if self.refused is None else self.explain(self.refused),
            freed=self._find_freed(question),
            drain=study_drain(scene, (key for key, node in self.places.items() if not node)),
        )

    def _find_freed(self, question: Question) -> tuple[FreedNode, ...]:
        pod = self.refused
        profile = pod and self.decider.profiles.get(pod.spec.scheduler_name)
        if pod is None or not profile:
            return ()
        is_copy = question.template is not None
        wanted = sum(map(len, self.messages.values())) if is_copy else 1
        return find_freed_nodes(profile, pod, self.decider.cluster.nodes, wanted)

    def _runs_out(self, template: Pod | None, first: set[str]) -> tuple[RunsOut, ...]:
        """Returns why nodes that were feasible for a copy are not any more."""
        profile = template and self.decider.profiles.get(template.spec.scheduler_name)
        if template is None or not profile or self.refused is None:
            return ()
        nodes = self.decider.cluster.nodes
        failed = _find_failure(profile, template, nodes)
        if failed is None or failed.filtered is None:
            return ()
        found = []
        for each in merge_rejections(list_rejections(failed.filtered, nodes)):
            names = tuple(name for name in each.nodes if name in first)
            if names:
                found.append(RunsOut(each.reasons, len(names), names))
        return tuple(sorted(found, key=lambda each: -each.count))


def _find_feasible(decider: Decider, template: Pod | None) -> set[str]:
    """Returns the nodes that take a copy before any is placed."""
    profile = template and decider.profiles.get(template.spec.scheduler_name)
    if template is None or not profile:
        return set()
    nodes = decider.cluster.nodes
    try:
        prepared = pre_filter(profile, template, nodes)
        if prepared.rejected is not None:
            return set()
        filtered = find_feasible(profile, template, prepared, nodes)
    except PluginError:
        return set()
    return set(nodes.names(filtered.feasible_rows.tolist()))


def _find_failure(profile: Profile, template: Pod, nodes: Nodes) -> Failed | None:
    try:
        outcome = conclude(profile, template, pre_filter(profile, template, nodes), nodes)
    except PluginError:
        return None
    return outcome if isinstance(outcome, Failed) else None


# No uid of a real pod begins like this.
_COPIES = "copy/"


def _copy(template: Pod, number: int) -> Pod:
    name = f"{template.name}-{number}"
    uid = f"{_COPIES}{template.namespace}/{name}"
    return msgspec.structs.replace(template, name=name, uid=uid, node_name="")


def _share_kinds(nodes: Nodes, counts: Mapping[str, int]) -> tuple[KindShare, ...]:
    """Returns the kinds of nodes that take pods, those that take most first."""
    there: Counter[str] = Counter()
    used: Counter[str] = Counter()
    placed: Counter[str] = Counter()
    for row in nodes.rows.tolist():
        kind = _kind_of(nodes.node(row))
        there[kind] += 1
        count = counts.get(nodes.name(row), 0)
        if count:
            used[kind] += 1
            placed[kind] += count
    return tuple(
        KindShare(kind, there[kind], used[kind], count) for kind, count in placed.most_common()
    )


def _kind_of(node: Node) -> str:
    named = node.labels.get(_INSTANCE_TYPE)
    if named is not None:
        return named
    has = dict(node.allocatable)
    cpu, memory = (describe_amount(name, has.get(name, 0)) for name in (CPU, MEMORY))
    return f"{cpu} cpu, {memory} memory"
