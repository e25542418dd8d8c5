"""A log of the changes of devices, for readers that keep values derived from devices."""

from __future__ import annotations

from .pools import PoolKey

# The log keeps at most so many entries. A reader that is further behind reads everything again.
_MOST_ENTRIES = 4_096


class DeviceLog:
    """The names of slices that changed, and the pools whose devices were taken or given back."""

    def __init__(self) -> None:
        self._entries: list[str | PoolKey] = []
        self._dropped = 0
        #: Changes when nodes come, go or change their labels.
        self.rows_version = 0

    @property
    def position(self) -> int:
        """Returns the position at which the log ends."""
        return self._dropped + len(self._entries)

    def note(self, what: str | PoolKey) -> None:
        if len(self._entries) >= _MOST_ENTRIES:
            half = _MOST_ENTRIES // 2
            del self._entries[:half]
            self._dropped += half
        self._entries.append(what)

    def since(self, position: int) -> dict[str | PoolKey, None] | None:
        """Returns what changed after a position, each once; None if part of it was dropped."""
        if position < self._dropped:
            return None
        return dict.fromkeys(self._entries[position - self._dropped :])
