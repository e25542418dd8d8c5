"""The pods of a row in order of importance, as columns: what preemption weighs."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.objects.pod import Pod
from mooring.objects.resources import PODS

from .columns import Columns


@dataclass(frozen=True, slots=True)
class Ledger:
    """The most important pod first: higher priority, then the longer it has run."""

    pods: tuple[Pod, ...]
    #: Negated, so that it ascends.
    priorities: list[int]
    starts: NDArray[np.float64]
    #: int64[resource, pod]
    requests: NDArray[np.int64]

    @classmethod
    def of(cls, pods: Iterable[Pod], columns: Columns) -> Ledger:
        ranked = tuple(sorted(pods, key=importance))
        requests = np.zeros((len(columns.requested), len(ranked)), np.int64)
        requests[columns.resources[PODS]] = 1
        for at, pod in enumerate(ranked):
            for name, request in pod.held.requests:
                requests[columns.resources[name], at] = request
        return cls(
            ranked,
            [-pod.priority for pod in ranked],
            np.array([started(pod) for pod in ranked], np.float64),
            requests,
        )

    def below(self, priority: int) -> int:
        """The place of the first pod of a lower priority."""
        return bisect_left(self.priorities, -priority + 1)


def started(pod: Pod) -> float:
    """When a pod started; one that has not is younger than all others."""
    return math.inf if pod.started is None else pod.started


def importance(pod: Pod) -> tuple[int, float]:
    """The sort key of pods: the most important first."""
    return -pod.priority, started(pod)
