"""Finds by labels: the keys that selectors read, selectors that may match, pods that match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage.objects.pod import Pod
from moorage.objects.selector import Labels, Requirement, Selector

from .arrays import grow_to
from .derived import Recent
from .labels import ABSENT, find_codes


class LabelKeys:
    """The keys that selectors in use read: of running and nominated pods, services, controllers."""

    def __init__(self) -> None:
        #: How many selectors read each key.
        self.uses: Counter[str] = Counter()
        #: Grows whenever a key comes into use or falls out of it.
        self.version = 0

    def add(self, selector: Selector | None) -> None:
        for key in selector.keys if selector is not None else ():
            if key not in self.uses:
                self.version += 1
            self.uses[key] += 1

    def discard(self, selector: Selector | None) -> None:
        for key in selector.keys if selector is not None else ():
            self.uses[key] -= 1
            if not self.uses[key]:
                del self.uses[key]
                self.version += 1


T = TypeVar("T")


class SelectorIndex(Generic[T]):
    """Items by a label that their selector requires; items without one are always candidates."""

    def __init__(self) -> None:
        self._anchored: dict[tuple[str, str], dict[T, None]] = {}
        self._loose: dict[T, None] = {}

    def __bool__(self) -> bool:
        """Whether there are items."""
        return bool(self._anchored or self._loose)

    def add(self, selector: Selector, item: T) -> None:
        for anchor in _anchors(selector):
            self._anchored.setdefault(anchor, {})[item] = None
        if not _anchors(selector):
            self._loose[item] = None

    def discard(self, selector: Selector, item: T) -> None:
        for anchor in _anchors(selector):
            items = self._anchored[anchor]
            del items[item]
            if not items:
                del self._anchored[anchor]
        self._loose.pop(item, None)

    def candidates(self, labels: Labels) -> Iterator[T]:
        """Yields every item whose selector could match, each once."""
        yield from self._loose
        if self._anchored:
            for label in labels.items():
                yield from self._anchored.get(label, ())


def _anchors(selector: Selector) -> tuple[tuple[str, str], ...]:
    """Returns the labels of which a match has exactly one: values of the first In requirement."""
    for requirement in selector.requirements:
        if requirement.operator == "In":
            return tuple((requirement.key, value) for value in requirement.values)
    return ()


Mask = NDArray[np.bool_]

# Columns of codes for labels of pods, the least recently used dropped first.
_MOST_COLUMNS = 64

# How many comings and goings, and labels of such pods, are caught up with, beyond twice as many as
# there were pods. After more, it is better to begin anew: that drops groups without pods, too.
_MOST_CHANGES = 65_536

#: What pods of one group share: namespace, whether they leave, keys and values of labels.
_Group = tuple[object, ...]


class PodChange(NamedTuple):
    """The counted parts of a pod that came to (1) or left (-1) a row, without the pod itself."""

    namespace: str
    terminating: bool
    labels: Labels
    row: int
    amount: int

    @classmethod
    def of(cls, pod: Pod, row: int, amount: int) -> PodChange:
        return tuple.__new__(cls, (pod.namespace, pod.terminating, pod.labels, row, amount))


class PodIndex:
    """Counts the placed pods that match, per row, without looking at each pod."""

    def __init__(self, placed: Iterable[tuple[int, Pod]]) -> None:
        self._groups: dict[_Group, int] = {}
        self._namespaces: dict[str, int] = {}
        #: Per label key the groups that have it, the oldest first.
        self._with_key: dict[str, list[int]] = {}
        self._columns: Recent[str, _Codes] = Recent(_MOST_COLUMNS)
        #: Per group.
        self._labels: list[Labels] = []
        self._namespace_codes: NDArray[np.int32] = np.zeros(64, np.int32)
        self._terminating: Mask = np.zeros(64, np.bool_)
        self._came, self._left = _Members(), _Members()
        self._changes: list[PodChange] = []
        self._take(PodChange.of(pod, row, 1) for row, pod in placed)
        self._room = _MOST_CHANGES + 2 * len(self._came)

    def note(self, change: PodChange) -> bool:
        """Notes a change, to be counted when next asked; returns False if there are too many."""
        self._changes.append(change)
        self._room -= 1 + len(change[2])
        return self._room > 0

    def count(
        self,
        pairs: Iterable[tuple[frozenset[str] | None, Selector]],
        capacity: int,
        *,
        skip_terminating: bool,
    ) -> NDArray[np.int32]:
        """Returns per row how many pods match every pair of namespaces (None: all) and selector."""
        if self._changes:
            changes, self._changes = self._changes, []
            self._take(changes)
        chosen = np.ones(len(self._groups), np.bool_)
        if skip_terminating:
            chosen &= ~self._terminating[: len(chosen)]
        for namespaces, selector in pairs:
            if not self._narrow(chosen, namespaces, selector):
                return np.zeros(capacity, np.int32)
        counts = self._came.per_row(chosen, capacity)
        if len(self._left):
            counts -= self._left.per_row(chosen, capacity)
        return counts.astype(np.int32)

    # Which groups match

    def _narrow(self, chosen: Mask, namespaces: frozenset[str] | None, selector: Selector) -> bool:
        """Keeps the chosen groups that match; returns False if there is surely none."""
        if namespaces is not None:
            codes = [self._namespaces[name] for name in namespaces if name in self._namespaces]
            if not codes:
                return False
            chosen &= find_codes(self._namespace_codes[: len(chosen)], codes, len(self._namespaces))
        for requirement in selector.requirements:
            having = self._with_key.get(requirement.key)
            if having is None:
                if requirement.operator in ("In", "Exists"):
                    return False
                continue
            if not self._narrow_by(chosen, requirement, having):
                return False
        return True

    def _narrow_by(self, chosen: Mask, requirement: Requirement, having: list[int]) -> bool:
        column = self._columns.get(requirement.key)
        if column is None:
            column = _Codes(requirement.key)
            self._columns.put(requirement.key, column)
        codes = column.caught_up(having, self._labels)
        match requirement.operator:
            case "In":
                wanted = column.of(requirement.values)
                if not wanted:
                    return False
                chosen &= find_codes(codes, wanted, len(column))
            case "NotIn":
                chosen &= ~find_codes(codes, column.of(requirement.values), len(column))
            case "Exists":
                chosen &= codes != ABSENT
            case "DoesNotExist":
                chosen &= codes == ABSENT
        return True

    # Pods that come and go

    def _take(self, changes: Iterable[PodChange]) -> None:
        groups = self._groups
        came: list[int] = []
        left: list[int] = []
        for change in changes:
            namespace, terminating, labels, row, amount = change
            key = namespace, terminating, *labels, *labels.values()
            group = groups.get(key)
            if group is None:
                group = self._new_group(key, change)
            (came if amount > 0 else left).extend((group, row))
        self._came.extend(came)
        self._left.extend(left)

    def _new_group(self, key: _Group, pod: PodChange) -> int:
        group = self._groups[key] = len(self._groups)
        self._labels.append(pod.labels)
        if group >= len(self._terminating):
            self._namespace_codes = grow_to(self._namespace_codes, group + 1)
            self._terminating = grow_to(self._terminating, group + 1, False)
        code = self._namespaces.setdefault(pod.namespace, len(self._namespaces))
        self._namespace_codes[group] = code
        self._terminating[group] = pod.terminating
        for name in pod.labels:
            self._with_key.setdefault(name, []).append(group)
        return group


class _Members:
    """The groups and rows of pods."""

    def __init__(self) -> None:
        self._groups: NDArray[np.intp] = np.zeros(0, np.intp)
        self._rows: NDArray[np.intp] = np.zeros(0, np.intp)

    def __len__(self) -> int:
        return len(self._rows)

    def extend(self, more: list[int]) -> None:
        """Adds pods, each by its group and its row."""
        if more:
            pairs = np.array(more, np.intp)
            self._groups = np.concatenate((self._groups, pairs[::2]))
            self._rows = np.concatenate((self._rows, pairs[1::2]))

    def per_row(self, chosen: Mask, capacity: int) -> NDArray[np.intp]:
        """Returns how many pods of the chosen groups there are on each row."""
        if np.count_nonzero(chosen) == len(chosen):
            return np.bincount(self._rows, minlength=capacity)
        return np.bincount(self._rows[chosen.take(self._groups)], minlength=capacity)


class _Codes:
    """The values of one label as a code per group, ABSENT where a group lacks it."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._of_value: dict[str, int] = {}
        self._codes: NDArray[np.int32] = np.full(64, ABSENT, np.int32)
        #: How many of the groups that have the label are known.
        self._known = 0

    def __len__(self) -> int:
        """Returns the number of codes."""
        return len(self._of_value)

    def caught_up(self, having: list[int], labels: list[Labels]) -> NDArray[np.int32]:
        """Returns the codes of all groups, including new ones."""
        if self._known < len(having) or len(self._codes) < len(labels):
            self._codes = grow_to(self._codes, len(labels), ABSENT)
            of_value, key = self._of_value, self._key
            new = having[self._known :]
            codes = [of_value.setdefault(labels[group][key], len(of_value)) for group in new]
            self._codes[new] = codes
            self._known = len(having)
        return self._codes[: len(labels)]

    def of(self, values: Iterable[str]) -> list[int]:
        """Returns the codes of some values, without values that no group has."""
        return [self._of_value[value] for value in values if value in self._of_value]
