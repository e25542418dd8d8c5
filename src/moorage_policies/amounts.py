"""Amounts that users and agents write, and the share of them that is in use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.plugin import MAX_SCORE, DecodeError, Quantity, Scores, describe

# A pebibyte: far beyond any node, and the sum over the pods of a node fits a column.
MOST_COUNTED = 2**50


def read_amount(field: str, found: Any) -> int:
    """Returns a quantity in whole units, rounded up; raises DecodeError naming the field."""
    if not isinstance(found, str | int | float) or isinstance(found, bool):
        raise DecodeError(f"must be a quantity, got {describe(found)}", field)
    try:
        amount = Quantity.parse(found).value
    except ValueError:
        raise DecodeError(f"must be a quantity, got {describe(found)}", field) from None
    if amount < 0:
        raise DecodeError(f"must not be negative, got {describe(found)}", field)
    return min(amount, MOST_COUNTED)


def share(capacity: int, used: int, *, packs: bool) -> int:
    """Returns what is left of a capacity, or if `packs` what is used, from 0 to 100.

    It is 0 if more is used than there is.
    """
    if used > capacity:
        return 0
    left = (capacity - used) * MAX_SCORE // max(capacity, 1)
    return MAX_SCORE - left if packs else left


def shares(capacity: NDArray[np.int64], used: NDArray[np.int64], *, packs: bool) -> Scores:
    """Returns the same for many rows."""
    left: Scores = np.clip(capacity - used, 0, None) * MAX_SCORE // np.maximum(capacity, 1)
    return np.where(used <= capacity, MAX_SCORE - left, 0) if packs else left
