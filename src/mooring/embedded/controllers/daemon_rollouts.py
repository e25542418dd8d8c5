"""Which pods of a DaemonSet are made and removed: missing pods, and rolling updates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mooring.embedded.controllers.controller import soonest
from mooring.embedded.controllers.items import pause_after_failures
from mooring.embedded.controllers.rollouts import share
from mooring.embedded.store.table import Json

from .items import ENDED, PodItem
from .revisions import REVISION_LABEL


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
