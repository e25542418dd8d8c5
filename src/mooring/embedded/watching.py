"""Watches: what happens to the objects that are selected, from some version on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Literal

from .errors import expired
from .kinds import Kind
from .selection import Selection
from .store import Store
from .tables import Change, Entry

Type = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that a watch tells. A deleted object is told as it last was."""

    type: Type
    entry: Entry
    version: int


class Watch:
    """A place in the history of a kind, which moves on as it is read."""

    def __init__(self, store: Store, kind: Kind, selection: Selection, version: int) -> None:
        if version > store.version:
            raise expired(f"too large resource version: {version}")
        self.version = version
        self._store = store
        self._kind = kind
        self._selection = selection
        # A version that is forgotten already is refused now rather than in the stream.
        store.table(kind.table).changes(version, version)

    def ready(self) -> list[Event]:
        """What has happened and was not told yet."""
        store = self._store
        changes = store.table(self._kind.table).changes(self.version, store.settled)
        # Nothing of this kind happened up to here, so resuming from here is as good and is
        # remembered for longer.
        self.version = max(self.version, store.settled)
        return list(self._told(changes))

    async def events(self) -> AsyncIterator[list[Event]]:
        """What happens, as it happens, many at a time when there is much."""
        while True:
            told = self.ready()
            if told:
                yield told
            await self._store.until_changed(self._kind.table, self.version)

    async def wait(self) -> None:
        """Waits until something happens, be it selected or not."""
        await self._store.until_changed(self._kind.table, self.version)

    def _told(self, changes: list[Change]) -> Iterator[Event]:
        if self._selection.everything:
            for change in changes:
                yield Event(_type(change), change.after, change.version)
            return
        for change in changes:
            event = self._selected(change)
            if event is not None:
                yield event

    def _selected(self, change: Change) -> Event | None:
        before = self._selection.matches(change.before)
        after = not change.gone and self._selection.matches(change.after)
        if after:
            return Event("MODIFIED" if before else "ADDED", change.after, change.version)
        if not before or change.before is None:
            return None
        # To this watch an object that is not selected any more is gone.
        last = change.after if change.gone else _as_of(change.before, change.version)
        return Event("DELETED", last, change.version)


def _type(change: Change) -> Type:
    if change.gone:
        return "DELETED"
    return "ADDED" if change.before is None else "MODIFIED"


def _as_of(entry: Entry, version: int) -> Entry:
    item = entry.object
    item["metadata"]["resourceVersion"] = str(version)
    return entry.rewritten(version, item)
