"""Durations in Go's notation, as Kubernetes writes them: 15s, 1m30s, 500ms."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import ClassVar, Self

from moorage.documents.errors import describe

NANOS_PER_SECOND = 10**9

_NANOS = {
    "ns": 1,
    "us": 10**3,
    # Both spellings of the Greek letter are in use: the micro sign and mu.
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": NANOS_PER_SECOND,
    "m": 60 * NANOS_PER_SECOND,
    "h": 3600 * NANOS_PER_SECOND,
}
_PART = re.compile(rf"([0-9]+\.?[0-9]*|\.[0-9]+)({'|'.join(_NANOS)})")
_SHAPE = re.compile(rf"([+-]?)((?:{_PART.pattern})+|0)")

MAX_NANOS = 2**63 - 1


class Duration(int):
    """A span of time in nanoseconds."""

    noun: ClassVar = "a duration such as 15s, 1m30s or 500ms"

    @classmethod
    def parse(cls, text: str | int | float) -> Self:
        """Reads Go's notation; raises ValueError naming what it cannot read."""
        match = _SHAPE.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise ValueError(f"must be {cls.noun}, got {describe(text)}")
        sign, parts = match[1], match[2]
        nanos = sum(int(Fraction(number) * _NANOS[unit]) for number, unit in _PART.findall(parts))
        if nanos > MAX_NANOS:
            raise ValueError(f"must be a duration of at most 292 years, got {describe(text)}")
        return cls(-nanos if sign == "-" else nanos)

    @classmethod
    def of_seconds(cls, seconds: int) -> Self:
        return cls(seconds * NANOS_PER_SECOND)

    @property
    def seconds(self) -> float:
        return self / NANOS_PER_SECOND

    def __str__(self) -> str:
        return f"{self.seconds:g}s"
