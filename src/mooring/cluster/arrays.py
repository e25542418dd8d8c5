"""Arrays that grow by doubling."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

A = TypeVar("A", bound=np.generic)


def grown(array: NDArray[A], length: int, fill: Any = 0) -> NDArray[A]:
    """The array with at least that many last-axis places, new ones holding `fill`."""
    have = array.shape[-1]
    if have >= length:
        return array
    bigger = np.full((*array.shape[:-1], max(length, 2 * have)), fill, array.dtype)
    bigger[..., :have] = array
    return bigger


def frozen(array: NDArray[A]) -> NDArray[A]:
    """A view of the array through which it cannot be written."""
    view = array.view()
    view.flags.writeable = False
    return view
