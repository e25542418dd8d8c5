"""Tries one of several like pods for all of them: if it fails, all would."""

from __future__ import annotations

from .companions import Companions


class Representatives:
    """Pods that were woken for others, and those others as long as they still have to be woken.

    A representative that fails for good and waits among the same pods again decides for all of
    them. If it ends in any other way (it is placed, changed or deleted), another one follows.
    """

    __slots__ = ("_followed", "_sent")

    def __init__(self) -> None:
        #: For whom each pod was woken, and by what, by its uid.
        self._sent: dict[str, tuple[Companions, str]] = {}
        #: The same of those that are no longer waiting to be tried.
        self._followed: dict[str, tuple[Companions, str]] = {}

    @property
    def followed(self) -> bool:
        """Whether there are pods to wake after a representative that has ended."""
        return bool(self._followed)

    def send(self, uid: str, companions: Companions, label: str) -> None:
        """Notes that a pod was woken for others, because of an event."""
        companions.is_represented, companions.label = True, label
        self._sent[uid] = companions, label

    def end(self, uid: str) -> None:
        """Notes that a pod is being tried, or never will be."""
        sent = self._sent.pop(uid, None)
        if sent is not None:
            sent[0].is_represented = False
            self._followed[uid] = sent

    def note_failed(self, uid: str, companions: Companions | None) -> None:
        """Notes that a pod failed and waits among these pods.

        If it was tried for them, they keep waiting.
        """
        followed = self._followed.get(uid)
        if followed is not None and followed[0] is companions:
            del self._followed[uid]

    def find_label(self, companions: Companions) -> str | None:
        """Returns the event after which one of some pods is tried for all; None if none is."""
        is_followed = any(known is companions for known, _ in self._followed.values())
        return companions.label if companions.is_represented or is_followed else None

    def take_followed(self) -> list[tuple[Companions, str]]:
        """Returns the sets of which another pod must be woken, and the event for it."""
        taken = list(self._followed.values())
        self._followed.clear()
        return taken

    def check(self) -> list[str]:
        """Returns the pods to be tried for others.

        Raises AssertionError if these pods disagree.
        """
        for uid, (companions, _) in self._sent.items():
            assert companions.is_represented, f"nobody knows that {uid} is tried for others"
        return list(self._sent)
