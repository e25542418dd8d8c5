"""What advisors propose, before anybody has tried it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from mooring.cluster import Mask

from .case import Case, RowNumbers
from .data import Kind
from .edits import AnyEdit, PodAt
from .rejecting import like_columns

E = TypeVar("E", bound=AnyEdit)

# Of very different nodes, so many groups are worth a try: the largest ones.
MOST_GROUPS = 6

# To change more at once is no near miss.
MOST_EDITS = 3

# Enough blockers to see what they are.
MOST_BLOCKERS = 10


@dataclass(frozen=True, slots=True)
class Proposal:
    """What stands in the way of a pod on some rows, and edits that may help there."""

    kind: Kind
    problem: str
    edits: tuple[AnyEdit, ...] = ()
    blockers: tuple[PodAt, ...] = ()


#: Looks at rows that its plugin rejects, or at all rows where the plugin rejects the pod itself.
Advisor = Callable[[Case, RowNumbers], Iterator[Proposal]]


def failing_sets(
    flags: Mapping[E, Mask], rows: RowNumbers
) -> Iterator[tuple[tuple[E, ...], RowNumbers]]:
    """Rows by what fails there, given where each thing fails that an edit would mend.

    The largest groups come first; where too much fails, nothing is proposed.
    """
    edits = tuple(flags)
    if not edits:
        return
    failed = np.array([flags[edit] for edit in edits], np.bool_)
    groups = sorted(like_columns(failed), key=len, reverse=True)
    for places in groups[:MOST_GROUPS]:
        column = failed[:, places[0]]
        wrong = tuple(edit for edit, fails in zip(edits, column, strict=True) if fails)
        if 0 < len(wrong) <= MOST_EDITS:
            yield wrong, rows[places]


def on_nodes(rows: RowNumbers, case: Case) -> str:
    """How many nodes, or which one."""
    if len(rows) == 1:
        return f"node {case.actual.name(int(rows[0]))}"
    return f"{len(rows)} nodes"
