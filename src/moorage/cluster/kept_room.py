"""Room that is kept for a gang: nodes that refuse other pods while it waits."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.objects.daemons import is_daemonset_pod
from moorage.objects.pod import Pod
from moorage.objects.pod_group import GroupKey


@dataclass(frozen=True, slots=True)
class KeptRoom:
    """Nodes whose free room is kept for a group that has waited for long."""

    group: GroupKey
    priority: int
    #: Whether the group may evict pods of a lower priority. Then these may use the room meanwhile.
    may_evict: bool
    nodes: tuple[str, ...]

    def refuses(self, pod: Pod, group: GroupKey | None) -> bool:
        """Whether a pod, of a group or of none, is kept off the nodes."""
        if group == self.group or pod.priority > self.priority or is_daemonset_pod(pod):
            return False
        return pod.priority == self.priority or not self.may_evict
