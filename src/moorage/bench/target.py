"""What workloads run on: it keeps objects and places pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from .measurement import Collector, Ledger, Stopwatch
from .templates import Manifest


class Stalled(RuntimeError):
    """Nothing will happen any more unless an object is made or changed."""


class BenchTarget(Protocol):
    """A scheduler and the cluster that it serves.

    A target notes in the ledger which pods are tried, placed and gone, and tells the collector of
    each placement. Its time may pass faster than that of the wall: see `advance`.
    """

    ledger: Ledger
    stopwatch: Stopwatch
    #: Who measures right now.
    collector: Collector | None

    @property
    def now(self) -> float:
        """Seconds since the target was made, in its own time."""
        ...

    def create(self, manifests: Iterable[Manifest]) -> list[str]:
        """Adds objects; returns the uids of those that are pods."""
        ...

    def render(self, manifests: Iterable[Manifest]) -> list[Manifest]:
        """Makes objects that are needed later, which is no part of scheduling."""
        ...

    def replace(self, manifest: Manifest, subresources: Sequence[str] = ()) -> None:
        """Puts an object in the place of the one of its kind, namespace and name.

        Where there is an API server, it is written by way of the subresources.
        """
        ...

    def delete(self, manifest: Manifest) -> None:
        """Deletes an object of this kind, namespace and name, unless it is gone already."""
        ...

    def delete_pod(self, uid: str) -> None:
        """Deletes a pod; one with finalizers only begins to terminate."""
        ...

    def allocate_claims(self, namespace: str) -> None:
        """Gives devices of random nodes to the claims of a namespace; an empty one is all."""
        ...

    def advance(self, until: float | None) -> None:
        """Lets some pods be placed, or time pass, but not beyond a moment.

        Raises Stalled if there is nothing to do, ever, and no such moment.
        """
        ...

    def check(self) -> None:
        """Raises AssertionError if the target contradicts itself."""
        ...

    def resident_bytes(self) -> int:
        """Returns the memory that the scheduler has."""
        ...

    def close(self) -> None:
        """Ends it, and removes everything that was made on it."""
        ...
