"""Two sets of results side by side, in the manner of benchstat."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from .results import ATTEMPTS, DECISIONS, MEMORY, PROCESS_PROCESSOR, PROCESSOR, THROUGHPUT, DataItem

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


#: Measurement, metric and unit.
_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class MetricChange:
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
        """Whether the difference is more than noise; single runs cannot say."""
        chance = self.probability
        return chance is not None and chance < SIGNIFICANT


def compare(before: Iterable[DataItem], after: Iterable[DataItem]) -> Iterator[MetricChange]:
    """Yields the figures of both sets, in the order of the first, then those only in the second.

    Where a set is about one scheduler, it is compared with each scheduler of the other set.
    """
    one, other = _Set(before), _Set(after)
    for name, metric, unit in dict.fromkeys((*one.keys, *other.keys)):
        for by in dict.fromkeys((*one.schedulers, *other.schedulers)) or ("",):
            had, has = (each.figures((name, metric, unit), by) for each in (one, other))
            if had or has:
                label = f"{name} ({by})" if by else name
                better = COMPARED[metric.split()[0]][1]
                yield MetricChange(label, metric, unit, had, has, better)


def geometric_mean(changes: Sequence[float]) -> float | None:
    """Returns the change over all, so that twice as fast and half as fast cancel out."""
    if not changes:
        return None
    return math.exp(math.fsum(math.log1p(each) for each in changes) / len(changes)) - 1


def spread(values: Sequence[float]) -> float | None:
    """Returns how far the values are from their median at the most, as a share of it."""
    middle = median(values)
    if len(values) < 2 or not middle:
        return None
    return max(abs(each - middle) for each in values) / middle


def rank_probability(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Returns the probability of the two-sided Mann-Whitney U test, normally approximated.

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


class _Set:
    """The figures of one set, by what they are and by who was measured."""

    def __init__(self, items: Iterable[DataItem]) -> None:
        self._figures: dict[tuple[_Key, str], list[float]] = {}
        for item in items:
            chosen = COMPARED.get(item.labels.get("Metric", ""))
            if chosen is not None and chosen[0] in item.data:
                key = item.name, item.metric, item.unit
                self._figures.setdefault((key, item.scheduler), []).append(item.data[chosen[0]])
        found = list(dict.fromkeys(by for _, by in self._figures))
        self._only = found[0] if len(found) == 1 else None
        #: Those whose names matter.
        self.schedulers = found if self._only is None else []

    @property
    def keys(self) -> Iterator[_Key]:
        return (key for key, _ in self._figures)

    def figures(self, key: _Key, by: str) -> tuple[float, ...]:
        return tuple(self._figures.get((key, by if self._only is None else self._only), ()))
