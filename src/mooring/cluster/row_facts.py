"""One row in plain numbers, for what is asked row by row and often."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RowFacts:
    """What a row has and what is taken, by the place of each resource."""

    number: int
    allocatable: list[int]
    requested: list[int]
    #: Cpu and memory as scoring counts them.
    nonzero_requested: list[int]
