"""A queue over a few plugins, and short ways to make pods fail in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moorage.cluster.pod_groups import KnownGroups
from moorage.framework.observe import UNOBSERVED
from moorage.framework.status import Rejected, unresolvable
from moorage.framework.wakeups import Action, ClusterEvent, Resource, Wakeup, on
from moorage.objects.pod import Pod
from moorage.queue import Backoff, Entity, FailedAttempt, Queue
from tests.builders import pod

PROFILE = "default-scheduler"
NONE: frozenset[str] = frozenset()

#: Events that Fit and Ports listen to, that only Ports does, and that nobody does.
BOTH = ClusterEvent(Resource.NODE, Action.ADD, "NodeAdd")
PORTS_ONLY = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, "AssignedPodDelete")
UNHEARD = ClusterEvent(Resource.CSI_NODE, Action.ADD, "storage.k8s.io/CSINodeAdd")

WAKEUPS: dict[str, tuple[Wakeup, ...]] = {
    "Fit": (on(Resource.NODE, Action.ADD),),
    "Ports": (on(Resource.NODE, Action.ADD), on(Resource.POD, Action.DELETE)),
    "Gate": (on(Resource.POD, Action.UPDATE_POD_LABEL),),
}


def priority_then_time(of: Pod, timestamp: float) -> Any:
    return -of.priority, timestamp


def held_by_label(of: Pod, first: str) -> tuple[str, Rejected] | None:
    """Holds back pods that carry the label `held`, in the name of its value."""
    by = of.labels.get("held")
    return None if by is None else (by, unresolvable("held"))


def make_queue(
    *,
    wakeups: Mapping[str, Mapping[str, tuple[Wakeup, ...]]] | None = None,
    admit: Callable[[Pod, str], tuple[str, Rejected] | None] = held_by_label,
    backoff: Backoff | None = None,
    **options: Any,
) -> Queue:
    simple: dict[str, Any] = {
        "sort_key": priority_then_time,
        "groups": KnownGroups(),
        "admit_group": lambda key, scheduler: None,
        "observer": UNOBSERVED,
        "on_broken_order": lambda error: None,
        "can_be_held_back": None,
    }
    return Queue(
        admit=admit,
        wakeups={PROFILE: WAKEUPS} if wakeups is None else wakeups,
        backoff=backoff or Backoff(),
        **{**simple, **options},
    )


def ranked(name: str, priority: int) -> Pod:
    return pod(name, spec={"priority": priority})


def fail(
    queue: Queue,
    *rejectors: str,
    now: float,
    pending: frozenset[str] = NONE,
    at: float | None = None,
) -> Entity:
    """Pops what comes next at `now`, and gives it back, `at` a later time if one is given."""
    queued = popped(queue, now)
    give_back(queue, queued, *rejectors, now=now if at is None else at, pending=pending)
    return queued


def popped(queue: Queue, now: float) -> Entity:
    queued = queue.pop(now)
    assert queued is not None
    return queued


def give_back(
    queue: Queue,
    queued: Entity,
    *rejectors: str,
    now: float,
    pending: frozenset[str] = NONE,
) -> None:
    attempt = FailedAttempt(frozenset(rejectors), pending)
    queue.give_back(queued, pod=queued.pod, attempt=attempt, now=now)


def drained(queue: Queue, now: float) -> list[str]:
    """The names of the pods that can be popped now, in order."""
    names = []
    while queued := queue.pop(now):
        names.append(queued.pod.name)
    return names


def places(queue: Queue) -> dict[str, str]:
    """Where each pod is, by name."""
    queue.check()
    return {each.pod.name: str(each.place) for each in (*queue, *queue.in_flight)}
