"""Plots as SVG, drawn from numbers alone: they need no script and no network.

Text and rules take the colour of the text around them, so that a plot fits a light page and a dark
one. A page may set the colours of series as `--row-0` and so on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from .harness import Growth
from .measurement import Measurement
from .results import milliseconds, percentile

# Small, because a plot is as wide as a phone, and its text has to be read there.
_WIDTH, _HEIGHT = 480, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 28, 14, 44

# Told apart by people who see fewer colours, too.
COLOURS = ("#0072b2", "#c04f00", "#00795a", "#a8497f", "#8a6100", "#2a7fb8", "#555555")

# With fewer powers of ten than this, an axis has steps in between.
_FEWEST_POWERS = 3

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Axis:
    """A direction: its title, its ends, and whether equal steps are equal factors."""

    title: str
    low: float
    high: float
    is_logarithmic: bool = False

    def share(self, value: float) -> float:
        """Returns where a value lies between the ends, from 0 to 1."""
        scale: Callable[[float], float] = math.log10 if self.is_logarithmic else float
        low, high = scale(self.low), scale(self.high)
        return (scale(value) - low) / (high - low) if high > low else 0.5

    def ticks(self) -> Iterator[float]:
        if self.is_logarithmic:
            yield from self._factors()
            return
        step = _round_step((self.high - self.low) / 5)
        value = math.ceil(self.low / step) * step
        while value <= self.high:
            yield value
            value += step

    def _factors(self) -> list[float]:
        """Powers of ten; where there are few, 2 and 5 times such a power, too."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        tens = self._within([10.0**power for power in powers])
        if len(tens) >= _FEWEST_POWERS:
            return tens
        return self._within([factor * 10.0**power for power in powers for factor in (1, 2, 5)])

    def _within(self, values: Sequence[float]) -> list[float]:
        return [value for value in values if self.low <= value <= self.high]


def row_colour(number: int) -> str:
    """Returns the colour of a row of points, as a style."""
    at = number % len(COLOURS)
    return f"var(--row-{at}, {COLOURS[at]})"


def lines(title: str, x: Axis, y: Axis, drawn: Sequence[Points], *, marked: bool = False) -> str:
    """Draws rows of points over two axes, each in its colour; if marked, each point has a dot."""
    body = []
    for number, points in enumerate(drawn):
        places = [_place(x.share(a), y.share(b)) for a, b in points]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        style = f"fill:none;stroke:{row_colour(number)}"
        body.append(f'<polyline points="{path}" style="{style}" stroke-width="2"/>')
        for a, b in places if marked else ():
            body.append(
                f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" style="fill:{row_colour(number)}"/>'
            )
    return _figure(title, x, y, body)


def bars(
    title: str,
    x: Axis,
    y: Axis,
    steps: tuple[Sequence[float], Sequence[float]],
    marks: Sequence[tuple[str, float]] = (),
) -> str:
    """Draws a histogram from edges and the amounts between them; marks are named values."""
    body = []
    edges, counts = steps
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        if count:
            left, top = _place(x.share(low), y.share(count))
            right, base = _place(x.share(high), 0.0)
            body.append(
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{max(1.0, right - left - 1):.1f}" '
                f'height="{base - top:.1f}" style="fill:{row_colour(0)}"/>'
            )
    for number, (name, value) in enumerate(marks):
        across, down = _place(x.share(value), 0.0)
        body.append(_rule((across, _TOP), (across, down), 'stroke-dasharray="4 3" opacity="0.8"'))
        # One below the other, because marks may be close together; on the side with more room.
        aside, anchor = (4, "start") if x.share(value) < 0.5 else (-4, "end")
        body.append(_text(across + aside, _TOP + 12 + 15 * number, name, anchor=anchor))
    return _figure(title, x, y, body)


def _figure(title: str, x: Axis, y: Axis, body: Sequence[str]) -> str:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(title, quote=True)}" font-family="sans-serif" font-size="13" '
        'fill="currentColor">'
    ]
    for value in x.ticks():
        across, down = _place(x.share(value), 0.0)
        parts.append(_rule((across, _TOP), (across, down)))
        parts.append(_text(across, down + 17, _number(value), anchor="middle"))
    for value in y.ticks():
        across, down = _place(0.0, y.share(value))
        parts.append(_rule((across, down), (_WIDTH - _RIGHT, down)))
        parts.append(_text(across - 6, down + 4, _number(value), anchor="end"))
    parts += body
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, x.title, anchor="middle"))
    parts.append(
        f'<text transform="translate(13 {(_TOP + _HEIGHT - _BOTTOM) / 2:.0f}) rotate(-90)" '
        f'text-anchor="middle">{escape(y.title)}</text>'
    )
    return "".join((*parts, "</svg>"))


def _place(across: float, up: float) -> tuple[float, float]:
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    return _LEFT + across * width, _TOP + (1 - up) * height


def _rule(
    start: tuple[float, float], end: tuple[float, float], more: str = 'opacity="0.18"'
) -> str:
    (x1, y1), (x2, y2) = start, end
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="currentColor" {more}/>'


def _text(x: float, y: float, text: str, *, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _number(value: float) -> str:
    if value and (abs(value) >= 1_000_000 or abs(value) < 0.001):
        return f"{value:.0e}"
    return f"{value:,.6g}"


def _round_step(rough: float) -> float:
    """Returns the next step that people like to count in: 1, 2 or 5 times a power of ten."""
    if rough <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)


# Steps of a plot over time; finer ones would show the noise of single decisions.
_STEPS = 60

# Room above the highest point.
_ROOM = 1.05

# Bars of a histogram.
_BARS = 50

# The same colours, lighter.
_ON_DARK = ("#5cb3e8", "#ff9d5c", "#3fc79c", "#e49ac4", "#e8b84a", "#8fd0f5", "#bbbbbb")


def colours() -> str:
    """Returns the colours of rows of points on a dark page."""
    return " ".join(f"--row-{at}: {colour};" for at, colour in enumerate(_ON_DARK))


def over_time(name: str, runs: Sequence[Sequence[float]]) -> str:
    """Draws placements per second over the course of each run."""
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
    label = f"{name}: throughput over time, up to {highest:,.0f} pods/s, {end:,.3g} s"
    return lines(label, x, y, drawn)


def histogram(name: str, measured: Measurement) -> str:
    """Draws how many decisions took how long."""
    values = milliseconds(measured)
    low = max(float(values[0]), 1e-6)
    high = max(float(values[-1]), low * 1.01)
    edges = np.geomspace(low, high, _BARS)
    counts, _ = np.histogram(values, bins=edges)
    x = Axis("milliseconds", low, high, is_logarithmic=True)
    y = Axis("decisions", 0.0, max(1.0, float(counts.max())) * _ROOM)
    found = [(f"p{percent}", percentile(values, percent)) for percent in (50, 99)]
    marks = [(f"{label} {value:.3g} ms", max(value, low)) for label, value in found]
    label = f"{name}: latency of decisions, {', '.join(mark for mark, _ in marks)}"
    return bars(label, x, y, (edges.tolist(), counts.tolist()), marks)


def growth_plot(growth: Growth, label: str) -> str:
    """Draws the time per pod over the number of nodes, a row for each number of pods."""
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
    return lines(f"{growth.name}: growth with nodes; {label}", x, y, drawn, marked=True)
