"""DaemonSets: one pod on every node that takes it, and rolling updates.

The scheduler places the pods, each on its node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from moorage.embedded.controllers.controller import soonest
from moorage.embedded.controllers.items import (
    next_availability,
    pause_after_failures,
    without_zeros,
)
from moorage.embedded.controllers.rollouts import share
from moorage.embedded.store.object_store import Json
from moorage.objects.meta import Wire
from moorage.objects.node_selector import (
    NAME_FIELD,
    NodeAffinityRules,
    NodeTerm,
    compile_term,
    named_nodes,
)
from moorage.objects.placement_rules import Taint, Toleration, is_tolerated

from .cache import NODES, PODS, ItemChange
from .controller import Concerns, Controller, ControllerApi
from .event_recorder import EventRecorder, PodKeeper
from .items import ENDED, NodeItem, PodItem
from .ownership import Adoption, pod_of
from .replica_sets import ROUND
from .revisions import REVISION_LABEL, Revisions, pod_template, with_label


@dataclass(frozen=True, slots=True)
class DaemonSetPlan:
    """How a DaemonSet is updated, and when a pod of it counts as available."""

    #: The version that pods should have.
    present: str
    least_ready: int
    now: float
    rolls: bool
    #: How many nodes may be without a good pod, and how many may have two.
    unavailable: int
    surge: int

    @classmethod
    def of(cls, spec: Json, present: str, nodes: int, now: float) -> DaemonSetPlan:
        strategy = spec["updateStrategy"]
        rolling = strategy.get("rollingUpdate") or {}
        unavailable = share(rolling.get("maxUnavailable"), nodes, up=True)
        surge = share(rolling.get("maxSurge"), nodes, up=True)
        if not unavailable and not surge:
            # Percentages of little can both come out as nothing, and then nothing could move.
            unavailable = 1
        rolls = strategy["type"] == "RollingUpdate"
        least_ready: int = spec.get("minReadySeconds", 0)
        return cls(present, least_ready, now, rolls, unavailable, surge if rolls else 0)

    def is_good(self, pod: PodItem) -> bool:
        return pod.is_available(self.now, self.least_ready)

    def is_present(self, pod: PodItem) -> bool:
        return pod.labels.get(REVISION_LABEL) == self.present


@dataclass(slots=True)
class DaemonSetState:
    """The pods of a DaemonSet by node, and the changes that are planned for them."""

    #: The nodes that should have a pod, in order.
    wanted: list[str]
    #: The nodes that keep a pod which they would not get today.
    tolerant: set[str]
    pods: dict[str, list[PodItem]]
    create: list[str] = field(default_factory=list)
    remove: list[PodItem] = field(default_factory=list)
    #: How long to wait before pods are replaced that failed as soon as they came.
    pause: float | None = None

    def active(self, node: str) -> list[PodItem]:
        """Returns the pods on a node that neither ended nor are being deleted, the oldest first."""
        pods = [pod for pod in self.pods.get(node, ()) if pod.active]
        return sorted(pods, key=lambda pod: (pod.created, pod.name))


def plan_changes(at: DaemonSetState, measure: DaemonSetPlan) -> None:
    """Plans what to make and remove; an update waits until no pod is missing."""
    for node in at.wanted:
        pods = at.pods.get(node, [])
        ended = [pod for pod in pods if pod.phase in ENDED and not pod.terminating]
        pause = pause_after_failures(ended, measure.now)
        if pause:
            at.pause = soonest(at.pause, pause)
        else:
            at.remove += ended
        at.remove += _surplus(at.active(node), measure)
        # With a surge, a new pod does not wait until the old one is gone.
        if not pods or (measure.surge and all(pod.terminating for pod in pods)):
            at.create.append(node)
    for node, pods in at.pods.items():
        if node not in at.tolerant:
            at.remove += [pod for pod in pods if not pod.terminating]
    if measure.rolls and not at.create and not at.remove:
        if measure.surge:
            at.create += _surge(at, measure)
        else:
            at.remove += _replace(at, measure)


def _surplus(active: list[PodItem], measure: DaemonSetPlan) -> list[PodItem]:
    """Returns the pods that a node has too many; during a surge it may have two."""
    if not measure.surge:
        return active[1:]
    old = [pod for pod in active if not measure.is_present(pod)]
    new = [pod for pod in active if measure.is_present(pod)]
    replaced = bool(old and new) and (not old[0].ready or measure.is_good(new[0]))
    return [*new[1:], *(old if replaced else old[1:])]


def _replace(at: DaemonSetState, measure: DaemonSetPlan) -> Iterator[PodItem]:
    """Yields the old pods to remove, unavailable ones first, as many as may be missing."""
    outdated, missing = [], 0
    for node in at.wanted:
        active = at.active(node)
        missing += not any(measure.is_good(pod) for pod in active)
        outdated += [pod for pod in active if not measure.is_present(pod)]
    yield from (pod for pod in outdated if not measure.is_good(pod))
    good = [pod for pod in outdated if measure.is_good(pod)]
    yield from good[: max(measure.unavailable - missing, 0)]


def _surge(at: DaemonSetState, measure: DaemonSetPlan) -> Iterator[str]:
    """Yields the nodes that get a second pod of the present version."""
    waiting, surging = [], 0
    for node in at.wanted:
        active = at.active(node)
        if len(active) > 1:
            surging += 1
        elif active and not measure.is_present(active[0]):
            if measure.is_good(active[0]):
                waiting.append(node)
            else:
                yield node
    yield from waiting[: max(measure.surge - surging, 0)]


# A daemon stays on a node whatever becomes of the node.
_NODE_TROUBLE = ("not-ready", "unreachable")
_NODE_PRESSURE = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class _Affinity(Wire, frozen=True):
    node_affinity: NodeAffinityRules | None = None


class _Spec(Wire, frozen=True):
    affinity: _Affinity | None = None


class _Pod(Wire, frozen=True):
    spec: _Spec


_pod = msgspec.json.Decoder(_Pod)


@dataclass(frozen=True, slots=True)
class Daemon:
    """The part of a template that says which nodes its pods run on."""

    node_name: str
    selector: Mapping[str, str]
    #: None where any node will do.
    terms: tuple[NodeTerm, ...] | None
    tolerations: tuple[Toleration, ...]

    @classmethod
    def of(cls, spec: Json) -> Daemon:
        affinity = msgspec.convert(
            (spec.get("affinity") or {}).get("nodeAffinity") or {}, NodeAffinityRules
        )
        terms = None
        if affinity.required is not None:
            read = [compile_term(each) for each in affinity.required.node_selector_terms]
            terms = tuple(each for each in read if isinstance(each, NodeTerm))
        raw = [*(spec.get("tolerations") or ()), *added_tolerations(spec)]
        return cls(
            node_name=spec.get("nodeName", ""),
            selector=spec.get("nodeSelector") or {},
            terms=terms,
            tolerations=msgspec.convert(tuple(raw), tuple[Toleration, ...]),
        )

    def runs_on(self, node: NodeItem) -> bool:
        """Whether a node should have a pod."""
        return self._chooses(node) and self._bears(node, ("NoSchedule", "NoExecute"))

    def stays_on(self, node: NodeItem) -> bool:
        """Whether a pod that is on a node already may stay."""
        return self._chooses(node) and self._bears(node, ("NoExecute",))

    def _chooses(self, node: NodeItem) -> bool:
        if self.node_name not in ("", node.name):
            return False
        if not self.selector.items() <= node.labels.items():
            return False
        terms = self.terms
        return terms is None or any(term.matches(node.labels, node.name) for term in terms)

    @staticmethod
    def place(spec: Json, node: str) -> None:
        """Makes the scheduler put a pod on one node and nowhere else."""
        spec["tolerations"] = [*(spec.get("tolerations") or ()), *added_tolerations(spec)]
        affinity = dict(spec.get("affinity") or {})
        chosen = dict(affinity.get("nodeAffinity") or {})
        field = {"key": NAME_FIELD, "operator": "In", "values": [node]}
        # The terms are alternatives, and the node has passed one of them already.
        chosen[_REQUIRED] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        spec["affinity"] = {**affinity, "nodeAffinity": chosen}

    def _bears(self, node: NodeItem, effects: tuple[str, ...]) -> bool:
        repelling = [taint for taint in node.taints if taint.effect in effects]
        taints = msgspec.convert(repelling, list[Taint], from_attributes=True)
        return all(is_tolerated(taint, self.tolerations) for taint in taints)


def added_tolerations(spec: Json) -> list[Json]:
    """Returns the tolerations that every pod of a DaemonSet gets, without those of its template."""
    added = [_toleration(name, "NoExecute") for name in _NODE_TROUBLE]
    added += [_toleration(name, "NoSchedule") for name in _NODE_PRESSURE]
    if spec.get("hostNetwork"):
        added.append(_toleration("network-unavailable", "NoSchedule"))
    own = spec.get("tolerations") or ()
    return [each for each in added if each not in own]


def target_of(pod: PodItem) -> str:
    """Returns the node that the affinity of a pod names."""
    affinity = _pod.decode(pod.entry.body).spec.affinity
    chosen = affinity.node_affinity if affinity else None
    names = named_nodes(chosen.required) if chosen and chosen.required else None
    return min(names or {""})


def _toleration(name: str, effect: str) -> Json:
    return {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}


DAEMON_SETS = "daemonsets.apps"


class DaemonSetController(Controller):
    name = "daemonset"

    def __init__(self, cluster: ControllerApi) -> None:
        super().__init__(cluster)
        self._adoption = Adoption(cluster, DAEMON_SETS, PODS)
        self._keeper = PodKeeper(cluster, EventRecorder(cluster, "daemonset-controller"))

    def concerns(self) -> Mapping[str, Concerns]:
        return {
            DAEMON_SETS: self._adoption.keys_of_owner,
            PODS: self._adoption.keys_of_dependent,
            NODES: self._keys_of_node,
        }

    def reconcile(self, key: str) -> float | None:
        item = self.cluster.read(DAEMON_SETS, key)
        if item is None or "deletionTimestamp" in item["metadata"]:
            return None
        self._adoption.adopt_and_release(item, key)
        revisions = Revisions.of(self.cluster, item)
        at, present = self._round(item), revisions.present_hash
        plan_changes(at, DaemonSetPlan.of(item["spec"], present, len(at.wanted), self.cluster.now))
        self._perform(item, at, revisions)
        self.cluster.cache.catch_up()
        again = self._report(item, present)
        pods = self.cluster.cache.pods_of(item["metadata"]["uid"])
        in_use = {pod.labels.get(REVISION_LABEL, "") for pod in pods}
        revisions.forget(in_use, item["spec"].get("revisionHistoryLimit", 10))
        return 0.0 if max(len(at.create), len(at.remove)) > ROUND else soonest(again, at.pause)

    def _keys_of_node(self, seen: ItemChange) -> Iterator[str]:
        """Yields all sets, if the node takes other pods than before."""
        before, after = seen.before, seen.after
        if isinstance(before, NodeItem) and isinstance(after, NodeItem):
            same = (before.labels, before.taints) == (after.labels, after.taints)
            if same and before.terminating == after.terminating:
                return
        yield from list(self.cluster.cache.items(DAEMON_SETS))

    def _round(self, item: Json) -> DaemonSetState:
        daemon = Daemon.of(item["spec"]["template"]["spec"])
        known = sorted(self.cluster.cache.items(NODES).items())
        nodes = [node for _, node in known if isinstance(node, NodeItem)]
        wanted = [node.name for node in nodes if daemon.runs_on(node)]
        tolerant = {node.name for node in nodes if daemon.stays_on(node)}
        pods: dict[str, list[PodItem]] = {}
        for pod in self.cluster.cache.pods_of(item["metadata"]["uid"]):
            pods.setdefault(pod.node or target_of(pod), []).append(pod)
        return DaemonSetState(wanted, tolerant, pods)

    def _perform(self, item: Json, at: DaemonSetState, revisions: Revisions) -> None:
        for pod in at.remove[:ROUND]:
            self._keeper.delete(item, pod)
        template = pod_template(item["spec"]["template"])
        labelled = with_label(template, REVISION_LABEL, revisions.present_hash)
        for node in at.create[:ROUND]:
            made = pod_of(item, labelled)
            Daemon.place(made["spec"], node)
            self._keeper.create(item, made)

    def _report(self, item: Json, present: str) -> float | None:
        at, now = self._round(item), self.cluster.now
        least: int = item["spec"].get("minReadySeconds", 0)
        wanted = set(at.wanted)
        # Of two pods on a node the one that was there first counts.
        placed = [at.active(node) for node in at.wanted]
        running = [active[0] for active in placed if active]
        available = sum(pod.is_available(now, least) for pod in running)
        counts = {
            "updatedNumberScheduled": sum(
                pod.labels.get(REVISION_LABEL) == present for pod in running
            ),
            "numberAvailable": available,
            "numberUnavailable": len(wanted) - available,
        }
        old = item.get("status") or {}
        status: dict[str, Any] = {
            **{name: old[name] for name in ("collisionCount", "conditions") if name in old},
            "currentNumberScheduled": len(running),
            "numberMisscheduled": sum(
                any(pod.active for pod in pods)
                for node, pods in at.pods.items()
                if node not in wanted
            ),
            "desiredNumberScheduled": len(wanted),
            "numberReady": sum(pod.ready for pod in running),
            "observedGeneration": item["metadata"].get("generation", 0),
            **without_zeros(counts),
        }
        self.cluster.set_status(DAEMON_SETS, item, status)
        return next_availability(running, now, least)
