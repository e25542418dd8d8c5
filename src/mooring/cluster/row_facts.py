"""One row in plain numbers, for what is asked row by row and often."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RowFacts:
    """What a row has and what is taken, by the place of each resource."""

    number: int
    allocatable: list[int]
    requested: list[int]
    #: Cpu and memory as scoring counts them.
    nonzero_requested: list[int]
    #: What plugins found out about the row alone, whichever pod: good while these facts are.
    derived: dict[Hashable, int] = field(default_factory=dict)
