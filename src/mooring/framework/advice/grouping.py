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

# Per set of short resources: the nearest miss, what would do for half of the nodes, and for all.
_MOST_AMOUNTS = 3


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


def near_misses(
    short: NDArray[np.int64], rows: RowNumbers, asked: NDArray[np.int64]
) -> Iterator[tuple[list[int], RowNumbers, str]]:
    """Per set of short amounts some shortages, the nearest first, and who has no larger one.

    `short` is int64[amount, row], `asked` has one number per amount. The text is "up to " where
    some of the rows lack less.
    """
    for places in sorted(like_columns(short > 0), key=len, reverse=True):
        distinct = np.unique(short[:, places], axis=1)
        shares = (distinct / np.maximum(asked, 1)[:, np.newaxis]).sum(axis=0)
        order = np.argsort(shares, kind="stable").tolist()
        if len(order) > _MOST_AMOUNTS:
            order = [order[0], order[len(order) // 2], order[-1]]
        for at in order:
            amounts = distinct[:, at]
            within = (short[:, places] <= amounts[:, np.newaxis]).all(axis=0)
            alike = (short[:, places[within]] == amounts[:, np.newaxis]).all()
            yield amounts.tolist(), rows[places[within]], "" if alike else "up to "
