"""The results of the extension points for one pod."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.cluster import Mask

from .status import Code, Rejected
from .verdict import Verdict

T = TypeVar("T")


class PreFiltered(msgspec.Struct, frozen=True):
    """The result of all pre-filters."""

    #: What each plugin prepared; a plugin that skips itself is not in here.
    prepared: Mapping[str, Any]
    skipped: frozenset[str] = frozenset()
    #: The only nodes worth looking at, and the plugins that said so; None is all nodes.
    node_names: frozenset[str] | None = None
    narrowed_by: tuple[str, ...] = ()
    #: The no to the pod as a whole, and the plugin that said it ("" when several did together).
    rejected: Rejected | None = None
    rejected_by: str = ""

    def ran(self, plugin: str) -> bool:
        """Whether a plugin's pre-filter was reached."""
        return plugin in self.prepared or plugin in self.skipped


class Layer(msgspec.Struct, frozen=True):
    """One filter's answer, and the positions that it was the first to reject."""

    plugin: str
    verdict: Verdict
    decided: Mask


class RowRefusal(msgspec.Struct, frozen=True):
    """Why one node does not suit a pod."""

    plugin: str
    code: Code
    reasons: tuple[str, ...]


class Filtered(msgspec.Struct, frozen=True):
    """The result of all filters for some rows.

    A row belongs to the first filter that rejects it.
    """

    rows: NDArray[np.intp]
    feasible: Mask
    layers: tuple[Layer, ...]
    #: Rows for which the answer is another one: nominated pods, the nominated node.
    amended: tuple[Filtered, ...] = ()

    @property
    def feasible_rows(self) -> NDArray[np.intp]:
        return self.rows[self.feasible]

    def refusals(self) -> Iterator[tuple[int, RowRefusal]]:
        """Yields every rejected row and why."""
        for layer in self.layers:
            for at in np.flatnonzero(layer.decided).tolist():
                reasons = layer.verdict.texts(at)
                yield int(self.rows[at]), RowRefusal(layer.plugin, layer.verdict.code(at), reasons)
        for other in self.amended:
            yield from other.refusals()

    def reason_counts(self) -> Iterator[tuple[str, int]]:
        """Returns how many rows each reason rejected; a text may occur more than once."""
        for layer in self.layers:
            yield from layer.verdict.counts(layer.decided)
        for other in self.amended:
            yield from other.reason_counts()

    def rejectors(self) -> Iterator[str]:
        """Returns the plugins that were the first to reject some row."""
        for layer in self.layers:
            if np.count_nonzero(layer.decided):
                yield layer.plugin
        for other in self.amended:
            yield from other.rejectors()

    def helpable_rows(self) -> NDArray[np.intp]:
        """Returns the rejected rows on which evicting pods might help."""
        own = [self.rows[each.decided & ~each.verdict.unresolvable] for each in self.layers]
        if len(own) == 1 and not self.amended:
            return own[0]
        others = [other.helpable_rows() for other in self.amended]
        return np.concatenate([np.zeros(0, np.intp), *own, *others])

    @property
    def rejected_count(self) -> int:
        return sum(int(np.count_nonzero(layer.decided)) for layer in self.layers) + sum(
            other.rejected_count for other in self.amended
        )

    def limited(self, looked_at: Mask) -> Filtered:
        """Returns this result without the rows that were not looked at."""
        rows = self.rows[looked_at]
        layers = tuple(
            Layer(
                layer.plugin,
                Verdict(layer.verdict.reasons, layer.verdict.failed[:, looked_at]),
                layer.decided[looked_at],
            )
            for layer in self.layers
        )
        unseen = self.rows[~looked_at]
        amended = tuple(each.without(unseen) for each in self.amended)
        return Filtered(rows, self.feasible[looked_at], layers, amended)

    def replacing(self, other: Filtered) -> Filtered:
        """Returns this result with the rejections of another result for those rows."""
        refused = other.rows[~other.feasible]
        if not len(refused):
            return self
        less = self.without(refused)
        return replace(less, amended=(*less.amended, other))

    def without(self, rows: NDArray[np.intp]) -> Filtered:
        """Returns this result without anything about some rows, which are not feasible then."""
        ours = ~_among(self.rows, rows)
        return Filtered(
            self.rows,
            self.feasible & ours,
            tuple(replace(layer, decided=layer.decided & ours) for layer in self.layers),
            tuple(each.without(rows) for each in self.amended),
        )


def _among(rows: NDArray[np.intp], some: NDArray[np.intp]) -> Mask:
    """Returns which of the rows are among some others, by a mask, because row numbers are small."""
    if not len(rows) or not len(some):
        return np.zeros(len(rows), np.bool_)
    marked = np.zeros(max(int(rows.max()), int(some.max())) + 1, np.bool_)
    marked[some] = True
    found: Mask = marked[rows]
    return found


class Scored(msgspec.Struct, frozen=True):
    """The scores of the feasible rows, per plugin and in total."""

    rows: NDArray[np.intp]
    #: Normalised and weighted.
    by_plugin: Mapping[str, NDArray[np.int64]] = msgspec.field(default_factory=dict)
    totals: NDArray[np.int64] = msgspec.field(default_factory=lambda: np.zeros(0, np.int64))

    def best(self) -> NDArray[np.intp]:
        """Returns all rows with the highest total."""
        return self.rows[self.totals == self.totals.max()]


class Failed(msgspec.Struct, frozen=True):
    """An attempt that found no node, for post-filters to remedy."""

    pre_filtered: PreFiltered
    filtered: Filtered | None
    node_count: int
    #: The answer for the nominated node, if there is one.
    tried_first: Filtered | None = None
    #: The plugins that rejected a row of which another has the last word.
    overruled: frozenset[str] = frozenset()
    #: How often the pod was tried before.
    attempt: int = 0
    #: What came of it, by what post-filters sign, for like pods while nothing changes.
    known: dict[Hashable, Any] = msgspec.field(default_factory=dict)
    #: What was worked out of what filters said, which is shared while they say the same.
    digests: dict[str, tuple[Filtered | None, Any]] = msgspec.field(default_factory=dict)

    def digest(self, name: str, work_out: Callable[[], T]) -> T:
        """Returns a value computed from `filtered` alone, once for all like pods."""
        known = self.digests.get(name)
        if known is None or known[0] is not self.filtered:
            known = self.digests[name] = (self.filtered, work_out())
        found: T = known[1]
        return found
