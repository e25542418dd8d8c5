"""The latest preemptions, for people who watch the scheduler."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from mooring.objects.pod import Pod
from mooring.objects.pod_group import PodGroup
from mooring.objects.workload import owner_text

# Preemptions that are kept, and victims that each of them names.
_MOST_ENTRIES = 64
_MOST_NAMED = 20


class PreemptionEntry(msgspec.Struct, frozen=True):
    """One preemption: pods are evicted for a pod or a group."""

    #: Counts all preemptions, from 1 on.
    serial: int
    #: The pod or the group as namespace/name.
    preemptor: str
    #: The workload that the pod belongs to, or the group.
    owner: str
    #: Where; empty for a group, whose victims may be on many nodes.
    node: str
    #: How many have to go, and the first of them as namespace/name.
    count: int
    victims: tuple[str, ...]


class PreemptionLog:
    """The latest preemptions. They influence no decision."""

    def __init__(self) -> None:
        self._entries: deque[PreemptionEntry] = deque(maxlen=_MOST_ENTRIES)
        #: How many there were in all.
        self.count = 0

    def since(self, count: int) -> list[PreemptionEntry]:
        """Returns the entries after that many, as far as they are kept, the oldest first."""
        return [each for each in self._entries if each.serial > count]

    def note_pod(self, pod: Pod, node: str, victims: Sequence[Pod]) -> None:
        """Notes that pods are evicted for a pod."""
        self._note(pod.key, owner_text(pod), node, victims)

    def note_group(self, group: PodGroup, victims: Sequence[Pod]) -> None:
        """Notes that pods are evicted for a group."""
        self._note(group.key, f"group {group.key}", "", victims)

    def _note(self, preemptor: str, owner: str, node: str, victims: Sequence[Pod]) -> None:
        self.count += 1
        named = tuple(each.key for each in victims[:_MOST_NAMED])
        entry = PreemptionEntry(self.count, preemptor, owner, node, len(victims), named)
        self._entries.append(entry)
