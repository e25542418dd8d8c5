"""Who waits and why, as it was told last, and what is different now."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice

from mooring.framework.status import Rejected
from mooring.queue import Queue, QueuedPod
from mooring.queue.queued_pod import Place

from .wire import Put, QueuePart

# Pods that are looked at before decisions get their turn again: less than a millisecond.
SLICE = 2_000

# Pods that are told at a time. What is left is different next time too, and is told then: so a
# message stays small, however many pods come at once.
MOST_PUT = 5_000


@dataclass(slots=True)
class _Shown:
    """What was told of a waiting pod."""

    number: int
    key: str
    place: Place
    attempts: int
    reason: str
    message: str
    refusal: Rejected | None
    #: The last look at the queue that found it.
    seen: int


class Waiting:
    """The queue as it was told last."""

    def __init__(self, queue: Queue, most_put: int = MOST_PUT) -> None:
        self._queue = queue
        self._most_put = most_put
        self._shown: dict[str, _Shown] = {}
        self._numbers = count()
        self._looks = 0

    def differences(self) -> Generator[None, None, QueuePart | None]:
        """Looks at the queue in slices; in between the queue may change."""
        self._looks += 1
        put: list[_Shown] = []
        pods = iter([*self._queue, *self._queue.in_flight])
        while some := list(islice(pods, SLICE)):
            for queued in some:
                self._look(queued, put)
            yield
        gone = [uid for uid, shown in self._shown.items() if shown.seen != self._looks]
        numbers = [self._shown.pop(uid).number for uid in gone]
        return _part(put, numbers) if put or numbers else None

    def everything(self) -> Iterator[QueuePart]:
        """All of the queue, as it was told last, in parts."""
        shown = iter(list(self._shown.values()))
        while some := list(islice(shown, SLICE)):
            yield _part(some, [])

    def _look(self, queued: QueuedPod, put: list[_Shown]) -> None:
        if queued.place is Place.NOWHERE:
            return
        shown = self._shown.get(queued.pod.uid)
        if shown is not None:
            shown.seen = self._looks
            if _is_as_told(shown, queued):
                return
        if len(put) < self._most_put:
            number = next(self._numbers) if shown is None else shown.number
            told = self._shown[queued.pod.uid] = _shown(number, queued, self._looks)
            put.append(told)


def reason(queued: QueuedPod) -> str:
    """Why a pod waits; empty if it only waits for its turn."""
    if queued.refusal is not None:
        return f"{queued.gated_by}: {queued.refusal.message}"
    if queued.message or not queued.blamed:
        return queued.message
    return f"rejected by {', '.join(sorted(queued.blamed))}"


def _is_as_told(shown: _Shown, queued: QueuedPod) -> bool:
    return (
        shown.place is queued.place
        and shown.attempts == queued.attempts
        and shown.message == queued.message
        and shown.refusal is queued.refusal
    )


def _shown(number: int, queued: QueuedPod, look: int) -> _Shown:
    return _Shown(
        number,
        queued.pod.key,
        queued.place,
        queued.attempts,
        reason(queued),
        queued.message,
        queued.refusal,
        look,
    )


def _part(shown: Iterable[_Shown], gone: list[int]) -> QueuePart:
    reasons: dict[str, int] = {}
    put: list[Put] = [
        (
            each.number,
            each.key,
            each.place.value,
            reasons.setdefault(each.reason, len(reasons)),
            each.attempts,
        )
        for each in shown
    ]
    return QueuePart(put, gone, list(reasons))
