"""Two sets of results side by side, in the manner of benchstat."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from .data_items import (
    ATTEMPTS,
    DECISIONS,
    MEMORY,
    PROCESS_PROCESSOR,
    PROCESSOR,
    THROUGHPUT,
    DataItem,
)

#: Below this probability that both sets are of one kind, they differ.
SIGNIFICANT = 0.05

#: The metrics that are compared, with the number that stands for each, and whether more is better.
COMPARED = {
    THROUGHPUT: ("Average", True),
    DECISIONS: ("Average", True),
    ATTEMPTS: ("Perc99", False),
    PROCESSOR: ("Average", False),
    PROCESS_PROCESSOR: ("Average", False),
    MEMORY: ("Max", False),
}


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure in both sets; a set that lacks it is empty."""

    name: str
    metric: str
    unit: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    more_is_better: bool

    @property
    def change(self) -> float | None:
        """By which share the median moved; None if there is nothing to compare."""
        if not self.before or not self.after or not median(self.before):
            return None
        return median(self.after) / median(self.before) - 1

    @property
    def probability(self) -> float | None:
        """How likely such a difference is by chance; None with too few runs to say."""
        return rank_probability(self.before, self.after)

    @property
    def is_significant(self) -> bool:
        """Whether the difference is more than noise; with single runs nobody can say."""
        chance = self.probability
        return chance is not None and chance < SIGNIFICANT


def compare(before: Iterable[DataItem], after: Iterable[DataItem]) -> Iterator[Compared]:
    """The figures of both sets, in the order of the first one, then those only in the second.

    Who was measured counts where a set has several schedulers; else one set may be about one
    scheduler, and the other about another.
    """
    one, other = _figures(before), _figures(after)
    for key in dict.fromkeys((*one, *other)):
        name, metric, unit = key
        yield Compared(
            name,
            metric,
            unit,
            tuple(one.get(key, ())),
            tuple(other.get(key, ())),
            COMPARED[metric.split()[0]][1],
        )


def geometric_mean(changes: Sequence[float]) -> float | None:
    """The change over all, so that twice as fast and half as fast cancel out."""
    if not changes:
        return None
    return math.exp(math.fsum(math.log1p(each) for each in changes) / len(changes)) - 1


def spread(values: Sequence[float]) -> float | None:
    """How far the values are from their median at the most, as a share of it."""
    middle = median(values)
    if len(values) < 2 or not middle:
        return None
    return max(abs(each - middle) for each in values) / middle


def rank_probability(one: Sequence[float], other: Sequence[float]) -> float | None:
    """The two-sided Mann-Whitney U test, in the normal approximation with ties counted.

    None if no outcome of so few runs could be significant.
    """
    count, others = len(one), len(other)
    if count + others == 0 or math.comb(count + others, count) * SIGNIFICANT < 2:
        return None
    both = sorted((*one, *other))
    ranks = {value: both.index(value) + (both.count(value) + 1) / 2 for value in set(both)}
    lower = sum(ranks[value] for value in one) - count * (count + 1) / 2
    total = count + others
    ties = sum(both.count(value) ** 3 - both.count(value) for value in set(both))
    variance = count * others / 12 * (total + 1 - ties / (total * (total - 1)))
    if not variance:
        return 1.0
    # Half a rank is given away, because ranks are whole numbers.
    distance = max(0.0, abs(lower - count * others / 2) - 0.5) / math.sqrt(variance)
    return math.erfc(distance / math.sqrt(2))


def _figures(items: Iterable[DataItem]) -> dict[tuple[str, str, str], list[float]]:
    found: dict[tuple[str, str, str], list[float]] = {}
    listed = list(items)
    several = len({item.scheduler for item in listed}) > 1
    for item in listed:
        chosen = COMPARED.get(item.labels.get("Metric", ""))
        if chosen is not None and chosen[0] in item.data:
            by = f" ({item.scheduler})" if several and item.scheduler else ""
            key = f"{item.name}{by}", item.metric, item.unit
            found.setdefault(key, []).append(item.data[chosen[0]])
    return found
