"""When a group that was not placed is tried again: its backoff, and whether anything may help."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto
from math import floor, sqrt

from .queued_group import QueuedGroup
from .queued_pod import NEVER_FAILED, Backoff

# Of many groups that wait, so many come back in the same second; but none comes later than this.
_GROUPS_PER_SECOND, _MOST_SPREAD_SECONDS = 64, 8


class GroupReturn(Enum):
    """How an attempt to place a group ended, for the queue."""

    #: Tried again after its backoff.
    REFUSED = auto()
    #: Tried again after its backoff, which counts errors only.
    FAILED = auto()
    #: It was placed, and members are left over: they are tried at once.
    LEFT_OVER = auto()


class GroupBackoff:
    """The backoff of groups. A group that needs room waits on until something may have made room.

    `groups` is how many groups there are in the queue or in flight.
    """

    __slots__ = ("_backoff", "helpful")

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        #: Counts what happened that might help a refused group: all but that a pod got a node.
        self.helpful = 0

    def begin(self, entry: QueuedGroup, how: GroupReturn, now: float) -> None:
        """Begins the backoff of a group that returns from an attempt."""
        entry.refused_at = None
        if how is GroupReturn.LEFT_OVER:
            entry.unschedulable_count = entry.consecutive_errors = 0
            entry.expiry = NEVER_FAILED
            return
        if how is GroupReturn.FAILED:
            entry.consecutive_errors += 1
        else:
            entry.unschedulable_count += 1
            entry.consecutive_errors = 0
        entry.expiry = self._backoff_of(entry).expiry(now, entry.failures)

    def await_help(self, entry: QueuedGroup, groups: int) -> None:
        """Lets a group that only needs room wait until something happens that may make room."""
        entry.refused_at = self.helpful
        entry.expiry += _spread(entry, groups)

    def may_be_helped(self, entry: QueuedGroup) -> bool:
        """Whether something has happened since a group was refused that may help it."""
        return entry.refused_at != self.helpful

    def begin_again(self, entry: QueuedGroup, now: float, groups: int) -> None:
        """Begins the backoff of a group anew, without an attempt."""
        seconds = self._backoff_of(entry).seconds(entry.failures)
        entry.expiry = floor(now + seconds) + _spread(entry, groups)

    def _backoff_of(self, entry: QueuedGroup) -> Backoff:
        """Returns the backoff of a group: the more members are tried, the longer it may last."""
        longest = self._backoff.maximum * sqrt(max(len(entry.members), 1))
        return replace(self._backoff, maximum=longest)


def _spread(entry: QueuedGroup, groups: int) -> int:
    """Returns by how many seconds a group comes back later, so that not all come at once."""
    seconds = min(_MOST_SPREAD_SECONDS, 1 + groups // _GROUPS_PER_SECOND)
    return entry.arrival % seconds
