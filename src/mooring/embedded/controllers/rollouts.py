"""Rollouts of deployments: how large the set of each version may be now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mooring.embedded.store.table import Json


@dataclass(frozen=True, slots=True)
class SetVersion:
    """The set of pods of one version."""

    name: str
    size: int
    available: int
    #: How many pods all versions together might have had when the size was set; 0 if unknown.
    most: int = 0


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """The size of a deployment, and by how much a rollout may exceed or miss it."""

    size: int
    surge: int
    unavailable: int
    recreates: bool = False

    @classmethod
    def of(cls, spec: Json) -> RolloutPlan:
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


def recreate(
    plan: RolloutPlan, new: SetVersion, old: Iterable[SetVersion], *, going: bool
) -> Sizes:
    """Returns sizes by which all old pods go before the first new one comes."""
    sizes = {each.name: 0 for each in old}
    return sizes if going else {**sizes, new.name: plan.size}


def roll(plan: RolloutPlan, new: SetVersion, old: list[SetVersion]) -> Sizes:
    """Returns the next sizes of a rolling update, within surge and unavailability."""
    before = sum(each.size for each in old)
    if new.size >= plan.size:
        grown = plan.size
    else:
        room = plan.size + plan.surge - before - new.size
        grown = min(new.size + max(room, 0), plan.size)
    return {new.name: grown, **_shrunk(plan, new, grown, old)}


def _shrunk(plan: RolloutPlan, new: SetVersion, grown: int, old: list[SetVersion]) -> Sizes:
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


def rescale(
    plan: RolloutPlan, new: SetVersion | None, old: Sequence[SetVersion], counted: int
) -> Sizes:
    """Returns the sizes of sets after the deployment's size changed; versions are in order of age.

    `counted` is how many pods the status of the deployment counts; versions without a noted size
    use it.
    """
    versions = [*old, new] if new is not None else list(old)
    active = [each for each in versions if each.size]
    if len(active) <= 1:
        return {each.name: plan.size for each in active or versions[-1:]}
    if new is not None and new.size == plan.size == new.available:
        return {each.name: 0 for each in old}
    return _in_proportion(plan, active, counted)


def _in_proportion(plan: RolloutPlan, active: list[SetVersion], counted: int) -> Sizes:
    """Distributes a change of size over the versions, the largest first."""
    wanted = plan.most - sum(each.size for each in active)
    # Of two of a size the newer one grows first, and the older one shrinks first.
    by_age = list(reversed(active)) if wanted > 0 else active
    in_turn = sorted(by_age, key=lambda each: -each.size)
    sizes, left = {}, wanted
    for each in in_turn:
        change = _share(plan, each, counted)
        change = min(change, left) if wanted > 0 else max(change, left)
        change = change if wanted else 0
        sizes[each.name] = each.size + change
        left -= change
    largest = in_turn[0].name
    sizes[largest] = max(sizes[largest] + left, 0)
    return sizes


def _share(plan: RolloutPlan, version: SetVersion, counted: int) -> int:
    """Returns by how much a version changes to keep its share."""
    if not plan.size:
        return -version.size
    before = version.most or counted
    if not before:
        return 0
    # Halves are rounded up.
    return (2 * version.size * plan.most + before) // (2 * before) - version.size


def share(value: int | str | None, whole: int, *, up: bool) -> int:
    """Returns a number, or a percentage of a whole."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%"))
    return -(-percent * whole // 100) if up else percent * whole // 100
