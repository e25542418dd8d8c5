"""A group of pods that waits: one entry of the queue, with the pods that it stands for."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace as changed

from moorage.objects.pod import Pod
from moorage.objects.pod_group import GroupKey, PodGroup

from .queued_pod import QueuedPod


class QueuedGroup(QueuedPod, eq=False, gc=True):
    """A group in the queue or in flight. Its `pod` represents it wherever pods are ordered."""

    key: GroupKey = ("", "")
    #: The pods that are tried together, by uid.
    members: dict[str, QueuedPod] = msgspec.field(default_factory=dict)
    #: How much had happened that might help a group when it was refused; None if anything may help.
    refused_at: int | None = None
    #: Those that came while the group was in flight.
    late: dict[str, QueuedPod] = msgspec.field(default_factory=dict)

    @property
    def in_order(self) -> list[QueuedPod]:
        """Returns the members in the order in which they are tried."""
        return sorted(self.members.values(), key=_turn)

    def join(self, member: QueuedPod) -> None:
        self.members[member.pod.uid] = member
        self.refused_at = None
        member.place = self.place

    def leave(self, uid: str) -> None:
        self.members.pop(uid, None)
        self.late.pop(uid, None)

    def everyone(self) -> list[QueuedPod]:
        """Returns all waiting pods of the group, each with the place of the group."""
        everyone = [*self.members.values(), *self.late.values()]
        for member in everyone:
            member.place = self.place
        return everyone

    def start(self) -> None:
        super().start()
        for member in self.members.values():
            member.start()


def _turn(member: QueuedPod) -> tuple[int, int, float, int]:
    # Not by the property of the pod: this is called for every member, and a call takes long.
    priority = member.pod.spec.priority or 0
    return -priority, -member.attempts, member.timestamp, member.arrival


def head_of(group: PodGroup, member: Pod) -> Pod:
    """Makes a pod that represents a group, with its priority and a name that no pod can have."""
    priority = group.priority_beside(member)
    spec = member.spec
    if member.priority != priority:
        spec = changed(spec, priority=priority)
    name = f"podgroup {group.name} {group.group_key[0]}"
    uid = f"podgroup {group.group_key[0]} {group.key}"
    return changed(member, name=name, uid=uid, spec=spec, resource_version="")
