"""What pods take of the rows they are on, as columns that can be added up and shifted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.objects.coexist import is_exclusive, is_ordinary
from mooring.objects.pod import Pod
from mooring.objects.resources import PODS

from .arrays import grown
from .requests import add_requests
from .sums import Sums

_EXCLUSIVE, _ORDINARY = 0, 1


@dataclass(frozen=True, slots=True)
class Taken:
    """Room, and who has to be tolerated. A place is a pod or a row, as whoever keeps it says."""

    #: int64[resource, place]
    requests: Sums
    #: int64[exclusive or ordinary, place]: how many such pods.
    coexisting: NDArray[np.int64]

    @classmethod
    def nothing(cls, shape: tuple[int, ...]) -> Taken:
        """Nothing, for so many resources and places."""
        return cls(Sums.zeros(shape), np.zeros((2, shape[1]), np.int64))

    def count(self, pod: Pod, place: int, amount: int, resources: Mapping[str, int]) -> None:
        """Adds (1) or takes away (-1) what a pod takes of resources that have a column."""
        add_requests(self.requests, resources, pod.held, place, amount)
        self.coexisting[_EXCLUSIVE, place] += amount * is_exclusive(pod)
        self.coexisting[_ORDINARY, place] += amount * is_ordinary(pod)

    def clear(self, place: int) -> None:
        self.requests.clear(place)
        self.coexisting[:, place] = 0

    def pods(self, resources: Mapping[str, int]) -> NDArray[np.int64]:
        """How many pods there are per place."""
        return self.requests.array[resources[PODS]]

    @property
    def exclusive(self) -> NDArray[np.int64]:
        return self.coexisting[_EXCLUSIVE]

    @property
    def ordinary(self) -> NDArray[np.int64]:
        return self.coexisting[_ORDINARY]

    def at(self, places: NDArray[np.intp]) -> Taken:
        """What is taken at some places."""
        return Taken(self.requests.at(places), self.coexisting.take(places, axis=1))

    def summed(self, begins: NDArray[np.intp]) -> Taken:
        """Sums of the places from each beginning to the next."""
        return Taken(
            self.requests.reduced(begins), np.add.reduceat(self.coexisting, begins, axis=1)
        )

    def fitted(self, shape: tuple[int, ...]) -> Taken:
        """The same with room for resources and places that came later."""
        if self.requests.array.shape == shape:
            return self
        places = shape[1]
        return Taken(self.requests.fitted(shape), grown(self.coexisting, places)[:, :places])

    def copied(self) -> Taken:
        return Taken(self.requests.copied(), self.coexisting.copy())

    def __neg__(self) -> Taken:
        return Taken(-self.requests, -self.coexisting)

    def __add__(self, other: Taken) -> Taken:
        return Taken(self.requests + other.requests, self.coexisting + other.coexisting)
