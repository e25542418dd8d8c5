"""Objects as they are known, and as they will be once what was decided about them is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class AssumedObjects(Generic[T]):
    """An assumption lasts until the object itself confirms or contradicts it, or it is restored.

    Several pods can rely on one assumption; it is restored when the last of them gives it up.
    """

    def __init__(self, upheld: Callable[[T, T], T | None]) -> None:
        #: A newer object with what is assumed of it; None when it says so, or otherwise, itself.
        self._upheld = upheld
        self._known: dict[str, T] = {}
        self._assumed: dict[str, T] = {}
        self._owners: dict[str, set[str]] = {}

    def get(self, name: str) -> T | None:
        """The object with what is assumed of it."""
        return self._assumed.get(name) or self._known.get(name)

    def known(self, name: str) -> T | None:
        """The object as it was last seen."""
        return self._known.get(name)

    @property
    def assumed(self) -> Mapping[str, T]:
        return self._assumed

    @property
    def owners(self) -> Mapping[str, set[str]]:
        """Who relies on each assumption."""
        return self._owners

    def __iter__(self) -> Iterator[T]:
        """All objects, as they were last seen."""
        return iter(self._known.values())

    def put(self, name: str, item: T) -> None:
        self._known[name] = item
        if name in self._assumed:
            upheld = self._upheld(item, self._assumed[name])
            if upheld is None:
                self._forget(name)
            else:
                self._assumed[name] = upheld

    def drop(self, name: str) -> None:
        self._known.pop(name, None)
        self._forget(name)

    def assume(self, name: str, item: T, owner: str) -> None:
        if self._known[name] != item:
            self._assumed[name] = item
            self._owners.setdefault(name, set()).add(owner)

    def assume_for(self, name: str, item: T, owners: set[str]) -> None:
        """Several pods rely on the assumption."""
        for owner in owners:
            self.assume(name, item, owner)

    def restore(self, name: str, owner: str) -> None:
        owners = self._owners.get(name, set())
        owners.discard(owner)
        if not owners:
            self._forget(name)

    def _forget(self, name: str) -> None:
        self._assumed.pop(name, None)
        self._owners.pop(name, None)
