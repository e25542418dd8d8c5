"""All objects in memory: a table per kind, with the versions and the latest changes of objects.

An object is encoded once, when it is written; lists and watches send those bytes. One counter
gives versions to all kinds, so a version is a moment of the whole store.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from moorage.embedded.request_refusals import RequestRefused, expired, insufficient_storage

Json = dict[str, Any]

#: The values of the fields that field selectors may ask for, in the order of the kind.
FieldValues = tuple[str, ...]
FieldsOf = Callable[[Json], FieldValues]

# How many changes of a kind are kept for watches that resume. At 50,000 pods a client that lists
# them and then watches may be this far behind.
HISTORY_LIMIT = 100_000

NO_LABELS: Mapping[str, str] = {}

_encode = msgspec.json.Encoder().encode
decode: Callable[[bytes], Any] = msgspec.json.Decoder().decode


def encode(value: Any) -> bytes:
    """Encodes JSON as Kubernetes does: clients compare parts of objects byte by byte."""
    body = _encode(value)
    return body.replace(b"<", b"\\u003c").replace(b">", b"\\u003e").replace(b"&", b"\\u0026")


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as it was written at one version."""

    key: str
    version: int
    body: bytes
    labels: Mapping[str, str]
    fields: FieldValues

    @property
    def namespace(self) -> str:
        return self.key.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def object(self) -> Json:
        """A decoded copy of the object, which the caller may change."""
        return decode(self.body)

    def rewrite(self, version: int, item: Json) -> StoredObject:
        """Returns this object with other content and version."""
        return StoredObject(self.key, version, encode(item), self.labels, self.fields)


@dataclass(frozen=True, slots=True)
class TableChange:
    """What a version did to an object: made, changed or, with `gone`, removed it."""

    version: int
    before: StoredObject | None
    #: The object after the change; of a removed one its last state, at the version that removed it.
    after: StoredObject
    gone: bool = False


class Table:
    """The objects of one kind, in order of their keys, and their latest changes."""

    def __init__(self, fields_of: FieldsOf, history_limit: int, version: int) -> None:
        self.fields_of = fields_of
        self.entries: dict[str, StoredObject] = {}
        #: Changes at or before this version are forgotten.
        self.forgotten = version
        self.waiting: set[asyncio.Future[None]] = set()
        self._keys: list[str] = []
        self._changes: list[TableChange] = []
        self._limit = history_limit
        #: The last moment that was asked for: the pages of a list are of one moment.
        self._moment: tuple[int, dict[str, StoredObject]] = (version, {})

    def load(self, entries: list[StoredObject]) -> None:
        """Takes over the objects of a journal."""
        self.entries = {entry.key: entry for entry in entries}
        self._keys = sorted(self.entries)

    def record(self, change: TableChange) -> None:
        key = change.after.key
        if change.gone:
            del self.entries[key]
            del self._keys[bisect_left(self._keys, key)]
        else:
            if change.before is None:
                insort(self._keys, key)
            self.entries[key] = change.after
        self._changes.append(change)
        # Forgetting a quarter at a time makes the cost of it a constant per change.
        if len(self._changes) > self._limit + self._limit // 4:
            self.forget(self._changes[-self._limit - 1].version)

    def forget(self, version: int) -> None:
        """Forgets changes up to a version; watches from before it must list again."""
        del self._changes[: self._after(version)]
        self.forgotten = max(self.forgotten, version)

    def changes(self, since: int, until: int) -> list[TableChange]:
        """Returns the changes after one version, up to another."""
        if since < self.forgotten:
            raise expired(f"too old resource version: {since} ({self.forgotten})")
        return self._changes[self._after(since) : self._after(until)]

    def in_order(self, namespace: str = "", after: str = "") -> list[StoredObject]:
        """Returns the objects of a namespace, or of all, in the order of their keys."""
        keys, entries = self._keys, self.entries
        start, end = _range(keys, namespace, after)
        return [entries[key] for key in keys[start:end]]

    def page(
        self, version: int, namespace: str = "", after: str = "", limit: int = 0
    ) -> tuple[list[StoredObject], int]:
        """Returns a page of objects as of a version, and how many follow."""
        entries, keys = self.entries, self._keys
        if self.changes(version, self._newest()):
            entries = self.at(version)
            keys = list(entries)
        start, end = _range(keys, namespace, after)
        stop = min(end, start + limit) if limit else end
        return [entries[key] for key in keys[start:stop]], max(end - stop, 0)

    def at(self, version: int) -> dict[str, StoredObject]:
        """Returns the objects as of a version, in the order of their keys."""
        undone = self.changes(version, self._newest())
        if self._moment[0] == version and self._moment[1]:
            return self._moment[1]
        state = dict(self.entries)
        for change in reversed(undone):
            if change.before is None:
                state.pop(change.after.key, None)
            else:
                state[change.after.key] = change.before
        self._moment = (version, dict(sorted(state.items())))
        return self._moment[1]

    def _newest(self) -> int:
        return self._changes[-1].version if self._changes else self.forgotten

    def _after(self, version: int) -> int:
        return bisect_right(self._changes, version, key=lambda change: change.version)


def _range(keys: list[str], namespace: str, after: str) -> tuple[int, int]:
    """Returns the range of the keys of a namespace that come after a key."""
    start, end = bisect_right(keys, after) if after else 0, len(keys)
    if namespace:
        # "0" is the character after "/".
        start = max(start, bisect_left(keys, f"{namespace}/"))
        end = bisect_left(keys, f"{namespace}0")
    return start, end


Listener = Callable[[TableChange], None]


class Journal(Protocol):
    """Keeps writes beyond the life of the process."""

    def append(self, table: str, entry: StoredObject, *, gone: bool) -> None:
        """Takes a write; calls `ObjectStore.mark_safe` once it is safe."""


class ObjectStore:
    """All tables, and the version that the next write gets."""

    def __init__(self, version: int = 1, history_limit: int = HISTORY_LIMIT) -> None:
        self.version = version
        #: Everything up to this version is safe, and may be shown.
        self.safe_version = version
        self.journal: Journal | None = None
        self._tables: dict[str, Table] = {}
        self._history_limit = history_limit
        self._waiting_for_disk: set[asyncio.Future[None]] = set()
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
        return self.safe_version if self._failure else self.version

    def mark_safe(self, version: int) -> None:
        """Marks everything up to a version as safe."""
        self._failure = ""
        self.safe_version = version
        _wake(self._waiting_for_disk)
        for table in self._tables.values():
            _wake(table.waiting)

    def fail(self, reason: str) -> None:
        """Refuses writes until `mark_safe` is called, because nothing can be kept."""
        self._failure = reason
        _wake(self._waiting_for_disk)

    async def until_writable(self) -> None:
        """Waits until writes are not refused any more."""
        while self._failure:
            await _wait(self._waiting_for_disk)

    async def until_safe(self, version: int) -> None:
        """Waits until a version is safe; raises if the disk fails."""
        while self.safe_version < version:
            if self._failure:
                raise self._refusal()
            await _wait(self._waiting_for_disk)

    async def until_changed(self, name: str, since: int) -> None:
        """Waits until a table has safe changes after a version."""
        table = self._tables[name]
        while not table.changes(since, self.safe_version):
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
            self.safe_version = change.version
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
