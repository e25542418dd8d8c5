"""Pods that were placed since the last look."""

from __future__ import annotations

from itertools import islice, takewhile

from mooring.engine import Engine
from mooring.objects.pod import Pod

# The newest pods that are remembered: where one of them is met, those before it are known too.
# Many, because the very last ones may be gone by the next look.
_REMEMBERED = 1_024


class Arrivals:
    """Finds the pods of an engine's profiles that came to nodes since it looked last."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: set[str] = set()
        self._remember()

    def take(self) -> list[Pod]:
        """The pods that were placed since, the newest first. One that left again is missed."""
        pods, profiles = self._engine.cluster.newest_pods(), self._engine.profiles
        found = list(takewhile(lambda pod: pod.uid not in self._known, pods))
        if self._known and len(found) == len(self._engine.cluster.pods):
            # All that are remembered have left: who came after them cannot be told.
            found = []
        self._remember()
        return [pod for pod in found if pod.spec.scheduler_name in profiles]

    def _remember(self) -> None:
        newest = islice(self._engine.cluster.newest_pods(), _REMEMBERED)
        self._known = {pod.uid for pod in newest}
