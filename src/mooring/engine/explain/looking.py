"""All that is found out about all nodes, where a decision looks at no more than it needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mooring.engine.cycle import Found, find_feasible
from mooring.framework.attempt import Failed, Filtered, Scored
from mooring.framework.run import score_rows

from .case import NO_ROWS, Case, RowNumbers
from .rejecting import Rejectors


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found out about all rows."""

    case: Case
    filtered: Filtered | None
    scored: Scored | None
    rejectors: Rejectors

    @property
    def infeasible(self) -> RowNumbers:
        feasible = NO_ROWS if self.filtered is None else self.filtered.feasible_rows
        return np.setdiff1d(self.case.alive, feasible)


def look(case: Case, outcome: Found | Failed) -> Looked:
    if case.prepared.rejected is not None:
        none = Rejectors((), case.alive, np.zeros((0, len(case.alive)), np.bool_))
        return Looked(case, None, None, none)
    # A decision looks at no more than it needs.
    filtered = find_feasible(case.profile, case.pod, case.prepared, case.nodes, outcome.tried_first)
    feasible = filtered.feasible_rows
    scored = score_rows(case.profile, case.pod, case.nodes, feasible) if len(feasible) else None
    return Looked(case, filtered, scored, Rejectors.of(case))
