"""Of like pods that an event may help, one is tried for all: where it fails, all would."""

from __future__ import annotations

from .companions import Companions


class Representatives:
    """The pods that were woken for others, and those others while they still have to be woken.

    A representative that fails for good, and waits among the same pods again, settles it for
    all of them. However else it ends - it is placed, changed, deleted - another one follows.
    """

    __slots__ = ("_followed", "_sent")

    def __init__(self) -> None:
        #: For whom each pod was woken, and by what, by its uid.
        self._sent: dict[str, tuple[Companions, str]] = {}
        #: The same of those that are no longer waiting to be tried.
        self._followed: dict[str, tuple[Companions, str]] = {}

    @property
    def followed(self) -> bool:
        """Whether pods are to be woken after one that has ended."""
        return bool(self._followed)

    def send(self, uid: str, companions: Companions, label: str) -> None:
        """Takes note that a pod was woken for others, because of an event."""
        companions.is_represented, companions.label = True, label
        self._sent[uid] = companions, label

    def end(self, uid: str) -> None:
        """A pod is being tried, or never will be."""
        sent = self._sent.pop(uid, None)
        if sent is not None:
            sent[0].is_represented = False
            self._followed[uid] = sent

    def settle(self, uid: str, companions: Companions | None) -> None:
        """A pod has failed and waits among these: if it was tried for them, they go on waiting."""
        followed = self._followed.get(uid)
        if followed is not None and followed[0] is companions:
            del self._followed[uid]

    def find_label(self, companions: Companions) -> str | None:
        """The event after which one of some pods is tried for all; None if none is."""
        is_followed = any(known is companions for known, _ in self._followed.values())
        return companions.label if companions.is_represented or is_followed else None

    def take_followed(self) -> list[tuple[Companions, str]]:
        """The pods of which another one is to be woken, and by what."""
        taken = list(self._followed.values())
        self._followed.clear()
        return taken

    def check(self) -> list[str]:
        """The pods that are to be tried for others; AssertionError unless these say so, too."""
        for uid, (companions, _) in self._sent.items():
            assert companions.is_represented, f"nobody knows that {uid} is tried for others"
        return list(self._sent)
