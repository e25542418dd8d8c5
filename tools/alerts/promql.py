"""As much of Prometheus' query language as our alerts use, evaluated on samples.

What is not known is refused, so that a rule cannot seem to work here and fail in Prometheus.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf, isnan, nan

#: Name and value of each label but the name of the metric, sorted.
LabelSet = tuple[tuple[str, str], ...]
Vector = dict[LabelSet, float]
Value = float | Vector

# How old a sample may be to count as the value now.
_LOOKBACK_SECONDS = 300.0

_TOKEN = re.compile(
    r"\s*(?:(?P<duration>\d+[smhd])\b|(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_:][\w:]*)"
    r"|(?P<text>\"(?:[^\"\\]|\\.)*\")|(?P<sign>==|!=|>=|<=|=~|!~|[-+*/<>=(){}\[\],]))"
)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_AGGREGATES: Mapping[str, Callable[[Iterable[float]], float]] = {"sum": sum, "max": max, "min": min}
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">": lambda one, other: one > other,
    "<": lambda one, other: one < other,
    ">=": lambda one, other: one >= other,
    "<=": lambda one, other: one <= other,
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
}
_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": lambda one, other: one + other,
    "-": lambda one, other: one - other,
    "*": lambda one, other: one * other,
    "/": lambda one, other: one / other if other else (nan if not one else inf),
}


class QueryError(ValueError):
    """A query that cannot be read or evaluated here."""


@dataclass(frozen=True, slots=True)
class SampledSeries:
    """A series: its name, its labels, and samples as pairs of a time and a value."""

    name: str
    labels: LabelSet
    samples: Sequence[tuple[float, float]]


def parse_seconds(text: str) -> float:
    """A duration such as 5m; raises QueryError."""
    match = re.fullmatch(r"(\d+)([smhd])", text)
    if match is None:
        raise QueryError(f"{text!r} is not a duration such as 5m")
    return float(int(match[1]) * _SECONDS[match[2]])


@dataclass(slots=True)
class Query:
    """A query, evaluated while it is read: at one time, on some series."""

    text: str
    series: Sequence[SampledSeries]
    now: float
    _tokens: list[tuple[str, str]] = field(default_factory=list)
    _at: int = 0

    def evaluate(self) -> Value:
        self._tokens = list(_tokenize(self.text))
        value = self._both()
        if self._at != len(self._tokens):
            raise QueryError(f"cannot read {self._tokens[self._at][1]!r} in {self.text!r}")
        return value

    # Operators, the loosest first

    def _both(self) -> Value:
        left = self._comparison()
        while self._takes("name", "and"):
            right = self._comparison()
            known = _vector(right)
            left = {labels: value for labels, value in _vector(left).items() if labels in known}
        return left

    def _comparison(self) -> Value:
        left = self._arithmetic(("+", "-"))
        while self._peek()[1] in _COMPARISONS:
            holds = _COMPARISONS[self._next()[1]]
            right = self._arithmetic(("+", "-"))
            if not isinstance(right, float):
                raise QueryError("only comparisons with a number are known")
            left = {key: value for key, value in _vector(left).items() if holds(value, right)}
        return left

    def _arithmetic(self, signs: tuple[str, ...]) -> Value:
        is_sum = "+" in signs
        left = self._arithmetic(("*", "/")) if is_sum else self._operand()
        while self._peek()[0] == "sign" and self._peek()[1] in signs:
            apply = _ARITHMETIC[self._next()[1]]
            right = self._arithmetic(("*", "/")) if is_sum else self._operand()
            left = _combine(left, right, apply)
        return left

    # Operands

    def _operand(self) -> Value:
        kind, text = self._next()
        if kind == "number":
            return float(text)
        if text == "(":
            value = self._both()
            self._expect(")")
            return value
        if kind != "name":
            raise QueryError(f"cannot read {text!r} in {self.text!r}")
        if text in _AGGREGATES:
            return self._aggregate(_AGGREGATES[text])
        if self._peek()[1] == "(":
            return self._call(text)
        return _latest(self._select(text), self.now)

    def _aggregate(self, combine: Callable[[Iterable[float]], float]) -> Vector:
        kept = self._grouping()
        self._expect("(")
        value = _vector(self._both())
        self._expect(")")
        kept = kept or self._grouping()
        groups: dict[LabelSet, list[float]] = defaultdict(list)
        for labels, each in value.items():
            groups[tuple(pair for pair in labels if pair[0] in kept)].append(each)
        return {labels: combine(values) for labels, values in groups.items()}

    def _grouping(self) -> tuple[str, ...]:
        if not self._takes("name", "by"):
            return ()
        self._expect("(")
        names = []
        while not self._takes("sign", ")"):
            names.append(self._next()[1])
            self._takes("sign", ",")
        return tuple(names)

    def _call(self, name: str) -> Value:
        self._expect("(")
        if name == "rate":
            metric = self._next()[1]
            found = self._select(metric)
            self._expect("[")
            seconds = parse_seconds(self._next()[1])
            self._expect("]")
            value: Value = _rates(found, self.now, seconds)
        elif name == "absent":
            value = {} if _vector(self._both()) else {(): 1.0}
        elif name == "histogram_quantile":
            share = self._both()
            self._expect(",")
            value = _quantiles(share, _vector(self._both()))
        else:
            raise QueryError(f"function {name} is not known")
        self._expect(")")
        return value

    def _select(self, metric: str) -> list[SampledSeries]:
        wanted: dict[str, str] = {}
        if self._takes("sign", "{"):
            while not self._takes("sign", "}"):
                label = self._next()[1]
                self._expect("=")
                wanted[label] = self._next()[1][1:-1]
                self._takes("sign", ",")
        return [
            each
            for each in self.series
            if each.name == metric and wanted.items() <= dict(each.labels).items()
        ]

    # Tokens

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("", "")

    def _next(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise QueryError(f"{self.text!r} ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _takes(self, kind: str, text: str) -> bool:
        if self._peek() != (kind, text):
            return False
        self._at += 1
        return True

    def _expect(self, text: str) -> None:
        found = self._next()[1]
        if found != text:
            raise QueryError(f"expected {text!r}, got {found!r} in {self.text!r}")


def _tokenize(text: str) -> Iterable[tuple[str, str]]:
    at = 0
    text = text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise QueryError(f"cannot read {text[at : at + 20]!r}")
        yield match.lastgroup, match[match.lastgroup]
        at = match.end()


def _vector(value: Value) -> Vector:
    if isinstance(value, float):
        raise QueryError("a number stands where series are expected")
    return value


def _combine(left: Value, right: Value, apply: Callable[[float, float], float]) -> Value:
    if isinstance(left, float) and isinstance(right, float):
        return apply(left, right)
    if isinstance(right, float):
        return {labels: apply(value, right) for labels, value in _vector(left).items()}
    if isinstance(left, float):
        return {labels: apply(left, value) for labels, value in right.items()}
    return {
        labels: apply(value, right[labels]) for labels, value in left.items() if labels in right
    }


def _latest(found: Iterable[SampledSeries], now: float) -> Vector:
    values: Vector = {}
    for each in found:
        known = [value for at, value in each.samples if now - _LOOKBACK_SECONDS < at <= now]
        if known:
            values[each.labels] = known[-1]
    return values


def _rates(found: Iterable[SampledSeries], now: float, seconds: float) -> Vector:
    values: Vector = {}
    for each in found:
        samples = [sample for sample in each.samples if now - seconds < sample[0] <= now]
        if len(samples) > 1:
            values[each.labels] = _rate(samples, now, seconds)
    return values


def _rate(samples: Sequence[tuple[float, float]], now: float, seconds: float) -> float:
    """The growth per second, extended to the ends of the range as Prometheus does."""
    (first_at, first), (last_at, _) = samples[0], samples[-1]
    pairs = pairwise(value for _, value in samples)
    growth = sum(new - old if new >= old else new for old, new in pairs)
    covered = last_at - first_at
    step = covered / (len(samples) - 1)
    before, after = first_at - (now - seconds), now - last_at
    before = before if before < 1.1 * step else step / 2
    after = after if after < 1.1 * step else step / 2
    if growth > 0 and first >= 0:
        # A counter was not below zero before it was first seen.
        before = min(before, covered * first / growth)
    return growth * (covered + before + after) / covered / seconds


def _quantiles(share: Value, buckets: Vector) -> Vector:
    if not isinstance(share, float):
        raise QueryError("the quantile must be a number")
    groups: dict[LabelSet, list[tuple[float, float]]] = defaultdict(list)
    for labels, count in buckets.items():
        bound = dict(labels).get("le")
        if bound is not None:
            rest = tuple(pair for pair in labels if pair[0] != "le")
            groups[rest].append((inf if bound == "+Inf" else float(bound), count))
    found = {labels: _quantile(share, sorted(each)) for labels, each in groups.items()}
    return {labels: value for labels, value in found.items() if not isnan(value)}


def _quantile(share: float, buckets: Sequence[tuple[float, float]]) -> float:
    total = buckets[-1][1]
    if buckets[-1][0] != inf or len(buckets) < 2 or not total:
        return nan
    rank = share * total
    lower, below = 0.0, 0.0
    for bound, count in buckets:
        if count >= rank:
            if bound == inf:
                return buckets[-2][0]
            return lower + (bound - lower) * (rank - below) / (count - below)
        lower, below = bound, count
    return nan
