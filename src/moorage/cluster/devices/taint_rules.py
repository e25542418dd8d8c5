"""The taints that DeviceTaintRules put on devices.

There may be many rules, and one rule may be about every device. So nothing is done for each device
when a rule changes: the taints of a device are looked up when a node's view of its pool is made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from weakref import WeakValueDictionary

from moorage.objects.device import REPELLING, DeviceTaint, DeviceTaintRule, TaintSelector


class RuleTaints:
    """The taints that rules with one selector give. Equal ones are one object."""

    __slots__ = ("__weakref__", "taints")

    def __init__(self, taints: tuple[DeviceTaint, ...]) -> None:
        self.taints = taints


#: The taints that rules give to a device, by how the rules select it.
TaintsOfRules = tuple[RuleTaints, ...]


class TaintRules:
    """Rules by name, and the taints that they give by selector."""

    def __init__(self, *, are_followed: bool) -> None:
        self._are_followed = are_followed
        self._rules: dict[str, DeviceTaintRule] = {}
        self._by_selector: dict[TaintSelector, Counter[DeviceTaint]] = {}
        #: How many selectors there are for a driver and a pool.
        self._pairs: Counter[tuple[str | None, str | None]] = Counter()
        self._joined: dict[TaintSelector, RuleTaints] = {}
        self._equal: WeakValueDictionary[frozenset[DeviceTaint], RuleTaints] = WeakValueDictionary()
        #: Changes whenever the taints of any device may have changed.
        self.version = 0

    def get(self, name: str) -> DeviceTaintRule | None:
        return self._rules.get(name)

    def __iter__(self) -> Iterator[DeviceTaintRule]:
        return iter(self._rules.values())

    def put(self, rule: DeviceTaintRule) -> list[TaintSelector]:
        """Adds or updates a rule; returns which devices may have other taints now."""
        before = self._rules.get(rule.name)
        if before == rule:
            return []
        self._rules[rule.name] = rule
        changed = [] if before is None else self._count(before, -1)
        return changed + self._count(rule, 1)

    def drop(self, name: str) -> list[TaintSelector]:
        """Removes a rule; returns which devices may have other taints now."""
        before = self._rules.pop(name, None)
        return [] if before is None else self._count(before, -1)

    def of(
        self, driver: str, pool: str, names: Sequence[str]
    ) -> Mapping[int, TaintsOfRules] | None:
        """Returns the taints of these devices of a pool, by place; None if they have none."""
        if not self._by_selector:
            return None
        pairs = [
            (by_driver, by_pool)
            for by_driver in (None, driver)
            for by_pool in (None, pool)
            if (by_driver, by_pool) in self._pairs
        ]
        if not pairs:
            return None
        found: dict[int, TaintsOfRules] = {}
        for at, name in enumerate(names):
            selectors = [(*pair, device) for pair in pairs for device in (None, name)]
            taints = tuple([self._join(each) for each in selectors if each in self._by_selector])
            if taints:
                found[at] = taints
        return found

    def _count(self, rule: DeviceTaintRule, amount: int) -> list[TaintSelector]:
        """Counts a rule in (1) or out (-1); returns its selector if that changes any device."""
        if not self._are_followed or rule.taint.effect not in REPELLING:
            return []
        selector = rule.selector
        taints = self._by_selector.get(selector)
        if taints is None:
            taints = self._by_selector[selector] = Counter()
            self._pairs[selector[:2]] += 1
        taints[rule.taint] += amount
        if taints[rule.taint] > (amount > 0):
            # Another rule gives the same taint.
            return []
        if not taints[rule.taint]:
            del taints[rule.taint]
        if not taints:
            del self._by_selector[selector]
            self._pairs[selector[:2]] -= 1
            if not self._pairs[selector[:2]]:
                del self._pairs[selector[:2]]
        self._joined.pop(selector, None)
        self.version += 1
        return [selector]

    def _join(self, selector: TaintSelector) -> RuleTaints:
        known = self._joined.get(selector)
        if known is None:
            taints = frozenset(self._by_selector[selector])
            known = self._equal.get(taints)
            if known is None:
                known = self._equal[taints] = RuleTaints(tuple(self._by_selector[selector]))
            self._joined[selector] = known
        return known
