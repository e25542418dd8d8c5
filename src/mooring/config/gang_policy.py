"""How a profile treats gangs where kube-scheduler leaves no choice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from mooring.objects.meta import Wire


class GangPolicy(Wire, frozen=True):
    """Mooring's own settings of a profile for groups of pods; the defaults are kube-scheduler's."""

    #: Which pods a gang evicts: those on the nodes that score best, or as few pods as possible.
    victims: Literal["upstream", "fewest"] = "upstream"
    #: What becomes of members that run while too few of a gang do: they wait for the others, or are
    #: evicted after a while.
    partial: Literal["retry", "release"] = "retry"
    partial_seconds: int = 300

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.partial_seconds < 0:
            yield "partialSeconds", f"must be 0 or greater, got {self.partial_seconds}"
