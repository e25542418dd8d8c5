"""Which labels of a pod somebody reads: only those can tell like pods apart."""

from __future__ import annotations

from collections import Counter

from mooring.objects.selector import Selector


class LabelKeys:
    """The keys that selectors in use read: of running and nominated pods, services, controllers."""

    def __init__(self) -> None:
        self._uses: Counter[str] = Counter()
        #: Grows whenever a key comes into use or falls out of it.
        self.version = 0

    @property
    def are_there(self) -> bool:
        """Whether any label is read at all."""
        return bool(self._uses)

    def __contains__(self, key: str) -> bool:
        return key in self._uses

    def add(self, selector: Selector | None) -> None:
        for key in selector.keys if selector is not None else ():
            if key not in self._uses:
                self.version += 1
            self._uses[key] += 1

    def discard(self, selector: Selector | None) -> None:
        for key in selector.keys if selector is not None else ():
            self._uses[key] -= 1
            if not self._uses[key]:
                del self._uses[key]
                self.version += 1

    @property
    def uses(self) -> dict[str, int]:
        return dict(self._uses)
