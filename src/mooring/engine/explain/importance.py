"""Advice about priorities: how important a pod would have to be to have others evicted."""

from __future__ import annotations

from collections import Counter

import numpy as np

from mooring.engine.cycle import conclude
from mooring.framework.advice import MOST_BLOCKERS
from mooring.framework.attempt import Failed
from mooring.framework.edits import RaisePriority, pod_at
from mooring.objects.pod import Pod
from mooring.plugins.preemption_candidates import Candidates
from mooring.plugins.preemption_dry_run import DryRun

from .case import Case, RowNumbers
from .data import Suggestion

# The highest priority that users can give.
_HIGHEST = 10**9

# Evicting is tried node by node where pods matter to each other; so many show whether it helps.
_MOST_ROWS = 32


def advise_on_priority(case: Case, failed: Failed) -> Suggestion | None:
    """The lowest priority at which evicting less important pods makes room somewhere."""
    if failed.filtered is None or case.gone:
        return None
    rows = failed.filtered.helpable_rows()[:_MOST_ROWS]
    steps = _steps(case, rows)
    found: tuple[int, Candidates] | None = None
    low, high = 0, len(steps) - 1
    # The more pods may be evicted, the more room there is: what helps at all helps above it too.
    while low <= high:
        # The highest first: where that does not help, nothing does.
        at = high if found is None else (low + high) // 2
        tried = _tried(case, steps[at], rows)
        if tried is None:
            if found is None:
                return None
            low = at + 1
        else:
            found, high = (steps[at], tried), at - 1
    return None if found is None else _suggestion(case, *found)


def _steps(case: Case, rows: RowNumbers) -> list[int]:
    """The priorities that are just above one of a pod there, and not below the pod's own."""
    known = {pod.priority for row in rows.tolist() for pod in case.actual.pods(row).values()}
    own = case.pod.priority
    never = case.pod.spec.preemption_policy == "Never"
    least = own if never else own + 1
    return sorted({max(each + 1, own) for each in known if least <= max(each + 1, own) <= _HIGHEST})


def _tried(case: Case, priority: int, rows: RowNumbers) -> Candidates | None:
    pod = RaisePriority(priority).applied(case.pod)
    again = Case(case.profile, pod, case.actual)
    outcome = conclude(case.profile, pod, again.prepared, case.actual)
    if not isinstance(outcome, Failed) or outcome.filtered is None:
        return None
    helpable = np.intersect1d(outcome.filtered.helpable_rows(), rows)
    run = DryRun(case.profile, pod, again.prepared, case.actual, Counter())
    found = run.candidates(helpable, len(helpable))
    return found if len(found) else None


def _suggestion(case: Case, priority: int, found: Candidates) -> Suggestion:
    nodes = case.actual
    best = found.best()
    victims: tuple[Pod, ...] = found.victims(best)
    name = nodes.name(int(found.rows[best]))
    count = len(victims)
    now = "of equal or higher priority" if priority > case.pod.priority else "it may not evict"
    return Suggestion(
        kind="priority",
        plugins=("DefaultPreemption",),
        problem=f"{count} pod{'s' * (count > 1)} {now} in the way on node {name}",
        remedy=RaisePriority(priority).told,
        effect="evicts",
        edits=(RaisePriority(priority),),
        count=len(found),
        nodes=tuple(nodes.names(found.rows.tolist())),
        blockers=tuple(pod_at(victim, name) for victim in victims[:MOST_BLOCKERS]),
    )
