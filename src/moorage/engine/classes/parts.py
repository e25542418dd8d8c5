"""The values that a class keeps for each plugin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from moorage.cluster import Figures, Mask, Nodes, RowFacts, Scope
from moorage.cluster.changes import Change, unite
from moorage.framework.plugin import (
    Filter,
    Levels,
    Plugin,
    PreScore,
    Reduction,
    Rescore,
    Score,
    Scores,
    reads_figures,
)
from moorage.framework.profile import Profile
from moorage.framework.verdict import Verdict

# If nodes and pods are alike, rows have few distinct figures. If there are more than this, looking
# up answers by figures saves no time.
_MOST_FIGURES = 512


@dataclass(slots=True)
class RowFilter:
    """A filter whose answer for a row depends on that row alone."""

    plugin: Filter[Any]
    prepared: Any
    watch: int
    bit: int
    #: The plugin's method, looked up once, because it is called for every row that changes.
    recheck: Callable[[Any, Nodes, RowFacts], Rescore]
    #: Its answer for all rows, if it was asked for since any of them changed.
    verdict: Verdict | None = None


@dataclass(slots=True)
class WideFilter:
    """A filter whose answer for a row depends on other rows. Skipped while `prepared` is None."""

    plugin: Filter[Any]
    watch: int
    #: Whether the plugin prepares something for a pod.
    prepares: bool
    prepared: Any = None
    #: Its answer, if it rejects any row, and which rows these are.
    verdict: Verdict | None = None
    rejected: Mask | None = None
    rejects_all: bool = False


@dataclass(slots=True)
class ScoreColumn:
    """The numbers of a score plugin for all rows, before they are normalised."""

    plugin: Score[Any]
    prepared: Any
    watch: int
    weight: int
    raw: Scores
    #: Whether its numbers are used without normalising.
    is_plain: bool
    #: The plugin's method, looked up once, because it is called for every row that changes.
    rescore: Callable[[Any, Nodes, RowFacts, Scores], Rescore]
    #: The number that it adds to every total, if all rows have the same raw number; else None.
    flat: int | None = None


@dataclass(slots=True)
class Asked:
    """The plugins that read some kinds of change, and their answers by the figures of a row."""

    filters: list[RowFilter]
    columns: list[ScoreColumn]
    #: The bits of the filters that reject a row with these figures.
    rejections: dict[Figures, int] = field(default_factory=dict)
    #: The numbers of a row with these figures, one per column.
    numbers: dict[Figures, tuple[int, ...]] = field(default_factory=dict)
    #: Whether all filters give equal answers for rows with equal figures.
    are_filters_alike: bool = False
    #: Whether all columns give equal numbers for rows with equal figures.
    are_columns_alike: bool = False
    bits: int = 0

    def __post_init__(self) -> None:
        self.bits = unite(each.bit for each in self.filters)
        self.are_filters_alike = all(
            reads_figures(each.plugin, each.watch) for each in self.filters
        )
        self.are_columns_alike = all(
            each.is_plain and reads_figures(each.plugin, each.watch) for each in self.columns
        )

    def forget_verdicts(self) -> None:
        """Forgets what the filters say of all rows, because some row has changed."""
        for each in self.filters:
            each.verdict = None

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
    """A score plugin whose numbers depend on which rows are feasible. It is asked for every pod."""

    plugin: Score[Any]
    watch: int
    weight: int
    #: Whether the plugin prepares something for a pod.
    prepares: bool
    #: Whether the plugin defines `find_levels`.
    has_levels: bool
    #: Whether it may add something for such pods.
    is_active: bool = True
    #: Whether it was not asked about the last pod, which fits nowhere.
    is_due: bool = False


class RelativeAnswer(NamedTuple):
    """What a relative score has prepared for a pod, and its levels if it found any."""

    score: RelativeScore
    prepared: Any
    levels: Levels | None


class Unserved(Exception):
    """No answers can be kept for such pods; they are decided one by one."""


def ignores_feasible_rows(plugin: Score[Any]) -> bool:
    """Returns whether a score plugin skips itself independently of which rows are feasible.

    A plugin that does not declare what it reads has not promised that.
    """
    return plugin.reads != Change.ALL


def may_find_levels(plugin: Score[Any]) -> bool:
    """Returns whether a score plugin defines `find_levels`."""
    return type(plugin).find_levels is not Score.find_levels


def is_kept(plugin: Score[Any]) -> bool:
    """Returns whether the raw numbers of a score plugin are kept for all pods of a class.

    They are kept if they do not depend on which rows are feasible.
    """
    if plugin.reduces is Reduction.NOTHING:
        is_own = True
    else:
        is_own = plugin.reduces is Reduction.LARGEST and plugin.scope is Scope.ROW
    return is_own and (ignores_feasible_rows(plugin) or not isinstance(plugin, PreScore))


def is_asked_anew(plugin: Plugin, profile: Profile) -> bool:
    """Returns whether a class asks a plugin about each pod that is not like the last one.

    Such plugins look at other rows, so that little of what they say can be kept. All their answers
    must be asked for anew: as a filter, as a score, or as both.
    """
    filters, scores = plugin in profile.filter, [each for each, _ in profile.score]
    if not filters and (plugin in profile.pre_filter or plugin not in scores):
        return False
    if filters and plugin.scope is Scope.ROW:
        return False
    return not any(each is plugin and is_kept(each) for each in scores)
