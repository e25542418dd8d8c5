"""Advice about priorities: how important a pod would have to be to have others evicted."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import View
from moorage.framework.advice import MOST_BLOCKERS, Advice, EvictionAdvice
from moorage.framework.attempt import Failed
from moorage.framework.edits import RaisePriority, pod_at
from moorage.framework.nominated import filter_with_nominated
from moorage.framework.points import pre_filter, rows_to_filter
from moorage.framework.profile import Profile
from moorage.objects.pod import Pod

from .preemption_candidates import Candidates
from .preemption_dry_run import DryRun

RowNumbers = NDArray[np.intp]

# The highest priority that users can give.
_HIGHEST = 10**9

# So many nodes show whether it helps; fewer where pods matter to each other, because evicting is
# tried node by node then.
_MOST_ROWS, _MOST_ONE_BY_ONE = 32, 6


def advise_on_priority(
    pod: Pod, failed: Failed, nodes: View, profile: Profile
) -> EvictionAdvice | None:
    """Returns the lowest priority at which evicting less important pods makes room somewhere."""
    if failed.filtered is None:
        return None
    rows = failed.filtered.helpable_rows()[:_MOST_ROWS]
    steps = _list_priorities(pod, nodes, rows)
    found: tuple[int, Candidates] | None = None
    low, high = 0, len(steps) - 1
    # The more pods may be evicted, the more room there is: what helps at all helps above it too.
    while low <= high:
        # The highest first: where that does not help, nothing does.
        at = high if found is None else (low + high) // 2
        candidates = _find_candidates(RaisePriority(steps[at]).apply(pod), nodes, profile, rows)
        if candidates is None:
            if found is None:
                return None
            low = at + 1
        else:
            found, high = (steps[at], candidates), at - 1
    return None if found is None else _advise(pod, nodes, *found)


def _list_priorities(pod: Pod, nodes: View, rows: RowNumbers) -> list[int]:
    """Returns priorities just above that of a pod there, and not below the pod's own."""
    known = {other.priority for row in rows.tolist() for other in nodes.pods(row).values()}
    own = pod.priority
    least = own if pod.spec.preemption_policy == "Never" else own + 1
    return sorted({max(each + 1, own) for each in known if least <= max(each + 1, own) <= _HIGHEST})


def _find_candidates(
    pod: Pod, nodes: View, profile: Profile, rows: RowNumbers
) -> Candidates | None:
    prepared = pre_filter(profile, pod, nodes)
    if prepared.rejected is not None:
        return None
    filtered = filter_with_nominated(profile, pod, prepared, nodes, rows_to_filter(prepared, nodes))
    if len(filtered.feasible_rows):
        return None
    helpable = np.intersect1d(filtered.helpable_rows(), rows)
    run = DryRun(profile, pod, prepared, nodes, Counter())
    if not run.in_columns:
        helpable = helpable[:_MOST_ONE_BY_ONE]
    found = run.candidates(helpable, len(helpable))
    return found if len(found) else None


def _advise(pod: Pod, nodes: View, priority: int, found: Candidates) -> EvictionAdvice:
    best = found.best()
    victims: tuple[Pod, ...] = found.victims(best)
    name = nodes.name(int(found.rows[best]))
    count = len(victims)
    why = "of equal or higher priority" if priority > pod.priority else "it may not evict"
    problem = f"{count} pod{'s' * (count > 1)} {why} in the way on node {name}"
    blockers = tuple(pod_at(victim, name) for victim in victims[:MOST_BLOCKERS])
    advice = Advice(problem, (RaisePriority(priority),), blockers, kind="priority")
    return EvictionAdvice(advice, found.rows)
