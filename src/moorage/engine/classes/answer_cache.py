"""Keeps answers for like pods of all profiles, bounded in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, NamedTuple

from .statistics import Flush, Statistics

#: All answers that are kept, of all profiles, may take so many bytes.
MOST_BYTES = 128 * 2**20


class Key(NamedTuple):
    """The owner of answers: a profile, and what its plugins are asked."""

    profile: str
    of: Hashable


class _Entry:
    __slots__ = ("is_used", "size", "statistics", "value")

    def __init__(self, value: Any, size: int, statistics: Statistics) -> None:
        self.value, self.size, self.statistics = value, size, statistics
        #: Whether it was used since the last sweep.
        self.is_used = True


class AnswerCache:
    """Values by key, with their sizes.

    Beyond the limit, the least recently used are dropped first.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        #: What all values take, as those who keep them say.
        self.bytes = 0
        # In the order of their last use.
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, key: Key) -> Any:
        """Returns the value of a key and marks it as used; None if there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        entry.is_used = True
        self._entries.move_to_end(key)
        return entry.value

    def put(self, key: Key, value: Any, size: int, statistics: Statistics) -> None:
        """Stores a value of that many bytes, and drops others if there is no room for all."""
        self.discard(key)
        self._entries[key] = _Entry(value, size, statistics)
        self.bytes += size
        while self.bytes > self.most_bytes and len(self._entries) > 1:
            self._drop(next(iter(self._entries)), Flush.FULL)

    def keep_most(self, profile: str, most: int) -> None:
        """Drops the least recently used classes of a profile beyond a number."""
        classes = self.keys_of(profile)
        for key in classes[: max(0, len(classes) - most)]:
            self._drop(key, Flush.FULL)

    def sweep(self, profile: str) -> None:
        """Drops the values of a profile that were not used since the last sweep."""
        for key in self.keys_of(profile):
            entry = self._entries[key]
            if entry.is_used:
                entry.is_used = False
            else:
                self._drop(key, Flush.UNUSED)

    def forget(self, profile: str) -> None:
        """Drops all values of a profile."""
        for key in self.keys_of(profile):
            self._drop(key, Flush.FORGOTTEN)

    def keys_of(self, profile: str) -> list[Key]:
        """Returns the keys of a profile, the least recently used first."""
        return [key for key in self._entries if key.profile == profile]

    def bytes_of(self, profile: str) -> int:
        """Returns the bytes that the values of a profile take."""
        return sum(each.size for key, each in self._entries.items() if key.profile == profile)

    def discard(self, key: Key) -> None:
        """Drops a value, if it is there, without counting that."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.bytes -= entry.size
            entry.value.close()

    def _drop(self, key: Key, why: Flush) -> None:
        statistics = self._entries[key].statistics
        self.discard(key)
        statistics.flushes[why] += 1
