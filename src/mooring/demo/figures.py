"""How decisions went, from what the scheduler counts for its own metrics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.app.metric_table import GET_NODE_HINT_DURATION
from mooring.app.observations import Observations
from mooring.engine import Engine
from mooring.engine.statistics import Way


@dataclass(frozen=True)
class Figures:
    """Of all decisions up to a moment; the difference of two is that of the time between."""

    decisions: int
    by_batch: int
    by_class: int
    #: How long decisions took in all, and how many fell into each bucket of the metric.
    seconds: float
    buckets: NDArray[np.int64]

    def since(self, earlier: Figures) -> Figures:
        return Figures(
            self.decisions - earlier.decisions,
            self.by_batch - earlier.by_batch,
            self.by_class - earlier.by_class,
            self.seconds - earlier.seconds,
            self.buckets - earlier.buckets,
        )

    @property
    def reused_share(self) -> float:
        """Decisions that used what is kept for like pods."""
        return (self.by_batch + self.by_class) / max(self.decisions, 1)

    @property
    def p99_seconds(self) -> float:
        """At least 99 of 100 decisions took no longer: a bound of a bucket, maybe infinity."""
        bounds = (*GET_NODE_HINT_DURATION.buckets, np.inf)
        upto = np.cumsum(self.buckets)
        return float(bounds[int(np.searchsorted(upto, 0.99 * upto[-1]))])


def figures(engine: Engine, observations: Observations) -> Figures:
    """The figures as of now."""
    told = {each.metric.name: each for each in observations.histograms()}
    durations = [buckets for _, buckets in told[GET_NODE_HINT_DURATION.name]]
    statistics = [reuse.statistics for reuse in engine.reuse.values()]
    by_batch = sum(each.ways[Way.RANKED] for each in statistics)
    return Figures(
        decisions=sum(each.decisions for each in statistics),
        by_batch=by_batch,
        by_class=sum(each.reused for each in statistics) - by_batch,
        seconds=sum(each.sum for each in durations),
        buckets=sum(
            (each.counts for each in durations),
            np.zeros(len(GET_NODE_HINT_DURATION.buckets) + 1, np.int64),
        ),
    )
