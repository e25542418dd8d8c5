"""Keeps objects across restarts, in SQLite: safe before anybody is told about them.

Writes are collected while a transaction is under way and then committed together, by a thread of
their own, so that many writers share one wait for the disk. The store shows nothing before it is
committed; so whatever was seen before a crash is still there after it, and versions never go back.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

from .store import Store
from .tables import Entry

FILE_NAME = "objects.sqlite"

# Bounds the time that one transaction takes, and so how long the first of its writers waits.
_MOST_PER_COMMIT = 2000

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    kind TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (kind, key)
);
CREATE TABLE IF NOT EXISTS latest (version INTEGER NOT NULL);
"""
_PUT = "INSERT OR REPLACE INTO objects (kind, key, version, body) VALUES (?, ?, ?, ?)"
_REMOVE = "DELETE FROM objects WHERE kind = ? AND key = ?"

#: One write: kind, key, version, and the object, or None if it was removed.
_Write = tuple[str, str, int, bytes | None]


class DataDirError(Exception):
    """A data directory that cannot be used; the text says why."""


class SqliteJournal:
    """Writes what it is given to a database, in order."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._connection = _open(self._path)
        self._writes: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def restore(self, history_limit: int) -> Store:
        """A store with everything that was kept."""
        try:
            rows = self._connection.execute(
                "SELECT kind, key, version, body FROM objects ORDER BY kind, key"
            ).fetchall()
            latest = self._connection.execute("SELECT version FROM latest").fetchone()
        except sqlite3.Error as error:
            raise DataDirError(f"{self._path}: {error}") from error
        store = Store(latest[0] if latest else 1, history_limit)
        for kind, key, version, body in rows:
            store.restore(kind, key, version, body)
        return store

    def attach(self, store: Store) -> None:
        """Starts to keep what is written to a store, from the running event loop."""
        loop = asyncio.get_running_loop()

        def settle(version: int) -> None:
            loop.call_soon_threadsafe(store.settle, version)

        def fail(error: sqlite3.Error) -> None:
            loop.call_soon_threadsafe(store.fail, f"{self._path}: {error}")

        store.journal = self
        self._thread = threading.Thread(
            target=self._run, args=(settle, fail), name="mooring-journal", daemon=True
        )
        self._thread.start()

    def append(self, table: str, entry: Entry, *, gone: bool) -> None:
        self._writes.put((table, entry.key, entry.version, None if gone else entry.body))

    async def close(self) -> None:
        """Writes what is left, and lets go of the database."""
        self._writes.put(None)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
        self._connection.close()

    def _run(self, settle: Callable[[int], None], fail: Callable[[sqlite3.Error], None]) -> None:
        while True:
            batch, last = self._collect()
            if batch:
                try:
                    self._commit(batch)
                except sqlite3.Error as error:
                    fail(error)
                    return
                settle(batch[-1][2])
            if last:
                return

    def _collect(self) -> tuple[list[_Write], bool]:
        """What waits to be written, at least one write, and whether nothing follows."""
        batch: list[_Write] = []
        write = self._writes.get()
        while write is not None:
            batch.append(write)
            if len(batch) >= _MOST_PER_COMMIT:
                return batch, False
            try:
                write = self._writes.get_nowait()
            except queue.Empty:
                return batch, False
        return batch, True

    def _commit(self, batch: list[_Write]) -> None:
        with self._connection as connection:
            for kind, key, version, body in batch:
                if body is None:
                    connection.execute(_REMOVE, (kind, key))
                else:
                    connection.execute(_PUT, (kind, key, version, body))
            connection.execute("UPDATE latest SET version = ?", (batch[-1][2],))


def _open(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The thread that opens it only reads, before the one that writes is started.
        connection = sqlite3.connect(path, timeout=0, check_same_thread=False)
        # Nobody else may write here while we do: their versions would be ours.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(_SCHEMA)
        if connection.execute("SELECT count(*) FROM latest").fetchone()[0] == 0:
            connection.execute("INSERT INTO latest (version) VALUES (1)")
            connection.commit()
    except (OSError, sqlite3.Error) as error:
        raise DataDirError(f"{path}: {error}") from error
    return connection
