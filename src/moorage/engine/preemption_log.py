"""The latest preemptions, for people who watch the scheduler."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.objects.workload import owner_text

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


class _Preemption(msgspec.Struct, frozen=True, eq=False):
    """One preemption as it was noted."""

    serial: int
    preemptor: Pod | PodGroup
    node: str
    count: int
    #: The first of the victims.
    named: Sequence[Pod]

    def tell(self) -> PreemptionEntry:
        """Returns it in texts."""
        key = self.preemptor.key
        owner = owner_text(self.preemptor) if isinstance(self.preemptor, Pod) else f"group {key}"
        victims = tuple(each.key for each in self.named)
        return PreemptionEntry(self.serial, key, owner, self.node, self.count, victims)


class PreemptionLog:
    """The latest preemptions. They influence no decision."""

    def __init__(self) -> None:
        #: Texts are made when somebody reads them.
        self._noted: deque[_Preemption] = deque(maxlen=_MOST_ENTRIES)
        #: How many there were in all.
        self.count = 0

    def since(self, count: int) -> list[PreemptionEntry]:
        """Returns the entries after that many, as far as they are kept, the oldest first."""
        return [each.tell() for each in self._noted if each.serial > count]

    def note_pod(self, pod: Pod, node: str, victims: Sequence[Pod]) -> None:
        """Notes that pods are evicted for a pod."""
        self._note(pod, node, victims)

    def note_group(self, group: PodGroup, victims: Sequence[Pod]) -> None:
        """Notes that pods are evicted for a group."""
        self._note(group, "", victims)

    def _note(self, preemptor: Pod | PodGroup, node: str, victims: Sequence[Pod]) -> None:
        self.count += 1
        named = victims[:_MOST_NAMED]
        self._noted.append(_Preemption(self.count, preemptor, node, len(victims), named))
