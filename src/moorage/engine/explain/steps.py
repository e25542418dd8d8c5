"""Work in steps, between which decisions may be made."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar, cast

T = TypeVar("T")

#: Work that stops after each step, and returns something at its end.
Steps = Generator[None, None, T]


def finish(steps: Steps[T]) -> T:
    """Runs all steps at once and returns the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(T, end.value)
