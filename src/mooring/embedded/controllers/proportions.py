"""A deployment that is made larger or smaller while it rolls: each version takes its share."""

from __future__ import annotations

from collections.abc import Sequence

from .rollouts import Plan, Sizes, Version


def rescaled(plan: Plan, new: Version | None, old: Sequence[Version], counted: int) -> Sizes:
    """The sizes of sets after a change of the deployment's; all versions are in order of age.

    `counted` is how many pods the deployment has counted: what versions go by that do not know
    how large it was.
    """
    versions = [*old, new] if new is not None else list(old)
    active = [each for each in versions if each.size]
    if len(active) <= 1:
        return {each.name: plan.size for each in active or versions[-1:]}
    if new is not None and new.size == plan.size == new.available:
        return {each.name: 0 for each in old}
    return _in_proportion(plan, active, counted)


def _in_proportion(plan: Plan, active: list[Version], counted: int) -> Sizes:
    """Shares out what is added or taken away, from the largest to the smallest version."""
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


def _share(plan: Plan, version: Version, counted: int) -> int:
    """By how much a version changes so that it keeps its share of the whole."""
    if not plan.size:
        return -version.size
    before = version.most or counted
    if not before:
        return 0
    # Halves are rounded up.
    return (2 * version.size * plan.most + before) // (2 * before) - version.size
