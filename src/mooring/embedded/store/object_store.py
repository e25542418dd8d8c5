"""All objects, and the version that the next write gets.

An object is encoded once, when it is written; lists and watches send those bytes. One counter
gives versions to all kinds, so a version is a moment of the whole store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from mooring.embedded.request_refusals import RequestRefused, insufficient_storage

from .table import (
    HISTORY_LIMIT,
    NO_LABELS,
    FieldsOf,
    Json,
    StoredObject,
    Table,
    TableChange,
    decode,
    encode,
)

Listener = Callable[[TableChange], None]


class Journal(Protocol):
    """Keeps writes beyond the life of the process."""

    def append(self, table: str, entry: StoredObject, *, gone: bool) -> None:
        """Takes a write; calls `ObjectStore.settle` once it is safe."""


class ObjectStore:
    """All tables, and the version that the next write gets."""

    def __init__(self, version: int = 1, history_limit: int = HISTORY_LIMIT) -> None:
        self.version = version
        #: Everything up to this version is safe, and may be shown.
        self.settled = version
        self.journal: Journal | None = None
        self._tables: dict[str, Table] = {}
        self._history_limit = history_limit
        self._unsettled: set[asyncio.Future[None]] = set()
        self._kept: dict[str, list[tuple[str, int, bytes]]] = {}
        self._failure = ""
        self._listeners: dict[str, list[Listener]] = {}

    def listen(self, name: str, listener: Listener) -> None:
        """Calls a function on every change of a table, at once and in order."""
        self._listeners.setdefault(name, []).append(listener)

    def restore(self, name: str, key: str, version: int, body: bytes) -> None:
        """Takes over an object of a journal; its table is opened later."""
        self._kept.setdefault(name, []).append((key, version, body))

    def open_table(self, name: str, fields_of: FieldsOf) -> Table:
        """Returns the table of a name; makes it if there is none."""
        if name not in self._tables:
            table = Table(fields_of, self._history_limit, self.version)
            table.load([_entry(table, *kept) for kept in self._kept.pop(name, ())])
            self._tables[name] = table
        return self._tables[name]

    def table(self, name: str) -> Table:
        return self._tables[name]

    def put(self, name: str, key: str, item: Json) -> StoredObject:
        """Writes an object and gives it its version."""
        table = self._tables[name]
        entry = self._entry(table, key, item)
        self._record(name, table, TableChange(entry.version, table.entries.get(key), entry))
        return entry

    def remove(self, name: str, key: str, item: Json) -> StoredObject:
        """Removes an object; `item` is its last state."""
        table = self._tables[name]
        entry = self._entry(table, key, item)
        change = TableChange(entry.version, table.entries[key], entry, gone=True)
        self._record(name, table, change)
        return entry

    @property
    def failure(self) -> str:
        """Why nothing can be written at the moment; empty if it can."""
        return self._failure

    @property
    def visible(self) -> int:
        """The newest version that lists show; while the disk fails, the last safe one."""
        return self.settled if self._failure else self.version

    def settle(self, version: int) -> None:
        """Marks everything up to a version as safe."""
        self._failure = ""
        self.settled = version
        _wake(self._unsettled)
        for table in self._tables.values():
            _wake(table.waiting)

    def fail(self, reason: str) -> None:
        """Refuses writes until `settle` is called, because nothing can be kept."""
        self._failure = reason
        _wake(self._unsettled)

    async def until_writable(self) -> None:
        """Waits until writes are not refused any more."""
        while self._failure:
            await _wait(self._unsettled)

    async def until_settled(self, version: int) -> None:
        """Waits until a version is safe; raises if the disk fails."""
        while self.settled < version:
            if self._failure:
                raise self._refusal()
            await _wait(self._unsettled)

    async def until_changed(self, name: str, since: int) -> None:
        """Waits until a table has safe changes after a version."""
        table = self._tables[name]
        while not table.changes(since, self.settled):
            await _wait(table.waiting)

    def _refusal(self) -> RequestRefused:
        return insufficient_storage(f"objects cannot be kept: {self._failure}")

    def _entry(self, table: Table, key: str, item: Json) -> StoredObject:
        if self._failure:
            raise self._refusal()
        version, metadata = self.version + 1, item["metadata"]
        metadata["resourceVersion"] = str(version)
        labels = metadata.get("labels") or NO_LABELS
        entry = StoredObject(key, version, encode(item), labels, table.fields_of(item))
        # Last: an object that cannot be encoded uses up no version.
        self.version = version
        return entry

    def _record(self, name: str, table: Table, change: TableChange) -> None:
        table.record(change)
        if self.journal is not None:
            self.journal.append(name, change.after, gone=change.gone)
        else:
            self.settled = change.version
            _wake(table.waiting)
        for listener in self._listeners.get(name, ()):
            listener(change)


def _entry(table: Table, key: str, version: int, body: bytes) -> StoredObject:
    item = decode(body)
    labels = item["metadata"].get("labels") or NO_LABELS
    return StoredObject(key, version, body, labels, table.fields_of(item))


def _wake(waiting: set[asyncio.Future[None]]) -> None:
    for each in waiting:
        if not each.done():
            each.set_result(None)
    waiting.clear()


async def _wait(waiting: set[asyncio.Future[None]]) -> None:
    future = asyncio.get_running_loop().create_future()
    waiting.add(future)
    try:
        await future
    finally:
        waiting.discard(future)
