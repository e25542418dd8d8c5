"""Rolling from one version of a template to the next: how large each set of pods may be now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mooring.embedded.wire import Json

from .statuses import share


@dataclass(frozen=True, slots=True)
class Version:
    """The set of pods of one version."""

    name: str
    size: int
    available: int
    #: How many pods all versions together might have had when the size was set; 0 if unknown.
    most: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """How many pods there should be, and how far from that a rollout may go."""

    size: int
    surge: int
    unavailable: int
    recreates: bool = False

    @classmethod
    def of(cls, spec: Json) -> Plan:
        size, strategy = spec["replicas"], spec["strategy"]
        if strategy["type"] == "Recreate":
            return cls(size, 0, size, recreates=True)
        rolling = strategy.get("rollingUpdate") or {}
        surge = share(rolling.get("maxSurge"), size, up=True)
        unavailable = share(rolling.get("maxUnavailable"), size, up=False)
        if not surge and not unavailable:
            # Percentages of little can both come out as nothing, and then nothing could move.
            unavailable = 1
        return cls(size, surge, min(unavailable, size))

    @property
    def most(self) -> int:
        """How many pods there may be for a while."""
        return self.size + self.surge if self.size else 0


#: The sizes that sets get, by name.
Sizes = dict[str, int]


def recreate(plan: Plan, new: Version, old: Iterable[Version], *, going: bool) -> Sizes:
    """All old pods go before the first new one comes."""
    sizes = {each.name: 0 for each in old}
    return sizes if going else {**sizes, new.name: plan.size}


def roll(plan: Plan, new: Version, old: list[Version]) -> Sizes:
    """The new set grows as far as the surge allows; the old ones shrink as far as pods may miss."""
    before = sum(each.size for each in old)
    if new.size >= plan.size:
        grown = plan.size
    else:
        room = plan.size + plan.surge - before - new.size
        grown = min(new.size + max(room, 0), plan.size)
    return {new.name: grown, **_shrunk(plan, new, grown, old)}


def _shrunk(plan: Plan, new: Version, grown: int, old: list[Version]) -> Sizes:
    least_available = plan.size - plan.unavailable
    total = grown + sum(each.size for each in old)
    new_unavailable = max(grown - new.available, 0)
    spare = total - least_available - new_unavailable
    sizes = {each.name: each.size for each in old}
    # Pods that do nothing go first: that costs no availability.
    for each in old:
        idle = min(max(each.size - each.available, 0), max(spare, 0))
        sizes[each.name] -= idle
        spare -= idle
    available = new.available + sum(min(each.available, each.size) for each in old)
    spare = available - least_available
    for each in old:
        cut = min(sizes[each.name], max(spare, 0))
        sizes[each.name] -= cut
        spare -= cut
    return sizes
