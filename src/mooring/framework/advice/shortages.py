"""Amounts that are short: the nearest miss of like nodes, and what would do for more of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .grouping import MOST_GROUPS

RowNumbers = NDArray[np.intp]
Amounts = NDArray[np.int64]

# Whoever must ask for less than half would ask for something else.
_FAR = 0.5


@dataclass(frozen=True, slots=True)
class NearMiss:
    """So much is short at most on some rows, out of a group of like ones."""

    #: int64[amount]
    short: Amounts
    rows: RowNumbers
    group: RowNumbers
    #: Whether exactly that is short on all of the rows.
    is_exact: bool
    #: How much less to ask for, as shares of what was asked, summed.
    share: float

    @property
    def is_nearest_of_many(self) -> bool:
        return len(self.rows) < len(self.group)


def near_misses(
    short: Amounts, rows: RowNumbers, asked: Amounts, like: Amounts | None = None
) -> list[NearMiss]:
    """The nearest miss of every group, the nearest of all first; then what would do for more rows.

    `short` is int64[amount, row], `asked` has one number per amount. Rows of a group lack the same
    amounts, more or less of each, and have equal columns in `like`.
    """
    keys = (short > 0).astype(np.int64)
    if like is not None:
        keys = np.concatenate((keys, like))
    found = [list(_of_group(short[:, places], rows[places], asked)) for places in _groups(keys)]
    nearest = sorted((each[0] for each in found if each), key=lambda miss: miss.share)
    return [*nearest, *(miss for each in found for miss in each[1:])]


def _groups(keys: Amounts) -> list[RowNumbers]:
    """The places of equal columns: the largest groups."""
    _, codes = np.unique(keys, axis=1, return_inverse=True)
    order = np.argsort(codes.ravel(), kind="stable")
    begins = np.flatnonzero(np.diff(codes.ravel()[order])) + 1
    groups = [each for each in np.split(order, begins) if len(each)]
    return sorted(groups, key=len, reverse=True)[:MOST_GROUPS]


def _of_group(short: Amounts, group: RowNumbers, asked: Amounts) -> Iterator[NearMiss]:
    """The nearest miss, what would do for half of the rows, and for all, unless that is far."""
    distinct = np.unique(short, axis=1)
    distinct = distinct[:, distinct.any(axis=0)]
    shares = (distinct / np.maximum(asked, 1)[:, np.newaxis]).sum(axis=0)
    order = np.argsort(shares, kind="stable").tolist()
    for at in dict.fromkeys((*order[:1], *order[len(order) // 2 :][:1], *order[-1:])):
        amounts, share = distinct[:, at], float(shares[at])
        if at == order[0] or (amounts <= asked * _FAR).all():
            within = (short <= amounts[:, np.newaxis]).all(axis=0)
            is_exact = bool((short[:, within] == amounts[:, np.newaxis]).all())
            yield NearMiss(amounts, group[within], group, is_exact, share)
