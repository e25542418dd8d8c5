"""Whose lease is to be renewed next: each in turn, evenly over time, never too many a second."""

from __future__ import annotations

from .settings import HollowSettings

# Renewing some at a time costs fewer wake-ups, and nobody sees the difference.
_SHORTEST_PAUSE = 0.5


class Heartbeats:
    """The order in which nodes renew their leases."""

    def __init__(self, settings: HollowSettings, now: float) -> None:
        self._settings = settings
        #: In the order in which they were renewed.
        self._nodes: dict[str, None] = {}
        self._looked = now
        self._owed = 0.0

    def add(self, node: str) -> None:
        """A node whose lease was just renewed."""
        self._nodes[node] = None

    def remove(self, node: str) -> None:
        self._nodes.pop(node, None)

    @property
    def interval(self) -> float:
        """The seconds between two renewals of a lease: more when there are many nodes."""
        settings = self._settings
        return max(settings.lease_seconds, len(self._nodes) / settings.most_renewals)

    @property
    def next(self) -> float | None:
        """When to look again."""
        if not self._nodes:
            return None
        left = (1.0 - self._owed) * self.interval / len(self._nodes)
        return self._looked + max(_SHORTEST_PAUSE, left)

    def due(self, now: float) -> list[str]:
        """The nodes whose turn it is."""
        # A clock that was set back owes nothing; nobody is owed more than one renewal.
        passed = max(0.0, now - self._looked)
        self._looked = now
        count = len(self._nodes)
        self._owed = min(self._owed + passed * count / self.interval, float(count))
        turns = int(self._owed)
        self._owed -= turns
        names = list(self._nodes)[:turns]
        for name in names:
            del self._nodes[name]
            self._nodes[name] = None
        return names
