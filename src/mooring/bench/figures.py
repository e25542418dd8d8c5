"""The figures of a measurement as people read them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .collector import Measured

_MILLI, _MICRO, _MEBI = 1e3, 1e6, 2**20

#: What the cells are called: the first one is the name.
HEADERS = ("workload", "pods", "pods/s", "decisions/s", "p50 ms", "p99 ms", "CPU us/pod", "MB")


def cells(measured: Measured) -> tuple[str, ...]:
    """The figures of a measurement for a table: all but the name."""
    latencies = milliseconds(measured)
    decisions, pods = measured.decisions, measured.placed
    return (
        f"{pods:,}",
        f"{measured.pods_per_second:,.0f}",
        f"{decisions / measured.deciding_seconds:,.0f}" if decisions else "-",
        f"{percentile(latencies, 50):.3f}" if decisions else "-",
        f"{percentile(latencies, 99):.3f}" if decisions else "-",
        f"{measured.processor_seconds / pods * _MICRO:,.0f}" if pods else "-",
        f"{max(measured.memory_bytes) / _MEBI:,.0f}",
    )


def milliseconds(measured: Measured) -> NDArray[np.float64]:
    """How long each decision took, whatever came of it, the shortest first."""
    each = [np.asarray(seconds) for seconds in measured.latencies.values()]
    return np.sort(np.concatenate(each)) * _MILLI


def percentile(ordered: NDArray[np.float64], percent: int) -> float:
    """The value that so many percent do not exceed; always one of the values."""
    return float(ordered[math.ceil(len(ordered) * percent / 100) - 1])
