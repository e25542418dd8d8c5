"""What plugins show people: tables on the page, and figures at /metrics.

Nothing of it influences a decision.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from moorage.cluster import View
from moorage.objects.pod import Pod

from .plugin import Plugin
from .series import Series

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


class ShowFigures(Plugin):
    """Shows figures of the cluster at /metrics, which are the same for all profiles."""

    @abstractmethod
    def figures(self, nodes: View, waiting: Iterable[Pod]) -> Iterator[Series | None]:
        """Yields counters and gauges, made for this answer.

        The nodes show everything; `waiting` are the pods in the queue. Between pods or nodes, if
        there are many, yield None every millisecond or two: then decisions go on.
        """
