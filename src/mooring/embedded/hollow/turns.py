"""What comes next in the lives of pods, and when."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from .hosts import Host
from .lives import Life
from .settings import HollowSettings

# The first time containers are started again at once.
_FIRST_PAUSE_SECONDS = 10.0
_LONGEST_PAUSE_SECONDS = 300.0
_MOST_DOUBLINGS = 10


class Turn(Enum):
    """What comes next in the life of a pod."""

    START = auto()
    END = auto()
    DEADLINE = auto()
    STOP = auto()
    RESTART = auto()


@dataclass(slots=True)
class Kept:
    """A pod that a kubelet looks after."""

    uid: str
    host: Host
    life: Life
    #: What was seen or written last; the echo of a write tells nothing.
    version: int
    #: When it was started; None before it was.
    begun: float | None = None
    #: When its containers were started last.
    runs_since: float = 0.0
    #: How often they have exited and were to be started again.
    exits: int = 0
    stop_at: float | None = None


def next_turn(kept: Kept, settings: HollowSettings, now: float) -> tuple[float, Turn] | None:
    """When a pod that runs has its next turn, and which; None if it runs for ever."""
    life = kept.life
    if life.grace is not None:
        stop_at = now + min(life.grace, settings.stop_seconds)
        # Whoever deletes a pod again can only make it faster.
        kept.stop_at = stop_at if kept.stop_at is None else min(kept.stop_at, stop_at)
        return kept.stop_at, Turn.STOP
    seconds, deadline = life.seconds(settings), life.spec.active_deadline_seconds
    turns = []
    if seconds is not None:
        turns.append((kept.runs_since + seconds, Turn.END))
    if deadline is not None and kept.begun is not None:
        turns.append((kept.begun + deadline, Turn.DEADLINE))
    return min(turns, key=lambda turn: turn[0], default=None)


def pause_after(exits: int) -> float:
    """How long a kubelet waits before it starts containers again that have exited so often."""
    if exits <= 1:
        return 0.0
    return min(_FIRST_PAUSE_SECONDS * 2 ** min(exits - 2, _MOST_DOUBLINGS), _LONGEST_PAUSE_SECONDS)
