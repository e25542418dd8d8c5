"""Finding the selectors that might match some labels without trying them all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from mooring.objects.selector import Labels, Selector

T = TypeVar("T")


class SelectorIndex(Generic[T]):
    """Items by a label that their selector insists on; the others are candidates always."""

    def __init__(self) -> None:
        self._anchored: dict[tuple[str, str], dict[T, None]] = {}
        self._loose: dict[T, None] = {}

    def add(self, selector: Selector, item: T) -> None:
        for anchor in _anchors(selector):
            self._anchored.setdefault(anchor, {})[item] = None
        if not _anchors(selector):
            self._loose[item] = None

    def discard(self, selector: Selector, item: T) -> None:
        for anchor in _anchors(selector):
            items = self._anchored[anchor]
            del items[item]
            if not items:
                del self._anchored[anchor]
        self._loose.pop(item, None)

    def candidates(self, labels: Labels) -> Iterator[T]:
        """Every item whose selector could match, each once."""
        yield from self._loose
        if self._anchored:
            for label in labels.items():
                yield from self._anchored.get(label, ())


def _anchors(selector: Selector) -> tuple[tuple[str, str], ...]:
    """The labels of which a match has exactly one: the values of the first In requirement."""
    for requirement in selector.requirements:
        if requirement.operator == "In":
            return tuple((requirement.key, value) for value in requirement.values)
    return ()
