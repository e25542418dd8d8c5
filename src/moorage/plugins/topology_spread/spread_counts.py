"""How the pods that hard constraints count are spread, now or with one pod more or fewer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask, View
from moorage.cluster.labels import LabelColumn
from moorage.objects.pod import Pod

from .spread_constraints import Constraint, Included, pods_per_domain

# The fewest pods of any domain if there is no domain. With this number nothing is too skewed.
_NO_DOMAIN = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Lowest:
    """The domain with the fewest pods, and the one with the next fewest.

    Two are enough as long as pods come and go in one domain only. Other domains are not known.
    """

    code: int
    count: int
    next_code: int
    next_count: int

    @classmethod
    def of(cls, counts: NDArray[np.int64], domains: Mask) -> Lowest:
        left = np.where(domains, counts, _NO_DOMAIN)
        code = int(left.argmin())
        count = int(left[code])
        left[code] = _NO_DOMAIN
        next_code = int(left.argmin())
        return cls(code, count, next_code, int(left[next_code]))

    def updated(self, code: int, count: int) -> Lowest:
        """Returns what is known after the count of a domain has changed."""
        if code == self.code:
            if count <= self.next_count:
                return replace(self, count=count)
            return Lowest(self.next_code, self.next_count, code, count)
        if count < self.count:
            return Lowest(code, count, self.code, self.count)
        if code == self.next_code or count < self.next_count:
            return replace(self, next_code=code, next_count=count)
        return self


@dataclass(frozen=True, slots=True)
class Spread:
    """A hard constraint, and how the pods that it counts are spread."""

    constraint: Constraint
    column: LabelColumn
    #: The rows that count, all with every key; None means every node.
    included: Mask | None
    #: int64 per code; the last number is that of ABSENT and has no meaning.
    counts: NDArray[np.int64]
    domain_count: int
    lowest: Lowest
    #: 1 if the pod itself would count, else 0.
    own: int

    def skewed(self) -> Mask:
        """Returns per code whether one more pod there is too many; the last place is False."""
        enough = self.domain_count >= self.constraint.min_domains
        fewest = self.lowest.count if enough else 0
        skewed = self.counts > self.constraint.max_skew + fewest - self.own
        skewed[-1] = False
        return skewed

    def moved(self, pod: Pod, row: int, amount: int) -> Spread:
        """Returns this spread with one pod more or fewer, even if that pod is terminating."""
        if not self.constraint.selects(pod.labels):
            return self
        if self.included is not None and not self.included[row]:
            return self
        counts = self.counts.copy()
        code = int(self.column.codes[row])
        counts[code] += amount
        return replace(self, counts=counts, lowest=self.lowest.updated(code, int(counts[code])))


@dataclass(frozen=True, slots=True)
class Spreads:
    """All hard constraints of a pod."""

    namespace: str
    each: tuple[Spread, ...]

    def moved(self, pod: Pod, row: int, amount: int) -> Spreads:
        """Returns these with one pod more or fewer; itself if no constraint counts the pod."""
        if pod.namespace != self.namespace:
            return self
        moved = tuple(spread.moved(pod, row, amount) for spread in self.each)
        if all(after is before for after, before in zip(moved, self.each, strict=True)):
            return self
        return replace(self, each=moved)


def spread_of(constraint: Constraint, pod: Pod, nodes: View, included: Included) -> Spread:
    """Returns how the pods that a constraint counts are spread over the included rows."""
    counts = pods_per_domain(constraint, pod.namespace, nodes, included.rows)
    return Spread(
        constraint,
        nodes.label(constraint.topology_key),
        included.rows,
        counts,
        included.domain_count,
        Lowest.of(counts, included.domains),
        int(constraint.selects(pod.labels)),
    )
