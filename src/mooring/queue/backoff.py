"""How long a pod that failed is left alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .queued_pod import NEVER_FAILED

# Further doublings are beyond any maximum, and floats end at 2 to the 1024.
_MOST_DOUBLINGS = 62


@dataclass(frozen=True, slots=True)
class Backoff:
    """Doubles with each failure, from `initial` to `maximum` seconds; a maximum of 0 is none."""

    initial: float = 1.0
    maximum: float = 10.0
    #: Whether a rejected pod is taken before its time when nothing else is to be done.
    pops_early: bool = True

    def seconds(self, failures: int) -> float:
        """How long a pod waits after so many failures."""
        if failures == 0:
            return 0.0
        return min(self.initial * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), self.maximum)

    def expiry(self, timestamp: float, failures: int) -> int:
        """The whole second in which the backoff ends that began at `timestamp`."""
        if self.maximum <= 0:
            return NEVER_FAILED
        return math.floor(timestamp + self.seconds(failures))
