"""Prints what a drain would do to budgets and to pods without a controller."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from moorage.simulate.drain import describe_delays, describe_refusals

from .rendering import line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from moorage.simulate.drain import Drain


def drain_parts(drain: Drain | None) -> Iterator[RenderableType]:
    """Yields what an administrator should know before a drain, what forbids it first."""
    if drain is None:
        return
    for text in describe_refusals(drain):
        yield line(text, "bold red")
    for text in describe_delays(drain):
        yield line(text, "yellow")


def is_forbidden(drain: Drain | None) -> bool:
    """Whether there is a drain that a budget forbids."""
    return drain is not None and drain.forbidden
