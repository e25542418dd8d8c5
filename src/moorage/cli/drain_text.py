"""Prints what a drain would do to budgets and to pods without a controller."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .rendering import count, line, shorten

if TYPE_CHECKING:
    from rich.console import RenderableType

    from moorage.simulate.drain import Drain, TouchedBudget

# Enough names to see whose pods they are.
_MOST_NAMES = 3


def drain_parts(drain: Drain | None) -> Iterator[RenderableType]:
    """Yields what an administrator should know before a drain, what forbids it first."""
    if drain is None:
        return
    for text in forbidding(drain):
        yield line(text, "bold red")
    for text in warnings(drain):
        yield line(text, "yellow")


def is_forbidden(drain: Drain | None) -> bool:
    """Whether there is a drain that a budget forbids."""
    return drain is not None and drain.forbidden


def forbidding(drain: Drain) -> Iterator[str]:
    """Yields why the drain would not end."""
    for each in drain.budgets:
        if not each.allowed:
            yield f"the drain is forbidden: {_describe(each)}"


def warnings(drain: Drain) -> Iterator[str]:
    """Yields what slows the drain down, and what it ends for good."""
    for each in drain.budgets:
        if each.allowed and each.is_exceeded:
            yield f"the drain has to wait: {_describe(each)}"
    if drain.lost:
        are = "is" if len(drain.lost) == 1 else "are"
        pods = f"{count(len(drain.lost), 'pod')} without a controller {are} not created again"
        yield f"{pods}: {shorten(drain.lost, _MOST_NAMES)}"


def _describe(budget: TouchedBudget) -> str:
    allowed = "no disruption" if not budget.allowed else f"{budget.allowed} at once"
    leave = "has" if budget.moved == 1 else "have"
    return f"budget {budget.budget} allows {allowed}, and {budget.moved} of its pods {leave} to go"
