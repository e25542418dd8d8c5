"""What a class keeps of each plugin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mooring.cluster import Figures, Mask, Nodes, RowFacts, Scope
from mooring.cluster.changes import Change, unite
from mooring.framework.plugin import Filter, Levels, PreScore, Reduction, Rescore, Score, Scores

# Rows of a cluster whose nodes and pods are alike have few figures; beyond this, looking them up
# saves nothing.
_MOST_FIGURES = 512


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
    #: Whether it is one that prepares something.
    prepares: bool
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
class Asked:
    """The plugins that read some kinds of change, and what they said of rows by their figures."""

    filters: list[RowFilter]
    columns: list[ScoreColumn]
    #: The bits of the filters among those that reject a row.
    rejections: dict[Figures, int] = field(default_factory=dict)
    #: One number per column.
    numbers: dict[Figures, tuple[int, ...]] = field(default_factory=dict)
    #: Whether rows with equal figures are told the same by all the filters, or columns.
    are_filters_alike: bool = False
    are_columns_alike: bool = False
    bits: int = 0

    def __post_init__(self) -> None:
        self.bits = unite(each.bit for each in self.filters)
        self.are_filters_alike = all(each.plugin.reads_figures_only for each in self.filters)
        self.are_columns_alike = all(
            each.is_plain and each.plugin.reads_figures_only for each in self.columns
        )

    def keep_rejection(self, figures: Figures, bits: int) -> None:
        if len(self.rejections) >= _MOST_FIGURES:
            self.rejections.clear()
        self.rejections[figures] = bits

    def keep_numbers(self, figures: Figures, numbers: tuple[int, ...]) -> None:
        if len(self.numbers) >= _MOST_FIGURES:
            self.numbers.clear()
        self.numbers[figures] = numbers


@dataclass(slots=True)
class RelativeScore:
    """A score plugin whose numbers depend on which rows are feasible: asked for every pod."""

    plugin: Score[Any]
    watch: int
    weight: int
    is_active: bool
    #: Whether it is one that prepares something.
    prepares: bool
    #: Whether it may say which few numbers occur.
    has_levels: bool


class RelativeAnswer(NamedTuple):
    """What such a score has prepared for a pod, and the few numbers that occur if it says so."""

    score: RelativeScore
    prepared: Any
    levels: Levels | None


class Unserved(Exception):
    """The answers for these pods cannot be kept; they are decided one by one."""


def ignores_feasible_rows(plugin: Score[Any]) -> bool:
    """Whether a score that skips itself does so whichever rows are feasible.

    One that says nothing of what it reads has not promised it.
    """
    return plugin.reads != Change.ALL


def may_find_levels(plugin: Score[Any]) -> bool:
    """Whether a score has something to say of the few numbers that occur."""
    return type(plugin).find_levels is not Score.find_levels


def is_kept(plugin: Score[Any]) -> bool:
    """Whether a score's numbers are kept: which rows are feasible makes no difference to them."""
    if plugin.reduces is Reduction.NOTHING:
        is_own = True
    else:
        is_own = plugin.reduces is Reduction.LARGEST and plugin.scope is Scope.ROW
    return is_own and (ignores_feasible_rows(plugin) or not isinstance(plugin, PreScore))
