"""Recent changes beside another scheduler, and when pods came to its queue.

Events are numbered as they are seen. The other scheduler sees pods in the same order, because both
read one watch of pods. Other kinds have watches of their own, which do not wait for each other.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from msgspec.structs import replace

from moorage.cluster.recount import Identity, identity
from moorage.engine import Engine
from moorage.objects.kinds import Object
from moorage.objects.meta import failure_to_place
from moorage.objects.node import Node
from moorage.objects.pod import Pod

# The state in which the other decided is looked for among so many changes, within so many seconds.
RECENT_SECONDS = 10.0
_MOST_RECENT = 8192


@dataclass(slots=True, frozen=True)
class QueueTurn:
    """The turn of a pod in the other scheduler's queue: by priority, then by arrival."""

    priority: int
    #: The number under which it came, or came back.
    arrival: int
    #: The number under which it was seen first: the other has not decided it earlier.
    seen: int
    #: Whether it came back, or had to wait for something else: when it is taken up is unknown.
    is_open: bool = False

    @property
    def place(self) -> tuple[int, int]:
        """A sort key: smaller ones are decided earlier."""
        return -self.priority, self.arrival


@dataclass(slots=True, frozen=True)
class HistoryEntry:
    """A change of one object. None means that it does not exist or takes no room."""

    number: int
    at: float
    what: Identity
    before: Object | None
    after: Object | None
    #: The turn of a pod that came to a node from the queue of the other.
    turn: QueueTurn | None = None


@dataclass(slots=True)
class ShadowHistory:
    """The changes of the last seconds in an engine that follows another scheduler."""

    engine: Engine
    recent: deque[HistoryEntry] = field(default_factory=lambda: deque(maxlen=_MOST_RECENT))
    #: The number of what was seen last.
    number: int = 0
    #: The turns of pods that wait, by uid.
    _turns: dict[str, QueueTurn] = field(default_factory=dict)

    def note_waiting(self, pod: Pod) -> None:
        """Notes a pod that waits."""
        known = self._turns.get(pod.uid)
        failed = failure_to_place(pod.status.conditions) is not None
        if known is None or failed:
            self.number += 1
            is_open = failed or known is not None or bool(pod.spec.scheduling_gates)
            seen = self.number if known is None else known.seen
            self._turns[pod.uid] = QueueTurn(pod.priority, self.number, seen, is_open)

    def note_pod(self, before: Pod | None, after: Pod | None, now: float) -> None:
        """Notes a pod that came to a node, changed there or left."""
        pod = after or before
        assert pod is not None
        turn = self._turns.pop(pod.uid, None) if after is not None else None
        self._note(identity(pod), before, after, now, turn)

    def note_object(self, before: Object | None, after: Object | None, now: float) -> bool:
        """Notes another object that came, changed or left; returns whether it really changed."""
        item = after or before
        if item is None or (before is not None and after is not None and _is_same(before, after)):
            return False
        self._note(identity(item), before, after, now)
        return True

    def _note(
        self,
        what: Identity,
        before: Object | None,
        after: Object | None,
        now: float,
        turn: QueueTurn | None = None,
    ) -> None:
        self.number += 1
        self.recent.append(HistoryEntry(self.number, now, what, before, after, turn))
        while now - self.recent[0].at > RECENT_SECONDS:
            self.recent.popleft()

    def forget(self, pod: Pod) -> None:
        """Notes that a pod is gone."""
        self._turns.pop(pod.uid, None)

    def find_turn(self, pod: Pod) -> QueueTurn:
        """Returns the turn of a waiting pod in the other scheduler's queue."""
        unknown = QueueTurn(pod.priority, 0, 0, is_open=True)
        return self._turns.get(pod.uid, unknown)

    def list_earlier(self, turn: QueueTurn) -> set[str]:
        """Returns uids of pods that still wait although their turn was earlier.

        Pods that failed are left out.
        """
        return {
            uid
            for uid, pod in self.engine.pending_pods.items()
            if self.find_turn(pod).place < turn.place
            and failure_to_place(pod.status.conditions) is None
        }


def is_same_there(before: Pod, after: Pod) -> bool:
    """Whether nothing about a pod on a node has changed that decisions about others read."""
    return (
        before.spec is after.spec
        and before.labels == after.labels
        and before.terminating == after.terminating
        and before.held == after.held
    )


def _is_same(before: Object, after: Object) -> bool:
    """Whether only the version, or the conditions of a node, have changed."""
    if isinstance(before, Node) and isinstance(after, Node):
        before = replace(before, conditions=after.conditions)
    version = getattr(after, "resource_version", None)
    if version is not None:
        before = replace(before, resource_version=version)
    return before == after
