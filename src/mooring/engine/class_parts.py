"""What a class keeps of each plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from mooring.cluster import Mask, Nodes, RowFacts
from mooring.cluster.changes import Change
from mooring.framework.plugin import MAX_SCORE, Filter, Rescore, Score, Scores


@dataclass(slots=True)
class RowFilter:
    """A filter whose answer for a row depends on that row alone."""

    plugin: Filter[Any]
    prepared: Any
    watch: int
    bit: int
    #: The plugin's, looked up once: it is called for every row that changes.
    recheck: Callable[[Any, Nodes, RowFacts], Rescore]


@dataclass(slots=True)
class WideFilter:
    """A filter whose answer for a row depends on others too. Skipped while `prepared` is None."""

    plugin: Filter[Any]
    watch: int
    prepared: Any = None
    rejected: Mask | None = None


@dataclass(slots=True)
class ScoreColumn:
    """The numbers that a score plugin gives, for all rows, before they are normalised."""

    plugin: Score[Any]
    prepared: Any
    watch: int
    weight: int
    raw: Scores
    #: Whether its numbers are used as they are, without normalising.
    is_plain: bool
    #: The plugin's, looked up once: it is called for every row that changes.
    rescore: Callable[[Any, Nodes, RowFacts, Scores], Rescore]
    #: What it adds to every total, where all rows have the same number.
    flat: int | None = None


@dataclass(slots=True)
class RelativeScore:
    """A score plugin whose numbers depend on which rows are feasible: asked for every pod."""

    plugin: Score[Any]
    watch: int
    weight: int
    is_active: bool


class Unserved(Exception):
    """The answers for these pods cannot be kept; they are decided one by one."""


def skips_steadily(plugin: Score[Any]) -> bool:
    """Whether a score that skips itself does so whichever rows are feasible.

    One that says nothing of what it reads has not promised it.
    """
    return plugin.reads != Change.ALL


def checked(scores: Scores) -> Scores:
    """The same scores; those out of range are an error, which deciding alone will tell."""
    if len(scores) and (scores.min() < 0 or scores.max() > MAX_SCORE):
        raise Unserved
    return scores


def united(kinds: Iterable[int]) -> int:
    """All kinds of change in one."""
    union = 0
    for each in kinds:
        union |= each
    return union
