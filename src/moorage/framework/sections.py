"""What plugins show on the page: tables for people. They influence no decision."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from moorage.cluster import View

from .plugin import Plugin

#: A text, a number, or amounts by resource, in native units.
Cell = str | int | dict[str, int]


@dataclass(frozen=True, slots=True)
class Section:
    """A table, and what there is to know about it before its rows."""

    #: What its address is made of.
    name: str
    title: str
    heads: tuple[str, ...]
    #: What is shown if it has no rows.
    empty: str


class ShowSection(Plugin):
    """Shows people a table on the page.

    Of plugins that show a section of one name, the last one of a profile does it.
    """

    section: Section

    @abstractmethod
    def section_rows(self, nodes: View) -> Iterable[tuple[Cell, ...]]:
        """Returns the rows, the most important first: a cell for each head, the first a name.

        The nodes show everything. Only so many rows are taken as are shown, so yield them.
        """
