"""The domains of a node label, and sums over their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Nodes
from moorage.cluster.labels import ABSENT
from moorage.cluster.row_view import RowView

from .group_result import Domain

_NOWHERE = -1


@dataclass(frozen=True, slots=True)
class KeyDomains:
    """All domains of a label by name, and their rows in sequence."""

    domains: tuple[Domain, ...]
    rows: NDArray[np.intp]
    #: Where the rows of each domain begin.
    begins: NDArray[np.intp]
    #: The place of its domain for each row; -1 for a row without the label.
    place_of: list[int]

    def sum(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the sums over the rows of each domain."""
        sums: NDArray[np.int64] = np.add.reduceat(values[self.rows], self.begins)
        return sums


class DomainSums:
    """The sums of a `RowView` over the rows of each domain, which follow it."""

    __slots__ = ("_domains", "_place_of", "_sums", "_view")

    def __init__(self, view: RowView[np.int64], domains: KeyDomains) -> None:
        self._view = view
        self._domains = domains
        self._place_of = domains.place_of
        view.follow(self)

    def current(self) -> NDArray[np.int64]:
        """Returns the sum of each domain, up to date."""
        self._view.current()
        return self._sums

    def move(self, row: int, before: int, after: int) -> None:
        place = self._place_of[row]
        if place != _NOWHERE:
            self._sums[place] += after - before

    def renew(self, values: NDArray[np.int64]) -> None:
        self._sums = self._domains.sum(values)


def split_by(key: str, nodes: Nodes) -> KeyDomains:
    """Returns the domains of a label, kept until a node comes, goes or changes its labels."""
    return nodes.derived.get(("domains", key), lambda: _split(key, nodes))


def sum_domains(
    values: NDArray[np.int64], domains: Sequence[Domain], nodes: Nodes, key: str = ""
) -> NDArray[np.int64]:
    """Returns the sums over the rows of each domain."""
    if has_all(domains, key, nodes):
        return split_by(key, nodes).sum(values)
    sums = (values.sum() if each.rows is None else values[each.rows].sum() for each in domains)
    return np.fromiter(sums, np.int64, len(domains))


def has_all(domains: Sequence[Domain], key: str, nodes: Nodes) -> bool:
    """Whether these are all domains of a label."""
    return bool(key) and bool(domains) and split_by(key, nodes).domains is domains


def _split(key: str, nodes: Nodes) -> KeyDomains:
    column = nodes.label(key)
    rows = nodes.rows
    codes = column.codes[rows]
    rows, codes = rows[codes != ABSENT], codes[codes != ABSENT]
    found = np.flatnonzero(np.bincount(codes))
    values = column.vocabulary.values
    by_name = sorted(found.tolist(), key=lambda code: values[code])
    places = np.zeros(int(found.max(initial=-1)) + 1, np.intp)
    places[by_name] = np.arange(len(by_name))
    place_of = np.full(nodes.count(nodes.everything), _NOWHERE, np.intp)
    place_of[rows] = places[codes]
    order = np.argsort(places[codes], kind="stable")
    rows = rows[order]
    begins = np.searchsorted(places[codes[order]], np.arange(len(by_name)))
    parts = np.split(rows, begins[1:]) if len(by_name) else []
    domains = tuple(Domain(values[code], part) for code, part in zip(by_name, parts, strict=True))
    return KeyDomains(domains, rows, begins, place_of.tolist())
