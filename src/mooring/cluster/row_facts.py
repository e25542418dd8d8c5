"""One row in plain numbers, for what is asked row by row and often."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

#: All numbers of a row, in one value that can be compared and looked up.
Figures = tuple[int, ...]


@dataclass(slots=True)
class RowFacts:
    """What a row has and what is taken, by the place of each resource."""

    number: int
    allocatable: list[int]
    requested: list[int]
    #: Cpu and memory as scoring counts them.
    nonzero_requested: list[int]
    #: What plugins found out about the row alone, whichever pod: good while these facts are.
    derived: dict[Hashable, int] = field(default_factory=dict)
    _figures: Figures | None = None

    @property
    def figures(self) -> Figures:
        """All numbers: whoever reads nothing else says the same of rows whose figures are equal."""
        known = self._figures
        if known is None:
            known = (*self.allocatable, *self.requested, *self.nonzero_requested)
            self._figures = known
        return known

    def changed(self) -> None:
        """Some numbers are others now: what was made of them is forgotten."""
        self._figures = None
        self.derived.clear()
