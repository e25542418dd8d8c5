"""PrioritySort: the more important pod first; among equals, the one that has waited longest."""

from __future__ import annotations

from moorage.cluster import Change, Scope
from moorage.framework.plugin import QueueSort
from moorage.objects.pod import Pod


class PrioritySort(QueueSort):
    """Orders waiting pods by priority, then by the time they joined the queue."""

    name = "PrioritySort"
    reads = Change.NONE
    scope = Scope.ROW

    def key(self, pod: Pod, timestamp: float) -> tuple[int, float]:
        return -pod.priority, timestamp
