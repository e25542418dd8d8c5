"""What chapters use: the cluster, the scheduler and its figures, and a display."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from moorage.app.metric_table import GET_NODE_HINT_DURATION
from moorage.app.observations import Observations
from moorage.engine import Engine
from moorage.engine.classes.statistics import DecisionPath
from moorage.engine.explain import Explanation, explain
from moorage.framework.series import Histogram
from moorage.objects.pod import Pod

from .demo_client import DemoClient, PodView


class CheckFailed(Exception):
    """The cluster is not as the demo expects."""

    def __init__(self, expected: str, seen: str) -> None:
        super().__init__(f"expected: {expected}\nseen: {seen}")
        self.expected = expected
        self.seen = seen


@dataclass(frozen=True)
class DecisionFigures:
    """Figures of all decisions up to a moment.

    The difference of two is about the time in between.
    """

    decisions: int
    by_batch: int
    by_class: int
    #: How long decisions took in all, and how many fell into each bucket of the metric.
    seconds: float
    buckets: NDArray[np.int64]

    def since(self, earlier: DecisionFigures) -> DecisionFigures:
        return DecisionFigures(
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


def read_figures(engine: Engine, observations: Observations) -> DecisionFigures:
    """Returns the figures as of now."""
    durations = [
        buckets
        for each in observations.series()
        if isinstance(each, Histogram) and each.metric is GET_NODE_HINT_DURATION
        for _, buckets in each
    ]
    statistics = [reuse.statistics for reuse in engine.classes.values()]
    by_batch = sum(each.paths[DecisionPath.BATCH] for each in statistics)
    return DecisionFigures(
        decisions=sum(each.decisions for each in statistics),
        by_batch=by_batch,
        by_class=sum(each.reused for each in statistics) - by_batch,
        seconds=sum(each.sum for each in durations),
        buckets=sum(
            (each.counts for each in durations),
            np.zeros(len(GET_NODE_HINT_DURATION.buckets) + 1, np.int64),
        ),
    )


# What has not come true by then never does, however much else a machine has to do: a step takes a
# second or two of processor time.
_PATIENCE_SECONDS = 900.0
# How often it is looked whether something has come true. The scheduler shares our processor: at
# each of thousands of changes it would miss the time.
_LOOK_SECONDS = 0.02


class DemoDisplay(Protocol):
    """Shows the demo to the user."""

    def show_chapter(self, number: int, total: int, title: str, about: str) -> None:
        """Shows the title of a chapter and what it is about."""

    def show_command(self, command: str) -> None:
        """Shows the command that does what the demo does next."""

    def show_check(self, expected: str) -> None:
        """Shows something that was expected and is so."""

    def show_quote(self, text: str) -> None:
        """Shows a message of the cluster."""

    def show_table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Shows a table."""

    def show_explanation(self, explanation: Explanation) -> None:
        """Shows the answer, and what would help, as `moorage explain` does."""

    def show_waiting(self, what: str, so_far: Callable[[], object]) -> AbstractContextManager[None]:
        """Shows that something is waited for, for as long as the context lasts.

        A text that `so_far` gives says how far it is. It may be asked for on another thread.
        """


@dataclass(kw_only=True)
class DemoContext:
    """The cluster of the demo, its scheduler, and the display."""

    client: DemoClient
    pods: PodView
    display: DemoDisplay
    engine: Engine
    observations: Observations
    #: Seconds to read a step before the demo goes on.
    pace: float = 0.0
    patience: float = _PATIENCE_SECONDS

    async def pause(self) -> None:
        """Leaves time to read."""
        await asyncio.sleep(self.pace)

    def check(self, expected: str, is_so: bool, seen: object) -> None:
        """Shows what was expected; raises CheckFailed if it is not so."""
        if not is_so:
            raise CheckFailed(expected, str(seen))
        self.display.show_check(expected)

    async def until(
        self, expected: str, is_so: Callable[[], bool], seen: Callable[[], object]
    ) -> None:
        """Waits until the pods are as expected, and shows that."""
        await self._patiently(expected, self._pods_are(is_so), seen)
        self.display.show_check(expected)

    async def until_gone(self, app: str) -> None:
        """Waits until nothing is left of a workload that was deleted."""
        expected = f"all pods of {app} are gone"
        await self._patiently(
            expected,
            self._pods_are(lambda: not self.pods.of(app)),
            lambda: f"{len(self.pods.of(app))} are still there",
        )

    async def until_event(self, expected: str, reason: str, message: str, count: int) -> None:
        """Waits until so many pods have such an event, and shows that and the message."""
        found: list[str] = []

        async def there_are() -> None:
            while True:
                found[:] = [each["message"] for each in await self.client.events(reason)]
                if found.count(message) == count:
                    return
                await asyncio.sleep(_LOOK_SECONDS)

        await self._patiently(expected, there_are(), lambda: found)
        self.display.show_check(expected)
        self.display.show_quote(message)

    async def until_event_with(self, expected: str, reason: str, words: str) -> None:
        """Waits for an event that contains some words, and shows that and the event."""
        found: list[str] = []

        async def is_there() -> None:
            while True:
                messages = [each["message"] for each in await self.client.events(reason)]
                found[:] = [each for each in messages if words in each]
                if found:
                    return
                await asyncio.sleep(_LOOK_SECONDS)

        await self._patiently(expected, is_there(), lambda: found or ["no such event"])
        self.display.show_check(expected)
        self.display.show_quote(found[-1])

    def figures(self) -> DecisionFigures:
        """Returns the figures of decisions so far."""
        return read_figures(self.engine, self.observations)

    def explain_pod(self, name: str) -> Explanation:
        """Explains why a pod waits, as `moorage explain` does."""
        return explain(self.engine.decider, self._waiting(name))

    def _waiting(self, name: str) -> Pod:
        for queued in (*self.engine.queue, *self.engine.queue.in_flight):
            if queued.pod.key == f"default/{name}":
                return queued.pod
        raise CheckFailed(f"pod {name} waits in the queue", "it is not there")

    async def _pods_are(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            await self.pods.change()
            await asyncio.sleep(_LOOK_SECONDS)

    async def _patiently(
        self, expected: str, outcome: Awaitable[None], seen: Callable[[], object]
    ) -> None:
        try:
            with self.display.show_waiting(expected, seen):
                async with asyncio.timeout(self.patience):
                    await outcome
        except TimeoutError:
            raise CheckFailed(expected, str(seen())) from None


@dataclass(frozen=True)
class Chapter:
    """A part of the demo: its title, two lines on what it is about, and what it does."""

    title: str
    about: str
    run: Callable[[DemoContext], Awaitable[None]]
