"""What changed lately beside another scheduler, and how the cluster looked when it decided.

It binds a pod some time after it decided, and in any order: a pod that is bound earlier may have
been decided later. It decides in the order of its queue, which is known: by priority, then as pods
came.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec.structs import replace

from mooring.engine import Engine
from mooring.engine.events import Applied, Removed
from mooring.objects.meta import failure_to_place
from mooring.objects.node import Node
from mooring.objects.pod import Pod

# The state in which it decided is looked for among so many changes, within so many seconds.
RECENT_SECONDS = 10.0
_MOST_RECENT = 1024
# Where the order of the queue explains nothing, the latest changes are taken back one after the
# other. It is not looked at after each of them, but ever more rarely.
_LOOKS = frozenset((1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128))
_MOST_LOOKED_AT = max(_LOOKS)

#: Where a pod stands in the other's queue: what is less is decided earlier.
Turn = tuple[int, int]


@dataclass(slots=True, frozen=True)
class _Change:
    """What takes a change back, and what makes it again."""

    at: float
    undo: Applied | Removed
    redo: Applied | Removed
    #: The turn of a pod that came to a node.
    turn: Turn | None = None

    @property
    def uid(self) -> str:
        """The uid of the pod that came or went; empty for a node."""
        changed = self.undo.object
        return changed.uid if isinstance(changed, Pod) else ""


@dataclass(slots=True)
class ShadowHistory:
    """The changes of the last seconds in an engine that follows another scheduler."""

    engine: Engine
    _recent: deque[_Change] = field(default_factory=lambda: deque(maxlen=_MOST_RECENT))
    #: When pods came that wait, as a number, by uid; anew when they could not be placed.
    _arrivals: dict[str, int] = field(default_factory=dict)
    _arrived: int = 0

    def note_waiting(self, pod: Pod) -> None:
        """Takes note of a pod that waits."""
        if pod.uid not in self._arrivals or failure_to_place(pod.status.conditions) is not None:
            self._arrived += 1
            self._arrivals[pod.uid] = self._arrived

    def note_came(self, pod: Pod, now: float) -> None:
        """Takes note of a pod that has come to a node."""
        turn = self.find_turn(pod)
        self._arrivals.pop(pod.uid, None)
        self._remember(_Change(now, Removed(pod), Applied(pod), turn))

    def note_went(self, pod: Pod, now: float) -> None:
        """Takes note of a pod that leaves its node, in the form in which it was there."""
        self._remember(_Change(now, Applied(pod), Removed(pod)))

    def forget(self, pod: Pod) -> None:
        """Takes note of a pod that is gone."""
        self._arrivals.pop(pod.uid, None)

    def note_node(self, before: Node | None, after: Node | None, now: float) -> bool:
        """Takes note of a node that came, changed or went; returns whether it did."""
        if before is None and after is not None:
            self._remember(_Change(now, Removed(after), Applied(after)))
        elif after is None and before is not None:
            self._remember(_Change(now, Applied(before), Removed(before)))
        elif before is not None and after is not None and not _is_heartbeat(before, after):
            self._remember(_Change(now, Applied(before), Applied(after)))
        else:
            return False
        return True

    def _remember(self, change: _Change) -> None:
        self._recent.append(change)
        while change.at - self._recent[0].at > RECENT_SECONDS:
            self._recent.popleft()

    def find_turn(self, pod: Pod) -> Turn:
        """Where a pod stands in the other's queue."""
        return -pod.priority, self._arrivals.get(pod.uid, 0)

    def list_earlier(self, turn: Turn) -> set[str]:
        """The uids of pods that wait although their turn was earlier; those that failed aside."""
        return {
            uid
            for uid, pod in self.engine.pending_pods.items()
            if self.find_turn(pod) < turn and failure_to_place(pod.status.conditions) is None
        }

    def was_so(self, turn: Turn, now: float, is_so: Callable[[], bool]) -> bool:
        """Whether something was so when a pod of a turn was decided, as far as can be told."""
        return self.was_so_in_turn(turn, now, is_so) or self._was_so_lately(now, is_so)

    def was_so_in_turn(self, turn: Turn, now: float, is_so: Callable[[], bool]) -> bool:
        """Whether something was so without pods of this turn and later ones.

        The other may not have heard yet of the latest nodes that changed and pods that went.
        """
        recent = [each for each in self._recent if now - each.at <= RECENT_SECONDS]
        later = [each for each in recent if each.turn is not None and each.turn >= turn]
        pods = {each.uid for each in later}
        unheard = [each for each in recent if each.turn is None and each.uid not in pods]
        redone: list[Applied | Removed | None] = []
        try:
            redone += (self._undo(change, now) for change in reversed(later))
            return (bool(later) and is_so()) or self._was_so_before(unheard, redone, now, is_so)
        finally:
            self._redo(redone, now)

    def _was_so_lately(self, now: float, is_so: Callable[[], bool]) -> bool:
        """Whether something was so before some of the latest changes, whatever they are."""
        recent = [each for each in self._recent if now - each.at <= RECENT_SECONDS]
        redone: list[Applied | Removed | None] = []
        try:
            return self._was_so_before(recent, redone, now, is_so)
        finally:
            self._redo(redone, now)

    def _was_so_before(
        self,
        changes: list[_Change],
        redone: list[Applied | Removed | None],
        now: float,
        is_so: Callable[[], bool],
    ) -> bool:
        """Takes changes back, the latest first, until something is so; adds to what is redone."""
        for count, change in enumerate(reversed(changes[-_MOST_LOOKED_AT:]), start=1):
            redone.append(self._undo(change, now))
            if count in _LOOKS and is_so():
                return True
        return False

    def _undo(self, change: _Change, now: float) -> Applied | Removed | None:
        """Takes a change back; returns the event that makes it again, if it has to be made."""
        undo, redo = change.undo, change.redo
        if change.turn is not None and isinstance(undo.object, Pod):
            # It may have changed since it came, or may be gone.
            current = self.engine.cluster.pods.get(undo.object.uid)
            if current is None:
                return None
            undo, redo = Removed(current), Applied(current)
        self.engine.handle(undo, now)
        return redo

    def _redo(self, events: list[Applied | Removed | None], now: float) -> None:
        for event in reversed(events):
            if event is not None:
                self.engine.handle(event, now)


def _is_heartbeat(before: Node, after: Node) -> bool:
    """Whether nothing of a node has changed but its conditions and its version."""
    same = replace(before, conditions=after.conditions, resource_version=after.resource_version)
    return same == after
