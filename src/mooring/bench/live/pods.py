"""What becomes of pods, as a watch tells it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mooring.bench.ledger import Entry, Ledger
from mooring.objects.condition import Condition, refusal
from mooring.objects.decode import Reader
from mooring.objects.meta import Wire


class _Metadata(Wire, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] | None = None


class _Spec(Wire, frozen=True):
    node_name: str = ""


class _Status(Wire, frozen=True):
    conditions: tuple[Condition, ...] | None = None


class SeenPod(Wire, frozen=True):
    """The fields of a pod that tell how far it is."""

    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def is_ending(self) -> bool:
        """Whether it only waits for a kubelet to end it."""
        return self.metadata.deletion_timestamp is not None and not self.metadata.finalizers

    @property
    def refusal(self) -> str | None:
        """Why it was not placed when it was tried last; None if it was not tried."""
        return refusal(self.status.conditions)


SEEN_POD = Reader(SeenPod, lambda seen: seen)


class PodNotes:
    """Notes in a ledger what a watch of pods tells."""

    def __init__(
        self,
        ledger: Ledger,
        placed: Callable[[Entry], None],
        end: Callable[[SeenPod], None],
    ) -> None:
        self._ledger = ledger
        self._placed = placed
        self._end = end
        #: Which entry a pod is, by the identity that the API server gave it: names come again.
        self._uids: dict[str, str] = {}

    def applied(self, item: SeenPod, raw: Any) -> None:
        entry = self._entry(item)
        if entry is None:
            return
        if item.spec.node_name:
            if not entry.is_placed:
                self._ledger.placed(entry.uid)
                self._placed(entry)
        elif item.refusal is not None:
            self._ledger.attempted(entry.uid, item.refusal)
        if item.is_ending:
            self._end(item)

    def removed(self, item: SeenPod) -> None:
        uid = self._uids.pop(item.metadata.uid, None)
        if uid is not None:
            self._ledger.gone(uid)

    def unreadable(self, kind: str, key: str, problem: str) -> None:
        raise AssertionError(f"{kind} {key}: cannot be read: {problem}")

    def _entry(self, item: SeenPod) -> Entry | None:
        uid = self._uids.get(item.metadata.uid)
        if uid is None:
            found = self._ledger.named(item.metadata.namespace, item.metadata.name)
            if found is not None:
                self._uids[item.metadata.uid] = found.uid
            return found
        return self._ledger.entries.get(uid)
