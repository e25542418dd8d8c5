"""Which of several pods are missed least: the order in which they go when there are too many."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from math import log2
from typing import Any

import msgspec

from mooring.objects.meta import Wire

from .items import PodItem

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_COST = re.compile(r"0|-[0-9]{1,20}|[1-9][0-9]{0,19}", re.ASCII)
_COSTS = range(-(2**31), 2**31)
_NANOSECONDS = 1e9


class _Metadata(Wire, frozen=True):
    annotations: dict[str, str] | None = None


class _Container(Wire, frozen=True):
    restart_count: int = 0


class _Status(Wire, frozen=True):
    container_statuses: tuple[_Container, ...] | None = None
    init_container_statuses: tuple[_Container, ...] | None = None


class _Pod(Wire, frozen=True):
    metadata: _Metadata
    status: _Status = _Status()


_read = msgspec.json.Decoder(_Pod).decode


def least_missed(
    pods: list[PodItem], now: float, related: Iterable[PodItem] | None = None
) -> list[PodItem]:
    """Those that do least first, then the cheap, then from crowded nodes, then the new.

    A node is crowded by the related pods on it; without any named, by these.
    """
    beside = pods if related is None else related
    crowd = Counter(pod.node for pod in beside if pod.active)
    return sorted(pods, key=lambda pod: _rank(pod, crowd[pod.node], now))


def restarts_of(pod: PodItem) -> int:
    """How often containers of a pod were restarted, all together."""
    status = _read(pod.entry.body).status
    containers = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    return sum(each.restart_count for each in containers)


def _rank(pod: PodItem, beside: int, now: float) -> tuple[Any, ...]:
    # Read only now: of most pods nobody ever asks.
    read = _read(pod.entry.body)
    restarts = (each.restart_count for each in read.status.container_statuses or ())
    return (
        bool(pod.node),
        _PHASES.get(pod.phase, 0),
        pod.ready,
        _cost((read.metadata.annotations or {}).get(DELETION_COST, "0")),
        -beside,
        _age(pod.ready_changed, now) if pod.ready else 0,
        -max(restarts, default=0),
        _age(pod.created, now),
        pod.uid,
    )


def _cost(text: str) -> int:
    """What it costs to lose a pod; what cannot be read costs nothing."""
    cost = int(text) if _COST.fullmatch(text) else 0
    return cost if cost in _COSTS else 0


def _age(since: float, now: float) -> int:
    """How old something is, roughly: twice as old is another age, less is not."""
    return int(log2((now - since) * _NANOSECONDS)) if now > since else -1
