"""What changed of devices, in order, for those who keep something that follows from them."""

from __future__ import annotations

from .pools import PoolKey

# A reader that is further behind looks at everything again.
_MOST_ENTRIES = 4_096


class DeviceLog:
    """The names of slices that changed, and the pools of which a device was taken or given back."""

    def __init__(self) -> None:
        self._entries: list[str | PoolKey] = []
        self._dropped = 0
        #: Changes when nodes come, go or are labelled otherwise.
        self.rows_version = 0

    @property
    def position(self) -> int:
        """Where the log ends."""
        return self._dropped + len(self._entries)

    def note(self, what: str | PoolKey) -> None:
        if len(self._entries) >= _MOST_ENTRIES:
            half = _MOST_ENTRIES // 2
            del self._entries[:half]
            self._dropped += half
        self._entries.append(what)

    def since(self, position: int) -> dict[str | PoolKey, None] | None:
        """What changed after a position, each once; None if that is too long ago."""
        if position < self._dropped:
            return None
        return dict.fromkeys(self._entries[position - self._dropped :])
