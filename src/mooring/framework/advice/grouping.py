"""Nodes that are alike in what keeps a pod off them, so that there is one advice for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Mask
from mooring.framework.edits import AnyEdit

E = TypeVar("E", bound=AnyEdit)
RowNumbers = NDArray[np.intp]

# Of very different nodes, so many groups are worth a try: the largest ones.
MOST_GROUPS = 6

# To change more at once is no near miss.
MOST_EDITS = 3


def like_columns(flags: NDArray[np.bool_]) -> list[RowNumbers]:
    """The places of equal columns of bool[flag, place], together."""
    if not flags.size:
        return [np.arange(flags.shape[1])] if flags.shape[1] else []
    packed = np.ascontiguousarray(np.packbits(flags, axis=0).T)
    whole = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, codes = np.unique(whole, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    begins = np.flatnonzero(np.diff(codes[order])) + 1
    return np.split(order, begins)


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
