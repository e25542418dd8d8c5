"""Edits of how much a pod asks for."""

from __future__ import annotations

from mooring.objects.pod import Pod

from .amounts import lowered, shown, with_limit
from .edit import Edit, replace


class LowerRequest(Edit, frozen=True):
    """The pod asks for less of a resource, in millicores, bytes or pieces."""

    resource: str
    by: int

    @property
    def told(self) -> str:
        return f"it asked for {shown(self.resource, self.by)} less {self.resource}"

    def applied(self, pod: Pod) -> Pod:
        return replace(pod, spec=lowered(pod.spec, self.resource, self.by))


class AskForDevice(Edit, frozen=True):
    """The pod asks for one device."""

    resource: str

    @property
    def told(self) -> str:
        return f"it had a limit of 1 {self.resource}"

    def applied(self, pod: Pod) -> Pod:
        return replace(pod, spec=with_limit(pod.spec, self.resource))
