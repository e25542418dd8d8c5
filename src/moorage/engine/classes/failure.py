"""Why no row takes the pods of a class: known row by row, with the pods nominated to each."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.cluster import Nodes, Rows
from moorage.cluster.arrays import freeze
from moorage.cluster.changes import Change, unite
from moorage.cluster.row_view import RowView
from moorage.framework.attempt import Failed, Filtered, Layer, PreFiltered
from moorage.framework.nominated import (
    filter_with_nominated,
    find_counted,
    find_ledgers,
    sees_only_counts,
)
from moorage.framework.points import filter_rows
from moorage.framework.profile import Profile
from moorage.framework.status import Reason
from moorage.framework.verdict import Verdict
from moorage.objects.pod import Pod

from .answers import MOST_FIGURES, FilterAnswer

# The values of rows where the pod fits, and of rows without a node. Others stand for reasons.
_FITS, _NO_NODE = 0, 1

# Every failure depends on how many nodes there are, and on pods that are nominated to them.
_ALWAYS = int(Change.MEMBERSHIP | Change.NOMINATED)


def is_row_local(
    profile: Profile,
    pod: Pod,
    prepared: PreFiltered,
    nodes: Nodes,
    filters: Sequence[FilterAnswer],
) -> bool:
    """Returns whether pods that are nominated to a row alter the answers for that row alone."""
    wide = unite(each.kinds for each in filters if each.is_wide and each.has_say)
    if not wide or not nodes.nominations:
        return True
    return not wide & find_counted(profile) and sees_only_counts(profile, pod, prepared, nodes)


class Failure(RowView[np.int32]):
    """Which filter refuses each row first, and why, for the pods of a class with one priority.

    The class drops it when a filter prepares something else. So only rows that changed are asked
    about again.
    """

    def __init__(
        self,
        profile: Profile,
        pod: Pod,
        prepared: PreFiltered,
        nodes: Nodes,
        filters: Sequence[FilterAnswer],
    ) -> None:
        self._profile = profile
        self._filters = filters
        self._pod, self._prepared = pod, prepared
        # The values of filters with their reasons.
        self._codes: dict[tuple[str, tuple[Reason, ...]], int] = {}
        # The values of rows that take the pod without their nominated pods, by the figures of the
        # row and what these pods will use.
        self._by_figures: dict[Hashable, int] = {}
        self._ledgers = find_ledgers(profile, pod, prepared, nodes)
        self._failed: Failed | None = None
        # How many values had changed when the failure was made.
        self._shown = -1
        kinds = _ALWAYS | unite(each.kinds for each in filters if each.has_say)
        #: The changes after which post-filters are asked again.
        self.watch = kinds | unite(int(each.reads) for each in profile.post_filter)
        super().__init__(nodes, kinds)

    @property
    def priority(self) -> int:
        """The priority of the pods: less important ones that are nominated do not count."""
        return self._pod.priority

    def find(self, pod: Pod, prepared: PreFiltered) -> Failed | None:
        """Returns the failure of a pod, up to date; None if there is a row where it fits."""
        self._pod, self._prepared = pod, prepared
        if len(self._codes) > len(self.values):
            # Reasons differ from time to time: most of them are given no more.
            self._codes.clear()
            self._by_figures.clear()
            self.renew()
        if not self.current().all():
            return None
        before, count = self._failed, len(self.nodes)
        if before is None or self._shown != self.version:
            self._shown = self.version
            self._failed = Failed(prepared, self._show(), count)
        elif before.pre_filtered is not prepared:
            self._failed = replace(before, pre_filtered=prepared)
        return self._failed

    def forget_remedies(self) -> None:
        """Forgets what post-filters said, because they may say something else by now."""
        if self._failed is not None:
            self._failed = replace(self._failed, known={})

    # Asking

    def compute(self, rows: Rows) -> NDArray[np.int32]:
        nodes = self.nodes
        filtered = filter_with_nominated(self._profile, self._pod, self._prepared, nodes, rows)
        return self._encode(filtered, rows)

    def compute_row(self, row: int) -> int:
        nodes, profile, pod = self.nodes, self._profile, self._pod
        first = next((each.plugin for each in self._filters if each.values[row]), None)
        weight = nodes.nominated_weight(pod)
        if weight is None or not weight.pods()[row]:
            if first is None:
                return _FITS
            at = np.array([row])
            only = [each for each in profile.filter if each is first]
            filtered = filter_rows(profile, pod, self._prepared, nodes, at, only)
            return int(self._encode(filtered, at)[0])
        if first is not None or self._ledgers is None:
            return int(self.compute_alone(row))
        held = [
            (each, key, nodes.ledger(each).of(key)[row])
            for each in self._ledgers
            for key in nodes.ledger(each)
            if row in nodes.ledger(each).of(key)
        ]
        coming = *weight.requests.array[:, row].tolist(), *weight.counts[:, row].tolist()
        figures = nodes.facts(row).figures, coming, *held
        known = self._by_figures.get(figures)
        if known is None:
            if len(self._by_figures) >= MOST_FIGURES:
                self._by_figures.clear()
            known = self._by_figures[figures] = int(self.compute_alone(row))
        return known

    # Reasons

    def _encode(self, filtered: Filtered, rows: Rows) -> NDArray[np.int32]:
        alive = self.nodes.alive
        values = np.where(alive, np.int32(_FITS), np.int32(_NO_NODE))
        for part in (filtered, *filtered.amended):
            for layer in part.layers:
                at = layer.decided.nonzero()[0]
                values[part.rows[at]] = self._encode_layer(layer, at)
        return values[rows]

    def _encode_layer(self, layer: Layer, at: NDArray[np.intp]) -> NDArray[np.int32]:
        """Returns the values of the positions that a filter was the first to reject."""
        failed = layer.verdict.failed[:, at]
        pattern: NDArray[np.intp] = np.zeros(len(at), np.intp)
        first = pattern[:1]
        for flags in failed:
            # Few patterns occur, so that their numbers stay small.
            _, first, pattern = np.unique(
                pattern * 2 + flags, return_index=True, return_inverse=True
            )
        codes = [
            self._find_code(layer.plugin, layer.verdict.reasons, failed[:, each]) for each in first
        ]
        return np.array(codes, np.int32)[pattern]

    def _find_code(self, plugin: str, reasons: Sequence[Reason], flags: NDArray[np.bool_]) -> int:
        given = tuple(each for each, failed in zip(reasons, flags.tolist(), strict=True) if failed)
        return self._codes.setdefault((plugin, given), len(self._codes) + _NO_NODE + 1)

    def _show(self) -> Filtered:
        """Returns the reasons for all rows."""
        values = self.values
        by_plugin: dict[str, list[tuple[int, tuple[Reason, ...]]]] = {}
        for (plugin, reasons), code in self._codes.items():
            by_plugin.setdefault(plugin, []).append((code, reasons))
        size = len(self._codes) + _NO_NODE + 1
        layers: list[Layer] = []
        for plugin, given in by_plugin.items():
            texts = tuple(dict.fromkeys(each for _, reasons in given for each in reasons))
            flags, own = np.zeros((len(texts), size), np.bool_), np.zeros(size, np.bool_)
            for code, reasons in given:
                own[code] = True
                flags[[texts.index(each) for each in reasons], code] = True
            layers.append(Layer(plugin, Verdict(texts, flags[:, values]), own[values]))
        rows = freeze(np.arange(len(values)))
        return Filtered(rows, np.zeros(len(values), np.bool_), tuple(layers))
