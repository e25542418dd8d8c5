"""What people see of each kind in a table."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.embedded.kinds import Kind

from .column import NAME, Column, age

_PLAIN = (NAME, age())


def columns_of(kind: Kind) -> Sequence[Column]:
    """The columns of a kind."""
    return _PLAIN
