"""The pods counted in an extended resource, whatever its author's code does."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.objects.pod import Pod

from .extended import ExtendedResource

# A hundredfold of the difference of two such figures, by which plugins work out shares, fits the
# 64 bits of a column.
_MOST = 2**53


class Counted:
    """A resource with the pods of its node: what it is without any, and these on top.

    That holds even where `add_pod` or `remove_pod` raises half way: then all is counted anew.
    """

    __slots__ = ("_empty", "figures", "pods", "resource")

    def __init__(self, empty: ExtendedResource) -> None:
        self._empty = empty.copy()
        self.resource = empty.copy()
        self.pods: dict[str, Pod] = {}
        self.figures = _figures(self.resource)

    def empty(self) -> ExtendedResource:
        """The resource as it would be without pods."""
        return self._empty.copy()

    def emptied(self) -> ExtendedResource:
        """The resource as it is now, somebody having changed it, with its pods taken off."""
        resource = self.resource.copy()
        for pod in self.pods.values():
            resource.remove_pod(pod)
        return resource

    def copied(self) -> Counted:
        """One that can be counted in without changing this one."""
        other = object.__new__(Counted)
        other._empty = self._empty
        other.resource = self.resource.copy()
        other.pods = dict(self.pods)
        other.figures = self.figures
        return other

    def add(self, pod: Pod) -> dict[str, BaseException]:
        """Counts a pod; tells what was raised, by the uid of the pod that is left out for it."""
        try:
            self.resource.add_pod(pod)
            self.figures = _figures(self.resource)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - an author's code must not lose count of a pod
            return {pod.uid: error, **self._recount()}
        self.pods[pod.uid] = pod
        return {}

    def remove(self, uid: str) -> dict[str, BaseException]:
        """Takes a pod off; one that was left out is not there to be taken off."""
        pod = self.pods.pop(uid, None)
        if pod is None:
            return {}
        try:
            self.resource.remove_pod(pod)
            self.figures = _figures(self.resource)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the pod is gone, whatever its author's code says
            return {uid: error, **self._recount()}
        return {}

    def _recount(self) -> dict[str, BaseException]:
        """Counts all pods anew; tells which of them are left out because of what they raised."""
        left_out: dict[str, BaseException] = {}
        while (failed := self._replay()) is not None:
            uid, error = failed
            left_out[uid] = error
            if self.pods.pop(uid, None) is None:
                break
        return left_out

    def _replay(self) -> tuple[str, BaseException] | None:
        """Counts all pods in a copy; None if that went well, else with whom it did not."""
        last = ""
        try:
            fresh = self._empty.copy()
            for last, pod in self.pods.items():  # noqa: B007 - it is told when something is raised
                fresh.add_pod(pod)
            self.figures = _figures(fresh)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - who was counted once may fail now
            return last, error
        self.resource = fresh
        return None


def _figures(resource: ExtendedResource) -> Mapping[str, int]:
    """The figures of a resource, within what a column holds."""
    return {name: max(-_MOST, min(int(value), _MOST)) for name, value in resource.figures().items()}
