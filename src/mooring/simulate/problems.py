"""What is wrong with the input, and where."""

from __future__ import annotations

from dataclasses import dataclass


class InputError(Exception):
    """Input that cannot be used. The text is one line: file, object, field, what is wrong."""

    def __init__(self, *parts: object) -> None:
        super().__init__(": ".join(filter(None, map(str, parts))))


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is written: documents count from 1, items of lists from 0."""

    file: str
    document: int
    path: str = ""

    def item(self, index: int) -> Place:
        """The place of an item of the list that is here."""
        return Place(self.file, self.document, f"{self.path}{'.' * bool(self.path)}items[{index}]")

    def __str__(self) -> str:
        place = f"{self.file}: document {self.document}"
        return f"{place}: {self.path}" if self.path else place
