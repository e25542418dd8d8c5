"""Which nodes have which container image."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from mooring.objects.node import ContainerImage

from .arrays import grown


class Image:
    """An image by one of its names. Its size is what the first node to report it said."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.rows: set[int] = set()
        self._present: NDArray[np.bool_] | None = None

    def put(self, row: int) -> None:
        self.rows.add(row)
        if self._present is not None:
            self._present = grown(self._present, row + 1, False)
            self._present[row] = True

    def take(self, row: int) -> None:
        self.rows.discard(row)
        if self._present is not None:
            self._present[row] = False

    def present(self, capacity: int) -> NDArray[np.bool_]:
        """Whether each row has it: a column made when first asked for."""
        if self._present is None:
            self._present = np.zeros(capacity, np.bool_)
            self._present[list(self.rows)] = True
        elif len(self._present) < capacity:
            self._present = grown(self._present, capacity, False)
        return self._present


class Images:
    """All images on all nodes."""

    def __init__(self) -> None:
        self._images: dict[str, Image] = {}

    def get(self, name: str) -> Image | None:
        return self._images.get(name)

    def put(self, row: int, images: Iterable[ContainerImage]) -> None:
        for name, size in _names(images):
            image = self._images.get(name)
            if image is None:
                image = self._images[name] = Image(size)
            image.put(row)

    def take(self, row: int, images: Iterable[ContainerImage]) -> None:
        for name, _ in _names(images):
            image = self._images.get(name)
            if image is not None:
                image.take(row)
                if not image.rows:
                    del self._images[name]

    def __iter__(self) -> Iterator[tuple[str, Image]]:
        return iter(self._images.items())


def _names(images: Iterable[ContainerImage]) -> Iterator[tuple[str, int]]:
    for image in images:
        for name in image.names or ():
            yield name, image.size_bytes
