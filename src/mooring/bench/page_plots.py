"""The plots of a page of results: throughput over time, latencies, growth with nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .collector import Measured
from .figures import milliseconds, percentile
from .growth import Growth
from .plots import Axis, bars, lines

# Steps of a plot over time; finer ones would show the noise of single decisions.
_STEPS = 60

# Room above the highest point.
_ROOM = 1.05

# Bars of a histogram.
_BARS = 50

# The same colours, lighter.
_ON_DARK = ("#5cb3e8", "#ff9d5c", "#3fc79c", "#e49ac4", "#e8b84a", "#8fd0f5", "#bbbbbb")


def colours() -> str:
    """The colours of rows of points on a dark page."""
    return " ".join(f"--row-{at}: {colour};" for at, colour in enumerate(_ON_DARK))


def over_time(name: str, runs: Sequence[Sequence[float]]) -> str:
    """Placements a second over the course of each run."""
    end = max(*(placements[-1] for placements in runs), 1e-9)
    drawn = []
    for placements in runs:
        # Each run in steps of its own: one may take ten times as long as another.
        last = max(placements[-1], 1e-9)
        counts, edges = np.histogram(placements, bins=_STEPS, range=(0.0, last))
        rates = counts * (_STEPS / last)
        drawn.append(list(zip(edges[1:].tolist(), rates.tolist(), strict=True)))
    highest = max(1.0, *(rate for points in drawn for _, rate in points))
    x, y = Axis("seconds", 0.0, end), Axis("pods/s", 0.0, highest * _ROOM)
    told = f"{name}: throughput over time, up to {highest:,.0f} pods/s, {end:,.3g} s"
    return lines(told, x, y, drawn)


def histogram(name: str, measured: Measured) -> str:
    """How many decisions took how long."""
    values = milliseconds(measured)
    low = max(float(values[0]), 1e-6)
    high = max(float(values[-1]), low * 1.01)
    edges = np.geomspace(low, high, _BARS)
    counts, _ = np.histogram(values, bins=edges)
    x = Axis("milliseconds", low, high, is_logarithmic=True)
    y = Axis("decisions", 0.0, max(1.0, float(counts.max())) * _ROOM)
    found = [(f"p{percent}", percentile(values, percent)) for percent in (50, 99)]
    marks = [(f"{told} {value:.3g} ms", max(value, low)) for told, value in found]
    told = f"{name}: latency of decisions, {', '.join(mark for mark, _ in marks)}"
    return bars(told, x, y, (edges.tolist(), counts.tolist()), marks)


def growth_plot(growth: Growth, told: str) -> str:
    """The time that a pod takes over the number of nodes, a row for each number of pods."""
    drawn = [
        [
            (each.nodes, each.seconds_per_pod * 1e6)
            for each in sorted(growth.points, key=lambda point: point.nodes)
            if each.pods == pods
        ]
        for pods in growth.pod_counts
    ]
    nodes = [x for points in drawn for x, _ in points]
    micros = [y for points in drawn for _, y in points]
    x = Axis("nodes", min(nodes), max(nodes), is_logarithmic=True)
    y = Axis("microseconds per pod", min(micros) / 2, max(micros) * 2, is_logarithmic=True)
    return lines(f"{growth.name}: growth with nodes; {told}", x, y, drawn, marked=True)
