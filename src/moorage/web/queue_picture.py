"""The queue as it was sent last, what has changed since, and what happened to its pods."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice

from moorage.engine import Engine
from moorage.framework.status import Rejected
from moorage.objects.meta import failure_to_place
from moorage.objects.pod import Pod
from moorage.objects.workload import owner_text
from moorage.queue import Entity
from moorage.queue.entity import BACKING_OFF, Place

from .messages import Put, QueuePart, RecentEvent

# Pods that are looked at before decisions get their turn again: less than a millisecond.
SLICE = 2_000

# Pods that are told at a time. What is left is different next time too, and is told then: so a
# message stays small, however many pods come at once.
MOST_PUT = 5_000

_FAILED = frozenset({*BACKING_OFF, "unschedulable"})


@dataclass(slots=True)
class _Shown:
    """What was sent about a waiting pod."""

    number: int
    key: str
    place: Place
    attempts: int
    reason: str
    owner: str
    #: The pod group that it names.
    group: str
    #: Where others are evicted for it.
    nominated: str
    message: str
    refusal: Rejected | None
    #: The last attempt that is known to have failed.
    failed: int
    #: The last look at the queue that found it.
    seen: int


class WaitingPods:
    """The queue as it was sent last."""

    def __init__(self, engine: Engine, most_put: int = MOST_PUT) -> None:
        self._queue = engine.queue
        self._groups = engine.cluster.groups
        self._nominations = engine.cluster.nodes.nominations
        self._most_put = most_put
        self._shown: dict[str, _Shown] = {}
        self._numbers = count()
        self._looks = 0
        # Until all pods were sent once, those that are new here may have failed long ago.
        self._knows_all = False
        #: What happened to pods between the last two looks.
        self.events: list[RecentEvent] = []

    def differences(self, at: float) -> Generator[None, None, QueuePart | None]:
        """Compares with the queue in slices; the queue may change in between."""
        self._looks += 1
        self.events = []
        put: list[_Shown] = []
        pods = iter([*self._queue, *self._queue.in_flight])
        while some := list(islice(pods, SLICE)):
            for queued in some:
                self._look(queued, put, at)
            yield
        self._knows_all = len(put) < self._most_put
        gone = [uid for uid, shown in self._shown.items() if shown.seen != self._looks]
        numbers = [self._shown.pop(uid).number for uid in gone]
        return _part(put, numbers) if put or numbers else None

    def everything(self) -> Iterator[QueuePart]:
        """Yields the whole queue, as it was sent last, in parts."""
        shown = iter(list(self._shown.values()))
        while some := list(islice(shown, SLICE)):
            yield _part(some, [])

    def _look(self, queued: Entity, put: list[_Shown], at: float) -> None:
        if queued.place == "nowhere":
            return
        before = self._shown.get(queued.pod.uid)
        nominated = self._nominations.node_of(queued.pod)
        if before is not None:
            before.seen = self._looks
            if _is_unchanged(before, queued, nominated):
                return
        if len(put) < self._most_put:
            number = next(self._numbers) if before is None else before.number
            now = self._show(number, queued, nominated)
            self._note(before, now, at)
            self._shown[queued.pod.uid] = now
            put.append(now)

    def _note(self, before: _Shown | None, now: _Shown, at: float) -> None:
        """Notes an event, if the pod had one."""
        failed = 0 if before is None else before.failed
        if now.place not in _FAILED or (before is None and not self._knows_all):
            now.failed = now.attempts if now.place in _FAILED else failed
            return
        now.failed = now.attempts
        # A pod for which others are evicted is sent with them.
        gets_room = now.nominated and (before is None or before.nominated != now.nominated)
        if now.attempts > failed and now.message and not gets_room:
            self.events.append(RecentEvent(at, "failed", now.owner, now.key, now.message))

    def _show(self, number: int, queued: Entity, nominated: str) -> _Shown:
        pod = queued.pod
        return _Shown(
            number,
            pod.key,
            queued.place,
            queued.attempts,
            describe_wait(queued),
            owner_text(pod),
            self._group_of(pod),
            nominated,
            _last_message(queued),
            queued.refusal,
            0,
            self._looks,
        )

    def _group_of(self, pod: Pod) -> str:
        key = self._groups.key_of(pod)
        return "" if key is None else key[1]


def describe_wait(queued: Entity) -> str:
    """Returns why a pod waits; empty if only its turn has not come."""
    if queued.refusal is not None:
        return f"{queued.gated_by}: {queued.refusal.message}"
    message = _last_message(queued)
    if message or not queued.waking_plugins:
        return message
    return f"rejected by {', '.join(sorted(queued.waking_plugins))}"


def _last_message(queued: Entity) -> str:
    """Returns the message of the last attempt; for a member of a group, that of its condition."""
    return queued.message or failure_to_place(queued.pod.status.conditions) or ""


def _is_unchanged(shown: _Shown, queued: Entity, nominated: str) -> bool:
    return (
        shown.place == queued.place
        and shown.attempts == queued.attempts
        and shown.message == _last_message(queued)
        and shown.refusal is queued.refusal
        and shown.nominated == nominated
    )


def _part(shown: Iterable[_Shown], gone: list[int]) -> QueuePart:
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(text, len(texts))

    put: list[Put] = [
        (
            each.number,
            each.key,
            each.place,
            each.attempts,
            number(each.reason),
            number(each.owner),
            number(each.group),
            number(each.nominated),
        )
        for each in shown
    ]
    return QueuePart(put, gone, list(texts))
