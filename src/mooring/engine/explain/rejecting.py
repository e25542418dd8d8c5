"""Which filters reject which rows: the first of each row, as told, and all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Mask, Nodes
from mooring.framework.advice import like_columns
from mooring.framework.attempt import Filtered, Layer
from mooring.framework.run import active_filters, filter_rows
from mooring.framework.status import PluginError

from .case import Case, RowNumbers
from .data import Combination, Rejection


def rejections(filtered: Filtered, nodes: Nodes) -> Iterator[Rejection]:
    """The rejected rows by who was first and why, as the diagnosis counts them."""
    for layer in filtered.layers:
        decided = np.flatnonzero(layer.decided)
        for places in like_columns(layer.verdict.failed[:, decided]):
            yield _rejection(layer, decided[places], filtered.rows, nodes)
    for other in filtered.amended:
        yield from rejections(other, nodes)


def _rejection(layer: Layer, places: RowNumbers, rows: RowNumbers, nodes: Nodes) -> Rejection:
    first, verdict = int(places[0]), layer.verdict
    names = tuple(nodes.names(rows[places].tolist()))
    return Rejection(layer.plugin, verdict.code(first), verdict.told(first), len(names), names)


def merged(found: Iterator[Rejection]) -> tuple[Rejection, ...]:
    """One per plugin and reasons, the one with the most nodes first."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for each in found:
        groups.setdefault((each.plugin, each.code, each.reasons), []).extend(each.nodes)
    told = [Rejection(*key, len(names), tuple(names)) for key, names in groups.items()]
    return tuple(sorted(told, key=lambda each: -each.count))


@dataclass(frozen=True, slots=True)
class Rejectors:
    """Per filter the rows that it rejects, whoever else does."""

    plugins: tuple[str, ...]
    rows: RowNumbers
    #: bool[plugin, row]
    rejects: NDArray[np.bool_]

    @classmethod
    def of(cls, case: Case) -> Rejectors:
        """Asks every filter about every row."""
        prepared, rows = case.prepared, case.alive
        names: list[str] = []
        masks: list[Mask] = []
        for plugin in active_filters(case.profile, prepared):
            try:
                asked = filter_rows(
                    case.profile, case.pod, prepared, case.nodes, rows, only=(plugin,)
                )
            except PluginError:
                # It breaks where the cycle would not have come to it: then it is not to blame.
                continue
            rejected = ~asked.feasible
            if plugin.name in prepared.narrowed_by and prepared.node_names is not None:
                rejected |= ~_named(case, prepared.node_names)
            names.append(plugin.name)
            masks.append(rejected)
        return cls(tuple(names), rows, np.array(masks, np.bool_).reshape(len(names), len(rows)))

    def among(self, rows: RowNumbers) -> Rejectors:
        """The same for some of the rows."""
        kept = np.isin(self.rows, rows)
        return Rejectors(self.plugins, self.rows[kept], self.rejects[:, kept])

    def patterns(self) -> list[tuple[tuple[str, ...], RowNumbers]]:
        """Which plugins together reject how many rows; the most rows first."""
        found = []
        for places in like_columns(self.rejects):
            column = self.rejects[:, places[0]]
            names = tuple(name for name, no in zip(self.plugins, column, strict=True) if no)
            if names:
                found.append((names, self.rows[places]))
        return sorted(found, key=lambda each: -len(each[1]))

    def alone(self, case: Case, row: RowNumbers) -> Iterator[Rejection]:
        """What each plugin that rejects one row says of it."""
        here = self.among(row)
        rejecting = {name for name, no in zip(here.plugins, here.rejects[:, 0], strict=True) if no}
        for plugin in active_filters(case.profile, case.prepared):
            if plugin.name in rejecting:
                only = (plugin,)
                asked = filter_rows(case.profile, case.pod, case.prepared, case.nodes, row, only)
                yield from rejections(asked, case.actual)

    def combinations(self) -> tuple[Combination, ...]:
        return tuple(Combination(names, len(rows)) for names, rows in self.patterns())


def _named(case: Case, names: frozenset[str]) -> Mask:
    known = [case.actual.row(name) for name in names]
    return np.isin(case.alive, [row for row in known if row is not None])
