"""Keeps objects across restarts, in SQLite. No write is acknowledged before it is on disk.

Writes are collected while a transaction is under way and then committed together, by a thread of
their own, so that many writers share one wait for the disk. The store shows nothing before it is
committed; so whatever was seen before a crash is still there after it, and versions never go back.

A commit that fails, such as on a full disk, is tried again until it succeeds. Until then the store
refuses writes, so that no more than one batch waits.

The folder holds Secrets, so its owner alone may read it.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import stat
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from moorage.documents.errors import InputError

from .object_store import ObjectStore, StoredObject, decode

FILE_NAME = "objects.sqlite"

#: The first format had no checksums, and no number.
_FORMAT = 2

# Bounds the time that one transaction takes, and so how long the first of its writers waits.
_MOST_PER_COMMIT = 2000

_OWNER_ONLY_FOLDER = 0o700
_OWNER_ONLY_FILE = 0o600
_OTHERS = stat.S_IRWXG | stat.S_IRWXO

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    kind TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, body BLOB NOT NULL,
    checksum INTEGER, PRIMARY KEY (kind, key)
);
CREATE TABLE IF NOT EXISTS latest (version INTEGER NOT NULL);
"""
_PUT = "INSERT OR REPLACE INTO objects (kind, key, version, body, checksum) VALUES (?, ?, ?, ?, ?)"
_REMOVE = "DELETE FROM objects WHERE kind = ? AND key = ?"
_READ = "SELECT rowid, kind, key, version, body, checksum FROM objects ORDER BY kind, key"

#: One write: kind, key, version, and the object, or None if it was removed.
_Write = tuple[str, str, int, bytes | None]

_log = logging.getLogger(__name__)


class DataDirError(InputError):
    """A data folder that cannot be used; the text says why."""


class SqliteJournal:
    """Writes objects to a database, in order, in a thread of its own."""

    #: A full disk is looked at so often: soon enough for people, too seldom to be a load.
    retry_seconds = 1.0

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        _make_private(folder)
        self._connection = _open(self.path)
        self._writes: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def restore(self, history_limit: int) -> ObjectStore:
        """Returns a store with all objects of the database."""
        try:
            latest = self._connection.execute("SELECT version FROM latest").fetchone()
            store = ObjectStore(latest[0] if latest else 1, history_limit)
            for kind, key, version, body in self._records():
                store.restore(kind, key, version, body)
        except sqlite3.Error as error:
            raise DataDirError(f"{self.path}: {error}") from error
        return store

    def attach(self, store: ObjectStore) -> None:
        """Starts to write the changes of a store, from the running event loop."""
        loop = asyncio.get_running_loop()

        def mark_safe(version: int) -> None:
            loop.call_soon_threadsafe(store.mark_safe, version)

        def fail(reason: str) -> None:
            loop.call_soon_threadsafe(store.fail, reason)

        store.journal = self
        self._thread = threading.Thread(
            target=self._run, args=(mark_safe, fail), name="moorage-journal", daemon=True
        )
        self._thread.start()

    def append(self, table: str, entry: StoredObject, *, gone: bool) -> None:
        self._writes.put((table, entry.key, entry.version, None if gone else entry.body))

    async def close(self) -> None:
        """Writes what is left, and closes the database."""
        self._closing.set()
        self._writes.put(None)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
        self._connection.close()

    def _records(self) -> Iterator[tuple[str, str, int, bytes]]:
        """Yields the records of the database; raises for a damaged one."""
        for row, kind, key, version, body, checksum in self._connection.execute(_READ):
            if not isinstance(body, bytes) or checksum != _checksum(kind, key, version, body):
                raise _damage_error(self.path, row, kind, key, "its checksum does not match")
            yield kind, key, version, body

    def _run(self, mark_safe: Callable[[int], None], fail: Callable[[str], None]) -> None:
        while True:
            batch, last = self._collect()
            if batch:
                if not self._keep(batch, fail):
                    return
                mark_safe(batch[-1][2])
            if last:
                return

    def _keep(self, batch: list[_Write], fail: Callable[[str], None]) -> bool:
        """Commits a batch, again until it succeeds; returns False if the server stops first."""
        failed = False
        while True:
            try:
                self._commit(batch)
            except sqlite3.Error as error:
                if not failed:
                    _log.error(
                        "%s: objects cannot be kept: %s; writes are refused until they can",
                        self.path,
                        error,
                    )
                    fail(f"{self.path}: {error}")
                failed = True
            else:
                if failed:
                    _log.warning("%s: objects can be kept again", self.path)
                return True
            if self._closing.wait(self.retry_seconds):
                _log.error(
                    "%s: %d writes that were not acknowledged are lost", self.path, len(batch)
                )
                return False

    def _collect(self) -> tuple[list[_Write], bool]:
        """Waits for writes; returns them, and whether they are the last."""
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
                    checksum = _checksum(kind, key, version, body)
                    connection.execute(_PUT, (kind, key, version, body, checksum))
            connection.execute("UPDATE latest SET version = ?", (batch[-1][2],))


