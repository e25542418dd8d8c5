"""What became of the pods: who is placed, who was tried, who is still waited for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Entry:
    """A pod that the harness has made."""

    uid: str
    namespace: str
    name: str
    labels: Mapping[str, str]
    has_finalizers: bool = False
    #: The node that it has, or had.
    is_placed: bool = False
    is_attempted: bool = False
    #: Why it was not placed when it was tried last.
    told: str = ""

    def matches(self, labels: Mapping[str, str]) -> bool:
        return not labels or all(self.labels.get(key) == value for key, value in labels.items())


@dataclass(slots=True, eq=False)
class Watch:
    """Pods that something waits for: until they are placed, or until they were tried."""

    missing: set[str]
    is_for_attempts: bool = False


@dataclass(slots=True)
class Ledger:
    """The pods of a run, by uid."""

    entries: dict[str, Entry] = field(default_factory=dict)
    #: How many were placed in all, those that are gone by now among them.
    placed_count: int = 0
    _names: dict[tuple[str, str], str] = field(default_factory=dict)
    _watches: list[Watch] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        self.entries[entry.uid] = entry
        self._names[entry.namespace, entry.name] = entry.uid

    def named(self, namespace: str, name: str) -> Entry | None:
        uid = self._names.get((namespace, name))
        return None if uid is None else self.entries[uid]

    def of(self, namespace: str, labels: Mapping[str, str]) -> Iterator[Entry]:
        """The pods of a namespace that have these labels."""
        for entry in self.entries.values():
            if entry.namespace == namespace and entry.matches(labels):
                yield entry

    def watch(self, uids: Iterable[str], *, for_attempts: bool = False) -> Watch:
        """Begins to wait for pods, as far as they are not gone."""
        missing = {uid for uid in uids if self._is_missing(uid, for_attempts)}
        watch = Watch(missing, for_attempts)
        self._watches.append(watch)
        return watch

    def end(self, watch: Watch) -> None:
        self._watches.remove(watch)

    def placed(self, uid: str) -> Entry | None:
        """A pod has a node; None if it is not one of ours."""
        entry = self.entries.get(uid)
        if entry is None:
            return None
        if not entry.is_placed:
            entry.is_placed = True
            self.placed_count += 1
        for watch in self._watches:
            watch.missing.discard(uid)
        return entry

    def attempted(self, uid: str, told: str) -> None:
        """A pod was tried, or is held by a gate, and has no node."""
        entry = self.entries.get(uid)
        if entry is not None:
            entry.is_attempted, entry.told = True, told
            for watch in self._watches:
                if watch.is_for_attempts:
                    watch.missing.discard(uid)

    def gone(self, uid: str) -> Entry | None:
        """A pod was deleted or evicted; nobody waits for it any more."""
        entry = self.entries.pop(uid, None)
        if entry is not None:
            self._names.pop((entry.namespace, entry.name), None)
            for watch in self._watches:
                watch.missing.discard(uid)
        return entry

    def _is_missing(self, uid: str, for_attempts: bool) -> bool:
        entry = self.entries.get(uid)
        if entry is None or entry.is_placed:
            return False
        return not (for_attempts and entry.is_attempted)
