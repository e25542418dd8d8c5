"""Wakes waiting pods: those that an event may help, and of companions one for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from moorage.objects.pod import Pod

from .entity import UNSCHEDULABLE_PLACES, Entity, EntityKey
from .queue_events import Listeners, QueueEvent, WakeAnswer
from .unschedulable import Companions, LikePods, UnschedulableEntities

#: Whether a wake-up concerns a pod.
Concerns = Callable[[Pod], bool]


class Waker:
    """Decides who is woken.

    Of companions, one is woken and tried for all: the representative. If it fails for good and
    waits among the same pods again, that decides for all of them. If it ends in any other way (it
    is placed, changed or deleted), another one follows.
    """

    def __init__(
        self,
        unschedulable: UnschedulableEntities,
        listeners: Listeners,
        move: Callable[[Entity, WakeAnswer, str, float], None],
    ) -> None:
        """`move` moves an entity as an event of a label demands."""
        self._unschedulable = unschedulable
        self._listeners = listeners
        self._move = move
        #: Representatives that wait to be tried, and those that they were woken for.
        self._sent: dict[EntityKey, Companions] = {}
        #: The same of those that wait no longer, until they have failed for all.
        self.followed: dict[EntityKey, Companions] = {}

    def wake(self, event: QueueEvent, now: float, concerns: Concerns | None) -> None:
        """Wakes pods that an event may help, as the plugins that rejected them judge it."""
        for found in self._unschedulable.find(event):
            self._wake_alike(found, event, now, concerns)

    def _wake_alike(
        self, like_pods: LikePods, event: QueueEvent, now: float, concerns: Concerns | None
    ) -> None:
        """Wakes identical pods if the event may help them: one is asked for all."""
        label = event.event.label
        meant: Iterable[Entity] = like_pods
        if concerns is not None:
            meant = (each for each in meant if concerns(each.pod))
        if event.is_about(like_pods):
            answers = [(each, self._listeners.answer(each, event)) for each in meant]
        else:
            companions = like_pods if isinstance(like_pods, Companions) else None
            if companions is not None and companions.is_represented and concerns is None:
                return
            answer = self._listeners.answer(next(iter(like_pods)), event) if like_pods else "stay"
            if companions is not None and answer == "after backoff" and concerns is None:
                self._send_one(companions, label, now)
                return
            answers = [] if answer == "stay" else [(each, answer) for each in meant]
        for each, answer in answers:
            if answer != "stay":
                self._move(each, answer, label, now)

    def _send_one(self, companions: Companions, label: str, now: float) -> None:
        """Wakes one of some companions, unless another one is on its way already."""
        while not companions.is_represented:
            queued = companions.first(now)
            if queued is None:
                return
            self._move(queued, "after backoff", label, now)
            if queued.place not in UNSCHEDULABLE_PLACES:
                companions.is_represented, companions.label = True, label
                self._sent[queued.key] = companions

    def end(self, queued: Entity) -> None:
        """Notes that a pod is being tried, or never will be."""
        companions = self._sent.pop(queued.key, None)
        if companions is not None:
            companions.is_represented = False
            self.followed[queued.key] = companions

    def note_failed(self, queued: Entity) -> None:
        """Notes that a pod failed. If it was tried for those that it waits among, these wait on."""
        companions = self._unschedulable.companions(queued.key)
        if companions is not None and self.followed.get(queued.key) is companions:
            del self.followed[queued.key]

    def send_followers(self, now: float) -> None:
        """Wakes another pod wherever the one that was tried has not shown that all fail."""
        while self.followed:
            companions = self.followed.pop(next(iter(self.followed)))
            self._send_one(companions, companions.label, now)

    def make_up_for(self, queued: Entity, before: Companions | None, now: float) -> None:
        """Wakes a pod that left its companions while one of them is tried for all."""
        if before is None or queued.place != "unschedulable":
            return
        is_tried = before.is_represented or before in self.followed.values()
        if is_tried and self._unschedulable.companions(queued.key) is not before:
            self._move(queued, "after backoff", before.label, now)

    def check(self) -> Iterable[EntityKey]:
        """Returns the representatives; raises AssertionError if they are not known as such."""
        for key, companions in self._sent.items():
            assert companions.is_represented, f"{key} is tried for others that do not know it"
        return self._sent