def _checksum(kind: str, key: str, version: int, body: bytes) -> int:
    """Returns a checksum over all parts of a record."""
    return zlib.crc32(body, zlib.crc32(f"{kind}\0{key}\0{version}\0".encode()))


def _damage_error(path: Path, row: int, kind: str, key: str, why: str) -> DataDirError:
    return DataDirError(f"{path}: the record in row {row} ({kind} {key}) is damaged: {why}")


def _make_private(folder: Path) -> None:
    """Makes the folder readable by its owner alone; refuses a shared folder."""
    try:
        folder.mkdir(mode=_OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        known = {path for path in folder.iterdir() if path.name.startswith(FILE_NAME)}
        if folder.stat().st_mode & _OTHERS:
            strange = sorted(path.name for path in set(folder.iterdir()) - known)
            if strange:
                raise DataDirError(
                    f"{folder}: other users may read this folder, which is to hold Secrets, and it "
                    f"has other files ({strange[0]}); run chmod 700 on it or name another folder"
                )
            _close(folder, _OWNER_ONLY_FOLDER)
        for path in sorted(known):
            if path.stat().st_mode & _OTHERS:
                _close(path, _OWNER_ONLY_FILE)
        # SQLite gives the files that it makes beside this one the same permissions.
        (folder / FILE_NAME).touch(_OWNER_ONLY_FILE)
    except OSError as error:
        raise DataDirError(f"{error.filename}: {(error.strerror or str(error)).lower()}") from error


def _close(path: Path, mode: int) -> None:
    path.chmod(mode)
    _log.warning("%s: other users could read this; now its owner alone can", path)


def _open(path: Path) -> sqlite3.Connection:
    try:
        # The thread that opens it only reads, before the one that writes is started.
        connection = sqlite3.connect(path, timeout=0, check_same_thread=False)
        # The checksum finds what is not UTF-8, and the error names its position.
        connection.text_factory = lambda data: data.decode(errors="replace")
        # No other process may write here: it would use the same versions.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        _expect_intact(connection, path)
        _upgrade(connection, path)
        connection.executescript(_SCHEMA)
        if connection.execute("SELECT count(*) FROM latest").fetchone()[0] == 0:
            connection.execute("INSERT INTO latest (version) VALUES (1)")
            connection.commit()
    except (OSError, sqlite3.Error) as error:
        raise DataDirError(f"{path}: {error}") from error
    return connection


def _expect_intact(connection: sqlite3.Connection, path: Path) -> None:
    """Refuses a database with damaged pages."""
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise DataDirError(f"{path}: the database is damaged: {' '.join(found.split())}")


def _upgrade(connection: sqlite3.Connection, path: Path) -> None:
    """Converts a database of an older format."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > _FORMAT:
        raise DataDirError(
            f"{path}: a newer Moorage made this (format {version}, known up to {_FORMAT})"
        )
    if version == _FORMAT:
        return
    with connection:
        connection.execute("BEGIN")
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'objects'").fetchone():
            connection.execute("ALTER TABLE objects ADD COLUMN checksum INTEGER")
            for row, kind, key, number, body, _ in connection.execute(_READ).fetchall():
                _expect_object(path, row, kind, key, body)
                checksum = _checksum(kind, key, number, body)
                connection.execute(
                    "UPDATE objects SET checksum = ? WHERE rowid = ?", (checksum, row)
                )
        connection.execute(f"PRAGMA user_version = {_FORMAT}")


def _expect_object(path: Path, row: int, kind: str, key: str, body: Any) -> None:
    """Refuses a record of the first format that is not an object."""
    try:
        if isinstance(body, bytes) and isinstance(decode(body)["metadata"], dict):
            return
        why = "it is no Kubernetes object"
    except (msgspec.DecodeError, TypeError, KeyError, ValueError, RecursionError) as error:
        why = f"it is no Kubernetes object: {error}"
    raise _damage_error(path, row, kind, key, why)
