"""Plots as SVG, drawn from numbers alone: they need no script, no style sheet and no network."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 16, 16, 44

# Told apart by people who see fewer colours, too.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Line:
    """A named row of points."""

    name: str
    points: Points


@dataclass(frozen=True, slots=True)
class Axis:
    """A direction: its title, its ends, and whether equal steps are equal factors."""

    title: str
    low: float
    high: float
    is_logarithmic: bool = False

    def share(self, value: float) -> float:
        """Where a value lies between the ends, from 0 to 1."""
        scale: Callable[[float], float] = math.log10 if self.is_logarithmic else float
        low, high = scale(self.low), scale(self.high)
        return (scale(value) - low) / (high - low) if high > low else 0.5

    def ticks(self) -> Iterator[float]:
        if self.is_logarithmic:
            for power in range(math.ceil(math.log10(self.low)), 1 + int(math.log10(self.high))):
                yield 10.0**power
            return
        step = _round_step((self.high - self.low) / 5)
        value = math.ceil(self.low / step) * step
        while value <= self.high:
            yield value
            value += step


def lines(title: str, x: Axis, y: Axis, drawn: Sequence[Line]) -> str:
    """Lines over two axes, each point marked."""
    body = []
    for number, line in enumerate(drawn):
        colour = _COLOURS[number % len(_COLOURS)]
        places = [_place(x.share(a), y.share(b)) for a, b in line.points]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        body += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in places]
        at = _TOP + 14 + 16 * number
        body.append(_text(_WIDTH - _RIGHT, at, line.name, anchor="end", colour=colour))
    return _figure(title, x, y, body)


def bars(title: str, x: Axis, y: Axis, edges: Sequence[float], counts: Sequence[float]) -> str:
    """A histogram: a bar over each pair of neighbouring edges."""
    body = []
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        if count:
            left, top = _place(x.share(low), y.share(count))
            right, base = _place(x.share(high), 0.0)
            body.append(
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{max(1.0, right - left - 1):.1f}" '
                f'height="{base - top:.1f}" fill="{_COLOURS[0]}"/>'
            )
    return _figure(title, x, y, body)


def _figure(title: str, x: Axis, y: Axis, body: Sequence[str]) -> str:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(title, quote=True)}" font-family="sans-serif" font-size="12">'
    ]
    for value in x.ticks():
        across, down = _place(x.share(value), 0.0)
        parts.append(_rule(across, _TOP, across, down))
        parts.append(_text(across, down + 16, _number(value), anchor="middle"))
    for value in y.ticks():
        across, down = _place(0.0, y.share(value))
        parts.append(_rule(across, down, _WIDTH - _RIGHT, down))
        parts.append(_text(across - 6, down + 4, _number(value), anchor="end"))
    parts += body
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, x.title, anchor="middle"))
    parts.append(
        f'<text transform="translate(14 {_HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle">'
        f"{escape(y.title)}</text>"
    )
    return "".join((*parts, "</svg>"))


def _place(across: float, up: float) -> tuple[float, float]:
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    return _LEFT + across * width, _TOP + (1 - up) * height


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="#ddd"/>'


def _text(x: float, y: float, text: str, *, anchor: str, colour: str = "#333") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {place}>{escape(text)}</text>"


def _number(value: float) -> str:
    if value and (abs(value) >= 1_000_000 or abs(value) < 0.01):
        return f"{value:.0e}"
    return f"{value:,.6g}"


def _round_step(rough: float) -> float:
    """The next step that people like to count in: 1, 2 or 5 times a power of ten."""
    if rough <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
