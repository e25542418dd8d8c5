"""Counts pods in extended resources, and keeps the figures of these as columns."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from moorage.cluster.arrays import freeze, grow_to
from moorage.documents.errors import STOPPED
from moorage.objects.pod import Pod

from .contract import ExtendedResource


class ExtendedColumns:
    """The rows that have a resource, and the figures that its handle wants kept."""

    __slots__ = ("_figures", "_places", "_present")

    def __init__(self, names: tuple[str, ...], capacity: int) -> None:
        self._places = {name: at for at, name in enumerate(names)}
        self._present: NDArray[np.bool_] = np.zeros(capacity, np.bool_)
        self._figures: NDArray[np.int64] = np.zeros((len(names), capacity), np.int64)

    @property
    def present(self) -> NDArray[np.bool_]:
        """bool[row]: where there is a resource."""
        return freeze(self._present)

    def __getitem__(self, name: str) -> NDArray[np.int64]:
        """int64[row]: a figure, 0 where there is no resource."""
        return freeze(self._figures[self._places[name]])

    def at(self, row: int) -> list[int] | None:
        """Returns the figures of one row, in the order of `names`; None without a resource."""
        return self._figures[:, row].tolist() if self._present[row] else None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._places)

    def put(self, row: int, figures: Mapping[str, int]) -> None:
        self._present[row] = True
        for name, at in self._places.items():
            # An author's code may leave out later what it had at first.
            self._figures[at, row] = figures.get(name, 0)

    def clear(self, row: int) -> None:
        self._present[row] = False
        self._figures[:, row] = 0

    def grow(self, capacity: int) -> None:
        self._present = grow_to(self._present, capacity, False)
        self._figures = grow_to(self._figures, capacity)

    def copy(self) -> ExtendedColumns:
        other = object.__new__(ExtendedColumns)
        other._places = self._places
        other._present = self._present.copy()
        other._figures = self._figures.copy()
        return other


# A hundredfold of the difference of two such figures, by which plugins work out shares, fits the
# 64 bits of a column.
_MOST = 2**53


class Counted:
    """A resource with the pods of its node: the resource without any, and these on top.

    This holds even if `add_pod` or `remove_pod` raises half way: then all is counted anew.
    """

    __slots__ = ("_empty", "figures", "pods", "resource")

    def __init__(self, empty: ExtendedResource) -> None:
        self._empty = empty.copy()
        self.resource = empty.copy()
        self.pods: dict[str, Pod] = {}
        self.figures = _figures(self.resource)

    def empty(self) -> ExtendedResource:
        """Returns the resource as it would be without pods."""
        return self._empty.copy()

    def without_pods(self) -> ExtendedResource:
        """Returns the present resource, which somebody changed, with its pods removed."""
        resource = self.resource.copy()
        for pod in self.pods.values():
            resource.remove_pod(pod)
        return resource

    def copy(self) -> Counted:
        """Returns a copy that can be changed on its own."""
        other = object.__new__(Counted)
        other._empty = self._empty
        other.resource = self.resource.copy()
        other.pods = dict(self.pods)
        other.figures = self.figures
        return other

    def add(self, pod: Pod) -> dict[str, BaseException]:
        """Counts a pod; returns what was raised, by the uid of the pod that is left out for it."""
        try:
            self.resource.add_pod(pod)
            self.figures = _figures(self.resource)
        except STOPPED as error:  # an author's code must not lose count of a pod
            return {pod.uid: error, **self._recount()}
        self.pods[pod.uid] = pod
        return {}

    def remove(self, uid: str) -> dict[str, BaseException]:
        """Removes a pod; a pod that was left out needs no removal."""
        pod = self.pods.pop(uid, None)
        if pod is None:
            return {}
        try:
            self.resource.remove_pod(pod)
            self.figures = _figures(self.resource)
        except STOPPED as error:  # the pod is gone, whatever its author's code says
            return {uid: error, **self._recount()}
        return {}

    def _recount(self) -> dict[str, BaseException]:
        """Counts all pods anew; returns those that are left out, with what they raised."""
        left_out: dict[str, BaseException] = {}
        while (failed := self._replay()) is not None:
            uid, error = failed
            left_out[uid] = error
            if self.pods.pop(uid, None) is None:
                break
        return left_out

    def _replay(self) -> tuple[str, BaseException] | None:
        """Counts all pods in a copy; returns None on success, else the pod that failed."""
        last = ""
        try:
            fresh = self._empty.copy()
            for last, pod in self.pods.items():  # noqa: B007 - it is told when something is raised
                fresh.add_pod(pod)
            self.figures = _figures(fresh)
        except STOPPED as error:  # who was counted once may fail now
            return last, error
        self.resource = fresh
        return None


def _figures(resource: ExtendedResource) -> Mapping[str, int]:
    """Returns the figures of a resource, within what a column holds."""
    # Mostly they are plain numbers within it: this is done for every pod that is counted.
    return {
        name: value if type(value) is int and -_MOST <= value <= _MOST else _limit(value)
        for name, value in resource.figures().items()
    }


def _limit(value: int) -> int:
    return max(-_MOST, min(int(value), _MOST))
