"""The pods of groups: with their group, or aside while it is not known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moorage.objects.pod_group import GroupKey

from .queued_group import QueuedGroup
from .queued_pod import Place, QueuedPod


class GroupMembers:
    """Which pods of groups wait or are in flight, and where each of them is."""

    __slots__ = ("_aside", "_key_of", "entries")

    def __init__(self) -> None:
        #: The entry of each group of which pods wait or are in flight.
        self.entries: dict[GroupKey, QueuedGroup] = {}
        # Pods whose group is not known.
        self._aside: dict[GroupKey, dict[str, QueuedPod]] = {}
        # The group of each pod, by uid.
        self._key_of: dict[str, GroupKey] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._key_of

    def key_of(self, uid: str) -> GroupKey | None:
        """Returns the group that a pod is kept under; None if the pod is not here."""
        return self._key_of.get(uid)

    def find(self, uid: str) -> tuple[QueuedPod, QueuedGroup | None]:
        """Returns a pod that is here and the entry of its group; None if it is kept aside."""
        key = self._key_of[uid]
        entry = self.entries.get(key)
        if entry is None:
            return self._aside[key][uid], None
        return entry.members.get(uid) or entry.late[uid], entry

    def note_group(self, uid: str, key: GroupKey) -> None:
        """Notes the group of a pod that comes. The caller puts it with its group, or aside."""
        self._key_of[uid] = key

    def remove(self, uid: str) -> QueuedGroup | None:
        """Removes a pod, and returns the entry of the group that it leaves, if it has one."""
        key = self._key_of.pop(uid)
        aside = self._aside.get(key)
        if aside is not None and aside.pop(uid, None) is not None:
            if not aside:
                del self._aside[key]
            return None
        entry = self.entries[key]
        entry.leave(uid)
        return entry

    def remove_placed(self, entry: QueuedGroup, uids: Iterable[str]) -> None:
        """Removes members of a group in flight that have a node."""
        for uid in uids:
            self._key_of.pop(uid, None)
            entry.members.pop(uid, None)

    def set_aside(self, key: GroupKey, members: Iterable[QueuedPod]) -> None:
        """Keeps pods until their group is known."""
        for member in members:
            member.place = Place.INCOMPLETE
            self._aside.setdefault(key, {})[member.pod.uid] = member

    def take_aside(self, key: GroupKey) -> Iterable[QueuedPod]:
        """Returns the pods that were kept until this group is known, and keeps them no longer."""
        return self._aside.pop(key, {}).values()

    def get_aside(self) -> Iterator[QueuedPod]:
        """Yields the pods whose group is not known."""
        for members in self._aside.values():
            yield from members.values()

    def check(self) -> None:
        """Raises AssertionError unless each pod is with its group or aside."""
        for uid, key in self._key_of.items():
            entry = self.entries.get(key)
            aside = self._aside.get(key, {})
            found = uid in aside, entry is not None and uid in {*entry.members, *entry.late}
            assert sum(found) == 1, f"{uid} of {key} is aside or in its group: {found}"
