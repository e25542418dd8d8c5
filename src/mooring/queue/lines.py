"""Woken pods that are alike to decisions: they are tried one after another.

An event may wake thousands of like pods, and where the first of them fits nowhere, no other does.
So the first leads. If it is placed, or fails for a reason of its own, the next one leads. If it
fails as all others would, they go on waiting, and nothing was done for them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable
from dataclasses import dataclass

from mooring.objects.pod import Pod

from .queue_events import WakeAnswer
from .queued_pod import BACKING_OFF, QueuedPod
from .waiting_pods import LikePods


@dataclass(frozen=True, slots=True)
class Waking:
    """What woke some pods: what it means for them, and what it is called."""

    answer: WakeAnswer
    label: str


class Line:
    """The woken pods of one class, one of which is on its way."""

    __slots__ = ("leader", "like", "woken")

    def __init__(self, like: Hashable) -> None:
        self.like = like
        #: The pod that is tried first.
        self.leader: QueuedPod | None = None
        self.woken: dict[LikePods, Waking] = {}

    def next(self) -> tuple[QueuedPod, Waking] | None:
        """The pod that comes next, which is still filed."""
        while self.woken:
            pods, waking = next(iter(self.woken.items()))
            first = pods.first
            if first is not None:
                return first, waking
            del self.woken[pods]
        return None


class Lines:
    """All lines in which a pod leads."""

    __slots__ = ("_by_leader", "_by_like", "is_like")

    def __init__(self) -> None:
        #: Whether a pod is told by this still: claims and controllers change while pods wait.
        self.is_like: Callable[[Pod, Hashable], bool] = lambda pod, like: True
        self._by_like: dict[Hashable, Line] = {}
        self._by_leader: dict[str, Line] = {}

    def join(self, pods: LikePods, waking: Waking, now: float) -> Line | None:
        """Takes in pods that were woken; returns their line if the first of them is to go now."""
        line = self._by_like.get(pods.like)
        if line is None:
            line = self._by_like[pods.like] = Line(pods.like)
        known = line.woken.get(pods)
        if known is None or known.answer is WakeAnswer.AFTER_BACKOFF:
            line.woken[pods] = waking
        leader, first = line.leader, pods.first
        if leader is None or first is None:
            return line
        # Who backs off does not hold up who could be tried at once.
        overtakes = waking.answer is WakeAnswer.AT_ONCE or not first.backs_off(now)
        return line if overtakes and leader.place in BACKING_OFF else None

    def lead(self, line: Line, leader: QueuedPod | None) -> None:
        """Lets a pod go first; without one the line ends. Who is overtaken goes on by itself."""
        if line.leader is not None:
            del self._by_leader[line.leader.pod.uid]
        line.leader = leader
        if leader is not None:
            self._by_leader[leader.pod.uid] = line
        elif self._by_like.get(line.like) is line:
            del self._by_like[line.like]

    def step_down(self, uid: str) -> Line | None:
        """Takes note that a pod is out of the way; returns the line that it led, if it did."""
        line = self._by_leader.pop(uid, None)
        if line is not None:
            line.leader = None
        return line

    def dissolve(self, like: Hashable) -> None:
        """A pod failed as all pods like it would: those that were woken go on waiting."""
        line = self._by_like.get(like)
        if line is not None:
            for pods in list(line.woken):
                first = pods.first
                if first is None or self.is_like(first.pod, like):
                    del line.woken[pods]

    def check(self, places: Container[str]) -> None:
        """Raises AssertionError unless whoever leads is on its way."""
        for uid, line in self._by_leader.items():
            assert uid in places, f"{uid} leads a line and is not on its way"
            assert self._by_like.get(line.like) is line, f"the line of {uid} is lost"
        for line in self._by_like.values():
            assert line.leader is not None, "nobody leads a line"
            assert line.leader.pod.uid in self._by_leader, "a leader is not known to lead"


def decided_alike(old: Pod, new: Pod) -> bool:
    """Whether a pod that changed is to decisions what it was."""
    return (
        old.spec is new.spec
        and old.labels == new.labels
        and old.annotations == new.annotations
        and old.owner == new.owner
        and old.nominated_node_name == new.nominated_node_name
        and not new.status.sizes
    )
