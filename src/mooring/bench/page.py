"""Results as one page of HTML that stands alone: figures, plots, and how they came about."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

import numpy as np

from .collector import Measured
from .growth import Growth
from .plots import Axis, Line, bars, lines
from .run import Result

_STYLE = """
body { font-family: sans-serif; margin: 2em auto; max-width: 72em; color: #222; }
table { border-collapse: collapse; }
td, th { padding: 0.2em 0.8em; text-align: right; border-bottom: 1px solid #ddd; }
td:first-child, th:first-child { text-align: left; }
.plots { display: flex; flex-wrap: wrap; gap: 1em; }
.plots > div { flex: 1 1 30em; }
"""

# Steps of a plot over time; finer ones would show the noise of single decisions.
_STEPS = 60

_HEADERS = ("workload", "pods", "pods/s", "decisions/s", "p50 ms", "p99 ms", "CPU us/pod", "MB")


def page(
    results: Sequence[Result], grown: Sequence[Growth], run: Mapping[str, str | int | float]
) -> str:
    """The whole page."""
    parts = ["<!doctype html><html lang=en><meta charset=utf-8><title>Mooring benchmark</title>"]
    parts.append(f"<style>{_STYLE}</style><h1>Mooring benchmark</h1>")
    parts.append(_provenance(run))
    for growth in grown:
        parts.append(_grown(growth))
    if results:
        parts.append(_figures(results))
    for result in results:
        for measured in result.measured:
            parts.append(_measured(result.title, measured))
    return "\n".join((*parts, "</html>"))


def _provenance(run: Mapping[str, str | int | float]) -> str:
    rows = "".join(
        f"<tr><td>{escape(name)}<td style='text-align:left'>{escape(str(value))}"
        for name, value in run.items()
    )
    return f"<table>{rows}</table>"


def _figures(results: Sequence[Result]) -> str:
    rows = ["<tr>" + "".join(f"<th>{header}" for header in _HEADERS)]
    for result in results:
        name = escape(result.title)
        if not result.measured:
            why = escape(f"{result.outcome.value}: {result.why}")
            rows.append(f"<tr><td>{name}<td colspan=7 style='text-align:left'>{why}")
        for measured in result.measured:
            rows.append(f"<tr><td>{name}" + "".join(f"<td>{cell}" for cell in cells(measured)))
    return f"<h2>Figures</h2><table>{''.join(rows)}</table>"


def cells(measured: Measured) -> tuple[str, ...]:
    """The figures of a measurement for a table: all but the name."""
    latencies = np.sort(np.concatenate([np.asarray(each) for each in measured.latencies.values()]))
    decisions, pods = measured.decisions, measured.placed
    return (
        f"{pods:,}",
        f"{measured.pods_per_second:,.0f}",
        f"{decisions / measured.deciding_seconds:,.0f}" if decisions else "-",
        f"{_percentile(latencies, 50) * 1e3:.3f}" if decisions else "-",
        f"{_percentile(latencies, 99) * 1e3:.3f}" if decisions else "-",
        f"{measured.processor_seconds / pods * 1e6:,.0f}" if pods else "-",
        f"{max(measured.memory_bytes) / 2**20:,.0f}",
    )


def _percentile(ordered: np.ndarray[tuple[int], np.dtype[np.float64]], percent: int) -> float:
    return float(ordered[math.ceil(len(ordered) * percent / 100) - 1])


def _measured(name: str, measured: Measured) -> str:
    drawn = "".join(f"<div>{plot}</div>" for plot in _plots(name, measured))
    return f"<h2>{escape(name)}</h2><div class=plots>{drawn}</div>" if drawn else ""


def _plots(name: str, measured: Measured) -> Iterator[str]:
    if len(measured.placements) > 1:
        yield over_time(name, measured.placements)
    if measured.decisions:
        seconds = np.concatenate([np.asarray(each) for each in measured.latencies.values()])
        yield histogram(name, seconds * 1e3)


def over_time(name: str, placements: Sequence[float]) -> str:
    """Placements a second over the course of a run."""
    end = max(placements[-1], 1e-9)
    counts, edges = np.histogram(placements, bins=_STEPS, range=(0.0, end))
    rates = counts * (_STEPS / end)
    points = list(zip(edges[1:].tolist(), rates.tolist(), strict=True))
    x, y = Axis("seconds", 0.0, end), Axis("pods/s", 0.0, max(1.0, float(rates.max())) * 1.05)
    return lines(f"{name}: throughput over time", x, y, [Line("", points)])


def histogram(name: str, milliseconds: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    """How many decisions took how long."""
    low, high = float(milliseconds.min()), float(milliseconds.max())
    low, high = max(low, 1e-6), max(high, low * 1.01, 1e-5)
    edges = np.geomspace(low, high, 50)
    counts, _ = np.histogram(milliseconds, bins=edges)
    x = Axis("decision, milliseconds", low, high, is_logarithmic=True)
    y = Axis("decisions", 0.0, max(1.0, float(counts.max())) * 1.05)
    return bars(f"{name}: decision latency", x, y, edges.tolist(), counts.tolist())


def _grown(growth: Growth) -> str:
    told = [
        f"{what}: exponent {value:.2f}"
        for what, value in (
            ("time per pod over nodes", growth.with_nodes),
            ("time over pods", growth.with_pods),
        )
        if value is not None
    ]
    title = f"<h2>Growth: {escape(growth.name)}</h2><p>{escape('; '.join(told))}</p>"
    if len({point.nodes for point in growth.points}) < 2:
        return title
    by_pods = sorted({point.pods for point in growth.points})
    drawn = [
        Line(
            f"{pods:,} pods",
            [
                (each.nodes, each.seconds_per_pod * 1e6)
                for each in growth.points
                if each.pods == pods
            ],
        )
        for pods in by_pods
    ]
    nodes = [point.nodes for point in growth.points]
    micros = [point.seconds_per_pod * 1e6 for point in growth.points]
    x = Axis("nodes", min(nodes), max(nodes), is_logarithmic=True)
    y = Axis("microseconds per pod", min(micros) / 2, max(micros) * 2, is_logarithmic=True)
    plot = lines(f"{growth.name}: growth with nodes", x, y, drawn)
    return f"{title}<div class=plots><div>{plot}</div></div>"
